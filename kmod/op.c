// SPDX-License-Identifier: GPL-2.0
/*
 * Ops. The last contribution to a chunk that anybody waits for has it reduced, in
 * the order of ranks, and handed to the gather, so that the two stages are
 * pipelined chunk by chunk. The last chunk of the result ends the op. Everything
 * up to that runs wherever packets are received. What ends a bounded op before
 * that is in deadline.c.
 */

#include <linux/bitmap.h>
#include <linux/ktime.h>
#include <linux/ored.h>

#include "compute.h"
#include "deadline.h"
#include "early.h"
#include "event.h"
#include "op.h"
#include "timer.h"
#include "trace.h"
#include "tx.h"

/**
 * ored_op_sends() - may anything of an op go out? Enters its slot if so.
 * @slot: the op's
 * @op: the op
 */
bool ored_op_sends(struct ored_slot *slot, u64 op)
{
	int state;

	if (!ored_slot_enter(slot, op))
		return false;
	/* Pairs with the release in ored_op_post(). */
	state = smp_load_acquire(&slot->state);
	if (state == ORED_SLOT_POSTED ||
	    (state == ORED_SLOT_FINISHED && !READ_ONCE(slot->error)))
		return true;
	ored_slot_leave(slot);
	return false;
}

/* What is known of whose contributions were counted, for the result */
static void note_counted(struct ored_slot *slot, u32 owner, const unsigned long *counted)
{
	u32 r;

	if (!slot->adds) {
		set_bit(owner, slot->some);
		if (ored_params_kind(slot->params.word) == ORED_BROADCAST)
			set_bit(ored_params_root(slot->params.word), slot->some);
		return;
	}
	/* The usual, for every packet of the gather */
	if (!counted && bitmap_full(slot->some, slot->m->nranks))
		return;
	for (r = 0; r < slot->m->nranks; r++) {
		if (!counted || test_bit(r, counted)) {
			if (!test_bit(r, slot->some))
				set_bit(r, slot->some);
		} else if (test_bit(r, slot->whole)) {
			clear_bit(r, slot->whole);
		}
	}
}

/* Where a contribution to a chunk of the own shard is */
static const u8 *contribution(const struct ored_slot *slot, u32 rank, u32 whole)
{
	u32 own = slot->m->rank;

	if (rank == own)
		return slot->own + ored_map_offset(&slot->map, whole);
	return slot->staged + (rank - (rank > own)) * slot->stride +
	       (size_t)(whole - ored_map_first(&slot->map, own)) * slot->map.payload;
}

/* A chunk of the own shard that nothing is added to */
static void hand_on(struct ored_slot *slot, u32 whole)
{
	u32 giver = find_first_bit(slot->givers, slot->m->nranks);

	memcpy(slot->made + ored_map_offset(&slot->map, whole),
	       contribution(slot, giver, whole), ored_map_length(&slot->map, whole));
}

static void add_up(struct ored_slot *slot, u8 *to, u32 whole, const unsigned long *present)
{
	struct ored_member *m = slot->m;
	u32 first = ored_map_first(&slot->map, m->rank);
	bool mine = whole - first < ored_map_count(&slot->map, m->rank);
	struct ored_contribs c = {
		.own = slot->own + ored_map_offset(&slot->map, whole),
		.staged = slot->staged + (mine ? (size_t)(whole - first) * slot->map.payload : 0),
		.stride = slot->stride,
		.rank = m->rank,
		.nranks = m->nranks,
		.present = present,
	};
	u16 word = slot->params.word;

	ored_compute_reduce(to, &c, ored_map_length(&slot->map, whole),
			    ored_params_dtype(word), ored_params_reduction(word));
}

/**
 * ored_op_reduce() - computes a chunk of the result
 * @slot: posted; the caller may write into the result
 * @whole: the chunk, counted over the bucket
 * @present: whose contributions to take in; NULL: everybody's
 *
 * Contributions of others are there for the own shard only.
 */
void ored_op_reduce(struct ored_slot *slot, u32 whole, const unsigned long *present)
{
	u32 offset = ored_map_offset(&slot->map, whole), own = slot->m->rank;

	if (whole - ored_map_first(&slot->map, own) >= ored_map_count(&slot->map, own)) {
		add_up(slot, slot->to + offset, whole, present);
		return;
	}
	/* Peers get what was made of it once, whatever a user does to a mapped slot. */
	if (slot->adds)
		add_up(slot, slot->made + offset, whole, present);
	else
		hand_on(slot, whole);
	if (slot->made != slot->to)
		memcpy(slot->to + offset, slot->made + offset,
		       ored_map_length(&slot->map, whole));
}

