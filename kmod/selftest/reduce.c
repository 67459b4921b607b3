// SPDX-License-Identifier: GPL-2.0
/*
 * Sums with the kernel's compiler flags and on the kernel's memory: known
 * answers, then every length, alignment and own rank against the element-wise
 * addition that gave the known answers.
 */

#include <linux/init.h>
#include <linux/slab.h>
#include <linux/ored.h>

#include "../compute.h"
#include "selftest.h"

#define RANKS		3
#define LONGEST		40	/* elements: two blocks and a rest */
#define SHIFTS		4	/* of 4 bytes: up to 16-byte alignment */
#define GUARD		0xdeadbeefU

struct sum {
	u32	a;
	u32	b;
	u32	sum;
};

static const struct sum sums[] __initconst = {
	{ 0x3f800000, 0x40000000, 0x40400000 },	/* 1 + 2 */
	{ 0x3f800000, 0xbf800000, 0x00000000 },	/* x - x is +0 */
	{ 0x80000000, 0x80000000, 0x80000000 },	/* -0 stays */
	{ 0x80000000, 0x00000000, 0x00000000 },
	{ 0x3f800000, 0x33800000, 0x3f800000 },	/* a tie, to even: down */
	{ 0x3f800001, 0x33800000, 0x3f800002 },	/* a tie, to even: up */
	{ 0x00000001, 0x00000001, 0x00000002 },	/* subnormals are kept */
	{ 0x00800000, 0x80000001, 0x007fffff },
	{ 0x7f7fffff, 0x7f7fffff, 0x7f800000 },	/* overflow */
	{ 0x7f800000, 0xff800000, 0x7fc00000 },	/* inf - inf */
	{ 0x7f800000, 0xff7fffff, 0x7f800000 },
	{ 0xffa12345, 0x3f800000, 0x7fc00000 },	/* one NaN for all */
};

static bool __init test_known(void)
{
	bool ok = true;
	u32 i, dst;

	for (i = 0; i < ARRAY_SIZE(sums); i++) {
		struct ored_contribs c = {
			.own = &sums[i].a, .staged = &sums[i].b, .stride = 4,
			.rank = 0, .nranks = 2,
		};

		ok &= ored_expect(ored_f32_add(sums[i].a, sums[i].b) == sums[i].sum);
		ok &= ored_expect(ored_f32_add(sums[i].b, sums[i].a) == sums[i].sum);
		ok &= ored_expect(ored_reduce(&dst, &c, 4, ORED_F32, ORED_SUM) == 2);
		ok &= ored_expect(dst == sums[i].sum);
	}
	ok &= ored_expect(ored_f32_div_u32(0x3f800000, 3) == 0x3eaaaaab);
	ok &= ored_expect(ored_f32_div_u32(0xc0c00000, 2) == 0xc0400000);
	return ok & ored_expect(ored_f32_div_u32(0x00000003, 2) == 0x00000002);
}

/* Numbers of all kinds and magnitudes; the same in each run. */
static u32 __init number(u32 rank, u32 i)
{
	u32 bits = (rank * LONGEST + i + 1) * 2654435761U;

	switch (i % 8) {
	case 0:
		return bits;
	case 1:
		return bits & 0x807fffff;	/* subnormal */
	default:
		return (bits & 0x80ffffff) | 0x3f000000;
	}
}

static u32 __init expected(u32 i, u8 reduction)
{
	u32 sum = number(0, i), rank;

	for (rank = 1; rank < RANKS; rank++)
		sum = ored_f32_add(sum, number(rank, i));
	return reduction == ORED_MEAN ? ored_f32_div_u32(sum, RANKS) : sum;
}

/* One reduction; guards stand before and behind the result. */
static bool __init test_one(u32 *dst, u32 *own, u32 *staged, u32 len, u32 rank, u8 reduction)
{
	struct ored_contribs c = {
		.own = own, .staged = staged, .stride = len * 4,
		.rank = rank, .nranks = RANKS,
	};
	bool ok = true;
	u32 r, i;

	for (r = 0; r < RANKS; r++)
		for (i = 0; i < len; i++)
			*(r == rank ? own + i : staged++) = number(r, i);
	dst[-1] = GUARD;
	dst[len] = GUARD;
	ored_reduce(dst, &c, len * 4, ORED_F32, reduction);
	for (i = 0; i < len; i++)
		ok &= ored_expect(dst[i] == expected(i, reduction));
	return ok & ored_expect(dst[-1] == GUARD && dst[len] == GUARD);
}

static bool __init test_at(u32 *block, u32 shift, u32 len, u32 rank)
{
	/* Parts of the block, each with room for a guard and the shift. */
	u32 *dst = block + 1 + shift, *own = dst + LONGEST + SHIFTS + 1;
	/* The last contribution ends with the block. */
	u32 *staged = block + (1 + RANKS) * (LONGEST + SHIFTS + 1) - (RANKS - 1) * len;

	return test_one(dst, own, staged, len, rank, ORED_SUM) &
	       test_one(dst, own, staged, len, rank, ORED_MEAN) &
	       /* In place */
	       test_one(own, own, staged, len, rank, ORED_SUM);
}

#define UNIT_RANKS	5
#define UNIT_STRIDE	2052	/* bytes: an odd number of cache lines and 4 */

/* Whoever computes gives the bits that the reference gives. */
static bool __init test_unit(u8 *block, u8 dtype, u8 reduction, u32 len)
{
	u8 *want = block + UNIT_RANKS * UNIT_STRIDE, *got = want + UNIT_STRIDE;
	struct ored_contribs c = {
		.own = block, .staged = block + UNIT_STRIDE, .stride = UNIT_STRIDE,
		.rank = len % UNIT_RANKS, .nranks = UNIT_RANKS,
	};

	if (c.rank & 1)
		c.present = &(const unsigned long){ 0x1b };
	memset(got, 0xa5, UNIT_STRIDE);
	memset(want, 0xa5, UNIT_STRIDE);
	return ored_expect(ored_reduce(want, &c, len, dtype, reduction) ==
			   ored_compute_reduce(got, &c, len, dtype, reduction)) &
	       ored_expect(!memcmp(got, want, UNIT_STRIDE));
}

static bool __init test_units(void)
{
	u8 *block = kmalloc((UNIT_RANKS + 2) * UNIT_STRIDE, GFP_KERNEL);
	u32 i, len;
	u8 dtype, reduction;
	bool ok;

	ok = ored_expect(block);
	if (!ok)
		return false;
	for (i = 0; i < UNIT_RANKS * UNIT_STRIDE / 4; i++)
		((u32 *)block)[i] = number(i / (UNIT_STRIDE / 4), i);
	for (dtype = 0; dtype <= ORED_I64; dtype++)
		for (reduction = 0; reduction <= ORED_MAX; reduction++)
			for (len = 0; len < 2048; len += 8 + len / 4 / 8 * 8)
				ok &= test_unit(block, dtype, reduction, len);
	kfree(block);
	return ok;
}

bool __init ored_selftest_reduce(void)
{
	u32 *block = kmalloc_array((1 + RANKS) * (LONGEST + SHIFTS + 1), sizeof(u32), GFP_KERNEL);
	u32 len, shift, rank;
	bool ok;

	if (!ored_expect(block))
		return false;
	ok = test_known();
	for (len = 1; len <= LONGEST; len++)
		for (shift = 0; shift < SHIFTS; shift++)
			for (rank = 0; rank < RANKS; rank++)
				ok &= test_at(block, shift, len, rank);
	kfree(block);
	return ok & test_units();
}
