// SPDX-License-Identifier: GPL-2.0
/* The Hadamard transform in integers: what it is, any length, and back. */

#include <math.h>
#include <string.h>
#include "f32.h"
#include "../../kmod/core/hadamard.h"
#include "../../kmod/core/half.h"
#include "../../uapi/linux/ored.h"

static const struct ored_hadamard_unit soft = { .ops = &ored_hadamard_soft };

static struct ored_hadamard transform(u64 count, u8 dtype)
{
	return (struct ored_hadamard){
		.seed = tap_random(), .count = count, .dtype = dtype,
		.log = ored_hadamard_log(count),
	};
}

/* Buffers of just the size that is promised, for the sanitizer to watch */
static void apply(const struct ored_hadamard *h, void *bucket)
{
	u32 *x = aligned_alloc(64, (ored_hadamard_scratch(h->count) * 4 + 63) & ~63UL);
	u64 tile;

	if (!x)
		abort();
	for (tile = 0; tile < ored_hadamard_tiles(h); tile++)
		ored_hadamard_tile(h, &soft, bucket, x, tile);
	free(x);
}

TEST(hadamard__logs)
{
	CHECK_EQ(ored_hadamard_log(1), 0);
	CHECK_EQ(ored_hadamard_log(2), 1);
	CHECK_EQ(ored_hadamard_log(3), 1);
	CHECK_EQ(ored_hadamard_log(4095), 11);
	CHECK_EQ(ored_hadamard_log(4096), 12);
	CHECK_EQ(ored_hadamard_log(1ULL << 28), 12);
}

TEST(hadamard__dtypes)
{
	u32 dtype;

	for (dtype = 0; dtype < 256; dtype++)
		CHECK_EQ(ored_hadamard_takes((u8)dtype),
			 dtype == ORED_F32 || dtype == ORED_F16 || dtype == ORED_BF16);
}

/* Shorter buckets need no more; and ops, groups and epochs have their own signs. */
TEST(hadamard__scratch_and_seeds)
{
	u64 seed[3 * 64], i, j;
	u32 last = 0;

	for (i = 1; i < 200000; i++) {
		u32 scratch = ored_hadamard_scratch(i);

		CHECK(scratch >= last && scratch <= ORED_HADAMARD_SCRATCH);
		last = scratch;
	}
	CHECK_EQ(ored_hadamard_scratch(1ULL << 28), ORED_HADAMARD_SCRATCH);
	for (i = 0; i < 64; i++) {
		seed[i] = ored_hadamard_seed(1, 1, i);
		seed[64 + i] = ored_hadamard_seed(1, 2 + i, 0);
		seed[128 + i] = ored_hadamard_seed((u32)(2 + i), 1, 0);
	}
	for (i = 0; i < ARRAY_SIZE(seed); i++)
		for (j = 0; j < i; j++)
			CHECK(abs(__builtin_popcountll(seed[i] ^ seed[j]) - 32) < 24);
}

/* By the definition: signs, then sums with the sign of popcount(i & j) */
TEST(hadamard__is_what_it_says)
{
	u32 log, i, j, n;

	for (log = 0; log <= 8; log++) {
		struct ored_hadamard h = transform(1ULL << log, ORED_F32);
		u32 x[256], y[256];

		n = 1U << log;
		for (i = 0; i < n; i++)
			x[i] = f32_gradient();
		memcpy(y, x, sizeof(y));
		apply(&h, y);
		for (j = 0; j < n; j++) {
			double want = 0, all = 0;

			for (i = 0; i < n; i++) {
				double v = (double)f32_from(x[i]);

				if (ored_hadamard_signs(&h, 0, i) & 1)
					v = -v;
				all += fabs(v);
				want += __builtin_parity(i & ored_hadamard_sum(&h, j)) ? -v : v;
			}
			want = ldexp(want, -(int)(log / 2));
			CHECK(fabs(want - (double)f32_from(y[j])) <= all / 1e7,
			      "%u of %u: %g, not %g", j, n, (double)f32_from(y[j]), want);
		}
	}
}

static double norm(const u32 *x, u32 count)
{
	double sum = 0;
	u32 i;

	for (i = 0; i < count; i++)
		sum += (double)f32_from(x[i]) * (double)f32_from(x[i]);
	return sqrt(sum);
}

static void there_and_back(u32 count)
{
	u32 *x = malloc(count * sizeof(*x)), *y = malloc(count * sizeof(*y));
	struct ored_hadamard h = transform(count, ORED_F32);
	double error = 0;
	u32 i;

	if (!x || !y)
		abort();
	for (i = 0; i < count; i++)
		x[i] = f32_gradient();
	memcpy(y, x, count * sizeof(*y));
	apply(&h, y);
	CHECK(count < 8 || memcmp(x, y, count * sizeof(*x)), "%u: nothing done", count);
	h.inverse = true;
	apply(&h, y);
	for (i = 0; i < count; i++) {
		double d = (double)f32_from(x[i]) - (double)f32_from(y[i]);

		error += d * d;
	}
	error = sqrt(error) / norm(x, count);
	CHECK(error < 5.0 / 1e7, "%u elements: %g", count, error);
	free(x);
	free(y);
}

TEST(hadamard__there_and_back_1_to_300)
{
	u32 count;

	for (count = 1; count <= 300; count++)
		there_and_back(count);
}

TEST(hadamard__there_and_back_longer)
{
	static const u32 count[] = {
		1000, 1023, 1025, 4095, 4096, 4097, 8191, 8192, 20479, 20480, 20481, 65535,
		65536, 65537, 100003,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(count); i++)
		there_and_back(count[i]);
}

/* What isn't finite spoils its blocks and says so. */
TEST(hadamard__nan)
{
	struct ored_hadamard h = transform(64, ORED_F32);
	u32 x[64], i;

	for (i = 0; i < 64; i++)
		x[i] = f32_gradient();
	x[17] = 0xff800001;
	apply(&h, x);
	for (i = 0; i < 64; i++)
		CHECK_EQ(x[i], F32_NAN);
}

TAP_MAIN
