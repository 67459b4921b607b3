// SPDX-License-Identifier: GPL-2.0

#include <linux/bottom_half.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "err.h"
#include "lock.h"
#include "member.h"
#include "slot.h"
#include "tell.h"

/**
 * ored_slot_of() - the slot that an op uses
 * @m: the membership
 * @op: the op
 */
struct ored_slot *ored_slot_of(struct ored_member *m, u64 op)
{
	u32 i;

	div_u64_rem(op, m->nslots, &i);
	return &m->slots[i];
}

/**
 * ored_slot_at() - has an op be sent from, and reduced into, the slot's own memory
 * @slot: open; nobody reads or writes there
 * @skew: where contribution and result begin in it
 */
void ored_slot_at(struct ored_slot *slot, u32 skew)
{
	slot->own = slot->in + skew;
	slot->from = slot->in + skew;
	slot->made = slot->out + skew;
	slot->to = slot->out + skew;
	slot->user = NULL;
}

/* What a slot knows of its op, but for what is counted by chunk. */
static void forget(struct ored_slot *slot)
{
	struct ored_member *m = slot->m;
	u32 r;

	for (r = 0; r < m->nranks; r++) {
		atomic_set(&slot->peer[r].scattering, 0);
		atomic_set(&slot->peer[r].gathering, 0);
	}
	memset(slot->tails, 0, ORED_STAGES * slot->words * sizeof(long));
	bitmap_fill(slot->whole, m->nranks);
	bitmap_zero(slot->some, m->nranks);
	slot->sealed = 0;
	slot->delivered = false;
	slot->bounded = false;
	slot->delivers = false;
	ored_slot_at(slot, 0);
	slot->silent = false;
	slot->settled = false;
	slot->zero = false;
	slot->in_term = false;
	slot->resync = false;
	slot->limit = ORED_LIMIT_NONE;
	slot->behind = 0;
	slot->published_ns = 0;
	slot->rotate_ns = 0;
	slot->error = 0;
}

/* Makes an empty, closed slot ready for the op that uses it next. */
static void reset(struct ored_slot *slot, u64 op)
	__must_hold(&slot->m->lock)
{
	struct ored_member *m = slot->m;
	u32 r;

	lockdep_assert_held(&m->lock);
	for (r = 0; r < m->nranks; r++) {
		ored_chunkmap_reset(&slot->peer[r].rx[ORED_SCATTER], slot->used);
		ored_chunkmap_reset(&slot->peer[r].rx[ORED_GATHER], slot->used);
	}
	memset(slot->present, 0, slot->used * slot->words * sizeof(long));
	memset(slot->counted, 0, slot->used * slot->words * sizeof(long));
	memset(slot->reduced, 0, BITS_TO_LONGS(slot->used) * sizeof(long));
	memset(slot->uncounted, 0, BITS_TO_LONGS(slot->used * m->nranks) * sizeof(long));
	memset(slot->order, 0, slot->used * sizeof(*slot->order));
	forget(slot);
	atomic_set(&slot->ready, 0);
	slot->used = 0;
	slot->known = false;
	memset(&slot->failure, 0, sizeof(slot->failure));
	for (r = 0; r < ORED_STAGES; r++) {
		atomic64_set(&slot->received[r], 0);
		atomic64_set(&slot->repaired[r], 0);
	}
	atomic64_set(&slot->duplicates, 0);
	atomic64_set(&slot->resent, 0);
	slot->state = ORED_SLOT_OPEN;
	/* Whoever sees the op sees an empty slot. */
	smp_store_release(&slot->op, op);
}

static void reset_if_empty(struct ored_slot *slot)
	__must_hold(&slot->m->lock)
{
	struct ored_member *m = slot->m;
	u64 op = m->retained;
	struct ored_slot *next;

	lockdep_assert_held(&m->lock);
	/* In the order of ops, so that @retained has no gap behind it. */
	for (;;) {
		next = ored_slot_of(m, op);
		if (next->state != ORED_SLOT_CLOSED || atomic_read(&next->users))
			break;
		reset(next, op + m->nslots);
		op++;
	}
	if (op == m->retained)
		return;
	/* Pairs with the acquire in slot_is_free(). */
	smp_store_release(&m->retained, op);
	ored_tell_window(m);
	ored_member_wake(m, EPOLLOUT | EPOLLWRNORM);
}

/**
 * ored_slot_enter() - counts a user in, if the slot is that op's
 * @slot: the slot
 * @op: the op
 *
 * Return: whether the caller is in, and must call ored_slot_leave()
 */
bool ored_slot_enter(struct ored_slot *slot, u64 op)
{
	atomic_inc(&slot->users);
	/* Pairs with the one in ored_slot_try_release(). */
	smp_mb__after_atomic();
	/* And this with the release in reset(). */
	if (likely(smp_load_acquire(&slot->op) == op))
		return true;
	ored_slot_leave(slot);
	return false;
}

