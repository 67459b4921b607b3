// SPDX-License-Identifier: GPL-2.0

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/ored.h>

#include "af_ored.h"
#include "mapped.h"
#include "op.h"

/**
 * ored_mapped_plan() - how much memory a membership's slots will take
 * @m: with @conf set
 *
 * One more than ops that can be in flight, so that there is always one to fill.
 */
void ored_mapped_plan(struct ored_member *m)
{
	if (!(m->conf.flags & ORED_JOIN_SLOTS))
		return;
	m->mapped.count = m->conf.depth + 1;
	m->mapped.stride = PAGE_ALIGN(m->conf.bucket_max);
}

/**
 * ored_mapped_alloc() - allocates them
 * @m: after ored_mapped_plan(), charged
 *
 * Return: 0 or -ENOMEM; in any case ored_mapped_free() cleans up
 */
int ored_mapped_alloc(struct ored_member *m)
{
	struct ored_mapped *mapped = &m->mapped;
	u32 i;

	if (!mapped->count)
		return 0;
	mapped->op = kmalloc_array(mapped->count, sizeof(*mapped->op), GFP_KERNEL_ACCOUNT);
	mapped->base = __vmalloc(ored_mapped_bytes(mapped), ORED_GFP);
	if (!mapped->op || !mapped->base)
		return -ENOMEM;
	m->memory += ored_mapped_bytes(mapped);
	for (i = 0; i < mapped->count; i++)
		mapped->op[i] = ORED_NO_OP;
	return 0;
}

/**
 * ored_mapped_free() - gives them back
 * @m: nothing maps them any more
 */
void ored_mapped_free(struct ored_member *m)
{
	kfree(m->mapped.op);
	vfree(m->mapped.base);
}

static vm_fault_t fault(struct vm_fault *vmf)
{
	struct ored_mapped *mapped = vmf->vma->vm_private_data;
	struct page *page;

	if (vmf->pgoff >= ored_mapped_bytes(mapped) >> PAGE_SHIFT)
		return VM_FAULT_SIGBUS;
	page = vmalloc_to_page(mapped->base + (vmf->pgoff << PAGE_SHIFT));
	get_page(page);
	vmf->page = page;
	return 0;
}

/* No page_mkwrite: it would forbid long-term pins. */
static const struct vm_operations_struct vm_ops = {
	.fault = fault,
};

/**
 * ored_mapped_mmap() - maps slots
 * @file: the socket's
 * @sock: the socket
 * @vma: any pages of them
 *
 * Return: 0, -ENOTCONN, -ENODEV: there are none, -EINVAL, -EPERM
 */
int ored_mapped_mmap(struct file *file, struct socket *sock, struct vm_area_struct *vma)
{
	struct ored_sock *osk = ored_sk(sock->sk);
	struct ored_member *m = ored_sock_joined(osk);
	u64 pages, end = (u64)vma->vm_pgoff + vma_pages(vma);

	if (!m)
		return ored_sock_refuse(osk, ENOTCONN, "this socket has joined no group");
	if (!m->mapped.count)
		return ored_sock_refuse(osk, ENODEV,
					"the group was joined without ORED_JOIN_SLOTS");
	pages = ored_mapped_bytes(&m->mapped) >> PAGE_SHIFT;
	if (end > pages)
		return ored_sock_refuse(osk, EINVAL,
					"the mapping ends at page %llu, but %u slots have %llu",
					end, m->mapped.count, pages);
	/* Writes would go to a copy that no op ever sees. */
	if (vma->vm_flags & VM_WRITE && !(vma->vm_flags & VM_SHARED))
		return ored_sock_refuse(osk, EINVAL,
					"slots can be written through MAP_SHARED mappings only");
	if (vma->vm_flags & VM_EXEC)
		return ored_sock_refuse(osk, EPERM, "slots can't be executed");
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vm_flags_clear(vma, vma->vm_flags & VM_WRITE ? VM_MAYEXEC : VM_MAYEXEC | VM_MAYWRITE);
	/* It stays as long as the file, and that as long as the mapping. */
	vma->vm_private_data = &m->mapped;
	vma->vm_ops = &vm_ops;
	return 0;
}

/*
 * What has been gathered before the post is in the kernel's memory, and more may
 * be coming in: writers are kept out, as if their packets were lost, until it is
 * moved.
 */
