/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Log-linear histograms of nanoseconds: 32 buckets for each power of two from
 * 512 ns to 17 s, so that a bucket is at most 3.2 % wide and its middle at most
 * 1.6 % off. The first bucket takes what is shorter and the last what is longer.
 */
#ifndef ORED_BPF_HIST_H
#define ORED_BPF_HIST_H

#include <linux/types.h>

#define ORED_HIST_SUB_BITS	5
#define ORED_HIST_SUB		32U	/* 2^ORED_HIST_SUB_BITS */
#define ORED_HIST_FIRST_BIT	9	/* 2^9 ns */
#define ORED_HIST_LAST_BIT	33	/* up to 2^34 ns */
#define ORED_HIST_OCTAVES	(ORED_HIST_LAST_BIT - ORED_HIST_FIRST_BIT + 1)
#define ORED_HIST_BUCKETS	(ORED_HIST_OCTAVES * ORED_HIST_SUB + 2)

/* The highest bit that is set, without the instruction that BPF hasn't got */
static inline __u32 ored_hist_high_bit(__u64 v)
{
	__u32 bit = 0;

	if (v >> 32) {
		bit = 32;
		v >>= 32;
	}
	if (v >> 16) {
		bit += 16;
		v >>= 16;
	}
	if (v >> 8) {
		bit += 8;
		v >>= 8;
	}
	if (v >> 4) {
		bit += 4;
		v >>= 4;
	}
	if (v >> 2) {
		bit += 2;
		v >>= 2;
	}
	return bit + (__u32)(v >> 1);
}

/* The bucket that a time belongs to, below ORED_HIST_BUCKETS */
static inline __u32 ored_hist_bucket(__u64 ns)
{
	__u32 bit;

	if (ns >> ORED_HIST_FIRST_BIT == 0)
		return 0;
	if (ns >> (ORED_HIST_LAST_BIT + 1))
		return ORED_HIST_BUCKETS - 1;
	bit = ored_hist_high_bit(ns);
	return 1 + (bit - ORED_HIST_FIRST_BIT) * ORED_HIST_SUB +
	       ((__u32)(ns >> (bit - ORED_HIST_SUB_BITS)) & (ORED_HIST_SUB - 1));
}

/* The shortest time that belongs to a bucket */
static inline __u64 ored_hist_from(__u32 bucket)
{
	__u32 octave, sub;

	if (!bucket)
		return 0;
	octave = (bucket - 1) / ORED_HIST_SUB;
	sub = (bucket - 1) % ORED_HIST_SUB;
	return (__u64)(ORED_HIST_SUB + sub) <<
	       (octave + ORED_HIST_FIRST_BIT - ORED_HIST_SUB_BITS);
}

#endif /* ORED_BPF_HIST_H */