/**
 * ored_slot_leave() - counts a user out; no lock may be held
 * @slot: entered before
 */
void ored_slot_leave(struct ored_slot *slot)
{
	struct ored_member *m = slot->m;

	lockdep_assert_not_held(&m->lock);
	if (!atomic_dec_and_test(&slot->users) ||
	    likely(READ_ONCE(slot->op) != ORED_NO_OP))
		return;
	spin_lock_bh(&m->lock);
	reset_if_empty(slot);
	spin_unlock_bh(&m->lock);
}

/**
 * ored_slot_stop_flows() - sends a peer no more of an op
 * @slot: the op's
 * @l: the peer; its lock is held
 *
 * What is in flight to it isn't any more.
 */
void ored_slot_stop_flows(struct ored_slot *slot, struct ored_link *l)
	__must_hold(&l->lock)
{
	u32 stage;

	lockdep_assert_held(&l->lock);
	for (stage = 0; stage < ORED_STAGES; stage++)
		l->inflight -= ored_flow_stop(&slot->peer[l->rank].tx[stage]);
}

/**
 * ored_slot_stop() - sends nobody any more of an op
 * @slot: the op's; BH off, no link locked
 */
void ored_slot_stop(struct ored_slot *slot)
{
	struct ored_link *l;

	ored_for_each_link(slot->m, l) {
		spin_lock(&l->lock);
		ored_slot_stop_flows(slot, l);
		spin_unlock(&l->lock);
	}
}

/* Is a slot wanted for another op? */
static bool wanted(const struct ored_slot *slot)
{
	return slot->op + slot->m->conf.depth < slot->m->finished;
}

/*
 * May a peer still ask for an op that has ended here? A bounded op is given up
 * when its slot is wanted. A reliable one isn't, for a rank that misses a packet
 * of it could never end it; unless that rank is dead, which must not hold up all
 * others.
 */
static bool held_by(const struct ored_slot *slot, const struct ored_link *l)
{
	if (!ored_link_needs(l, slot->op))
		return false;
	if (!wanted(slot))
		return true;
	return !slot->bounded &&
	       ored_standing_live(&l->standing, ktime_get_ns(), slot->m->patience);
}

/* What was counted of the op whose result was taken last can still be asked for. */
static bool may_be_asked(const struct ored_slot *slot)
{
	return slot->bounded && slot->op + 1 == slot->m->received &&
	       slot->m->state == ORED_STATE_JOINED;
}

/**
 * ored_slot_try_release() - closes a slot that nobody needs any more
 * @slot: the slot; the membership's lock is held
 *
 * That is, its result has been taken and all peers have left its op, or the slot
 * is wanted for another. The slots suffice for the next send() all the same.
 */
void ored_slot_try_release(struct ored_slot *slot)
	__must_hold(&slot->m->lock)
{
	struct ored_member *m = slot->m;
	struct ored_link *l;

	lockdep_assert_held(&m->lock);
	if (slot->state != ORED_SLOT_FINISHED || !slot->delivered || may_be_asked(slot))
		return;
	ored_for_each_link(m, l) {
		if (held_by(slot, l))
			return;
	}
	ored_slot_stop(slot);
	slot->state = ORED_SLOT_CLOSED;
	WRITE_ONCE(slot->op, ORED_NO_OP);
	/* Either we see the user, or he sees that it is closed. */
	smp_mb();
	reset_if_empty(slot);
}

/**
 * ored_slot_release_past() - closes all slots that nobody needs any more
 * @m: the membership; its lock is held
 */
void ored_slot_release_past(struct ored_member *m)
	__must_hold(&m->lock)
{
	u64 op;

	lockdep_assert_held(&m->lock);
	for (op = m->retained; op < m->posted; op++)
		ored_slot_try_release(ored_slot_of(m, op));
}

/**
 * ored_slot_write() - may anything be written into the result?
 * @slot: entered
 *
 * If so, bottom halves are off until ored_slot_written(): whoever waits for the
 * writers spins, and may have what preempts one of them.
 *
 * Return: false: it is sealed
 */
bool ored_slot_write(struct ored_slot *slot)
{
	local_bh_disable();
	atomic_inc(&slot->writers);
	/* Pairs with the one in ored_slot_quiesce(). */
	smp_mb__after_atomic();
	if (likely(!(READ_ONCE(slot->sealed) & (BIT(ORED_GATHER) | BIT(ORED_MOVING)))))
		return true;
	ored_slot_written(slot);
	return false;
}

/**
 * ored_slot_written() - what ored_slot_write() allowed has been done
 * @slot: entered
 */
void ored_slot_written(struct ored_slot *slot)
{
	/* Whoever sees us gone sees what we wrote. */
	smp_mb__before_atomic();
	atomic_dec(&slot->writers);
	local_bh_enable();
}

