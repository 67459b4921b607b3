// SPDX-License-Identifier: GPL-2.0

#include "early.h"
#include "../../uapi/linux/ored.h"

#define X_START		10	/* percent */
#define X_MIN		1
#define X_MAX		50
#define LOSS_HIGH_PPM	1000	/* above it ops are given up too soon */
#define LOSS_LOW_PPM	100	/* below it they could be sooner */
#define PPM		1000000U
#define TC_MAX_PPM	(1000 * PPM)
#define OLD_WEIGHT	95	/* percent of the average that stays */

#define UNIT_NS		1024	/* of a packed time */
#define MANTISSA_BITS	11

/**
 * ored_early_init() - nothing is known
 * @e: what to fill in
 */
void ored_early_init(struct ored_early *e)
{
	e->tc_ppm = 0;
	e->x_percent = X_START;
}

/**
 * ored_early_sample() - what an op says of t_C
 * @elapsed: what it took, ns
 * @bound: its bound D, ns
 * @received: bytes that came, of all stages
 * @expected: bytes that were to come; not less than @received
 * @limit: enum ored_limit: what ended it
 *
 * Return: ns; 0: nothing
 */
u64 ored_early_sample(u64 elapsed, u64 bound, u64 received, u64 expected, u8 limit)
{
	u64 part;

	switch (limit) {
	case ORED_LIMIT_COMPLETE:
		return elapsed;
	case ORED_LIMIT_HARD:
		return bound;
	case ORED_LIMIT_EARLY:
		if (!received || received > expected)
			return 0;
		/* elapsed * expected / received without leaving 64 bits */
		part = max(div64_u64(received << 10, expected), 1ULL);
		return min(div64_u64(elapsed << 10, part), bound);
	default:
		return 0;
	}
}

/* The median of what isn't 0, the lower one of two; 0: there is none. */
static u64 median(const u64 *samples, u32 n)
{
	u32 i, j, valid = 0, below, same;

	for (i = 0; i < n; i++)
		valid += samples[i] != 0;
	for (i = 0; i < n; i++) {
		if (!samples[i])
			continue;
		below = 0;
		same = 0;
		for (j = 0; j < n; j++) {
			below += samples[j] && samples[j] < samples[i];
			same += samples[j] == samples[i];
		}
		if (below <= (valid - 1) / 2 && (valid - 1) / 2 < below + same)
			return samples[i];
	}
	return 0;
}

/**
 * ored_early_learn() - the ranks' samples of an op are there
 * @e: the rank's
 * @samples: by rank, the own one included, ns; 0: unknown
 * @n: ranks
 * @quiet: Tq of that op, ns; 0: not known, and nothing is learnt
 */
void ored_early_learn(struct ored_early *e, const u64 *samples, u32 n, u64 quiet)
{
	u64 sample = median(samples, n), ppm;

	if (!sample || !quiet)
		return;
	ppm = div64_u64(min(sample, ~0ULL / PPM) * PPM, quiet);
	ppm = clamp_t(u64, ppm, 1, TC_MAX_PPM);
	if (e->tc_ppm)
		ppm = div_u64(OLD_WEIGHT * (u64)e->tc_ppm + (100 - OLD_WEIGHT) * ppm, 100);
	e->tc_ppm = (u32)ppm;
}

/**
 * ored_early_adapt() - an op has ended
 * @e: the rank's
 * @loss_ppm: what it has lost of what ranks that count were to send, parts per
 *	million
 */
void ored_early_adapt(struct ored_early *e, u32 loss_ppm)
{
	if (loss_ppm > LOSS_HIGH_PPM)
		e->x_percent = min_t(u32, 2 * e->x_percent, X_MAX);
	else if (loss_ppm < LOSS_LOW_PPM)
		e->x_percent = max_t(u32, e->x_percent - 1, X_MIN);
}

/**
 * ored_early_at() - when an op or a stage is given up
 * @e: the rank's
 * @quiet: Tq of the op, ns; 0: not known
 * @last: when the last packet came that told anything new, ns
 * @round_trip: the longest to any live sender, with its variation, ns: time
 *	for what was asked for again to come; also what reordering may take
 * @tails: the marks of all live senders that aren't complete have been seen
 *
 * Return: the time, ORED_NEVER: it isn't; any new packet puts it off
 */
u64 ored_early_at(const struct ored_early *e, u64 quiet, u64 last, u64 round_trip,
		  bool tails)
{
	u64 tc;

	if (!tails || !quiet || !e->tc_ppm)
		return ORED_NEVER;
	tc = div_u64(quiet, PPM) * e->tc_ppm + div_u64(quiet % PPM * e->tc_ppm, PPM);
	return last + max(div_u64(tc * e->x_percent, 100), 2 * round_trip);
}

/**
 * ored_early_pack() - a time as it travels: 11 bits times a power of two
 * @ns: 0 to some 70 h
 *
 * Return: a number that is right within 0.05 % and 512 ns; 0 for less than 512 ns
 */
u16 ored_early_pack(u64 ns)
{
	u64 units = ns / UNIT_NS + (ns % UNIT_NS >= UNIT_NS / 2);
	int drop = fls64(units) - MANTISSA_BITS;

	if (drop <= 0)
		return (u16)units;
	units = (units + (1ULL << (drop - 1))) >> drop;
	if (units >> MANTISSA_BITS) {
		units >>= 1;
		drop++;
	}
	return drop > 31 ? 0xffff : (u16)((u32)drop << MANTISSA_BITS | (u32)units);
}

/**
 * ored_early_unpack() - the time again
 * @packed: from ored_early_pack(), or anything
 *
 * Return: ns
 */
u64 ored_early_unpack(u16 packed)
{
	u64 units = packed & ((1U << MANTISSA_BITS) - 1);

	return (units << (packed >> MANTISSA_BITS)) * UNIT_NS;
}