/**
 * ored_op_reduce_chunk() - reduces a chunk of the own shard from what is there of it
 * @slot: posted; the caller may write into the result, and is the only one to
 *	reduce that chunk
 * @chunk: counted over the shard
 *
 * Return: false: nothing is there
 */
bool ored_op_reduce_chunk(struct ored_slot *slot, u32 chunk)
{
	unsigned long *counted = ored_slot_set(slot, slot->counted, chunk);
	u32 own = slot->m->rank, n = slot->m->nranks, r;
	bool full;

	bitmap_and(counted, ored_slot_set(slot, slot->present, chunk), slot->givers, n);
	/* Pairs with the barrier before a contribution's bit is set. */
	smp_rmb();
	if (bitmap_empty(counted, n)) {
		/* Then nobody who had to give it is in the result as a whole. */
		for_each_set_bit(r, slot->givers, n)
			clear_bit(r, slot->whole);
		return false;
	}
	full = ored_slot_full(slot, counted);
	ored_op_reduce(slot, ored_map_first(&slot->map, own) + chunk, full ? NULL : counted);
	note_counted(slot, own, full ? NULL : counted);
	return true;
}

/*
 * Whether a chunk of the own shard can be reduced: everybody who is waited for
 * has contributed, or the scatter is sealed. Not before the post, which puts the
 * own contribution in last.
 */
static bool ready(const struct ored_slot *slot, u32 chunk)
{
	const unsigned long *present = ored_slot_set(slot, slot->present, chunk);
	u32 w;

	if (!test_bit(slot->m->rank, present) && !READ_ONCE(slot->silent))
		return false;
	/* Whoever sees that sees whom the op waits for. */
	smp_rmb();
	if (test_bit(ORED_SCATTER, &slot->sealed))
		return true;
	/* Nothing stands in for the one who broadcasts, whether or not he counts. */
	if (!slot->adds)
		return ored_slot_full(slot, present);
	for (w = 0; w < slot->words; w++) {
		if (READ_ONCE(slot->need[w]) & ~READ_ONCE(present[w]))
			return false;
	}
	return true;
}

/* Peers that have left the group, and said so */
static u32 departed(const struct ored_member *m)
{
	const struct ored_link *l;
	u32 n = 0;

	ored_for_each_link(m, l)
		n += READ_ONCE(l->status) == ORED_PEER_LEFT;
	return n;
}

static bool has_arrived(const struct ored_flow *flow)
{
	return READ_ONCE(flow->stopped) || READ_ONCE(flow->arrived) >= flow->count;
}

/* Has a peer posted an op, and all that it gets of it from here? */
static bool has_all(const struct ored_link *l, const struct ored_slot *slot)
{
	const struct ored_flow *tx = slot->peer[l->rank].tx;

	return READ_ONCE(l->standing.posted) > slot->op &&
	       has_arrived(&tx[ORED_SCATTER]) && has_arrived(&tx[ORED_GATHER]);
}

/*
 * Does everybody who is waited for have what this rank broadcasts? It needs nothing
 * from anybody; without that it would be through at once, and run away. Whoever
 * posts late would then take himself for left behind, though he has it all already
 * or soon.
 */
static bool is_delivered(const struct ored_slot *slot)
{
	const struct ored_member *m = slot->m;
	const struct ored_link *l;

	ored_for_each_link(m, l) {
		if (test_bit(l->rank, slot->need) && ored_link_needs(l, slot->op) &&
		    !has_all(l, slot))
			return false;
	}
	return true;
}

/* Has everybody who is waited for given everything? */
static bool is_complete(const struct ored_slot *slot)
{
	const struct ored_member *m = slot->m;
	const struct ored_link *l;

	if (atomic_read(&slot->reducing) || (slot->delivers && !is_delivered(slot)))
		return false;
	ored_for_each_link(m, l) {
		if (test_bit(l->rank, slot->owners) && !ored_slot_has_shard(slot, l->rank))
			return false;
	}
	return !slot->bounded ||
	       ored_quorum(bitmap_weight(slot->need, m->nranks), m->nranks - departed(m));
}