/**
 * ored_slot_quiesce() - waits until nobody writes into the result
 * @slot: sealed, so that nobody begins to
 *
 * For as long as copying a chunk takes, or reducing it.
 */
void ored_slot_quiesce(struct ored_slot *slot)
{
	/* Either a writer sees the seal, or we see the writer. */
	smp_mb();
	while (atomic_read(&slot->writers))
		cpu_relax();
	/* Pairs with the one in ored_slot_written(). */
	smp_rmb();
}

/* Whose contributions the own shard is made of */
static void set_givers(struct ored_slot *slot)
{
	u32 r, n = slot->m->nranks;

	slot->adds = ored_kind_adds(slot->params.word);
	for (r = 0; r < n; r++) {
		if (ored_kind_gives(slot->params.word, slot->m->rank, r))
			__set_bit(r, slot->givers);
		else
			__clear_bit(r, slot->givers);
	}
}

/**
 * ored_slot_know() - notes what an op is, from its first packet or its post
 * @slot: entered, or under the membership's lock
 * @params: checked by ored_kind_fits()
 * @rank: whose they are
 *
 * Return: the rank whose parameters are noted: @rank, or who was first
 */
u32 ored_slot_know(struct ored_slot *slot, const struct ored_params *params, u32 rank)
{
	struct ored_member *m = slot->m;

	/* Pairs with the release below: what is known is set. */
	if (smp_load_acquire(&slot->known))
		return slot->known_by;
	spin_lock_bh(&slot->know);
	if (!slot->known) {
		slot->params = *params;
		slot->known_by = rank;
		ored_kind_map(&slot->map, params, m->payload, m->nranks);
		slot->used = slot->map.longest;
		set_givers(slot);
		/* Pairs with the acquire above. */
		smp_store_release(&slot->known, true);
	}
	spin_unlock_bh(&slot->know);
	return slot->known_by;
}

/* Cuts pieces off one allocation, or only adds them up while it has none. */
struct ored_arena {
	u8	*base;
	size_t	used;
};

static void *cut(struct ored_arena *arena, size_t count, size_t size)
{
	void *piece = arena->base ? arena->base + arena->used : NULL;

	arena->used = ALIGN(arena->used + count * size, sizeof(u64));
	return piece;
}

static void lay_out(struct ored_slot *slot, struct ored_arena *arena, u32 room)
{
	struct ored_member *m = slot->m;
	size_t words = BITS_TO_LONGS(ALIGN(room, 64));
	u32 r, stage;

	slot->peer = cut(arena, m->nranks, sizeof(*slot->peer));
	slot->need = cut(arena, slot->words, sizeof(long));
	slot->tails = cut(arena, ORED_STAGES * slot->words, sizeof(long));
	slot->givers = cut(arena, slot->words, sizeof(long));
	slot->owners = cut(arena, slot->words, sizeof(long));
	slot->whole = cut(arena, slot->words, sizeof(long));
	slot->some = cut(arena, slot->words, sizeof(long));
	slot->present = cut(arena, (size_t)room * slot->words, sizeof(long));
	slot->counted = cut(arena, (size_t)room * slot->words, sizeof(long));
	slot->reduced = cut(arena, words, sizeof(long));
	slot->uncounted = cut(arena, BITS_TO_LONGS((size_t)room * m->nranks), sizeof(long));
	slot->order = cut(arena, room, sizeof(*slot->order));
	for (r = 0; r < m->nranks; r++) {
		for (stage = 0; stage < ORED_STAGES; stage++) {
			unsigned long *bits = cut(arena, words, sizeof(long));
			u32 *sent = cut(arena, room, sizeof(u32));
			unsigned long *done = cut(arena, words, sizeof(long));
			unsigned long *out = cut(arena, words, sizeof(long));
			unsigned long *lost = cut(arena, words, sizeof(long));
			struct ored_slot_peer *peer;

			if (!arena->base)
				continue;
			peer = &slot->peer[r];
			peer->rx[stage].bits = bits;
			peer->rx[stage].room = room;
			peer->tx[stage].sent = sent;
			peer->tx[stage].done = done;
			peer->tx[stage].out = out;
			peer->tx[stage].lost = lost;
		}
	}
}

/**
 * ored_slots_take() - memory that stays as long as a membership does
 * @m: the membership, charged for it already
 * @bytes: how much
 *
 * Return: zeroed memory, for vfree(), or NULL
 */
void *ored_slots_take(struct ored_member *m, size_t bytes)
{
	void *p = __vmalloc(max_t(size_t, bytes, 1), ORED_GFP);

	if (p)
		m->memory += PAGE_ALIGN(bytes);
	cond_resched();
	return p;
}

