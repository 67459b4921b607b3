// SPDX-License-Identifier: GPL-2.0
/*
 * Ops. A contribution that has been placed is counted; the last one to a chunk
 * reduces it, in the order of ranks, and hands it to the gather, so that the
 * two stages are pipelined chunk by chunk. The last chunk of the result
 * finishes the op. Everything up to that runs wherever packets are received.
 */

#include <linux/ktime.h>
#include <linux/ored.h>

#include "core/reduce.h"
#include "op.h"
#include "timer.h"
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

static void reduce(struct ored_slot *slot, u32 chunk)
{
	struct ored_member *m = slot->m;
	u32 whole = ored_map_first(&slot->map, m->rank) + chunk;
	u32 offset = ored_map_offset(&slot->map, whole);
	struct ored_contribs c = {
		.own = slot->in + offset,
		.staged = slot->staged + (size_t)chunk * slot->map.payload,
		.stride = slot->stride,
		.rank = m->rank,
		.nranks = m->nranks,
	};
	u16 word = slot->params.word;
	int place;

	ored_reduce(slot->out + offset, &c, ored_map_length(&slot->map, whole),
		    ored_params_dtype(word), ored_params_reduction(word));
	place = atomic_inc_return(&slot->ready) - 1;
	/* Pairs with the acquire in next_new(): the result is there. */
	smp_store_release(&slot->order[place], chunk + 1);
	ored_op_chunk_done(slot);
}

/**
 * ored_op_contribution() - a contribution has been placed
 * @slot: entered; no lock held
 * @chunk: of the own shard, counted over it
 *
 * The counter orders: whoever makes it complete sees what all others placed.
 *
 * Return: whether it was the last, so that there is something to gather
 */
bool ored_op_contribution(struct ored_slot *slot, u32 chunk)
{
	if (atomic_inc_return(&slot->contributions[chunk]) != slot->m->nranks)
		return false;
	reduce(slot, chunk);
	return true;
}

/**
 * ored_op_chunk_done() - a chunk of the result is there
 * @slot: entered; no lock held
 */
void ored_op_chunk_done(struct ored_slot *slot)
{
	if (atomic_dec_and_test(&slot->remaining))
		ored_op_finish(slot, 0);
}

/* An op that has failed sends nothing any more. */
static void stop_flows(struct ored_slot *slot)
{
	struct ored_link *l;
	u32 stage;

	ored_for_each_link(slot->m, l) {
		spin_lock(&l->lock);
		for (stage = 0; stage < ORED_STAGES; stage++)
			l->inflight -= ored_flow_all_arrived(&slot->peer[l->rank].tx[stage]);
		spin_unlock(&l->lock);
	}
}

static void finish(struct ored_slot *slot, int error)
{
	struct ored_member *m = slot->m;
	u64 op;

	lockdep_assert_held(&m->lock);
	if (slot->state != ORED_SLOT_POSTED)
		return;
	slot->elapsed_ns = ktime_get_ns() - slot->posted_ns;
	WRITE_ONCE(slot->error, error);
	if (error)
		stop_flows(slot);
	/* Whoever sees the state sees the error. */
	smp_store_release(&slot->state, ORED_SLOT_FINISHED);
	op = m->finished;
	while (op < m->posted && ored_slot_of(m, op)->state == ORED_SLOT_FINISHED)
		op++;
	/* Pairs with the acquire in take(): the results are there. */
	smp_store_release(&m->finished, op);
	if (!rcu_access_pointer(m->sk))
		slot->delivered = true;
	ored_slot_try_release(slot);
	ored_member_wake(m, EPOLLIN | EPOLLRDNORM);
}

/**
 * ored_op_finish() - an op has ended
 * @slot: entered; no lock held
 * @error: 0 or why it failed, negative
 */