static void move_in(struct ored_slot *slot, u8 *to, const struct ored_params *params)
{
	struct ored_member *m = slot->m;
	struct ored_link *l;
	bool agreed;
	u32 chunk;

	set_bit(ORED_MOVING, &slot->sealed);
	ored_slot_quiesce(slot);
	/* Pairs with the release in ored_slot_know(). What differs fails anyway. */
	agreed = smp_load_acquire(&slot->known) && ored_params_equal(&slot->params, params);
	ored_for_each_link(m, l) {
		u32 first = ored_map_first(&slot->map, l->rank);
		u32 count = agreed ? ored_kind_gathers(&slot->map, slot->params.word, l->rank,
						       m->rank) : 0;

		for (chunk = 0; chunk < count; chunk++) {
			u32 at = ored_map_offset(&slot->map, first + chunk);

			if (test_bit(chunk, slot->peer[l->rank].rx[ORED_GATHER].bits))
				memcpy(to + at, slot->out + at,
				       ored_map_length(&slot->map, first + chunk));
		}
	}
	WRITE_ONCE(slot->to, to);
	/* Whoever may write again writes there. */
	smp_mb__before_atomic();
	clear_bit(ORED_MOVING, &slot->sealed);
}

static void send_from(struct ored_slot *slot, u8 *user)
{
	slot->own = user;
	slot->from = user;
}

static void send_in_place(struct ored_slot *slot, u8 *user, const struct ored_params *params)
{
	struct ored_member *m = slot->m;
	u8 kind = ored_params_kind(params->word);
	struct ored_map map;
	u32 at;

	ored_kind_map(&map, params, m->payload, m->nranks);
	at = ored_map_start(&map, m->rank);
	if (kind == ORED_REDUCE_SCATTER ||
	    (kind == ORED_BROADCAST && ored_params_root(params->word) == m->rank))
		memcpy(slot->from, user, params->bytes);
	else if (kind == ORED_ALL_GATHER)
		memcpy(slot->from + at, user + at, ored_map_shard_bytes(&map, m->rank));
	else
		send_from(slot, user);
	move_in(slot, user, params);
}

/**
 * ored_mapped_take() - an op is about to be posted from a slot
 * @slot: the op's, after ored_op_place(); the caller is the only one to post
 * @index: of the slot, which no op has
 * @params: what will be posted; what the group has decided may be changed
 *
 * An allreduce is sent from the slot itself: by the time that it has ended peers
 * don't want its contribution any more. Of others they may: what they may want is
 * copied. So is all of what is transformed, into the kernel's memory and back.
 */
void ored_mapped_take(struct ored_slot *slot, u32 index, struct ored_params *params)
{
	struct ored_mapped *mapped = &slot->m->mapped;
	u8 *user = mapped->base + index * mapped->stride;

	if (ored_rotate_settle(slot, params))
		memcpy(slot->from, user, params->bytes);
	else
		send_in_place(slot, user, params);
	slot->user = user;
	WRITE_ONCE(mapped->op[index], slot->op);
}

/* May a peer still want contributions to its shard? */
static bool wants(struct ored_slot *slot, struct ored_link *l, bool useless)
{
	struct ored_flow *flow = &slot->peer[l->rank].tx[ORED_SCATTER];
	bool wanted;

	spin_lock_bh(&l->lock);
	if (useless)
		l->inflight -= ored_flow_stop(flow);
	wanted = !flow->stopped && !ored_flow_complete(flow);
	spin_unlock_bh(&l->lock);
	return wanted;
}

/**
 * ored_mapped_detach() - nothing is sent from a slot any more
 * @slot: the op's, finished; the caller is the only one to take its result; process
 *	context, no lock held
 *
 * Before what is missing is filled in, which overwrites contributions that a late
 * owner may still want.
 */
void ored_mapped_detach(struct ored_slot *slot)
{
	struct ored_member *m = slot->m;
	/* All have reduced with it, or nobody will. */
	bool useless = slot->error || ored_op_is_whole(slot);
	struct ored_link *l;

	if (slot->from != slot->user)
		return;
	ored_for_each_link(m, l) {
		u32 at = ored_map_offset(&slot->map, ored_map_first(&slot->map, l->rank));

		if (wants(slot, l, useless))
			memcpy(slot->in + at, slot->from + at,
			       ored_map_shard_bytes(&slot->map, l->rank));
		cond_resched();
	}
	WRITE_ONCE(slot->from, slot->in);
	/* Either a reader sees that, or we see the reader. */
	smp_mb();
	while (atomic_read(&slot->readers))
		cpu_relax();
}

/**
 * ored_mapped_result() - has the result in the slot
 * @slot: the op's, detached, settled, without an error
 * @result: where it is
 * @len: its bytes
 */
void ored_mapped_result(struct ored_slot *slot, const u8 *result, size_t len)
{
	/* All but what was transformed is there. */
	if (ored_params_is_rotated(slot->mine.word))
		memcpy(slot->user, result, len);
}

/**
 * ored_mapped_return() - an op has ended, and its slot is its user's again
 * @slot: the op's, detached, its result settled
 */
void ored_mapped_return(struct ored_slot *slot)
{
	struct ored_member *m = slot->m;
	u32 index = (slot->user - m->mapped.base) / m->mapped.stride;

	if (slot->sealed)
		ored_slot_quiesce(slot);
	slot->user = NULL;
	/* Pairs with the acquire in post(): nothing touches it any more. */
	smp_store_release(&m->mapped.op[index], ORED_NO_OP);
}
