// SPDX-License-Identifier: GPL-2.0
/* ored_reduce() against the FPU: shapes, places, special values, canaries. */

#include "f32.h"
#include "../../kmod/core/reduce.h"
#include "../../uapi/linux/ored.h"

#define CANARY		0xa5c3e187U
#define GUARD		16	/* elements before and behind each buffer */
#define MAX_COUNT	400	/* elements; a full packet carries some 360 */

/* Contributions by rank, as one thinks of them */
static u32 contrib[ORED_MAX_RANKS][MAX_COUNT];

static u32 *guarded(size_t elements)
{
	u32 *p = malloc((elements + 2 * GUARD) * sizeof(u32));
	size_t i;

	if (!p)
		abort();
	for (i = 0; i < elements + 2 * GUARD; i++)
		p[i] = CANARY;
	return p + GUARD;
}

/* Checks both canaries and that the @used elements from @shift on are all. */
static void release(u32 *p, size_t elements, size_t shift, size_t used)
{
	size_t i, broken = 0;

	for (i = 0; i < elements + 2 * GUARD; i++) {
		if (i < GUARD + shift || i >= GUARD + shift + used)
			broken += p[i - GUARD] != CANARY;
	}
	CHECK_EQ(broken, 0);
	free(p - GUARD);
}

/* Which ranks have contributed; NULL: all */
static const unsigned long *present;

static bool is_present(u32 rank)
{
	return !present || test_bit(rank, present);
}

static u32 count_present(u32 nranks)
{
	u32 r, count = 0;

	for (r = 0; r < nranks; r++)
		count += is_present(r);
	return count;
}

/* Sums that overflow step by step, as F32 does */
static double sum_of(u32 i, u32 nranks)
{
	u32 r, sum = 0x80000000U;	/* neutral, -0 included */

	for (r = 0; r < nranks; r++) {
		if (is_present(r))
			sum = fpu_add(sum, contrib[r][i]);
	}
	return (double)f32_from(sum);
}

static double unbounded_sum_of(u32 i, u32 nranks)
{
	double sum = -0.0;
	u32 r;

	for (r = 0; r < nranks; r++) {
		if (is_present(r))
			sum = f32_round_unbounded(sum + (double)f32_from(contrib[r][i]));
	}
	return sum;
}

static float mean_of(u32 i, u32 nranks)
{
	double sum = unbounded_sum_of(i, nranks);
	float mean = (float)(sum / count_present(nranks));

	/* Infinite only if a contribution is */
	if (__builtin_isinf(mean) && !__builtin_isinf(sum))
		return mean < 0 ? -0x1.fffffep127f : 0x1.fffffep127f;
	return mean;
}

static u32 expected(u32 i, u32 nranks, u8 reduction)
{
	u32 count = count_present(nranks);

	if (reduction == ORED_MEAN)
		return f32_bits(mean_of(i, nranks));
	if (count == nranks)
		return f32_bits((float)sum_of(i, nranks));
	return f32_bits((float)(sum_of(i, nranks) * nranks / count));
}

/*
 * Lays the contributions out as seen by @rank, each buffer @shift elements off
 * its start and the staged ones @gap elements apart, reduces and compares.
 */
