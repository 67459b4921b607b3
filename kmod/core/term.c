// SPDX-License-Identifier: GPL-2.0

#include "term.h"

/**
 * ored_term_begin() - an op has been posted, and none before it is going on
 * @t: its term
 * @limits: what it may take
 * @now: the time
 */
void ored_term_begin(struct ored_term *t, const struct ored_limits *limits, u64 now)
{
	t->limits = *limits;
	t->begin = now;
	t->all_posted = ORED_NEVER;
	t->evidence = ORED_NEVER;
	t->overtaken = ORED_NEVER;
	t->alone = ORED_NEVER;
	t->useful = now;
}

/**
 * ored_term_posted() - all peers that count have posted the op
 * @t: its term
 * @now: the time; only the first call matters
 */
void ored_term_posted(struct ored_term *t, u64 now)
{
	t->all_posted = min(t->all_posted, now);
}

/**
 * ored_term_left() - a live peer has left the op
 * @t: its term
 * @ops: how many ops it has left, from this one on: 1 is this one alone
 * @alone: one that isn't posted here is among them
 * @now: the time; only the first call of a kind matters
 */
void ored_term_left(struct ored_term *t, u64 ops, bool alone, u64 now)
{
	if (ops >= 1)
		t->evidence = min(t->evidence, now);
	if (ops >= 2)
		t->overtaken = min(t->overtaken, now);
	if (alone)
		t->alone = min(t->alone, now);
}

static u64 reference(const struct ored_term *t)
{
	return min(t->all_posted, t->begin + t->limits.wait);
}

/**
 * ored_term_seal_at() - when the scatter is sealed
 * @t: the op's term
 *
 * Return: the time, as far as is known now; it can become sooner
 */
u64 ored_term_seal_at(const struct ored_term *t)
{
	return reference(t) + t->limits.seal;
}

/**
 * ored_term_hard_at() - when the op ends for want of time
 * @t: the op's term
 *
 * Return: the time, as far as is known now; it can become sooner
 */
u64 ored_term_hard_at(const struct ored_term *t)
{
	return reference(t) + t->limits.bound;
}

/**
 * ored_term_end_at() - when the op ends, for want of time or of peers
 * @t: the op's term
 *
 * Return: the time, as far as is known now; useful packets put it off, but not
 * beyond ored_term_hard_at()
 */
u64 ored_term_end_at(const struct ored_term *t)
{
	u64 end = min(ored_term_hard_at(t), t->alone);

	if (t->overtaken != ORED_NEVER)
		end = min(end, t->overtaken + t->limits.grace);
	if (t->evidence != ORED_NEVER)
		end = min(end, max(t->evidence, READ_ONCE(t->useful)) + t->limits.grace);
	return end;
}

/**
 * ored_term_grace() - how long to give a peer that has left the op
 * @limits: as the bound has found them
 * @repair: how long it may take until a sender has asked about its last packets
 *	and sent them again, its time-out and two round trips; the longest of all
 *	peers that count
 *
 * Where ops are short, @grace of @limits is too short for that: then whoever has
 * lost a packet would be cut off by those who haven't.
 *
 * Return: the larger, but not more than a quarter of the bound
 */
u64 ored_term_grace(const struct ored_limits *limits, u64 repair)
{
	return max(limits->grace, min(repair, limits->bound / 4));
}

/**
 * ored_quorum() - may those who are present end an op without the others?
 * @present: ranks that are in it, the own one included
 * @ranks: ranks of the group, without those that left explicitly
 *
 * Strictly more than half: a rank that is cut off must not run away, nor either
 * half of a group that was cut in two.
 */
bool ored_quorum(u32 present, u32 ranks)
{
	return 2 * present > ranks;
}