static void try_complete(struct ored_slot *slot)
{
	/* Pairs with the release in publish(): it is known whom to wait for. */
	if (smp_load_acquire(&slot->state) == ORED_SLOT_POSTED && is_complete(slot))
		ored_op_end(slot, 0, ORED_LIMIT_COMPLETE);
}

/* Reduces a chunk, unless somebody does or the op is over, and hands it on. */
static bool reduce(struct ored_slot *slot, u32 chunk)
{
	int place;

	if (test_and_set_bit(chunk, slot->reduced) || !ored_slot_write(slot))
		return false;
	if (ored_op_reduce_chunk(slot, chunk)) {
		place = atomic_inc_return(&slot->ready) - 1;
		/* Pairs with the acquire in next_new(): the result is there. */
		smp_store_release(&slot->order[place], chunk + 1);
	}
	ored_slot_written(slot);
	if (atomic_dec_and_test(&slot->reducing)) {
		try_complete(slot);
		/* From now on what is missing of the gather can be given up. */
		ored_deadline_check(slot->m);
	}
	return true;
}

/**
 * ored_op_present() - a contribution has been placed; ored_op_contribution() follows
 * @slot: entered
 * @rank: whose
 * @chunk: of the own shard, counted over it
 */
void ored_op_present(struct ored_slot *slot, u32 rank, u32 chunk)
{
	if (rank != slot->m->rank)
		atomic_dec(&slot->peer[rank].scattering);
	/* Whoever sees the bit sees the contribution. */
	smp_mb__before_atomic();
	set_bit(rank, ored_slot_set(slot, slot->present, chunk));
	/* Of two that are last at the same time, one at least sees both. */
	smp_mb__after_atomic();
}

/**
 * ored_op_contribution() - looks whether a chunk can be reduced
 * @slot: entered; no lock held
 * @chunk: of the own shard, counted over it; a contribution to it has been placed
 *
 * Return: whether it was the last, so that there is something to gather
 */
bool ored_op_contribution(struct ored_slot *slot, u32 chunk)
{
	return ready(slot, chunk) && reduce(slot, chunk);
}

/**
 * ored_op_gathered() - a chunk of the result has been placed
 * @slot: entered; no lock held
 * @owner: who reduced it
 * @chunk: counted over the bucket
 * @counted: whose contributions are in it; NULL: everybody's
 */
void ored_op_gathered(struct ored_slot *slot, u32 owner, u32 chunk, const unsigned long *counted)
{
	if (counted && !test_bit(slot->m->rank, counted))
		set_bit(chunk, slot->uncounted);
	note_counted(slot, owner, counted);
	if (!atomic_dec_return(&slot->peer[owner].gathering))
		try_complete(slot);
}

/**
 * ored_op_sweep() - reduces what can be by now
 * @slot: posted, entered; process context, no lock held
 *
 * After the scatter has been sealed, or a peer isn't waited for any more.
 */
void ored_op_sweep(struct ored_slot *slot)
{
	u32 chunk, count = ored_map_count(&slot->map, slot->m->rank);

	for (chunk = 0; chunk < count; chunk++) {
		if (!test_bit(chunk, slot->reduced) && ready(slot, chunk))
			reduce(slot, chunk);
		cond_resched();
	}
	try_complete(slot);
}

/**
 * ored_op_acked() - a peer has told what has arrived of an op
 * @slot: entered; no lock held
 */
void ored_op_acked(struct ored_slot *slot)
{
	if (READ_ONCE(slot->delivers))
		try_complete(slot);
}

/**
 * ored_op_acked_all() - likewise, a peer has posted ops, or left them: then all has
 * @m: the membership; no lock held
 */
void ored_op_acked_all(struct ored_member *m)
{
	u64 op;

	for (op = READ_ONCE(m->finished); op < READ_ONCE(m->posted); op++) {
		struct ored_slot *slot = ored_slot_of(m, op);

		if (!ored_slot_enter(slot, op))
			continue;
		ored_op_acked(slot);
		ored_slot_leave(slot);
	}
}