static void reduce_and_check(u32 count, u32 nranks, u32 rank, u32 shift,
			     u32 gap, bool in_place, u8 reduction)
{
	size_t stride = count + gap;
	size_t staged_len = shift + (nranks - 1) * stride;
	u32 *own = guarded(shift + count);
	u32 *staged = guarded(staged_len);
	u32 *dst = in_place ? own : guarded(shift + count);
	struct ored_contribs c = {
		.own = own + shift,
		.staged = nranks > 1 ? staged + shift : NULL,
		.stride = stride * sizeof(u32),
		.rank = rank,
		.nranks = nranks,
		.present = present,
	};
	u32 r, i, wrong = 0, moved = 0;

	memcpy(own + shift, contrib[rank], count * sizeof(u32));
	for (r = 0; r < nranks; r++) {
		if (r != rank)
			memcpy(staged + shift + (r - (r > rank)) * stride,
			       contrib[r], count * sizeof(u32));
	}
	CHECK_EQ(ored_reduce(dst + shift, &c, count * sizeof(u32), ORED_F32,
			     reduction), count_present(nranks));
	for (i = 0; i < count; i++) {
		u32 want = expected(i, nranks, reduction);

		if (dst[shift + i] != want && !wrong++)
			printf("# element %u of %u, rank %u of %u: %08x, not %08x\n",
			       i, count, rank, nranks, dst[shift + i], want);
	}
	CHECK_EQ(wrong, 0);
	for (r = 0; r < nranks; r++) {
		if (r == rank ? !in_place : true)
			moved += !!memcmp(r == rank ? own + shift :
					  staged + shift + (r - (r > rank)) * stride,
					  contrib[r], count * sizeof(u32));
	}
	CHECK_EQ(moved, 0);
	for (i = 0; nranks > 1 && i < staged_len - shift; i++) {
		if (i % stride >= count)
			moved += staged[shift + i] != CANARY;
	}
	CHECK_EQ(moved, 0);
	release(own, shift + count, shift, count);
	release(staged, staged_len, shift, staged_len - shift);
	if (!in_place)
		release(dst, shift + count, shift, count);
}

static void fill(u32 nranks, u32 count, u32 (*one)(void))
{
	u32 r, i;

	for (r = 0; r < nranks; r++) {
		for (i = 0; i < count; i++)
			contrib[r][i] = one();
	}
}

TEST(dtype_size__all)
{
	u32 dtype;

	CHECK_EQ(ored_dtype_size(ORED_F32), 4);
	CHECK_EQ(ored_dtype_size(ORED_F64), 8);
	CHECK_EQ(ored_dtype_size(ORED_F16), 2);
	CHECK_EQ(ored_dtype_size(ORED_BF16), 2);
	CHECK_EQ(ored_dtype_size(ORED_I32), 4);
	CHECK_EQ(ored_dtype_size(ORED_I64), 8);
	for (dtype = ORED_I64 + 1; dtype < 256; dtype++)
		CHECK_EQ(ored_dtype_size((u8)dtype), 0);
}

TEST(f32_add__special)
{
	static const u32 v[] = {
		0, 1, 2, 0x007fffff, 0x00800000, 0x00800001, 0x3f800000,
		0x3f800001, 0x3fffffff, 0x33800000, 0x33800001, 0x34000000,
		0x7e7fffff, 0x7e800000, 0x7effffff, 0x7f000000, 0x7f7fffff,
		0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff, 0x7fa5a5a5,
	};
	u32 i, j, signs;

	for (i = 0; i < ARRAY_SIZE(v); i++) {
		for (j = 0; j < ARRAY_SIZE(v); j++) {
			for (signs = 0; signs < 4; signs++) {
				u32 a = v[i] | signs << 31;
				u32 b = v[j] | (signs >> 1) << 31;

				CHECK_EQ(ored_f32_add(a, b), fpu_add(a, b));
			}
		}
	}
}

