/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The early timeout: an op that has all it is likely to get doesn't wait for
 * its bound.
 *
 * The last packets that a sender has for us in a stage carry a mark. Once the
 * marks of all live senders have been seen, what is still missing is lost, late
 * or being repaired; if nothing has come for x percent of t_C, the time that an
 * op commonly takes, it is given up.
 *
 * t_C is learnt from samples of all ranks, of which the median counts, so that
 * one rank's bad path doesn't stretch everybody's ops. It is kept relative to
 * the quiet time Tq (bound.h), so that buckets of all lengths share it.
 *
 * The caller serialises all calls for an ored_early.
 */
#ifndef ORED_CORE_EARLY_H
#define ORED_CORE_EARLY_H

#include "shim.h"
#include "term.h"

#define ORED_TAIL_MIN		3	/* packets that carry the mark, at least */

/**
 * struct ored_early - a rank's early timeout
 * @tc_ppm: t_C / Tq, parts per million; 0: not learnt yet
 * @x_percent: of t_C, what nothing comes for before an op is given up; 1 to 50
 */
struct ored_early {
	u32	tc_ppm;
	u32	x_percent;
};

/**
 * ored_tail() - does a packet carry the tail mark?
 * @place: of the packet in the order of first sending, from 0; for one that is
 *	sent again, the place of the last that was sent for the first time
 * @count: packets of the flow
 *
 * The last 1 % of what a sender has for one receiver in one stage, rounded up,
 * and three packets at least, so that the loss of one doesn't hide it.
 */
static inline bool ored_tail(u32 place, u32 count)
{
	u32 marked = max(DIV_ROUND_UP(count, 100), ORED_TAIL_MIN + 0U);

	return place + marked >= count;
}

void ored_early_init(struct ored_early *e);
u64 ored_early_sample(u64 elapsed, u64 bound, u64 received, u64 expected, u8 limit);
void ored_early_learn(struct ored_early *e, const u64 *samples, u32 n, u64 quiet);
void ored_early_adapt(struct ored_early *e, u32 loss_ppm);
u64 ored_early_at(const struct ored_early *e, u64 quiet, u64 last, u64 round_trip,
		  bool tails);

u16 ored_early_pack(u64 ns);
u64 ored_early_unpack(u16 packed);

#endif /* ORED_CORE_EARLY_H */