/* Who hasn't posted the op may not count for the next. */
static void count_posts(struct ored_slot *slot)
{
	struct ored_link *l;

	ored_for_each_link(slot->m, l) {
		bool counted = ored_standing_counts(&l->standing);

		spin_lock(&l->lock);
		ored_standing_ended(&l->standing, slot->op);
		if (counted && !ored_standing_counts(&l->standing))
			ored_event_peer(l, ORED_PEER_STALLED);
		spin_unlock(&l->lock);
	}
}

static bool gather_whole(const struct ored_slot *slot)
{
	const struct ored_link *l;

	ored_for_each_link(slot->m, l) {
		if (!ored_slot_has_shard(slot, l->rank))
			return false;
	}
	return true;
}

static void note_behind(struct ored_slot *slot)
{
	const struct ored_link *l;
	u64 left = 0;

	ored_for_each_link(slot->m, l)
		left = max(left, READ_ONCE(l->standing.left));
	slot->behind = left - min(left, slot->op);
	if (!gather_whole(slot))
		slot->m->resync = true;
}

/* What is learnt for the bounds of ops to come. */
static void learn(struct ored_slot *slot)
{
	struct ored_member *m = slot->m;
	bool complete = slot->limit == ORED_LIMIT_COMPLETE;
	u64 took = slot->elapsed_ns;
	u32 loss, given;

	if (complete && (!m->fastest || slot->elapsed_ns < m->fastest))
		WRITE_ONCE(m->fastest, slot->elapsed_ns);
	if (!slot->bounded || slot->silent)
		return;
	ored_op_report(slot);
	loss = ored_op_loss(slot, &given);
	/* What a rank loses that is cut off says nothing. */
	if (!ored_quorum(given, m->nranks - departed(m)))
		return;
	ored_rotate_ended(m, loss);
	if (slot->limit == ORED_LIMIT_BEHIND) {
		ored_bound_behind(&m->bound, loss);
		return;
	}
	/* Ops in flight before it had their own time. */
	if (slot->in_term)
		took = slot->posted_ns + slot->elapsed_ns - slot->term.begin;
	ored_bound_ended(&m->bound, ored_kind_cost(&slot->mine), took, loss,
			 complete && !loss && given == bitmap_weight(slot->need, m->nranks));
	if (slot->in_term)
		ored_early_end(slot, took, loss);
}

/* What the end of an op means for those after it. */
static void account(struct ored_slot *slot)
{
	struct ored_member *m = slot->m;

	if (slot->bounded || slot->error) {
		set_bit(ORED_SCATTER, &slot->sealed);
		set_bit(ORED_GATHER, &slot->sealed);
	}
	if (slot->bounded)
		count_posts(slot);
	if (slot->limit == ORED_LIMIT_BEHIND)
		note_behind(slot);
	else if (!slot->bounded && !slot->error)
		m->resync = false;
	slot->resync = m->resync;
	if (!slot->error)
		learn(slot);
}

/**
 * ored_op_end_locked() - an op has ended
 * @slot: the op's, entered or posted; the membership's lock is held
 * @error: 0 or why it failed, negative
 * @limit: enum ored_limit
 *
 * The caller sees to the next op's term: ored_deadline_update().
 */
void ored_op_end_locked(struct ored_slot *slot, int error, u8 limit)
	__must_hold(&slot->m->lock)
{
	struct ored_member *m = slot->m;
	u64 op;

	lockdep_assert_held(&m->lock);
	if (slot->state != ORED_SLOT_POSTED)
		return;
	slot->elapsed_ns = ktime_get_ns() - slot->posted_ns;
	slot->limit = limit;
	WRITE_ONCE(slot->error, error);
	if (error)
		ored_slot_stop(slot);
	account(slot);
	trace_ored_op_end(slot);
	/* Whoever sees the state sees the error. */
	smp_store_release(&slot->state, ORED_SLOT_FINISHED);
	op = m->finished;
	while (op < m->posted && ored_slot_of(m, op)->state == ORED_SLOT_FINISHED)
		op++;
	/* Pairs with the acquire in take(): the results are there. */
	smp_store_release(&m->finished, op);
	if (!rcu_access_pointer(m->sk))
		slot->delivered = true;
	ored_slot_release_past(m);
	ored_member_wake(m, EPOLLIN | EPOLLRDNORM);
}

/**
 * ored_op_end() - an op has ended
 * @slot: entered; no lock held
 * @error: 0 or why it failed, negative
 * @limit: enum ored_limit
 */