/* The rules in words, without an FPU to agree or disagree with */
TEST(f32_add__rules)
{
	CHECK_EQ(ored_f32_add(0x80000000, 0x80000000), 0x80000000);
	CHECK_EQ(ored_f32_add(0x80000000, 0x00000000), 0);
	CHECK_EQ(ored_f32_add(0x3f800000, 0xbf800000), 0);
	CHECK_EQ(ored_f32_add(0x7f800000, 0xff800000), F32_NAN);
	CHECK_EQ(ored_f32_add(0xff800000, 0x7f7fffff), 0xff800000);
	CHECK_EQ(ored_f32_add(0xffffffff, 0x3f800000), F32_NAN);
	CHECK_EQ(ored_f32_add(0x3f800000, 0x7f800001), F32_NAN);
	CHECK_EQ(ored_f32_add(0x7f7fffff, 0x7f7fffff), 0x7f800000);
	/* half a bit of the largest: overflows; a little less: doesn't */
	CHECK_EQ(ored_f32_add(0x7f7fffff, 0x73000000), 0x7f800000);
	CHECK_EQ(ored_f32_add(0x7f7fffff, 0x72ffffff), 0x7f7fffff);
	/* ties go to even */
	CHECK_EQ(ored_f32_add(0x3f800000, 0x33800000), 0x3f800000);
	CHECK_EQ(ored_f32_add(0x3f800001, 0x33800000), 0x3f800002);
	/* subnormals: the smallest two, and across the border */
	CHECK_EQ(ored_f32_add(1, 1), 2);
	CHECK_EQ(ored_f32_add(0x007fffff, 1), 0x00800000);
	CHECK_EQ(ored_f32_add(0x00800000, 0x80000001), 0x007fffff);
}

TEST(f32_div__rules)
{
	CHECK_EQ(ored_f32_div_u32(0x3f800000, 3), 0x3eaaaaab);
	CHECK_EQ(ored_f32_div_u32(0x80000000, 7), 0x80000000);
	CHECK_EQ(ored_f32_div_u32(0xff800000, 256), 0xff800000);
	CHECK_EQ(ored_f32_div_u32(0xffc12345, 2), F32_NAN);
	CHECK_EQ(ored_f32_div_u32(0x7f800001, 1), F32_NAN);
	/* halves of the smallest: ties to even, keeping the sign */
	CHECK_EQ(ored_f32_div_u32(0x00000001, 2), 0);
	CHECK_EQ(ored_f32_div_u32(0x80000001, 2), 0x80000000);
	CHECK_EQ(ored_f32_div_u32(0x80000003, 2), 0x80000002);
	CHECK_EQ(ored_f32_div_u32(0x00ffffff, 2), 0x00800000);
}

TEST(reduce__lengths)
{
	u32 count;

	for (count = 0; count <= MAX_COUNT; count++) {
		fill(8, count, f32_gradient);
		reduce_and_check(count, 8, count % 8, count % 5, count % 3,
				 count & 1, count & 2 ? ORED_MEAN : ORED_SUM);
	}
}

TEST(reduce__alignments)
{
	u32 shift, gap;

	for (shift = 0; shift < GUARD; shift++) {
		for (gap = 0; gap < GUARD; gap++) {
			fill(3, 37, f32_gradient);
			reduce_and_check(37, 3, shift % 3, shift, gap, gap & 1,
					 ORED_SUM);
		}
	}
}

TEST(reduce__every_rank_of_1_to_16)
{
	u32 nranks, rank;

	for (nranks = 1; nranks <= 16; nranks++) {
		for (rank = 0; rank < nranks; rank++) {
			fill(nranks, 35, f32_gradient);
			reduce_and_check(35, nranks, rank, 1, 1, rank & 1,
					 ORED_SUM);
			reduce_and_check(35, nranks, rank, 0, 0, rank & 1,
					 ORED_MEAN);
		}
	}
}

TEST(reduce__256_ranks)
{
	static const u32 rank[] = { 0, 1, 127, 254, 255 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rank); i++) {
		fill(256, 67, i & 1 ? f32_corner : f32_gradient);
		reduce_and_check(67, 256, rank[i], 0, 0, true, ORED_SUM);
		reduce_and_check(67, 256, rank[i], 0, 0, false, ORED_MEAN);
	}
}

TEST(reduce__every_mean)
{
	u32 nranks;

	for (nranks = 1; nranks <= ORED_MAX_RANKS; nranks++) {
		fill(nranks, 33, f32_gradient);
		reduce_and_check(33, nranks, nranks - 1, 0, 0, false, ORED_MEAN);
	}
}