/* Between the contributions of two senders; own shards are shorter than that. */
static size_t stride_of(const struct ored_member *m)
{
	size_t bucket = m->conf.bucket_max;

	return min_t(size_t, bucket, ALIGN(bucket / m->nranks, 8) + 2 * (size_t)m->payload_bound);
}

/* Of the largest bucket in the smallest chunks */
static size_t uncounted_bytes(const struct ored_member *m, u32 room)
{
	return sizeof(*m->uncounted) +
	       DIV_ROUND_UP((size_t)room * m->nranks, 64) * sizeof(u64);
}

/*
 * A barrier's bytes fit, whatever the largest bucket is, and one's own shard of a
 * reduce-scatter can be put where it can be reduced (ored_op_place()).
 */
static size_t buffer_bytes(const struct ored_member *m)
{
	size_t least = m->nranks * ORED_BARRIER_BYTES;

	return max_t(size_t, m->conf.bucket_max, least) + ORED_PAYLOAD_ALIGN;
}

static u64 slot_bytes(const struct ored_member *m, u32 room)
{
	struct ored_slot slot = {
		.m = (struct ored_member *)m,
		.words = BITS_TO_LONGS(m->nranks),
	};
	struct ored_arena arena = {};

	lay_out(&slot, &arena, room);
	return 2 * PAGE_ALIGN(buffer_bytes(m)) + PAGE_ALIGN(arena.used) +
	       PAGE_ALIGN((m->nranks - 1) * stride_of(m));
}

static int slot_alloc(struct ored_slot *slot, u32 room)
{
	struct ored_member *m = slot->m;
	struct ored_arena arena = {};

	slot->stride = stride_of(m);
	slot->in = ored_slots_take(m, buffer_bytes(m));
	slot->out = ored_slots_take(m, buffer_bytes(m));
	slot->staged = ored_slots_take(m, (m->nranks - 1) * slot->stride);
	lay_out(slot, &arena, room);
	arena.base = ored_slots_take(m, arena.used);
	if (!slot->in || !slot->out || !slot->staged || !arena.base) {
		vfree(arena.base);
		return -ENOMEM;
	}
	arena.used = 0;
	lay_out(slot, &arena, room);
	forget(slot);
	return 0;
}

/**
 * ored_slots_alloc() - all memory that ops of a membership will ever need
 * @m: with @conf, @nranks, @nslots and @payload_bound set
 *
 * @why: receives a sentence if it is refused
 *
 * Sized for the smallest payload, since the agreed one isn't known yet.
 *
 * Return: 0 or -ENOMEM; in any case ored_slots_free() cleans up
 */
int ored_slots_alloc(struct ored_member *m, char *why)
{
	size_t bucket = m->conf.bucket_max;
	u32 room = DIV_ROUND_UP(DIV_ROUND_UP(bucket, ORED_PAYLOAD_MIN), m->nranks);
	u64 bytes = m->nslots * slot_bytes(m, room) + PAGE_ALIGN(uncounted_bytes(m, room)) +
		    ored_rotate_bytes(m);
	u32 i;
	int err;

	ored_mapped_plan(m);
	bytes += ored_mapped_bytes(&m->mapped);
	err = ored_charge(&m->charge, bytes, "the group", why);
	if (err)
		return err;
	ored_refuse(why, ENOMEM, "no memory for the %llu bytes of %u slots: take a smaller bucket_max or depth",
		    bytes, m->nslots + m->mapped.count);
	err = ored_mapped_alloc(m);
	if (err)
		return err;
	m->slots = kvcalloc(m->nslots, sizeof(*m->slots), GFP_KERNEL_ACCOUNT);
	m->uncounted = ored_slots_take(m, uncounted_bytes(m, room));
	if (!m->slots || !m->uncounted)
		return -ENOMEM;
	m->uncounted->op = ORED_NO_OP;
	for (i = 0; i < m->nslots; i++) {
		struct ored_slot *slot = &m->slots[i];

		slot->m = m;
		slot->op = i;
		slot->words = BITS_TO_LONGS(m->nranks);
		spin_lock_init(&slot->know);
		ored_lock_class(&slot->know, ORED_LOCK_KNOW);
		err = slot_alloc(slot, room);
		if (err)
			return err;
	}
	return ored_rotate_alloc(m);
}

/**
 * ored_slots_free() - gives it back
 * @m: no packet or timer can reach it any more
 */
void ored_slots_free(struct ored_member *m)
{
	u32 i;

	ored_uncharge(&m->charge);
	vfree(m->uncounted);
	ored_rotate_free(m);
	ored_mapped_free(m);
	if (!m->slots)
		return;
	for (i = 0; i < m->nslots; i++) {
		vfree(m->slots[i].in);
		vfree(m->slots[i].out);
		vfree(m->slots[i].staged);
		vfree(m->slots[i].peer);	/* the arena's first piece */
	}
	kvfree(m->slots);
}