void ored_op_end(struct ored_slot *slot, int error, u8 limit)
{
	struct ored_member *m = slot->m;

	spin_lock_bh(&m->lock);
	ored_op_end_locked(slot, error, limit);
	ored_deadline_update(m);
	spin_unlock_bh(&m->lock);
}

/* Does a peer still owe us something of an op? */
static bool owes(struct ored_slot *slot, struct ored_link *l)
{
	struct ored_slot_peer *peer = &slot->peer[l->rank];
	bool all;

	spin_lock(&l->lock);
	all = ored_chunkmap_complete(&peer->rx[ORED_SCATTER]) &&
	      ored_chunkmap_complete(&peer->rx[ORED_GATHER]);
	spin_unlock(&l->lock);
	return !all;
}

/*
 * A peer that has left takes part in no op from its left_at on; one that is gone
 * gives nothing more of those before it either.
 */
static struct ored_link *who_left(struct ored_slot *slot, u64 op)
	__must_hold(&slot->m->lock)
{
	struct ored_link *l;

	lockdep_assert_held(&slot->m->lock);
	ored_for_each_link(slot->m, l) {
		if (ored_link_left_by(l, op))
			return l;
		if (READ_ONCE(l->standing.gone) && owes(slot, l))
			return l;
	}
	return NULL;
}

static int failure_error(const struct ored_failure *failure)
{
	switch (failure->field) {
	case ORED_FAILURE_LEFT:
		return -ECONNRESET;
	case ORED_FAILURE_GONE:
		return -ESTALE;
	default:
		return -EPROTO;
	}
}

/* Fails a posted op, unless it has ended. */
static void fail(struct ored_slot *slot, const struct ored_failure *failure)
	__must_hold(&slot->m->lock)
{
	struct ored_member *m = slot->m;

	lockdep_assert_held(&m->lock);
	if (slot->state != ORED_SLOT_POSTED)
		return;
	if (!slot->failure.field)
		slot->failure = *failure;
	m->failed_ops = true;
	ored_op_end_locked(slot, failure_error(&slot->failure), ORED_LIMIT_NONE);
}

static void start_flows(struct ored_slot *slot)
{
	const struct ored_map *map = &slot->map;
	u16 word = slot->params.word;
	struct ored_member *m = slot->m;
	struct ored_link *l;

	ored_for_each_link(m, l) {
		struct ored_slot_peer *peer = &slot->peer[l->rank];
		u32 scatters = ored_kind_scatters(map, word, l->rank, m->rank);
		u32 gathers = ored_kind_gathers(map, word, l->rank, m->rank);

		spin_lock_bh(&l->lock);
		ored_rate_hurry(&l->rate, slot->bounded ? slot->limits.bound : 0);
		ored_flow_start(&peer->tx[ORED_SCATTER], slot->silent ? 0 :
				ored_kind_scatters(map, word, m->rank, l->rank));
		ored_flow_start(&peer->tx[ORED_GATHER],
				ored_kind_gathers(map, word, m->rank, l->rank));
		atomic_add(scatters, &peer->scattering);
		atomic_add(gathers, &peer->gathering);
		peer->next[ORED_SCATTER] = 0;
		peer->next[ORED_GATHER] = 0;
		peer->again[ORED_SCATTER] = false;
		peer->again[ORED_GATHER] = false;
		peer->rx[ORED_SCATTER].count = scatters;
		peer->rx[ORED_GATHER].count = gathers;
		spin_unlock_bh(&l->lock);
	}
}

/* Is there a reason why an op that is about to be posted must fail? */
static bool doomed(struct ored_slot *slot, const struct ored_params *params, u32 known_by,
		   struct ored_failure *failure)
{
	struct ored_link *left = slot->bounded ? NULL : who_left(slot, slot->op);

	/* Bounded ops don't fail because somebody has left. */
	if (slot->bounded && slot->failure.field == ORED_FAILURE_LEFT)
		slot->failure.field = ORED_FIELD_NONE;
	*failure = slot->failure;
	if (failure->field)
		return true;
	failure->rank[0] = slot->m->rank;
	failure->rank[1] = known_by;
	failure->field = ored_params_differ(params, &slot->params, failure->value);
	if (failure->field)
		return true;
	if (!left)
		return false;
	*failure = (struct ored_failure){ .field = ORED_FAILURE_LEFT, .rank = { left->rank } };
	return true;
}

