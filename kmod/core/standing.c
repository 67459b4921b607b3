// SPDX-License-Identifier: GPL-2.0

#include "standing.h"

#define LEAD		32	/* ops that a peer may gain in no time: two full depths */
#define STEP_MIN	5000	/* ns that an op costs: a fourth of the quickest, */
#define STEP_MAX	5000000	/* within these */
#define DOUBT_NS	1000000000U	/* of this much doubt, time counts once more, */
#define DOUBT_MOST	1000		/* so often at most */
#define CREDIT_MAX	1000000000000000ULL	/* ns in one go: keeps products in 64 bits */

/**
 * ored_standing_init() - nothing has been heard
 * @s: what to fill in
 * @now: the time, ns: nobody has posted anything before
 */
void ored_standing_init(struct ored_standing *s, u64 now)
{
	memset(s, 0, sizeof(*s));
	s->credit = CREDIT_MAX;
	s->since = now;
}

/* Time that has passed is credit. Return: how many ops that is enough for */
static u64 earn(struct ored_standing *s, u64 now, u64 step)
{
	u64 passed = now - min(s->since, now);
	u64 haste = min_t(u64, div_u64(s->doubt, DOUBT_NS), DOUBT_MOST);

	s->since = now;
	s->credit = min(s->credit, LEAD * step) + min(passed, CREDIT_MAX) * (1 + haste);
	s->doubt = s->doubted ? s->doubt + passed : 0;
	return div64_u64(s->credit, step);
}

/*
 * Who has left ops that we are in makes us end ours, so a peer that lies about
 * its numbers, or whose packets are damaged in just that place, would drive the
 * group through ops in which nobody meets. So what a peer is ahead of us is
 * believed only as far as it has credit for: 32 ops at once, then what time
 * allows. What is no further than ours costs nothing, so that no misjudgement
 * of the speed can keep ranks apart that are together.
 *
 * While a peer is heard, unused credit doesn't grow beyond what a jump may be;
 * while it isn't, it may do anything that there is time for. Who keeps saying
 * the same is believed ever more quickly: ops may have become shorter.
 */
static u64 believe(u64 known, u64 claimed, u64 free, u64 *credit)
{
	u64 gain;

	known = max(known, min(claimed, free));
	if (claimed <= known)
		return known;
	gain = min(claimed - known, *credit);
	*credit -= gain;
	return known + gain;
}

/**
 * ored_standing_heard() - a packet has come
 * @s: its sender's
 * @posted: ops it has posted, as it says
 * @left: ops it has left, as it says
 * @own_posted: ops posted here
 * @now: the time, ns, not 0
 * @fastest: the quickest op that was ever seen here, ns, divided by how many
 *	are in flight at once; 0: none was
 *
 * Return: ORED_NEWS_*
 */
u32 ored_standing_heard(struct ored_standing *s, u64 posted, u64 left, u64 own_posted,
			u64 now, u64 fastest)
{
	u64 step = clamp_t(u64, fastest / 4, STEP_MIN, STEP_MAX);
	u64 had = earn(s, now, step), ops = had, believed;
	u32 news = 0;

	WRITE_ONCE(s->heard, now);
	left = min(left, posted);
	believed = believe(s->posted, posted, own_posted + 1, &ops);
	if (believed > s->posted) {
		WRITE_ONCE(s->posted, believed);
		news |= ORED_NEWS_POSTED;
	}
	believed = believe(s->left, min(left, s->posted), own_posted, &ops);
	if (believed > s->left) {
		WRITE_ONCE(s->left, believed);
		news |= ORED_NEWS_LEFT;
	}
	s->credit -= (had - ops) * step;
	s->doubted = posted > s->posted || left > s->left;
	if (s->missed && s->posted + 1 >= own_posted) {
		if (s->missed >= ORED_MISSES)
			news |= ORED_NEWS_COUNTS;
		WRITE_ONCE(s->missed, 0);
	}
	return news;
}

/**
 * ored_standing_ended() - an op has ended here
 * @s: a peer's
 * @op: the op
 */
void ored_standing_ended(struct ored_standing *s, u64 op)
{
	if (s->posted > op)
		WRITE_ONCE(s->missed, 0);
	else if (s->missed < ORED_MISSES)
		WRITE_ONCE(s->missed, s->missed + 1);
}
