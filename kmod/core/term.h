/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The term of a bounded op: when its scatter is sealed and when it ends, in
 * whatever state its peers are.
 *
 * It runs from a reference that the ranks share as well as they can: the time
 * at which every peer that counts has posted the op, but not later than the own
 * post + W. The scatter is sealed at the reference + D1, the op ends at the
 * reference + D, so nobody waits longer than D + W. An op that a live peer has
 * left already ends sooner: G after the last packet that was of any use; if that
 * peer has left the next one too, G after that was seen, useful packets or not; and
 * at once if it has also left one that isn't posted here, which it can only have
 * ended without this rank. So ranks that fell apart meet again, while those that
 * are in step don't notice, however many ops they have in flight.
 *
 * All times are nanoseconds of one monotonic clock; ORED_NEVER is a time that
 * doesn't come.
 */
#ifndef ORED_CORE_TERM_H
#define ORED_CORE_TERM_H

#include "shim.h"

#define ORED_NEVER	(~0ULL)

/**
 * struct ored_limits - how long an op may take
 * @bound: D, from the reference to the end
 * @seal: D1, from the reference to the seal of the scatter; at most @bound
 * @wait: W, how long the reference waits for late posters
 * @grace: G, how long a peer that has left the op is given to be of use still
 */
struct ored_limits {
	u64	bound;
	u64	seal;
	u64	wait;
	u64	grace;
};

/**
 * struct ored_term - one op's
 * @limits: as given to ored_term_begin()
 * @begin: when it began
 * @all_posted: when all peers that count had posted it
 * @evidence: when a live peer was first seen to have left it
 * @overtaken: when a live peer was first seen to have left the next one
 * @alone: when a live peer was first seen to have left one that isn't posted here
 * @useful: when the last packet came that told anything new
 */
struct ored_term {
	struct ored_limits	limits;
	u64			begin;
	u64			all_posted;
	u64			evidence;
	u64			overtaken;
	u64			alone;
	u64			useful;
};

void ored_term_begin(struct ored_term *t, const struct ored_limits *limits, u64 now);
void ored_term_posted(struct ored_term *t, u64 now);
void ored_term_left(struct ored_term *t, u64 ops, bool alone, u64 now);

u64 ored_term_seal_at(const struct ored_term *t);
u64 ored_term_hard_at(const struct ored_term *t);
u64 ored_term_end_at(const struct ored_term *t);

/* A packet of this op has told something new. */
static inline void ored_term_used(struct ored_term *t, u64 now)
{
	WRITE_ONCE(t->useful, now);
}

/* The longest that any call waits for the op: what is published */
static inline u64 ored_limits_published(const struct ored_limits *limits)
{
	return limits->bound + limits->wait;
}

u64 ored_term_grace(const struct ored_limits *limits, u64 repair);
bool ored_quorum(u32 present, u32 ranks);

#endif /* ORED_CORE_TERM_H */