/* Does a bounded op that is posted now wait for a peer? */
static bool counts(const struct ored_slot *slot, const struct ored_link *l)
{
	return !ored_link_left_by(l, slot->op) && ored_standing_counts(&l->standing);
}

static void set_need(struct ored_slot *slot)
	__must_hold(&slot->m->lock)
{
	bool relays = ored_kind_relays(slot->params.word);
	struct ored_link *l;

	lockdep_assert_held(&slot->m->lock);
	bitmap_zero(slot->need, slot->m->nranks);
	bitmap_zero(slot->owners, slot->m->nranks);
	if (!slot->silent)
		__set_bit(slot->m->rank, slot->need);
	ored_for_each_link(slot->m, l) {
		if (!slot->bounded || counts(slot, l))
			__set_bit(l->rank, slot->need);
		if (test_bit(l->rank, slot->need) ||
		    (relays && READ_ONCE(l->status) == ORED_PEER_LEFT && READ_ONCE(l->serves)))
			__set_bit(l->rank, slot->owners);
	}
}

/*
 * Makes the op official, and fails it at once if it must. Nothing of one that
 * fails goes out: its error is set before its state.
 */
static int publish(struct ored_slot *slot, const struct ored_params *params, u32 known_by)
{
	struct ored_member *m = slot->m;
	struct ored_failure failure;
	bool fails;

	spin_lock_bh(&m->lock);
	if (m->state != ORED_STATE_JOINED && !slot->silent) {
		spin_unlock_bh(&m->lock);
		return -EPIPE;
	}
	slot->posted_ns = ktime_get_ns();
	slot->mine = *params;
	set_need(slot);
	slot->incast = ored_early_incast(m);
	fails = doomed(slot, params, known_by, &failure);
	WRITE_ONCE(slot->error, fails ? -EPROTO : 0);
	/* Pairs with the acquire in ored_op_sends(): flows and error are set. */
	smp_store_release(&slot->state, ORED_SLOT_POSTED);
	WRITE_ONCE(m->posted, slot->op + 1);
	ored_rotate_advertise(m);
	ored_deadline_promise(slot);
	trace_ored_op_post(slot);
	if (fails)
		fail(slot, &failure);
	ored_deadline_update(m);
	spin_unlock_bh(&m->lock);
	if (fails)
		ored_op_tell_failures(m);
	return 0;
}

static bool is_from(const struct ored_slot *slot, u32 rank)
{
	return ored_params_kind(slot->params.word) == ORED_BROADCAST &&
	       ored_params_root(slot->params.word) == rank;
}

/* Is this rank the root of a broadcast? */
static bool broadcasts(const struct ored_slot *slot)
{
	return is_from(slot, slot->m->rank);
}

/*
 * Must whoever broadcasts be told that this rank has posted? Not if an ACK
 * will say so: if something is to come from there, and nobody has spoken of the op yet.
 */
static bool is_unheard(const struct ored_slot *slot, u32 rank, bool first)
{
	const struct ored_chunkmap *rx = slot->peer[rank].rx;

	return is_from(slot, rank) &&
	       !(first && (rx[ORED_SCATTER].count || rx[ORED_GATHER].count));
}

/*
 * Peers that can't be sent anything of an op are told how far we are. So is whoever
 * broadcasts; if that is lost, the next beat says it.
 */
static void tell_progress(struct ored_slot *slot, u64 op, bool first)
{
	struct ored_member *m = slot->m;
	struct ored_link *l;

	ored_for_each_link(m, l) {
		if (!ored_standing_accepts(&l->standing, op, m->conf.depth))
			ored_send_mark(l, ORED_F_REQUEST);
		else if (is_unheard(slot, l->rank, first))
			ored_send_mark(l, 0);
	}
}

static void contribute(struct ored_slot *slot)
{
	struct ored_member *m = slot->m;
	u32 chunk;

	if (slot->silent) {
		ored_op_sweep(slot);
		return;
	}
	for (chunk = 0; chunk < ored_map_count(&slot->map, m->rank); chunk++) {
		ored_op_present(slot, m->rank, chunk);
		ored_op_contribution(slot, chunk);
		cond_resched();
	}
	try_complete(slot);
}

