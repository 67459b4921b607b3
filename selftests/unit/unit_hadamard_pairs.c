// SPDX-License-Identifier: GPL-2.0
/*
 * The Hadamard transform of the vector units against that in integers, bit for
 * bit; and what it is there for: what loss does to all shapes of input.
 */

#include <math.h>
#include <string.h>
#include "f32.h"
#include "tap.h"
#include "units.h"
#include "../../kmod/core/half.h"
#include "../../uapi/linux/ored.h"

#define LONGEST	200000

static u32 scratch[ORED_HADAMARD_SCRATCH] __attribute__((__aligned__(64)));
static const struct ored_simd *units[MAX_UNITS];
static u32 count;

/* In emulators less is tried. */
static u32 longest(void)
{
	return LONGEST / tap_step();
}

static void apply(const struct ored_hadamard *h, const struct ored_hadamard_ops *ops,
		  void *bucket)
{
	const struct ored_hadamard_unit unit = { .ops = ops };
	u64 tile;

	for (tile = 0; tile < ored_hadamard_tiles(h); tile++)
		ored_hadamard_tile(h, &unit, bucket, scratch, tile);
}

static u16 narrow(u32 bits, u8 dtype)
{
	return dtype == ORED_F16 ? ored_f16_narrow(bits) : ored_bf16_narrow(bits);
}

static float widen(u16 half, u8 dtype)
{
	return f32_from(dtype == ORED_F16 ? ored_f16_widen(half) : ored_bf16_widen(half));
}

/* Each time at another place in a cache line, odd multiples of 2 bytes among them */
static void compare(u32 n, u8 dtype, u32 (*one)(void))
{
	static u8 input[LONGEST * 4 + 8], want[LONGEST * 4 + 8];
	static u8 room[64 + LONGEST * 4 + 8] __attribute__((__aligned__(64)));
	struct ored_hadamard h = {
		.seed = tap_random(), .count = n, .dtype = dtype,
		.log = ored_hadamard_log(n), .inverse = tap_below(2),
	};
	u32 size = ored_dtype_size(dtype), bytes = n * size, i, u;
	u8 *got = room + tap_below(64 / size) * size;

	for (i = 0; i < n; i++) {
		u32 bits = one();
		u16 half = narrow(bits, dtype);

		if (size == 4)
			memcpy(input + 4 * i, &bits, 4);
		else
			memcpy(input + 2 * i, &half, 2);
	}
	memcpy(want, input, bytes);
	apply(&h, &ored_hadamard_soft, want);
	for (u = 0; u < count; u++) {
		memcpy(got, input, bytes);
		memset(got + bytes, 0x5a, 8);
		apply(&h, &units[u]->hadamard, got);
		CHECK(!memcmp(got, want, bytes), "%s, dtype %u, %u elements", units[u]->name,
		      dtype, n);
		for (i = 0; i < 8; i++)
			CHECK_EQ(got[bytes + i], 0x5a);
	}
}

TEST(hadamard__there_is_a_unit)
{
	count = unit_count(units);
	CHECK(count >= 1);
}

TEST(hadamard__units_agree)
{
	static const u8 dtype[] = { ORED_F32, ORED_F16, ORED_BF16 };
	u32 n;

	for (n = 1; n <= 600; n++)
		compare(n, dtype[n % 3], n & 8 ? f32_corner : f32_gradient);
	for (n = 0; n < 60; n++)
		compare(1 + tap_below(longest() / 4), dtype[n % 3],
			n & 1 ? f32_corner : f32_gradient);
	for (n = 0; n < 3; n++)
		compare(longest() - n, dtype[n], f32_gradient);
}

static float normal(void)
{
	double u = ((double)(tap_random() >> 11) + 1) / 0x1p53;
	double v = (double)(tap_random() >> 11) / 0x1p53;

	return (float)(sqrt(-2 * log(u)) * cos(2 * M_PI * v));
}

/* Shapes of input, of which a tail of a tenth will be lost */
enum shape { FLAT, IN_TAIL, BEFORE_TAIL, SPIKE, TWO_SPIKES, LONG_ROWS, RAMP, SHAPES };

static const char *const shape_name[] = {
	"flat", "in tail", "before tail", "spike", "two spikes", "long rows", "ramp",
};

