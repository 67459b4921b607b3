/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The randomised Hadamard transform of a bucket.
 *
 * A block is a power of two of elements, each with a random sign, and is turned
 * into as many sums of all of them. What is lost on the way then takes a little
 * from each element instead of all from some. The transform is orthonormal up to
 * powers of two that cancel between the two directions; so it is linear, and
 * ranks that use the same signs can be summed in the rotated domain.
 *
 * The bucket, of any length, is cut into as many rows as a block is long, all of
 * the same length or one longer. Block b is made of the b-th element of every
 * row, so that a block has no two neighbours in one packet, and lost packets,
 * however many in a row, take from all blocks alike. The elements that make some
 * rows longer are in no such block. Before all others there is a block of the
 * last elements of all rows, which mixes those in.
 *
 * The rows of the sums are in a scrambled order: in their natural order a run of
 * rows is a pattern that the transform itself may make, of two large elements
 * say, and all or nothing of them would be lost with it.
 *
 * The same additions in the same order, from pairs half a block apart to
 * neighbours, make up every block, whoever computes it: results are equal bit
 * for bit.
 */
#ifndef ORED_CORE_HADAMARD_H
#define ORED_CORE_HADAMARD_H

#include "shim.h"

#define ORED_HADAMARD_LOG	12	/* of the longest block's length */
#define ORED_HADAMARD_WIDTH	16	/* blocks of a tile, side by side */
/* Elements, of 4 bytes, of scratch memory that are enough for any bucket */
#define ORED_HADAMARD_SCRATCH	(ORED_HADAMARD_WIDTH << ORED_HADAMARD_LOG)

/**
 * struct ored_hadamard - what to transform, and how
 * @seed: of the signs
 * @count: elements of the bucket
 * @log: of a block's length
 * @dtype: ORED_F32, ORED_F16 or ORED_BF16
 * @inverse: back again
 */
struct ored_hadamard {
	u64 seed;
	u64 count;
	u8 log;
	u8 dtype;
	bool inverse;
};

/**
 * struct ored_hadamard_ops - the arithmetic, in 32-bit floats
 * @load: rows @from to @to of the tile of @width blocks from block @first on
 *	are read from the bucket to @x, each one ORED_HADAMARD_WIDTH floats
 * @mix: one of ored_hadamard_steps() steps of transforming a tile's columns
 * @store: the inverse of @load
 * @mix_one: scales one block and transforms it
 *
 * Each call takes less than some 10 us: what may be too long for one is split.
 */
struct ored_hadamard_ops {
	void (*load)(const struct ored_hadamard *h, u32 *x, const void *bucket,
		     u64 first, u32 width, u32 from, u32 to);
	void (*mix)(u32 *x, u32 log, u32 step);
	void (*store)(const struct ored_hadamard *h, void *bucket, const u32 *x,
		      u64 first, u32 width, u32 from, u32 to);
	void (*mix_one)(u32 *x, u32 log, u32 shift);
};

/* In integers, for where there is no FPU; some 50 times slower */
extern const struct ored_hadamard_ops ored_hadamard_soft;

/**
 * struct ored_hadamard_unit - who computes
 * @ops: how
 * @begin: called before each of @ops; may be NULL
 * @end: called after it
 */
struct ored_hadamard_unit {
	const struct ored_hadamard_ops *ops;
	void (*begin)(void);
	void (*end)(void);
};

/**
 * ored_hadamard_takes() - can buckets of this dtype be transformed?
 * @dtype: enum ored_dtype
 *
 * Return: whether it is a float of up to 32 bits.
 */
bool ored_hadamard_takes(u8 dtype);

/**
 * ored_hadamard_log() - how long the blocks of a bucket are
 * @count: elements of the bucket, at least 1
 *
 * Return: the logarithm of a block's length.
 */
u8 ored_hadamard_log(u64 count);

/**
 * ored_hadamard_scratch() - how much scratch memory a bucket needs
 * @count: elements of the bucket, at least 1; shorter ones need no more
 *
 * Return: elements of 4 bytes
 */
u32 ored_hadamard_scratch(u64 count);

/**
 * ored_hadamard_seed() - what the signs of an op depend on
 * @group: id of the group
 * @epoch: its run
 * @op: number of the op
 *
 * Return: the seed, the same on all ranks
 */
u64 ored_hadamard_seed(u32 group, u64 epoch, u64 op);

/**
 * ored_hadamard_tiles() - how much work a bucket is
 * @h: the transform
 *
 * Return: number of tiles to call ored_hadamard_tile() for.
 */
u64 ored_hadamard_tiles(const struct ored_hadamard *h);

/**
 * ored_hadamard_tile() - transform a part of a bucket in place
 * @h: the transform
 * @unit: who computes
 * @bucket: its elements, a multiple of 4
 * @x: scratch memory, ored_hadamard_scratch() times 4 bytes, a multiple of 64
 * @tile: 0 to ored_hadamard_tiles() - 1, in this order
 */
void ored_hadamard_tile(const struct ored_hadamard *h,
			const struct ored_hadamard_unit *unit, void *bucket,
			u32 *x, u64 tile);

/* For those who implement ops */

/* Where row @row of a bucket starts */
static inline u64 ored_hadamard_row(const struct ored_hadamard *h, u32 row)
{
	return row * h->count >> h->log;
}

/* By how many binary digits values are scaled down, before anything is added */
static inline u32 ored_hadamard_shift(const struct ored_hadamard *h)
{
	return (h->log + h->inverse) / 2;
}

/* Half of what splitmix64 does to its state, enough for the upper bits */
static inline u64 ored_hadamard_stir(u64 x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	return (x ^ x >> 27) * 0x94d049bb133111ebULL;
}

/* Random bits of @row of the tile that starts at block @first */
static inline u32 ored_hadamard_signs(const struct ored_hadamard *h, u64 first,
				      u32 row)
{
	u64 place = first << ORED_HADAMARD_LOG | row;

	return (u32)(ored_hadamard_stir(h->seed + place * 0x9e3779b97f4a7c15ULL) >> 32);
}

/* Which of the sums stands in @row: neighbours are a golden section apart. */
static inline u32 ored_hadamard_sum(const struct ored_hadamard *h, u32 row)
{
	u32 step = (u32)(0x9e3779b1ULL >> (32 - h->log)) | 1;

	return row * step & ((1U << h->log) - 1);
}

/* Where the contents of @row are while they are on their way in ... */
static inline u32 ored_hadamard_loaded(const struct ored_hadamard *h, u32 row)
{
	return h->inverse ? ored_hadamard_sum(h, row) : row;
}

/* ... and out */
static inline u32 ored_hadamard_stored(const struct ored_hadamard *h, u32 row)
{
	return h->inverse ? row : ored_hadamard_sum(h, row);
}

/*
 * A tile of more rows is mixed in steps: first its rows far apart, some columns
 * at a time, then in parts of so many rows, which fit the nearest cache.
 */
#define ORED_HADAMARD_PART_LOG	8
#define ORED_HADAMARD_FAR_STEPS	4

static inline u32 ored_hadamard_steps(u32 log)
{
	if (log <= ORED_HADAMARD_PART_LOG)
		return 1;
	return ORED_HADAMARD_FAR_STEPS + (1U << (log - ORED_HADAMARD_PART_LOG));
}

#endif /* ORED_CORE_HADAMARD_H */
