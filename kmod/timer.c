// SPDX-License-Identifier: GPL-2.0

#include <linux/hrtimer.h>

#include "event.h"
#include "join.h"
#include "leave.h"
#include "lock.h"
#include "op.h"
#include "timer.h"
#include "tx.h"

/* What to do about a peer, once its lock is released */
struct ored_due {
	bool	pump;
	bool	poll;
	u64	op;
	u32	stage;
	bool	ask;
};

/* The oldest flow to a peer with something in flight. */
static bool oldest_flow(struct ored_link *l, struct ored_due *due)
	__must_hold(&l->m->lock) __must_hold(&l->lock)
{
	struct ored_member *m = l->m;
	u64 op = max(m->retained, l->standing.left);

	lockdep_assert_held(&m->lock);
	lockdep_assert_held(&l->lock);
	for (; op < m->posted; op++) {
		struct ored_slot *slot = ored_slot_of(m, op);
		u32 stage;

		if (slot->op != op || slot->state == ORED_SLOT_OPEN)
			continue;
		for (stage = 0; stage < ORED_STAGES; stage++) {
			if (!slot->peer[l->rank].tx[stage].inflight)
				continue;
			due->op = op;
			due->stage = stage;
			return true;
		}
	}
	return false;
}

static u64 pto_ns(struct ored_link *l)
{
	return (u64)ored_rate_pto(&l->rate) * NSEC_PER_USEC;
}

/* Silence has lasted: ask what has arrived of the oldest flow. */
static void check_flight(struct ored_link *l, u64 now, struct ored_due *due)
	__must_hold(&l->m->lock) __must_hold(&l->lock)
{
	lockdep_assert_held(&l->lock);
	if (l->pto_at > now)
		return;
	/* What was in flight may have been written off without anybody sending on. */
	due->pump = l->starved || !l->inflight;
	l->starved = false;
	l->pto_at = U64_MAX;
	if (!l->inflight || l->standing.gone)
		return;
	due->poll = oldest_flow(l, due);
	ored_rate_timeout(&l->rate);
	l->pto_at = now + pto_ns(l);
}

/* While ops are in flight a peer that says nothing is asked whether it is alive. */
static u64 beat_at(const struct ored_link *l)
{
	const struct ored_member *m = l->m;

	if (m->posted == m->finished || l->status == ORED_PEER_LEFT || l->standing.gone)
		return U64_MAX;
	return l->standing.heard + ORED_BEAT_NS;
}

/*
 * Has a peer gone on so far that it may have given up a reliable op which isn't over
 * here? With nothing in flight to it we would never hear that there is no more to
 * come.
 */
static bool may_be_gone(const struct ored_link *l)
	__must_hold(&l->m->lock) __must_hold(&l->lock)
{
	struct ored_member *m = l->m;
	struct ored_slot *slot = ored_slot_of(m, m->finished);

	return m->finished < m->posted && slot->state == ORED_SLOT_POSTED && !slot->bounded &&
	       l->standing.left > m->finished + m->conf.depth;
}

/* Somebody waits until the peer has left an op: ask whether it has. */
static void check_left(struct ored_link *l, u64 now, struct ored_due *due)
	__must_hold(&l->m->lock) __must_hold(&l->lock)
{
	struct ored_member *m = l->m;
	bool wanted = m->want_left && ored_link_needs(l, m->want_left - 1);
	bool gone;

	lockdep_assert_held(&m->lock);
	lockdep_assert_held(&l->lock);
	gone = may_be_gone(l);
	if (m->state == ORED_STATE_LEFT && !l->bye_known && l->status != ORED_PEER_LEFT)
		wanted = true;
	wanted |= gone || beat_at(l) <= now;
	if (!wanted || l->standing.gone) {
		l->ask_at = beat_at(l);
		l->asks = 0;
		return;
	}
	if (l->ask_at != U64_MAX && l->ask_at > now)
		return;
	due->ask = true;
	if (gone && !due->poll) {
		due->poll = true;
		due->op = m->finished;
		due->stage = ORED_GATHER;
	}
	l->ask_at = now + min_t(u64, pto_ns(l) * (1 + min(l->asks, 255U)), NSEC_PER_SEC);
	if (++l->asks == ORED_SILENT_AFTER)
		ored_event_peer(l, ORED_PEER_SILENT);
}

