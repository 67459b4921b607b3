// SPDX-License-Identifier: GPL-2.0

#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/ored.h>

#include "deadline.h"
#include "early.h"
#include "err.h"
#include "inject.h"
#include "op.h"
#include "trace.h"
#include "tx.h"

/* In hard interrupt context: only wakes. */
static enum hrtimer_restart fire(struct hrtimer *timer)
{
	struct ored_member *m = container_of(timer, struct ored_member, due_timer);

	ored_member_wake(m, EPOLLIN | EPOLLRDNORM);
	kthread_queue_work(m->worker, &m->due_work);
	return HRTIMER_NORESTART;
}

/* Reduces what was sealed, and sends it. */
static void work(struct kthread_work *due)
{
	struct ored_member *m = container_of(due, struct ored_member, due_work);
	u64 op;

	ored_deadline_check(m);
	if (READ_ONCE(m->serves))
		ored_op_serve(m);
	if (!READ_ONCE(m->sweep))
		return;
	WRITE_ONCE(m->sweep, false);
	for (op = READ_ONCE(m->finished); op < READ_ONCE(m->posted); op++) {
		struct ored_slot *slot = ored_slot_of(m, op);

		if (!ored_op_sends(slot, op))
			continue;
		ored_op_sweep(slot);
		ored_slot_leave(slot);
	}
	ored_pump(m);
}

/**
 * ored_deadline_init() - makes the group's worker
 * @m: a membership that nobody can reach yet
 * @why: receives a sentence if that fails
 *
 * Return: 0 or negative errno; in any case ored_deadline_free() cleans up
 */
