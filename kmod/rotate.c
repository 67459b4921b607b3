// SPDX-License-Identifier: GPL-2.0
/*
 * The Hadamard transform in send() and recv(). In between an op doesn't know of
 * it: it sends, reduces and fills in what it finds in its slot, so what is
 * missing is missing there, and is spread when the result comes back.
 *
 * Whether an op is transformed is a parameter of it (wire.h). Where the group
 * decides that, what others have said of the op already is what counts.
 */

#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>
#include <linux/ored.h>

#include "compute.h"
#include "member.h"

static u32 scratch_bytes(const struct ored_member *m)
{
	/* Most elements are the shortest. */
	return ored_hadamard_scratch(max_t(u64, m->conf.bucket_max / sizeof(u16), 1)) *
	       sizeof(u32);
}

/**
 * ored_rotate_bytes() - memory for the transform, in bytes
 * @m: with @conf set
 */
u64 ored_rotate_bytes(const struct ored_member *m)
{
	return 2 * PAGE_ALIGN(scratch_bytes(m)) + PAGE_ALIGN(m->conf.bucket_max);
}

/**
 * ored_rotate_alloc() - takes that memory
 * @m: charged for it
 *
 * Return: 0 or -ENOMEM; in any case ored_rotate_free() cleans up
 */
int ored_rotate_alloc(struct ored_member *m)
{
	struct ored_rotate_memory *memory = &m->rotate;

	ored_rotation_init(&m->rotation);
	memory->op = ORED_NO_OP;
	memory->in = ored_slots_take(m, scratch_bytes(m));
	memory->out = ored_slots_take(m, scratch_bytes(m));
	memory->result = ored_slots_take(m, m->conf.bucket_max);
	return memory->in && memory->out && memory->result ? 0 : -ENOMEM;
}

/**
 * ored_rotate_free() - gives it back
 * @m: nobody sends or receives any more
 */
void ored_rotate_free(struct ored_member *m)
{
	vfree(m->rotate.in);
	vfree(m->rotate.out);
	vfree(m->rotate.result);
}

/**
 * ored_rotate_takes() - can such an op be transformed?
 * @kind: enum ored_kind
 * @dtype: enum ored_dtype
 * @reduction: enum ored_reduction
 *
 * The transform is linear: it goes with sums, not with extremes. It mixes all of a
 * bucket, of which a rank gets no more than its shard by a reduce-scatter.
 */
bool ored_rotate_takes(u8 kind, u8 dtype, u8 reduction)
{
	return kind == ORED_ALLREDUCE && ored_hadamard_takes(dtype) &&
	       (reduction == ORED_SUM || reduction == ORED_MEAN);
}

static u8 wish(const struct ored_member *m, u32 flags)
{
	if (flags & ORED_OP_HADAMARD_ON)
		return ORED_HADAMARD_ON;
	if (flags & ORED_OP_HADAMARD_OFF)
		return ORED_HADAMARD_OFF;
	return READ_ONCE(m->policy.hadamard);
}

static u8 by_group(struct ored_member *m)
{
	bool on;

	spin_lock_bh(&m->lock);
	on = ored_rotation_on(&m->rotation, m->posted);
	spin_unlock_bh(&m->lock);
	return on ? ORED_ROTATE_AUTO_ON : ORED_ROTATE_AUTO_OFF;
}

/**
 * ored_rotate_choose() - shall the next op be transformed?
 * @m: the membership; no lock held
 * @word: the op's other parameters
 * @flags: ORED_OP_*
 *
 * Return: @word with enum ored_rotate
 */
u16 ored_rotate_choose(struct ored_member *m, u16 word, u32 flags)
{
	if (!ored_rotate_takes(ored_params_kind(word), ored_params_dtype(word),
			       ored_params_reduction(word)))
		return word;
	switch (wish(m, flags)) {
	case ORED_HADAMARD_ON:
		return ored_params_rotated(word, ORED_ROTATE_ON);
	case ORED_HADAMARD_OFF:
		return word;
	default:
		/* A reliable op loses nothing. */
		if (ored_params_mode(word) != ORED_MODE_BOUNDED)
			return word;
		return ored_params_rotated(word, by_group(m));
	}
}