static u64 check_link(struct ored_link *l, u64 now)
{
	struct ored_member *m = l->m;
	struct ored_due due = {};
	u64 next;

	spin_lock_bh(&m->lock);
	spin_lock(&l->lock);
	check_flight(l, now, &due);
	check_left(l, now, &due);
	next = min(l->pto_at, l->ask_at);
	spin_unlock(&l->lock);
	spin_unlock_bh(&m->lock);

	if (due.poll)
		ored_send_poll(l, due.op, due.stage);
	if (due.ask)
		ored_leave_ask(l);
	if (due.pump)
		ored_pump(m);
	return next;
}

static u64 check_links(struct ored_member *m, u64 now)
{
	struct ored_link *l;
	u64 next = U64_MAX;

	ored_for_each_link(m, l)
		next = min(next, check_link(l, now));
	return next;
}

/*
 * Who waits for a slot that a peer holds up is woken by what the peer says; one
 * that says nothing any more is found out here, between the questions to it.
 */
static void release_wanted(struct ored_member *m)
{
	spin_lock(&m->lock);
	if (m->want_left > m->retained)
		ored_slot_release_past(m);
	spin_unlock(&m->lock);
}

static enum hrtimer_restart fire(struct hrtimer *timer)
{
	struct ored_member *m = container_of(timer, struct ored_member, timer);
	u64 now = ktime_get_ns(), next = U64_MAX;

	spin_lock(&m->timer_lock);
	m->timer_at = U64_MAX;
	spin_unlock(&m->timer_lock);

	switch (READ_ONCE(m->state)) {
	case ORED_STATE_JOINING:
		next = ored_join_tick(m, now);
		break;
	case ORED_STATE_LEFT:
		next = ored_leave_tick(m, now);
		fallthrough;
	case ORED_STATE_JOINED:
		if (READ_ONCE(m->tell_at) <= now)
			ored_op_tell_failures(m);
		release_wanted(m);
		next = min3(next, check_links(m, now), READ_ONCE(m->tell_at));
		if (ored_pump_due(m, now) || READ_ONCE(m->pump_again)) {
			WRITE_ONCE(m->pump_again, false);
			ored_pump(m);
		}
		next = min(next, READ_ONCE(m->pump_at));
		break;
	}
	ored_timer_need(m, next);
	return HRTIMER_NORESTART;
}

/**
 * ored_timer_init() - prepares the timer
 * @m: the membership
 */
void ored_timer_init(struct ored_member *m)
{
	spin_lock_init(&m->timer_lock);
	ored_lock_class(&m->timer_lock, ORED_LOCK_TIMER);
	m->timer_at = U64_MAX;
	hrtimer_setup(&m->timer, fire, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

/**
 * ored_timer_need() - has the timer fire not later than at a given time
 * @m: the membership; no link locked
 * @at: ns of the monotonic clock; U64_MAX: not needed
 */
void ored_timer_need(struct ored_member *m, u64 at)
{
	/* Unlocked: a value that is late only makes us look properly. */
	if (at >= READ_ONCE(m->timer_at))
		return;
	spin_lock_bh(&m->timer_lock);
	if (at < m->timer_at && !m->dead) {
		WRITE_ONCE(m->timer_at, at);
		hrtimer_start(&m->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
	}
	spin_unlock_bh(&m->timer_lock);
}

/**
 * ored_timer_stop() - the timer is not running and won't any more
 * @m: the membership; process context
 */
void ored_timer_stop(struct ored_member *m)
{
	spin_lock_bh(&m->timer_lock);
	m->dead = true;
	spin_unlock_bh(&m->timer_lock);
	hrtimer_cancel(&m->timer);
}
