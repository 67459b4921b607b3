/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a peer stands: which ops it has posted and left, whether it is alive,
 * whether it counts, and what may be sent to it.
 *
 * Every packet says how many ops its sender has posted (P) and left (L). Op k
 * has been posted by who has P > k, left by who has L > k. Both only grow.
 *
 * A peer that had not posted two ops in a row when they ended here doesn't
 * count: nobody waits for it. Packets alone don't help it, since the kernel of
 * a process that is stopped still answers. It counts again from the next post
 * on, once it has posted the op before our newest, or a later one: a rank that
 * stays one op behind would never come closer if nobody waited for it, since
 * the past op is served to it whole.
 *
 * Both ends keep the slots of a window of ops: as many past ones as can be in
 * flight (what has been left, for peers that need its data still: they may have
 * left none of those), depth that are in flight and, since a peer may be ahead,
 * one more: from L - depth to L + depth.
 *
 * The caller serialises all calls for a standing; those that only look may be
 * made without that, and may then be late.
 */
#ifndef ORED_CORE_STANDING_H
#define ORED_CORE_STANDING_H

#include "shim.h"

#define ORED_MISSES	2		/* ops in a row, after which a peer doesn't count */
#define ORED_SILENT_NS	100000000ULL	/* live: heard within this, */
#define ORED_SILENT_OPS	2		/* and so many published bounds */

/**
 * struct ored_standing - a peer's
 * @posted: ops that it has posted, as far as that is believed
 * @left: ops that it has left; not more than @posted
 * @heard: when it was last heard, ns; 0: never
 * @credit: how much progress is believed yet, as ns,
 * @since: as of when
 * @doubt: for how long it has said more than is believed, ns
 * @doubted: it did when it was last heard
 * @missed: ops in a row that have ended here before it had posted them
 * @gone: it takes part in nothing any more, and has said so
 */
struct ored_standing {
	u64	posted;
	u64	left;
	u64	heard;
	u64	credit;
	u64	since;
	u64	doubt;
	bool	doubted;
	u32	missed;
	bool	gone;
};

/* What ored_standing_heard() returns */
#define ORED_NEWS_POSTED	1U	/* it has posted more */
#define ORED_NEWS_LEFT		2U	/* it has left more */
#define ORED_NEWS_COUNTS	4U	/* it counts again */

void ored_standing_init(struct ored_standing *s, u64 now);
u32 ored_standing_heard(struct ored_standing *s, u64 posted, u64 left, u64 own_posted,
			u64 now, u64 fastest);
void ored_standing_ended(struct ored_standing *s, u64 op);

/* Is it waited for, from the next post on? */
static inline bool ored_standing_counts(const struct ored_standing *s)
{
	return !READ_ONCE(s->gone) && READ_ONCE(s->missed) < ORED_MISSES;
}

/**
 * ored_standing_live() - does a peer's progress say anything about now?
 * @s: the peer's
 * @now: the time, ns
 * @published: D + W of the ops, ns
 */
static inline bool ored_standing_live(const struct ored_standing *s, u64 now, u64 published)
{
	u64 heard = READ_ONCE(s->heard);

	return heard && !READ_ONCE(s->gone) &&
	       now <= heard + ORED_SILENT_OPS * published + ORED_SILENT_NS;
}

/**
 * ored_standing_accepts() - would a peer take data of an op?
 * @s: the peer's
 * @op: the op
 * @depth: ops in flight
 */
static inline bool ored_standing_accepts(const struct ored_standing *s, u64 op, u32 depth)
{
	u64 left = READ_ONCE(s->left);

	return op >= left && op <= left + depth && !READ_ONCE(s->gone);
}

/**
 * ored_standing_window() - may data of an op touch a slot here?
 * @left: ops left here
 * @op: the op
 * @depth: ops in flight
 *
 * Data of past ops are of no use, but their slots are there to answer.
 */
static inline bool ored_standing_window(u64 left, u64 op, u32 depth)
{
	return op + depth >= left && op <= left + depth;
}

#endif /* ORED_CORE_STANDING_H */
