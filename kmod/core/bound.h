/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The bound of an op, found by policy: how long buckets of any length may take
 * in this group, given how long they took undisturbed.
 *
 * Warm-up: the first ops are given the ceiling, and the times of those that
 * were complete are noted. A line through them, a constant plus so much per
 * byte, is then the group's quiet time Tq: the 20th percentile, by quantile
 * regression, so that buckets of all lengths share it.
 *
 * Then D = factor * Tq. The policy "loss" moves the factor by what was lost
 * after repair: longer quickly when too much was, shorter slowly otherwise.
 * The policy "p95" is OptiReduce's: the 95th percentile of the warm-up, and no
 * more. Times of ops that were bounded never come back into any of it: they
 * are as short as the bound makes them, and would pull it down for ever.
 *
 * A group in which no warm-up op completes (a peer that is hopelessly slow, or
 * has never come) has no times to learn from. Its bound is searched for by
 * loss alone: down from the ceiling, as long as that loses no more.
 *
 * The caller serialises all calls for a bound.
 */
#ifndef ORED_CORE_BOUND_H
#define ORED_CORE_BOUND_H

#include "shim.h"
#include "term.h"

#define ORED_BOUND_SAMPLES	64	/* most warm-up ops that are noted */
#define ORED_BOUND_MIN		5	/* fewest to learn from */
#define ORED_PPM		1000000U

/**
 * struct ored_bound_conf - how a bound is to be found
 * @policy: enum ored_deadline
 * @target_ppm: loss that is aimed at, parts per million; 1 to 500000
 * @floor_ppm: D is never less than this part of Tq; 1000000 is Tq itself
 * @ceiling_ppm: nor more than this
 * @floor_ns: nor less than this: what timers and processors need anyway
 * @ceiling_ns: D of the warm-up, and never more, plus
 * @ceiling_byte_ns: for each byte of the bucket
 * @warmup: ops to learn from, ORED_BOUND_MIN to ORED_BOUND_SAMPLES
 * @wait_percent: W, of D; 0 to 50
 */
struct ored_bound_conf {
	u8	policy;
	u32	target_ppm;
	u32	floor_ppm;
	u32	ceiling_ppm;
	u64	floor_ns;
	u64	ceiling_ns;
	u32	ceiling_byte_ns;
	u32	warmup;
	u32	wait_percent;
};

/*
 * Target, factors and W: from a packet-level simulation. The ceiling lets a
 * bucket of 5 MB pass at 20 Mbit/s and one of 1 GiB at 320 Mbit/s.
 */
#define ORED_BOUND_TARGET_PPM		3000
#define ORED_BOUND_FLOOR_PPM		1050000
#define ORED_BOUND_CEILING_PPM		4000000
#define ORED_BOUND_FLOOR_NS		2000000ULL
#define ORED_BOUND_CEILING_NS		5000000000ULL
#define ORED_BOUND_CEILING_BYTE_NS	50
#define ORED_BOUND_WARMUP_OPS		20
#define ORED_BOUND_WAIT_PERCENT		25

#define ORED_BOUND_DEFAULT {					\
	.policy = 0,						\
	.target_ppm = ORED_BOUND_TARGET_PPM,			\
	.floor_ppm = ORED_BOUND_FLOOR_PPM,			\
	.ceiling_ppm = ORED_BOUND_CEILING_PPM,			\
	.floor_ns = ORED_BOUND_FLOOR_NS,			\
	.ceiling_ns = ORED_BOUND_CEILING_NS,			\
	.ceiling_byte_ns = ORED_BOUND_CEILING_BYTE_NS,		\
	.warmup = ORED_BOUND_WARMUP_OPS,			\
	.wait_percent = ORED_BOUND_WAIT_PERCENT,		\
}

/* Where a bound is in its life; see the top of this file */
enum ored_bound_phase {
	ORED_BOUND_WARMUP,
	ORED_BOUND_SEARCH,
	ORED_BOUND_LEARNT,
};

/**
 * struct ored_line - time as a function of length
 * @base: ns of no bytes
 * @slope: ns per byte, ORED_LINE_SHIFT fractional bits
 * @from: shorter buckets take as long as one of this length: nothing is known
 *	about them
 */
struct ored_line {
	u64	base;
	u64	slope;
	u32	from;
};

#define ORED_LINE_SHIFT		20

/**
 * struct ored_bound - a group's, or what a rank makes of it
 * @conf: how it is to be found
 * @phase: enum ored_bound_phase
 * @tries: warm-up ops that have ended, complete or not
 * @nsamples: how many of them were complete
 * @bytes: their lengths
 * @elapsed: their times, ns
 * @quiet: Tq, once learnt
 * @p95: the 95th percentile, once learnt
 * @factor: D / Tq, or D / ceiling in a search; parts per million
 * @owed: of the exponent of @factor's rise, what didn't fit into one step; parts per
 *	million
 * @excused: loss that no bound could help, parts per million: the least that
 *	an op of the search has lost
 */
struct ored_bound {
	struct ored_bound_conf	conf;
	u8			phase;
	u32			tries;
	u32			nsamples;
	u32			bytes[ORED_BOUND_SAMPLES];
	u64			elapsed[ORED_BOUND_SAMPLES];
	struct ored_line	quiet;
	struct ored_line	p95;
	u32			factor;
	u32			owed;
	u32			excused;
};

#define ORED_WAIT_POLICY	(~0ULL)	/* ored_bound_limits(): W by policy */

void ored_bound_init(struct ored_bound *b, const struct ored_bound_conf *conf);
int ored_bound_conf_check(const struct ored_bound_conf *conf);
void ored_bound_limits(const struct ored_bound *b, u32 bytes, u64 deadline, u64 wait,
		       struct ored_limits *out);
void ored_bound_sample(struct ored_bound *b, u32 bytes, u64 elapsed);
void ored_bound_ended(struct ored_bound *b, u32 bytes, u64 elapsed, u32 loss_ppm,
		      bool complete);
void ored_bound_behind(struct ored_bound *b, u32 loss_ppm);
u64 ored_bound_quiet(const struct ored_bound *b, u32 bytes);
u64 ored_line_at(const struct ored_line *line, u32 bytes);

#endif /* ORED_CORE_BOUND_H */