int ored_deadline_init(struct ored_member *m, char *why)
{
	struct kthread_worker *worker;

	m->due_at = ORED_NEVER;
	hrtimer_setup(&m->due_timer, fire, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	kthread_init_work(&m->due_work, work);
	worker = kthread_create_worker(0, "ored/%u.%u", m->conf.group, m->rank);
	if (IS_ERR(worker))
		return ored_refuse(why, -PTR_ERR(worker),
				   "the group's kernel thread can't be made: %s",
				   PTR_ERR(worker) == -ENOMEM ? "no memory" : "interrupted");
	sched_set_fifo(worker->task);
	m->worker = worker;
	return 0;
}

/**
 * ored_deadline_stop() - no bound is kept any more
 * @m: the membership; process context
 */
void ored_deadline_stop(struct ored_member *m)
{
	spin_lock_bh(&m->lock);
	m->due_dead = true;
	WRITE_ONCE(m->due_at, ORED_NEVER);
	spin_unlock_bh(&m->lock);
	hrtimer_cancel(&m->due_timer);
}

/**
 * ored_deadline_free() - ends the worker
 * @m: the membership; no packet can reach it, and its timer is stopped
 */
void ored_deadline_free(struct ored_member *m)
{
	if (m->worker)
		kthread_destroy_worker(m->worker);
}

/**
 * ored_deadline_choose() - how long an op may take
 * @slot: about to be posted; its parameters are known
 * @op: what the caller wants, or NULL
 */
void ored_deadline_choose(struct ored_slot *slot, const struct ored_op *op)
{
	struct ored_member *m = slot->m;
	u64 wait = ORED_WAIT_POLICY, deadline;
	u32 deadline_us = op ? op->deadline_us : 0;

	if (!slot->bounded)
		return;
	if (op && op->flags & ORED_OP_NO_WAIT)
		wait = 0;
	else if (op && op->wait_us)
		wait = (u64)op->wait_us * NSEC_PER_USEC;
	spin_lock_bh(&m->lock);
	deadline = (u64)(deadline_us ?: m->policy.bound_us) * NSEC_PER_USEC;
	ored_bound_limits(&m->bound, ored_kind_cost(&slot->params), deadline, wait,
			  &slot->limits);
	spin_unlock_bh(&m->lock);
	/* No gather follows that would need time. */
	if (ored_params_kind(slot->params.word) == ORED_REDUCE_SCATTER)
		slot->limits.seal = slot->limits.bound;
}

/**
 * ored_deadline_promise() - notes how long an op takes at the most
 * @slot: just posted; the membership's lock is held
 *
 * Its term begins when the ops before it have ended: their terms come first.
 */
void ored_deadline_promise(struct ored_slot *slot)
	__must_hold(&slot->m->lock)
{
	struct ored_member *m = slot->m;

	lockdep_assert_held(&m->lock);
	if (m->finished == slot->op)
		m->promised = slot->posted_ns;
	if (!slot->bounded || m->promised == ORED_NEVER) {
		m->promised = ORED_NEVER;
		return;
	}
	m->promised = max(m->promised, slot->posted_ns) + ored_limits_published(&slot->limits);
	slot->published_ns = m->promised - slot->posted_ns;
	m->patience = ored_limits_published(&slot->limits);
}

/* The bounded op whose term it is */
static struct ored_slot *current_slot(struct ored_member *m)
{
	struct ored_slot *slot;

	if (m->finished >= m->posted)
		return NULL;
	slot = ored_slot_of(m, m->finished);
	return slot->bounded && slot->state == ORED_SLOT_POSTED ? slot : NULL;
}

/* Takes into a term what is known of the peers. */
static void look_around(struct ored_slot *slot, u64 now)
{
	struct ored_member *m = slot->m;
	u64 published = ored_limits_published(&slot->limits);
	u64 repair = 0;
	struct ored_link *l;
	bool all = true;

	if (!slot->in_term) {
		ored_term_begin(&slot->term, &slot->limits, now);
		slot->in_term = true;
	}
	ored_for_each_link(m, l) {
		u64 left = READ_ONCE(l->standing.left);

		if (test_bit(l->rank, slot->need))
			repair = max(repair, ored_link_repair_ns(l));
		if (test_bit(l->rank, slot->need) && READ_ONCE(l->standing.posted) <= slot->op)
			all = false;
		if (left <= slot->op || !ored_standing_live(&l->standing, now, published))
			continue;
		/* Who has left what we broadcast has it, and we aren't behind. */
		if (slot->delivers && left <= m->posted)
			continue;
		/* Who has left no more than what is posted here did so with our help. */
		ored_term_left(&slot->term, left - slot->op, left > m->posted, now);
	}
	slot->term.limits.grace = ored_term_grace(&slot->limits, repair);
	if (all)
		ored_term_posted(&slot->term, now);
}

static void arm(struct ored_member *m, u64 at)
	__must_hold(&m->lock)
{
	lockdep_assert_held(&m->lock);
	if (m->due_at == at || m->due_dead)
		return;
	WRITE_ONCE(m->due_at, at);
	if (at == ORED_NEVER)
		hrtimer_try_to_cancel(&m->due_timer);
	else
		hrtimer_start(&m->due_timer, ns_to_ktime(at + ored_inject_timer_ns()),
			      HRTIMER_MODE_ABS_HARD);
}

/* When an op ends, and by which limit */
static u64 end_at(const struct ored_slot *slot, u64 now, u8 *limit)
{
	u64 end = ored_term_end_at(&slot->term);
	u64 early = ored_early_stage_at(slot, ORED_GATHER, now);

	*limit = end < ored_term_hard_at(&slot->term) ? ORED_LIMIT_BEHIND : ORED_LIMIT_HARD;
	if (early < end)
		*limit = ORED_LIMIT_EARLY;
	return min(early, end);
}

/* Seals the scatter if it is time. Return: when there is something to do next. */
static u64 seal(struct ored_slot *slot, u64 end, u64 now)
{
	u64 at;

	if (test_bit(ORED_SCATTER, &slot->sealed))
		return end;
	at = min(ored_term_seal_at(&slot->term), ored_early_stage_at(slot, ORED_SCATTER, now));
	if (at > now)
		return min(at, end);
	set_bit(ORED_SCATTER, &slot->sealed);
	trace_ored_op_seal(slot, ORED_SCATTER, at < ored_term_seal_at(&slot->term) ?
			   ORED_LIMIT_EARLY : ORED_LIMIT_HARD, now);
	ored_deadline_sweep(slot->m);
	return end;
}

/**
 * ored_deadline_update() - does what is due, and sets the timer for what will be
 * @m: the membership; its lock is held
 *
 * After anything has changed that a term depends on: an op was posted or has
 * ended, a peer has posted or left one, or time has passed.
 */
void ored_deadline_update(struct ored_member *m)
	__must_hold(&m->lock)
{
	u64 now = ktime_get_ns(), end = ORED_NEVER;
	struct ored_slot *slot;
	u8 limit;

	lockdep_assert_held(&m->lock);
	for (slot = current_slot(m); slot; slot = current_slot(m)) {
		look_around(slot, now);
		end = end_at(slot, now, &limit);
		if (end > now)
			break;
		ored_op_end_locked(slot, 0, limit);
	}
	arm(m, slot ? seal(slot, end, now) : ORED_NEVER);
}

/**
 * ored_deadline_check() - does what is due; not in hard interrupt context
 * @m: the membership; no lock held
 */
void ored_deadline_check(struct ored_member *m)
{
	spin_lock_bh(&m->lock);
	ored_deadline_update(m);
	spin_unlock_bh(&m->lock);
}

/**
 * ored_deadline_serve() - a peer has gone on: the worker of one that has left goes
 * on too
 * @m: the membership
 */
void ored_deadline_serve(struct ored_member *m)
{
	if (READ_ONCE(m->serves))
		kthread_queue_work(m->worker, &m->due_work);
}

/**
 * ored_deadline_sweep() - has the worker look what can be reduced
 * @m: the membership
 */
void ored_deadline_sweep(struct ored_member *m)
{
	WRITE_ONCE(m->sweep, true);
	kthread_queue_work(m->worker, &m->due_work);
}