/**
 * ored_op_place() - where a caller's bytes go, before the op is posted
 * @slot: open, for op ored_member.posted; the caller is the only one to post
 * @params: what will be posted
 *
 * The bucket, or for an all-gather the own shard. A shard that starts anywhere,
 * which only one of a reduce-scatter does that is reduced, is moved to where the
 * reduction can read it.
 */
u8 *ored_op_place(struct ored_slot *slot, const struct ored_params *params)
{
	struct ored_member *m = slot->m;
	struct ored_map map;
	u32 skew = 0;

	ored_kind_map(&map, params, m->payload, m->nranks);
	if (ored_kind_adds(params->word) && map.unit)
		skew = -ored_map_start(&map, m->rank) % ORED_PAYLOAD_ALIGN;
	ored_slot_at(slot, skew);
	return map.unit && !ored_kind_adds(params->word) ?
	       slot->from + ored_map_start(&map, m->rank) : slot->from;
}

/**
 * ored_op_result_at() - where a result is that a caller gets
 * @slot: finished without an error
 * @len: receives its bytes
 *
 * The bucket, which whoever broadcasts has given; of a reduce-scatter and of a
 * barrier the own shard.
 */
const u8 *ored_op_result_at(const struct ored_slot *slot, size_t *len)
{
	u8 kind = ored_params_kind(slot->mine.word);
	u32 own = slot->m->rank;

	*len = slot->mine.bytes;
	if (broadcasts(slot))
		return slot->from;
	if (kind != ORED_REDUCE_SCATTER && kind != ORED_BARRIER)
		return slot->to;
	*len = ored_map_shard_bytes(&slot->map, own);
	return slot->to + ored_map_start(&slot->map, own);
}

/**
 * ored_op_post() - the own contribution is in the slot
 * @slot: open, for op ored_member.posted; the caller is the only one to post
 * @params: what all ranks must agree on
 * @op: what else the caller wants; NULL: this rank has left, and has nothing to
 *	contribute, but still reduces its shard
 *
 * Process context. Sends what can be sent at once.
 *
 * Return: 0, also for an op that has failed already; -EPIPE: the group has been
 * left meanwhile, and nothing is posted
 */
int ored_op_post(struct ored_slot *slot, const struct ored_params *params,
		 const struct ored_op *op)
{
	struct ored_member *m = slot->m;
	u64 number = slot->op;
	u32 known_by;
	int err;

	/* Only whoever posts can move it on from where it is. */
	if (WARN_ON_ONCE(!ored_slot_enter(slot, number)))
		return -EPIPE;
	known_by = ored_slot_know(slot, params, m->rank);
	slot->silent = !op;
	slot->delivered = !op;
	slot->bounded = ored_params_mode(params->word) == ORED_MODE_BOUNDED;
	slot->zero = op && op->flags & ORED_OP_MISSING_ZERO;
	slot->dtype = op ? op->dtype : 0;
	if (!op)
		ored_slot_at(slot, 0);
	slot->delivers = op && broadcasts(slot);
	ored_deadline_choose(slot, op);
	atomic_set(&slot->reducing, ored_map_count(&slot->map, m->rank));
	start_flows(slot);
	err = publish(slot, params, known_by);
	if (!err && !READ_ONCE(slot->error)) {
		tell_progress(slot, number, known_by == m->rank);
		ored_timer_need(m, ktime_get_ns() + ORED_BEAT_NS);
		ored_pump(m);
		contribute(slot);
	}
	ored_slot_leave(slot);
	ored_pump(m);
	return err;
}

/*
 * Of an op that a rank that has left can't serve: nobody here waits for it, and
 * nobody is told that it has failed.
 */
static void pass_over(struct ored_slot *slot)
{
	struct ored_member *m = slot->m;

	spin_lock_bh(&m->lock);
	slot->delivered = true;
	slot->bounded = true;
	slot->silent = true;
	slot->posted_ns = ktime_get_ns();
	WRITE_ONCE(slot->error, -ECONNRESET);
	/* Pairs with the acquire in ored_op_sends(): the error is set. */
	smp_store_release(&slot->state, ORED_SLOT_POSTED);
	WRITE_ONCE(m->posted, slot->op + 1);
	ored_op_end_locked(slot, -ECONNRESET, ORED_LIMIT_NONE);
	ored_deadline_update(m);
	spin_unlock_bh(&m->lock);
}