void ored_op_finish(struct ored_slot *slot, int error)
{
	spin_lock_bh(&slot->m->lock);
	finish(slot, error);
	spin_unlock_bh(&slot->m->lock);
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
{
	struct ored_link *l;

	lockdep_assert_held(&slot->m->lock);
	ored_for_each_link(slot->m, l) {
		if (READ_ONCE(l->status) == ORED_PEER_LEFT && READ_ONCE(l->left_at) <= op)
			return l;
		if (READ_ONCE(l->gone) && owes(slot, l))
			return l;
	}
	return NULL;
}

/* Fails a posted op, unless it has ended. */
static void fail(struct ored_slot *slot, const struct ored_failure *failure)
{
	struct ored_member *m = slot->m;

	lockdep_assert_held(&m->lock);
	if (slot->state != ORED_SLOT_POSTED)
		return;
	if (!slot->failure.field)
		slot->failure = *failure;
	m->failed_ops = true;
	finish(slot, slot->failure.field == ORED_FAILURE_LEFT ? -ECONNRESET : -EPROTO);
}

static void start_flows(struct ored_slot *slot)
{
	struct ored_member *m = slot->m;
	u32 own = ored_map_count(&slot->map, m->rank);
	struct ored_link *l;

	ored_for_each_link(m, l) {
		struct ored_slot_peer *peer = &slot->peer[l->rank];
		u32 theirs = ored_map_count(&slot->map, l->rank);

		spin_lock_bh(&l->lock);
		ored_flow_start(&peer->tx[ORED_SCATTER], theirs);
		ored_flow_start(&peer->tx[ORED_GATHER], own);
		peer->next[ORED_SCATTER] = 0;
		peer->next[ORED_GATHER] = 0;
		peer->rx[ORED_SCATTER].count = own;
		peer->rx[ORED_GATHER].count = theirs;
		spin_unlock_bh(&l->lock);
	}
}

/* Is there a reason why an op that is about to be posted must fail? */
static bool doomed(struct ored_slot *slot, const struct ored_params *params, u32 known_by,
		   struct ored_failure *failure)
{
	struct ored_link *left = who_left(slot, slot->op);

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
	if (m->state != ORED_STATE_JOINED) {
		spin_unlock_bh(&m->lock);
		return -EPIPE;
	}
	slot->posted_ns = ktime_get_ns();
	slot->mine = *params;
	fails = doomed(slot, params, known_by, &failure);
	WRITE_ONCE(slot->error, fails ? -EPROTO : 0);
	/* Pairs with the acquire in ored_op_sends(): flows and error are set. */
	smp_store_release(&slot->state, ORED_SLOT_POSTED);
	WRITE_ONCE(m->posted, slot->op + 1);
	if (fails)
		fail(slot, &failure);
	spin_unlock_bh(&m->lock);
	if (fails)
		ored_op_tell_failures(m);
	return 0;
}

/**
 * ored_op_post() - the own contribution is in the slot
 * @slot: open, for op ored_member.posted; the caller is the only one to post
 * @params: what the op is
 *
 * Process context. Sends what can be sent at once.
 *
 * Return: 0, also for an op that has failed already; -EPIPE: the group has been
 * left meanwhile, and nothing is posted
 */
int ored_op_post(struct ored_slot *slot, const struct ored_params *params)
{
	struct ored_member *m = slot->m;
	u32 known_by, chunk;
	int err = -EPIPE;

	/* Only whoever posts can move it on from where it is. */
	if (WARN_ON_ONCE(!ored_slot_enter(slot, slot->op)))
		return err;
	known_by = ored_slot_know(slot, params, m->rank);
	atomic_set(&slot->remaining, slot->map.chunks);
	start_flows(slot);
	err = publish(slot, params, known_by);
	if (!err && !READ_ONCE(slot->error)) {
		ored_pump(m);
		for (chunk = 0; chunk < ored_map_count(&slot->map, m->rank); chunk++) {
			ored_op_contribution(slot, chunk);
			cond_resched();
		}
	}
	ored_slot_leave(slot);
	ored_pump(m);
	return err;
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
	bool failed = false;

	spin_lock_bh(&m->lock);
	if (slot->op == op && slot->state == ORED_SLOT_POSTED) {
		fail(slot, failure);
		failed = true;
	} else if (slot->op == op && slot->state == ORED_SLOT_OPEN && !slot->failure.field) {
		slot->failure = *failure;
	}
	spin_unlock_bh(&m->lock);
	if (failed)
		ored_op_tell_failures(m);
}

/**
 * ored_op_peer_left() - fails the ops that a peer doesn't take part in
 * @m: the membership; its lock is held
 * @l: the peer
 */
void ored_op_peer_left(struct ored_member *m, struct ored_link *l)
{
	struct ored_failure failure = { .field = ORED_FAILURE_LEFT, .rank = { l->rank } };
	u64 op;

	lockdep_assert_held(&m->lock);
	for (op = m->finished; op < m->posted; op++) {
		struct ored_slot *slot = ored_slot_of(m, op);

		if (slot->state == ORED_SLOT_POSTED && who_left(slot, op))
			fail(slot, &failure);
	}
	for (op = m->retained; op < m->posted; op++)
		ored_slot_try_release(ored_slot_of(m, op));
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
	ored_slot_try_release(slot);
	spin_unlock_bh(&m->lock);
	ored_member_wake(m, EPOLLOUT | EPOLLWRNORM);
}

static void stage_result(struct ored_stage *stage, u64 expected, const struct ored_slot *slot,
			 u32 which)
{
	stage->expected = expected;
	stage->received = atomic64_read(&slot->received[which]);
	stage->repaired = atomic64_read(&slot->repaired[which]);
	stage->missing = expected - min(expected, stage->received);
}

static void set_rank(__u64 *ranks, u32 r)
{
	ranks[r / 64] |= 1ULL << (r % 64);
}

/* Whose contribution is whole, as far as this rank can tell. */
static void contributors(const struct ored_slot *slot, struct ored_result *result)
{
	const struct ored_member *m = slot->m;
	u32 r;

	for (r = 0; r < m->nranks; r++) {
		const struct ored_link *l = &m->links[r];
		bool in = !slot->error;

		if (slot->error == -ECONNRESET)
			in = r == m->rank || READ_ONCE(l->status) != ORED_PEER_LEFT ||
			     READ_ONCE(l->left_at) > result->op;
		set_rank(in ? result->contributed : result->missing, r);
	}
}

/**
 * ored_op_result() - what became of an op
 * @slot: finished, its result not yet released; its op is set by the caller
 * @result: zeroed but for @op; receives the rest
 */
void ored_op_result(const struct ored_slot *slot, struct ored_result *result)
{
	const struct ored_map *map = &slot->map;
	u32 own = slot->m->rank;
	u64 shard = ored_map_shard_bytes(map, own);

	result->elapsed_ns = slot->elapsed_ns;
	result->bytes = slot->mine.bytes;
	stage_result(&result->scatter, shard * (map->nranks - 1), slot, ORED_SCATTER);
	stage_result(&result->gather, map->bytes - shard, slot, ORED_GATHER);
	contributors(slot, result);
	result->error = -slot->error;
	result->limit = slot->error ? ORED_LIMIT_NONE : ORED_LIMIT_COMPLETE;
	result->verdict = slot->error ? ORED_VERDICT_HALT : ORED_VERDICT_OK;
	result->dtype = ored_params_dtype(slot->mine.word);
	result->reduction = ored_params_reduction(slot->mine.word);
	result->kind = ored_params_kind(slot->mine.word);
	result->mode = ored_params_mode(slot->mine.word);
	if (slot->error == -EPROTO) {
		result->field = slot->failure.field;
		result->rank[0] = slot->failure.rank[0];
		result->rank[1] = slot->failure.rank[1];
		result->value[0] = slot->failure.value[0];
		result->value[1] = slot->failure.value[1];
	} else if (slot->error) {
		result->rank[0] = slot->failure.rank[0];
	}
	result->duplicates = atomic64_read(&slot->duplicates);
	result->resent = atomic64_read(&slot->resent);
}

/* Tells a peer of the failed ops that it hasn't left. Return: whether any. */
static bool tell_failure(struct ored_link *l)
{
	struct ored_member *m = l->m;
	u64 op, end = READ_ONCE(m->posted);
	struct ored_failure failure;
	bool told = false;

	for (op = max(READ_ONCE(m->retained), READ_ONCE(l->left)); op < end; op++) {
		struct ored_slot *slot = ored_slot_of(m, op);
		bool tell;

		spin_lock_bh(&m->lock);
		tell = slot->op == op && slot->state == ORED_SLOT_FINISHED &&
		       slot->error && ored_link_needs(l, op);
		failure = slot->failure;
		spin_unlock_bh(&m->lock);
		if (tell)
			ored_send_failure(l, op, &failure);
		told |= tell;
	}
	return told;
}

/*
 * Takes over the telling. Several may be at it, and the last to end must not put
 * back what an earlier look has found: a time to tell again that nobody sees to
 * would have the timer fire for ever.
 */
static bool claim_failures(struct ored_member *m)
{
	bool failed;

	spin_lock_bh(&m->lock);
	failed = m->failed_ops;
	m->failed_ops = false;
	m->tell_at = U64_MAX;
	spin_unlock_bh(&m->lock);
	return failed;
}

/**
 * ored_op_tell_failures() - tells all peers of ops that have failed here
 * @m: the membership; no lock held
 *
 * Again and again, ever more slowly, until each has left those ops, since the
 * telling can be lost: the timer calls it too.
 */
void ored_op_tell_failures(struct ored_member *m)
{
	struct ored_link *l;
	bool again = false;

	if (!claim_failures(m))
		return;
	ored_for_each_link(m, l)
		again |= tell_failure(l);
	spin_lock_bh(&m->lock);
	m->failed_ops |= again;
	m->tell_gap = again ? min_t(u64, 2 * m->tell_gap, NSEC_PER_SEC) : ORED_TELL_FIRST_NS;
	if (again)
		m->tell_at = ktime_get_ns() + m->tell_gap;
	spin_unlock_bh(&m->lock);
	ored_timer_need(m, READ_ONCE(m->tell_at));
}