TEST(reduce__corners)
{
	u32 round;

	for (round = 0; round < 20000; round++) {
		u32 nranks = 1 + tap_below(16);
		u32 count = 1 + tap_below(40);

		fill(nranks, count, f32_corner);
		reduce_and_check(count, nranks, tap_below(nranks), 0, 0,
				 round & 1, round & 2 ? ORED_MEAN : ORED_SUM);
	}
}

/* One special value in one place among ordinary ones, in every place */
TEST(reduce__one_special)
{
	static const u32 special[] = {
		0, 0x80000000, 1, 0x80000001, 0x7e800000, 0xfeffffff,
		0x7f7fffff, 0x7f800000, 0xff800000, 0x7f800001, 0xffc00000,
	};
	u32 s, rank, i;

	for (s = 0; s < ARRAY_SIZE(special); s++) {
		for (rank = 0; rank < 4; rank++) {
			for (i = 0; i < 20; i++) {
				fill(4, 20, f32_gradient);
				contrib[rank][i] = special[s];
				reduce_and_check(20, 4, i % 4, 0, 0, false,
						 i & 4 ? ORED_MEAN : ORED_SUM);
			}
		}
	}
}

/* All zeros of either sign: -0 only where every rank says so */
TEST(reduce__signs_of_zero)
{
	u32 bits, r;

	for (bits = 0; bits < 32; bits++) {
		for (r = 0; r < 5; r++)
			contrib[r][0] = (bits >> r & 1) << 31;
		reduce_and_check(1, 5, bits % 5, 0, 0, false, ORED_SUM);
		reduce_and_check(1, 5, bits % 5, 0, 0, true, ORED_MEAN);
	}
	contrib[0][0] = 0x3f800000;
	contrib[1][0] = 0xbf800000;
	contrib[2][0] = 0x80000000;
	reduce_and_check(1, 3, 0, 0, 0, false, ORED_SUM);
}

/* x0 + x1 is rounded away or cancels before x2 comes: order matters */
TEST(reduce__order_of_ranks)
{
	static const u32 triple[][4] = {
		{ 0x4b800000, 0x3f800000, 0xcb800000, 0x00000000 },
		{ 0x4b800000, 0xcb800000, 0x3f800000, 0x3f800000 },
		{ 0x3f800000, 0x4b800000, 0xcb800000, 0x00000000 },
		{ 0x7f7fffff, 0x7f7fffff, 0xff7fffff, 0x7f800000 },
		{ 0x7f7fffff, 0xff7fffff, 0x7f7fffff, 0x7f7fffff },
	};
	u32 t, rank, r;

	for (t = 0; t < ARRAY_SIZE(triple); t++) {
		for (rank = 0; rank < 3; rank++) {
			for (r = 0; r < 3; r++)
				contrib[r][0] = triple[t][r];
			CHECK_EQ(expected(0, 3, ORED_SUM), triple[t][3]);
			reduce_and_check(1, 3, rank, 0, 0, false, ORED_SUM);
		}
	}
}

/* What cancels leaves nothing behind that could hide a smaller one. */
TEST(reduce__after_cancellation)
{
	u32 i;

	for (i = 0; i < 20000; i++) {
		contrib[0][0] = f32_corner();
		contrib[1][0] = contrib[0][0] ^ 0x80000000U;
		contrib[2][0] = f32_corner();
		contrib[3][0] = f32_partner(contrib[2][0]);
		reduce_and_check(1, 4, i % 4, 0, 0, false,
				 i & 1 ? ORED_MEAN : ORED_SUM);
	}
}

