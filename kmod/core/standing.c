// SPDX-License-Identifier: GPL-2.0

#include "standing.h"

#define LEAD		32	/* ops that a peer may gain in no time: two full depths */
#define FASTEST_MIN	20000	/* ns; no op is quicker */

/**
 * ored_standing_init() - nothing has been heard
 * @s: what to fill in
 * @now: the time, ns: nobody has posted anything before
 */
void ored_standing_init(struct ored_standing *s, u64 now)
{
	memset(s, 0, sizeof(*s));
	s->credit = ~0ULL;
	s->since = now;
}

/*
 * Who has left ops that we are in makes us end ours, so a peer that lies about
 * its numbers, or whose packets are damaged in just that place, would drive the
 * group through ops in which nobody meets. Nobody can be quicker than twice
 * what was ever seen. While a peer is heard, unused credit doesn't grow beyond
 * what a jump may be; while it isn't, it may do anything that there is time for.
 */
static u64 believe(struct ored_standing *s, u64 posted, u64 now, u64 fastest)
{
	u64 step = max_t(u64, fastest, FASTEST_MIN) / 2, gain;

	s->credit = min(s->credit, LEAD * step);
	s->credit += now - min(s->since, now);
	s->since = now;
	if (posted <= s->posted)
		return s->posted;
	gain = min(posted - s->posted, div64_u64(s->credit, step));
	s->credit -= gain * step;
	return s->posted + gain;
}

/**
 * ored_standing_heard() - a packet has come
 * @s: its sender's
 * @posted: ops it has posted, as it says
 * @left: ops it has left, as it says
 * @own_posted: ops posted here
 * @now: the time, ns, not 0
 * @fastest: the quickest op that was ever seen here, ns; 0: none was
 *
 * Return: ORED_NEWS_*
 */
u32 ored_standing_heard(struct ored_standing *s, u64 posted, u64 left, u64 own_posted,
			u64 now, u64 fastest)
{
	u64 believed = believe(s, posted, now, fastest);
	u32 news = 0;

	WRITE_ONCE(s->heard, now);
	if (believed > s->posted) {
		WRITE_ONCE(s->posted, believed);
		news |= ORED_NEWS_POSTED;
	}
	left = min(left, s->posted);
	if (left > s->left) {
		WRITE_ONCE(s->left, left);
		news |= ORED_NEWS_LEFT;
	}
	if (s->missed && s->posted >= own_posted) {
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