static void transform(const struct ored_slot *slot, void *data, u32 *scratch, bool inverse)
{
	const struct ored_join *conf = &slot->m->conf;
	u8 dtype = ored_params_dtype(slot->params.word);
	u32 count = slot->params.bytes / ored_dtype_size(dtype);
	struct ored_hadamard h = {
		.seed = ored_hadamard_seed(conf->group, conf->epoch, slot->op),
		.count = count,
		.log = ored_hadamard_log(count),
		.dtype = dtype,
		.inverse = inverse,
	};
	u64 tile;

	for (tile = 0; tile < ored_hadamard_tiles(&h); tile++) {
		ored_hadamard_tile(&h, ored_compute_hadamard(), data, scratch, tile);
		cond_resched();
	}
}

/**
 * ored_rotate_settle() - is the own contribution to be transformed?
 * @slot: open; the caller is about to post it, and can't fail but by having left
 * @params: the op's; what the group has decided may be changed
 *
 * Whoever is first to speak of an op says whether it is transformed, if that is
 * all we differ in. A bucket that nobody will take isn't.
 */
bool ored_rotate_settle(struct ored_slot *slot, struct ored_params *params)
{
	u64 value[2];
	bool differ;

	/* Only whoever posts can move it on from where it is. */
	if (WARN_ON_ONCE(!ored_slot_enter(slot, slot->op)))
		return false;

	ored_slot_know(slot, params, slot->m->rank);
	differ = ored_params_differ(params, &slot->params, value);
	if (!differ)
		params->word = slot->params.word;
	ored_slot_leave(slot);
	if (differ)
		return false;
	return ored_params_is_rotated(params->word);
}

/**
 * ored_rotate_in() - transforms the own contribution, if it is to be
 * @slot: open, the contribution is in it; the caller is about to post it
 * @params: the op's; what the group has decided may be changed
 */
void ored_rotate_in(struct ored_slot *slot, struct ored_params *params)
{
	u64 begin = ktime_get_ns();

	if (!ored_rotate_settle(slot, params))
		return;
	transform(slot, slot->in, slot->m->rotate.in, false);
	slot->rotate_ns = ktime_get_ns() - begin;
}

/**
 * ored_rotate_out() - the result as the user wants it
 * @slot: finished, settled; the caller is the only one to take its result
 *
 * Return: its bytes, until the next call
 */
const u8 *ored_rotate_out(struct ored_slot *slot)
{
	struct ored_rotate_memory *memory = &slot->m->rotate;
	u64 begin = ktime_get_ns();

	if (!ored_params_is_rotated(slot->mine.word))
		return slot->out;
	/* It may be read again: MSG_PEEK, or a buffer that wasn't there. */
	if (memory->op == slot->op)
		return memory->result;
	memcpy(memory->result, slot->out, slot->mine.bytes);
	transform(slot, memory->result, memory->out, true);
	memory->op = slot->op;
	slot->rotate_ns += ktime_get_ns() - begin;
	return memory->result;
}

/* Does any peer that counts lose more than a little? */
static bool others_lose(const struct ored_member *m)
{
	const struct ored_link *l;

	ored_for_each_link(m, l) {
		if (ored_standing_counts(&l->standing) &&
		    ored_rotation_loses(READ_ONCE(l->rotation_word)))
			return true;
	}
	return false;
}

/**
 * ored_rotate_ended() - learns from a bounded op that has ended
 * @m: the membership; its lock is held
 * @loss_ppm: what it has lost of what peers that count should have given
 */
void ored_rotate_ended(struct ored_member *m, u32 loss_ppm)
{
	lockdep_assert_held(&m->lock);
	ored_rotation_ended(&m->rotation, m->posted, loss_ppm, others_lose(m));
	ored_rotate_advertise(m);
}

/**
 * ored_rotate_heard() - a control packet says what its sender knows
 * @l: the sender; its membership's lock is held
 * @word: from the packet
 * @posted: ops that its sender had posted then; it may come late
 */
void ored_rotate_heard(struct ored_link *l, u16 word, u64 posted)
{
	struct ored_member *m = l->m;

	lockdep_assert_held(&m->lock);
	WRITE_ONCE(l->rotation_word, word);
	if (ored_rotation_heard(&m->rotation, word, posted))
		ored_rotate_advertise(m);
}

/**
 * ored_rotate_advertise() - what is known has changed, or how many ops are posted
 * @m: the membership; its lock is held
 */
void ored_rotate_advertise(struct ored_member *m)
{
	lockdep_assert_held(&m->lock);
	/* Who says that says no less of what is posted; pairs with ored_packet_init(). */
	smp_wmb();
	WRITE_ONCE(m->rotation_word, ored_rotation_pack(&m->rotation, m->posted));
}