static void make(float *x, u32 n, enum shape shape)
{
	struct ored_hadamard h = { .count = n, .log = ored_hadamard_log(n) };
	u32 lost = n / 10, i;

	for (i = 0; i < n; i++) {
		x[i] = normal();
		if (shape == IN_TAIL)	/* and a few much larger than the others */
			x[i] *= i < n - lost ? 0.25f : x[i] * x[i];
		else if (shape == BEFORE_TAIL && i >= n - lost)
			x[i] *= 0.1f;
		else if (shape == RAMP)
			x[i] = (float)i / (float)n;
		else if (shape >= SPIKE)
			x[i] = 0;
	}
	if (shape == SPIKE || shape == TWO_SPIKES)
		x[n - 1] = 100;
	if (shape == TWO_SPIKES)
		x[n - 1 - n / 8] = 100;
	for (i = 0; shape == LONG_ROWS && i < 1U << h.log; i++)
		x[ored_hadamard_row(&h, i + 1) - 1] = normal();
}

static double energy(const float *x, u32 n)
{
	double sum = 0;
	u32 i;

	for (i = 0; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	return sum;
}

static float largest(const float *x, u32 n)
{
	float most = 0;
	u32 i;

	for (i = 0; i < n; i++)
		most = fmaxf(most, fabsf(x[i]));
	return most;
}

/* Transforms, loses the tail, comes back; @y becomes the error. Of 16 bits @x is exact. */
static void lose_tail(const float *x, float *y, u32 n, u8 dtype, u64 seed)
{
	static u16 halves[LONGEST];
	struct ored_hadamard h = {
		.seed = seed, .count = n, .dtype = dtype, .log = ored_hadamard_log(n),
	};
	u32 size = ored_dtype_size(dtype), i;
	u8 *bucket = size == 2 ? (u8 *)halves : (u8 *)y;

	for (i = 0; i < n; i++) {
		y[i] = x[i];
		halves[i] = narrow(f32_bits(x[i]), dtype);
	}
	apply(&h, &units[0]->hadamard, bucket);
	memset(bucket + (n - n / 10) * size, 0, n / 10 * size);
	h.inverse = true;
	apply(&h, &units[0]->hadamard, bucket);
	for (i = 0; i < n; i++)
		y[i] = (size == 2 ? widen(halves[i], dtype) : y[i]) - x[i];
}

#define SEEDS	40

static void check_shape(u32 n, u8 dtype, enum shape shape)
{
	static float x[LONGEST], y[LONGEST];
	double error = 0, worst = 0, raw, theory = (double)(n / 10) / n;
	float most = 0;
	u32 seed, i;

	make(x, n, shape);
	for (i = 0; dtype != ORED_F32 && i < n; i++)
		x[i] = widen(narrow(f32_bits(x[i]), dtype), dtype);
	raw = energy(x + n - n / 10, n / 10) / energy(x, n);
	for (seed = 0; seed < SEEDS; seed++) {
		lose_tail(x, y, n, dtype, seed * 0x123456789ULL);
		error += energy(y, n) / energy(x, n) / SEEDS;
		worst = fmax(worst, energy(y, n) / energy(x, n));
		most = fmaxf(most, largest(y, n));
	}
	printf("# dtype %u, %6u, %-11s: lost %.4f, most %.4f (raw %.4f), largest %.2f (raw %.2f)\n",
	       dtype, n, shape_name[shape], error, worst, raw, (double)most,
	       (double)largest(x + n - n / 10, n / 10));
	CHECK(fabs(error - theory) < 0.1 * theory, "dtype %u, %u, %s: %.4f of the energy lost",
	      dtype, n, shape_name[shape], error);
	if (shape == IN_TAIL || shape == SPIKE)
		CHECK(5 * most < largest(x + n - n / 10, n / 10), "dtype %u, %u, %s: %.2f",
		      dtype, n, shape_name[shape], (double)most);
}

/*
 * Whatever the shape and the length: as much as was lost, and spread evenly. In 16 bits
 * alike: what their rounding adds is a thousandth of that at the most.
 */
static void check_tail_loss(u8 dtype)
{
	static const u32 n[] = { 1024, 1500, 4096, 5000, 8191, 100000 };
	u32 i;
	enum shape shape;

	for (i = 0; i < ARRAY_SIZE(n) && n[i] <= longest(); i++)
		for (shape = 0; shape < SHAPES; shape++)
			check_shape(n[i], dtype, shape);
}

TEST(hadamard__tail_loss)
{
	check_tail_loss(ORED_F32);
}

TEST(hadamard__tail_loss_f16)
{
	check_tail_loss(ORED_F16);
}

TEST(hadamard__tail_loss_bf16)
{
	check_tail_loss(ORED_BF16);
}

#define BIAS_N		1024
#define BIAS_SEEDS	1000

/*
 * With the tail of the result zeroed, the mean over seeds is 0.9 x: every element
 * alike, where untransformed the tail would be gone. With single contributions
 * missing at random and the mean taken over the others it is the mean itself.
 */
TEST(hadamard__unbiased)
{
	static float x[BIAS_N], y[BIAS_N];
	static double bias[BIAS_N];
	double deviation = 0, expected, kept = 1 - (double)(BIAS_N / 10) / BIAS_N;
	u32 seed, i;

	for (i = 0; i < BIAS_N; i++)
		x[i] = normal();
	memset(bias, 0, sizeof(bias));
	for (seed = 0; seed < BIAS_SEEDS; seed++) {
		lose_tail(x, y, BIAS_N, ORED_F32, tap_random());
		for (i = 0; i < BIAS_N; i++)
			bias[i] += (double)(x[i] + y[i]) / BIAS_SEEDS;
	}
	for (i = 0; i < BIAS_N; i++)
		deviation += pow(bias[i] - kept * (double)x[i], 2);
	deviation = sqrt(deviation / energy(x, BIAS_N));
	/* Noise of variance p (1 - p) around it, averaged over the seeds */
	expected = sqrt(kept * (1 - kept) / BIAS_SEEDS);
	printf("# relative bias %.5f, where chance makes %.5f\n", deviation, expected);
	CHECK(deviation < 1.2 * expected, "%.5f", deviation);
}

TEST(hadamard__unbiased_over_contributors)
{
	enum { RANKS = 4 };
	static float x[RANKS][BIAS_N], y[RANKS][BIAS_N], out[BIAS_N];
	static double mean[BIAS_N], sum[BIAS_N];
	double deviation = 0, noise = 0;
	struct ored_hadamard h = { .count = BIAS_N, .dtype = ORED_F32, .log = 10 };
	u32 seed, i, r;

	memset(mean, 0, sizeof(mean));
	memset(sum, 0, sizeof(sum));
	for (r = 0; r < RANKS; r++) {
		for (i = 0; i < BIAS_N; i++) {
			x[r][i] = normal() + (float)r;
			mean[i] += (double)x[r][i] / RANKS;
		}
	}
	for (seed = 0; seed < BIAS_SEEDS; seed++) {
		unsigned long present = 0xf & ~(1UL << tap_below(RANKS));
		struct ored_contribs c = {
			.own = y[0], .staged = y[1], .stride = sizeof(y[0]), .nranks = RANKS,
		};
		u32 from = BIAS_N - BIAS_N / 10;

		h.seed = tap_random();
		h.inverse = false;
		memcpy(y, x, sizeof(y));
		for (r = 0; r < RANKS; r++)
			apply(&h, &units[0]->hadamard, y[r]);
		unit_reduce(units[0], out, &c, from * 4, ORED_F32, ORED_MEAN);
		c.present = &present;
		c.own = y[0] + from;
		c.staged = y[1] + from;
		unit_reduce(units[0], out + from, &c, (BIAS_N - from) * 4, ORED_F32,
			    ORED_MEAN);
		h.inverse = true;
		apply(&h, &units[0]->hadamard, out);
		for (i = 0; i < BIAS_N; i++) {
			sum[i] += (double)out[i] / BIAS_SEEDS;
			noise += pow((double)out[i] - mean[i], 2);
		}
	}
	for (i = 0; i < BIAS_N; i++)
		deviation += pow(sum[i] - mean[i], 2);
	noise = sqrt(noise / BIAS_SEEDS / BIAS_SEEDS);
	deviation = sqrt(deviation);
	printf("# bias %.4f, where chance makes %.4f\n", deviation, noise);
	CHECK(deviation < 1.2 * noise && noise > 0, "%.4f", deviation);
}

/* In 16 bits, what comes back differs by no more than two roundings do. */
static void check_half(u8 dtype, double epsilon)
{
	static u16 x[20000];
	static float before[20000];
	struct ored_hadamard h = {
		.seed = 7, .count = 20000, .dtype = dtype, .log = ored_hadamard_log(20000),
	};
	double error = 0;
	u32 i;

	for (i = 0; i < h.count; i++) {
		x[i] = narrow(f32_bits(normal()), dtype);
		before[i] = widen(x[i], dtype);
	}
	apply(&h, &units[0]->hadamard, x);
	h.inverse = true;
	apply(&h, &units[0]->hadamard, x);
	for (i = 0; i < h.count; i++)
		error += pow((double)(widen(x[i], dtype) - before[i]), 2);
	error = sqrt(error / energy(before, 20000));
	CHECK(error < epsilon && error > epsilon / 8, "dtype %u: %g", dtype, error);
}

TEST(hadamard__halves_come_back)
{
	check_half(ORED_F16, 1.0 / 2048);
	check_half(ORED_BF16, 1.0 / 256);
}

TAP_MAIN