/* A mean that is too small for any bit keeps its sign. */
TEST(reduce__mean_underflows)
{
	u32 nranks, sum;

	for (nranks = 2; nranks <= 16; nranks++) {
		for (sum = 0; sum < 2 * nranks; sum++) {
			memset(contrib, 0, sizeof(contrib));
			contrib[nranks - 1][0] = 0x80000000U | sum;
			reduce_and_check(1, nranks, 0, 0, 0, false, ORED_MEAN);
		}
	}
	CHECK_EQ(expected(0, 16, ORED_MEAN), 0x80000002);
}

/* A NaN comes out as the one NaN, also where there is nothing to add. */
TEST(reduce__nan_is_canonical)
{
	u32 nranks, r;

	for (nranks = 1; nranks <= 4; nranks++) {
		for (r = 0; r < nranks; r++) {
			fill(nranks, 1, f32_gradient);
			contrib[r][0] = 0xff812345;
			CHECK_EQ(expected(0, nranks, ORED_SUM), F32_NAN);
			reduce_and_check(1, nranks, 0, 0, 0, true, ORED_SUM);
			reduce_and_check(1, nranks, 0, 0, 0, true, ORED_MEAN);
		}
	}
}

/* What isn't there is poison: a look at it shows. */
static void poison(u32 nranks, u32 count)
{
	u32 r, i;

	for (r = 0; r < nranks; r++) {
		for (i = 0; i < count && !is_present(r); i++)
			contrib[r][i] = F32_NAN;
	}
}

static void partial_and_check(u32 count, u32 nranks, u32 rank,
			      u32 (*one)(void))
{
	fill(nranks, count, one);
	poison(nranks, count);
	reduce_and_check(count, nranks, rank, 1, 1, rank & 1, ORED_SUM);
	reduce_and_check(count, nranks, rank, 0, 0, rank & 2, ORED_MEAN);
}

TEST(reduce__every_subset_of_1_to_6)
{
	unsigned long subset;
	u32 nranks;

	present = &subset;
	for (nranks = 1; nranks <= 6; nranks++) {
		for (subset = 1; subset < 1UL << nranks; subset++) {
			partial_and_check(19, nranks, (u32)subset % nranks, f32_gradient);
			partial_and_check(19, nranks, (u32)subset % nranks, f32_corner);
		}
	}
	present = NULL;
}

TEST(reduce__subsets_of_256)
{
	unsigned long subset[BITS_TO_LONGS(ORED_MAX_RANKS)];
	u32 round, i;

	present = subset;
	for (round = 0; round < 40; round++) {
		for (i = 0; i < ARRAY_SIZE(subset); i++)
			subset[i] = tap_random() & (round & 1 ? tap_random() : ~0ULL);
		__set_bit(255, subset);
		partial_and_check(35, 256, round % 256, f32_gradient);
		partial_and_check(35, 256, round % 256, f32_corner);
	}
	present = NULL;
}

TEST(reduce__nobody)
{
	unsigned long none = 0;
	u32 own = 1, staged = 2, dst = CANARY;
	struct ored_contribs c = {
		.own = &own, .staged = &staged, .stride = 4,
		.nranks = 2, .present = &none,
	};

	CHECK_EQ(ored_reduce(&dst, &c, 4, ORED_F32, ORED_SUM), 0);
	CHECK_EQ(ored_reduce(&dst, &c, 4, ORED_F32, ORED_MEAN), 0);
	CHECK_EQ(dst, CANARY);
}

TEST(reduce__mean_of_the_largest)
{
	u32 nranks, r;

	for (nranks = 1; nranks <= ORED_MAX_RANKS; nranks++) {
		for (r = 0; r < nranks; r++)
			contrib[r][0] = 0xff7fffff;
		/* Rounded on the way, to a little less or more; never infinite */
		CHECK(expected(0, nranks, ORED_MEAN) >= 0xff7fff00);
		CHECK(expected(0, nranks, ORED_MEAN) <= 0xff7fffff);
		reduce_and_check(1, nranks, nranks / 2, 0, 0, false, ORED_MEAN);
	}
}

TAP_MAIN
