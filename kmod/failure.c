// SPDX-License-Identifier: GPL-2.0
/*
 * Telling peers of ops that have failed here, so that they fail there too
 * instead of waiting for ever.
 */

#include "op.h"
#include "timer.h"
#include "tx.h"

/*
 * Tells a peer of the failed ops that it hasn't left. Return: whether any.
 *
 * Those that were only passed over here have no reason that could be told: who has
 * posted them knows by BYE that this rank isn't in them.
 */
static bool tell_failure(struct ored_link *l)
{
	struct ored_member *m = l->m;
	u64 op, end = READ_ONCE(m->posted);
	struct ored_failure failure;
	bool told = false;

	for (op = max(READ_ONCE(m->retained), READ_ONCE(l->standing.left)); op < end; op++) {
		struct ored_slot *slot = ored_slot_of(m, op);
		bool tell;

		spin_lock_bh(&m->lock);
		tell = slot->op == op && slot->state == ORED_SLOT_FINISHED &&
		       slot->failure.field && slot->error && ored_link_needs(l, op);
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