/* The furthest that any peer has come */
static u64 furthest(const struct ored_member *m)
{
	const struct ored_link *l;
	u64 posted = 0;

	ored_for_each_link(m, l)
		posted = max(posted, READ_ONCE(l->standing.posted));
	return posted;
}

/**
 * ored_op_serve() - posts what peers have posted, without a contribution
 * @m: a membership that has left and still serves; its worker calls
 *
 * So that the shards of a rank that has finished early are still everybody's.
 * An op of which nothing has come has nothing for us to reduce.
 */
void ored_op_serve(struct ored_member *m)
{
	u64 end = furthest(m);

	while (READ_ONCE(m->serves) && m->posted < end) {
		u64 op = m->posted;
		struct ored_slot *slot = ored_slot_of(m, op);
		bool known;

		if (!ored_slot_enter(slot, op))
			return;
		/* Pairs with the release in ored_slot_know(). */
		known = smp_load_acquire(&slot->known);
		/* Its first packet may be on its way. */
		if (!known && op + 1 >= end) {
			ored_slot_leave(slot);
			return;
		}
		if (known && ored_params_mode(slot->params.word) == ORED_MODE_BOUNDED &&
		    ored_kind_relays(slot->params.word) && !broadcasts(slot))
			ored_op_post(slot, &slot->params, NULL);
		else
			pass_over(slot);
		ored_slot_leave(slot);
	}
}

/**
 * ored_op_fail() - somebody knows why an op can't succeed
 * @slot: the op's, entered; no lock held
 * @op: the op
 * @failure: why
 *
 * An op that isn't posted here yet will fail when it is.
 */
void ored_op_fail(struct ored_slot *slot, u64 op, const struct ored_failure *failure)
{
	struct ored_member *m = slot->m;
	bool failed = false, gone = failure->field == ORED_FAILURE_GONE;
	bool left = failure->field == ORED_FAILURE_LEFT;

	spin_lock_bh(&m->lock);
	/* Bounded ops end without those who have gone on, or left. */
	if ((gone && slot->state != ORED_SLOT_POSTED) ||
	    ((gone || left) && slot->state == ORED_SLOT_POSTED && slot->bounded)) {
		spin_unlock_bh(&m->lock);
		return;
	}
	if (slot->op == op && slot->state == ORED_SLOT_POSTED) {
		fail(slot, failure);
		ored_deadline_update(m);
		failed = true;
	} else if (slot->op == op && slot->state == ORED_SLOT_OPEN && !slot->failure.field) {
		slot->failure = *failure;
	}
	spin_unlock_bh(&m->lock);
	if (failed)
		ored_op_tell_failures(m);
}

/**
 * ored_op_peer_left() - a peer takes no part in some ops any more
 * @m: the membership; its lock is held
 * @l: the peer
 *
 * Reliable ops that it owes something fail; bounded ones don't wait for it.
 */
void ored_op_peer_left(struct ored_member *m, struct ored_link *l)
	__must_hold(&m->lock)
{
	struct ored_failure failure = { .field = ORED_FAILURE_LEFT, .rank = { l->rank } };
	u64 op;

	lockdep_assert_held(&m->lock);
	for (op = m->finished; op < m->posted; op++) {
		struct ored_slot *slot = ored_slot_of(m, op);

		if (slot->state != ORED_SLOT_POSTED)
			continue;
		if (!slot->bounded) {
			if (who_left(slot, op))
				fail(slot, &failure);
		} else if (READ_ONCE(l->standing.gone) || READ_ONCE(l->left_at) <= op) {
			clear_bit(l->rank, slot->need);
			if (!READ_ONCE(l->serves))
				clear_bit(l->rank, slot->owners);
			ored_deadline_sweep(m);
		}
	}
	ored_slot_release_past(m);
	ored_deadline_update(m);
}

/**
 * ored_op_delivered() - recv() has taken the result
 * @slot: the slot of op ored_member.received; no lock held
 */
void ored_op_delivered(struct ored_slot *slot)
{
	struct ored_member *m = slot->m;

	spin_lock_bh(&m->lock);
	slot->delivered = true;
	WRITE_ONCE(m->received, m->received + 1);
	ored_slot_release_past(m);
	spin_unlock_bh(&m->lock);
	ored_member_wake(m, EPOLLOUT | EPOLLWRNORM);
}
