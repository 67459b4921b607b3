// SPDX-License-Identifier: GPL-2.0
/*
 * Leaving. BYE says from which op on a rank takes no part: reliable ones fail at
 * its peers at once, bounded ones don't wait for it. As long as its socket is
 * open it still reduces its shard of bounded ops, without a contribution, so that
 * a rank which has run out of data doesn't take a part of the result with it.
 *
 * The ops before it, which it has posted, are still served: a rank that has its
 * result may close its socket while others miss packets of it, and one that is
 * killed in the middle of an op has already given its contribution. When all
 * peers have left those ops, know of the BYE, or are gone, or when ORED_LINGER_NS
 * have passed, the last BYE says that nothing is served any more.
 */

#include "event.h"
#include "leave.h"
#include "op.h"
#include "timer.h"
#include "tx.h"

#define ORED_LINGER_NS	(5ULL * NSEC_PER_SEC)

static void send_bye(struct ored_link *l, u8 flags)
{
	struct ored_packet pkt;

	if (!READ_ONCE(l->path->session))
		return;
	if (READ_ONCE(l->m->serves) && !(flags & ORED_F_FINAL))
		flags |= ORED_F_SERVES;
	ored_packet_init(l, &pkt, ORED_T_BYE, flags);
	pkt.op = (u32)READ_ONCE(l->m->last);
	ored_send_packet(l, &pkt, NULL, 0, 0);
}

/**
 * ored_leave() - takes part in no further op
 * @m: joined; no lock held
 */
void ored_leave(struct ored_member *m)
{
	struct ored_link *l;
	bool was_in;

	spin_lock_bh(&m->lock);
	was_in = m->state == ORED_STATE_JOINED;
	if (was_in) {
		WRITE_ONCE(m->state, ORED_STATE_LEFT);
		m->want_left = m->posted;
		WRITE_ONCE(m->last, m->posted);
		WRITE_ONCE(m->serves, rcu_access_pointer(m->sk));
		if (rcu_access_pointer(m->sk))
			m->deadline = U64_MAX;
		ored_event_rank(m, ORED_CMD_RANK_LEFT_NTF);
	}
	spin_unlock_bh(&m->lock);
	if (!was_in)
		return;
	ored_member_wake(m, EPOLLIN | EPOLLRDNORM | EPOLLHUP);
	ored_for_each_link(m, l)
		send_bye(l, ORED_F_REQUEST);
	ored_timer_need(m, ktime_get_ns() + NSEC_PER_MSEC);
}

/**
 * ored_leave_orphan() - the socket of a membership has been closed
 * @m: no lock held; the caller's use of it ends here
 *
 * Results are nobody's any more; peers are served for a while.
 */
void ored_leave_orphan(struct ored_member *m)
{
	struct ored_link *l;
	bool joined, served;
	u64 op;

	/* As soon as the socket is gone the timer may have it killed. */
	rcu_read_lock();
	spin_lock_bh(&m->lock);
	RCU_INIT_POINTER(m->sk, NULL);
	served = m->serves;
	WRITE_ONCE(m->serves, false);
	for (op = m->retained; op < m->posted; op++)
		ored_slot_of(m, op)->delivered = true;
	ored_slot_release_past(m);
	m->deadline = ktime_get_ns() + ORED_LINGER_NS;
	joined = m->state == ORED_STATE_JOINED || m->state == ORED_STATE_LEFT;
	spin_unlock_bh(&m->lock);
	if (joined) {
		ored_leave(m);
		if (served)
			ored_for_each_link(m, l)
				send_bye(l, ORED_F_REQUEST);
		ored_timer_need(m, ktime_get_ns() + NSEC_PER_MSEC);
	}
	rcu_read_unlock();
	/* One that hasn't joined has nobody to serve, and no timer kills it. */
	if (!joined)
		ored_member_kill(m);
}

/**
 * ored_leave_ask() - asks a peer what it has left, and says that we have
 * @l: the peer; no lock held
 */
void ored_leave_ask(struct ored_link *l)
{
	if (READ_ONCE(l->m->state) == ORED_STATE_LEFT)
		send_bye(l, ORED_F_REQUEST);
	else
		ored_send_mark(l, ORED_F_REQUEST);
}

static bool drained(struct ored_member *m)
	__must_hold(&m->lock)
{
	struct ored_link *l;

	lockdep_assert_held(&m->lock);
	ored_for_each_link(m, l) {
		if (m->posted && ored_link_needs(l, m->posted - 1))
			return false;
		if (!l->bye_known && l->status != ORED_PEER_LEFT)
			return false;
	}
	return true;
}

/**
 * ored_leave_tick() - the timer of a membership that has left
 * @m: the membership
 * @now: ns of the monotonic clock
 *
 * Return: when to call again
 */
u64 ored_leave_tick(struct ored_member *m, u64 now)
{
	u64 deadline;
	bool over;

	spin_lock_bh(&m->lock);
	deadline = m->deadline;
	over = !rcu_access_pointer(m->sk) && (deadline <= now || drained(m));
	spin_unlock_bh(&m->lock);
	if (!over)
		return deadline;
	queue_work(ored_wq, &m->drained);
	return U64_MAX;
}

/**
 * ored_leave_final() - tells all peers that nothing is served any more
 * @m: the membership; no lock held
 *
 * Twice, since nobody will answer questions later.
 */
void ored_leave_final(struct ored_member *m)
{
	struct ored_link *l;
	int i;

	for (i = 0; i < 2; i++)
		ored_for_each_link(m, l)
			send_bye(l, ORED_F_FINAL);
}

/**
 * ored_leave_heard() - a peer says BYE
 * @l: the peer; no lock held
 * @pkt: the packet; posted and left have been taken in
 */
void ored_leave_heard(struct ored_link *l, const struct ored_packet *pkt)
{
	struct ored_member *m = l->m;
	u64 at;

	spin_lock_bh(&m->lock);
	spin_lock(&l->lock);
	/* It can't have posted more than one slot's worth beyond what we left. */
	at = ored_extend32(m->posted, pkt->op);
	if (l->status != ORED_PEER_LEFT || at < l->left_at)
		WRITE_ONCE(l->left_at, at);
	if (l->status != ORED_PEER_LEFT)
		ored_event_peer(l, ORED_PEER_LEFT);
	WRITE_ONCE(l->serves, pkt->flags & ORED_F_SERVES && !(pkt->flags & ORED_F_FINAL));
	WRITE_ONCE(l->status, ORED_PEER_LEFT);
	if (pkt->flags & ORED_F_FINAL) {
		WRITE_ONCE(l->standing.gone, true);
		l->pto_at = U64_MAX;
	}
	spin_unlock(&l->lock);
	ored_op_peer_left(m, l);
	spin_unlock_bh(&m->lock);
	ored_op_tell_failures(m);
	/* Nobody waits any more for what it hasn't acknowledged. */
	ored_op_acked_all(m);
	if (pkt->flags & ORED_F_REQUEST)
		ored_send_mark(l, ORED_F_FINAL);
	if (READ_ONCE(m->state) == ORED_STATE_LEFT)
		ored_timer_need(m, ktime_get_ns());
	ored_member_wake(m, EPOLLOUT | EPOLLWRNORM);
}
