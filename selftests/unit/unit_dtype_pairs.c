// SPDX-License-Identifier: GPL-2.0
/*
 * Every dtype against arithmetic that is wider, or the processor's own. Pairs of
 * F16 and BF16 are tried exhaustively, but not all at once: a run takes the
 * first operands that ORED_PIECE (of ORED_PIECES; default 0 of 256) gives it,
 * with all second ones. `run` takes another piece each day, `make proofs` all.
 */

#include <math.h>
#include <string.h>
#include "f32.h"
#include "tap.h"
#include "units.h"
#include "../../kmod/core/half.h"
#include "../../uapi/linux/ored.h"

#define ALL16	65536U

static u32 environment(const char *name, u32 otherwise)
{
	const char *value = getenv(name);

	return value ? (u32)strtoul(value, NULL, 0) : otherwise;
}

/* The value of 16 bits, in F64, by the definition */
static double value16(u16 bits, u8 dtype)
{
	const int fraction = dtype == ORED_F16 ? 10 : 7;
	const int bias = dtype == ORED_F16 ? 15 : 127;
	const int exponents = 1 << (15 - fraction);
	int exponent = (bits & 0x7fff) >> fraction;
	int m = bits & ((1 << fraction) - 1);
	double v;

	if (exponent == exponents - 1)
		v = m ? (double)NAN : (double)INFINITY;
	else if (exponent)
		v = ldexp(m + (1 << fraction), exponent - bias - fraction);
	else
		v = ldexp(m, 1 - bias - fraction);
	return bits & 0x8000 ? -v : v;
}

/* The nearest of 16 bits to @v, which is an F32; found by scaling and rint() */
static u16 nearest16(double v, u8 dtype)
{
	const int fraction = dtype == ORED_F16 ? 10 : 7;
	const int bias = dtype == ORED_F16 ? 15 : 127;
	const u16 inf = dtype == ORED_F16 ? 0x7c00 : 0x7f80;
	u16 sign = signbit(v) ? 0x8000 : 0;
	double ulps;
	int e;

	if (isnan(v))
		return dtype == ORED_F16 ? 0x7e00 : 0x7fc0;
	v = fabs(v);
	if (v == 0)
		return sign;
	if (isinf(v))
		return sign | inf;
	frexp(v, &e);
	e = e - 1 < 1 - bias ? 1 - bias : e - 1;
	ulps = nearbyint(ldexp(v, fraction - e));
	/* From here on an integer of ulps above 2^e, and that is the encoding. */
	ulps += ldexp(e + bias - 1, fraction);
	return sign | (ulps < inf ? (u16)ulps : inf);
}

static void check_widening(u8 dtype)
{
	u32 h;

	for (h = 0; h < ALL16; h++) {
		double v = value16((u16)h, dtype);
		u32 bits = dtype == ORED_F16 ? ored_f16_widen((u16)h) : ored_bf16_widen((u16)h);
		float f = f32_from(bits);

		CHECK(isnan(v) ? isnan(f) : (double)f == v && !signbit(f) == !signbit(v),
		      "dtype %u, %04x: %08x", dtype, h, bits);
	}
}

TEST(f16__widens)
{
	check_widening(ORED_F16);
}

TEST(bf16__widens)
{
	check_widening(ORED_BF16);
}

/* All F32 in strides, and all that are near a tie */
static void check_narrowing(u8 dtype)
{
	const u32 tie = dtype == ORED_F16 ? 0x1000 : 0x8000;
	const u32 stride = 508 * tap_step() + 1;
	u64 i;

	for (i = 0; i < 1ULL << 32; i += i % (2 * tie) < tie - 2 || i % (2 * tie) > tie + 2 ?
	     stride : 1) {
		u32 a = (u32)i;
		u16 want = nearest16((double)f32_from(a), dtype);
		u16 got = dtype == ORED_F16 ? ored_f16_narrow(a) : ored_bf16_narrow(a);

		CHECK(got == want, "dtype %u, %08x: %04x, not %04x", dtype, a, got, want);
	}
}

TEST(f16__narrows)
{
	check_narrowing(ORED_F16);
}

TEST(bf16__narrows)
{
	check_narrowing(ORED_BF16);
}

static u16 table[ALL16], sums[ALL16], first[ALL16];
static double values[ALL16];

/* @a + @b in F64, then F32, then 16 bits: what rounds in F64 can't be a tie. */
static void check_row(u16 a, u8 dtype, const struct ored_simd *unit)
{
	struct ored_contribs c = {
		.own = first, .staged = table, .stride = sizeof(table), .nranks = 2,
	};
	u32 b, wrong = 0, at = 0;

	for (b = 0; b < ALL16; b++)
		first[b] = a;
	if (unit)
		unit_reduce(unit, sums, &c, sizeof(sums), dtype, ORED_SUM);
	else
		ored_reduce(sums, &c, sizeof(sums), dtype, ORED_SUM);
	for (b = 0; b < ALL16; b++) {
		float sum = (float)(values[a] + values[b]);
		u16 want;

		if (dtype == ORED_F16)	/* the processor's own narrowing is quicker */
			want = isnan(sum) ? 0x7e00 : ored_f16_narrow(f32_bits(sum));
		else
			want = ored_bf16_narrow(f32_bits(sum));
		if (sums[b] != want && !wrong++)
			at = b;
	}
	CHECK(!wrong, "%s, dtype %u: %04x + %04x: %04x; %u wrong",
	      unit ? unit->name : "reference", dtype, a, at, sums[at], wrong);
}

static void check_piece(u8 dtype)
{
	const struct ored_simd *units[MAX_UNITS];
	u32 piece = environment("ORED_PIECE", 0), pieces = environment("ORED_PIECES", 256);
	u32 a, u, count = unit_count(units);

	for (a = 0; a < ALL16; a++) {
		table[a] = (u16)a;
		values[a] = value16((u16)a, dtype);
	}
	for (a = piece; a < ALL16; a += pieces) {
		check_row((u16)a, dtype, NULL);
		for (u = 0; u < count; u++)
			check_row((u16)a, dtype, units[u]);
	}
}

TEST(f16__adds_exhaustively)
{
	check_piece(ORED_F16);
}

TEST(bf16__adds_exhaustively)
{
	check_piece(ORED_BF16);
}

static double f64_from(u64 bits)
{
	volatile double d;

	memcpy((void *)&d, &bits, sizeof(d));
	return d;
}

static u64 f64_bits(volatile double value)
{
	double d = value;
	u64 bits;

	memcpy(&bits, &d, sizeof(bits));
	return d != d ? 0x7ff8000000000000ULL : bits;
}

/* Random, near the borders of all kinds, of few bits */
static u64 f64_corner(void)
{
	u64 r = tap_random();

	switch (tap_below(6)) {
	case 0:
		return (r & 0x800fffffffffffffULL) | (u64)(1000 + tap_below(60)) << 52;
	case 1:
		return (r & (1ULL << 63)) | tap_below(5000);
	case 2:
		return (r & (1ULL << 63)) | (0x7ff0000000000000ULL - 2000 + tap_below(4000));
	case 3:
		return (r & 0xfff0000000000000ULL) | (r & 1 ? 0xfffffffffffffULL : 0);
	case 4:
		return (r & (1ULL << 63)) | (0x0010000000000000ULL - 2000 + tap_below(4000));
	default:
		return r;
	}
}

TEST(f64__adds)
{
	u32 i;

	for (i = 0; i < 10000000 / tap_step(); i++) {
		u64 a = f64_corner(), b = f64_corner(), got;

		if (i % 3 == 0)		/* nearly the opposite, or some digits smaller */
			b = a ^ 1ULL << 63 ^ (tap_random() & 7);
		else if (i % 3 == 1)
			b = (a ^ (tap_random() & 0x80000000000007ffULL)) -
			    ((u64)tap_below(60) << 52);
		got = ored_f64_add(a, b);
		CHECK(got == f64_bits(f64_from(a) + f64_from(b)), "%016" PRIx64 " + %016" PRIx64
		      ": %016" PRIx64, a, b, got);
	}
}

#ifdef __x86_64__
typedef __float128 f128;
#else
typedef long double f128;
#endif

/* In F128 the product is exact and the quotient's second rounding harmless. */
TEST(f64__scales)
{
	u32 i;

	for (i = 0; i < 2000000 / tap_step(); i++) {
		u64 a = f64_corner(), got, want;
		u32 mul = 1 + tap_below(256), div = 1 + tap_below(mul);

		if (i & 1) {
			mul = 1;
			div = 1 + tap_below(256);
		}
		got = ored_f64_muldiv(a, mul, div);
		want = f64_bits((double)((f128)f64_from(a) * mul / div));
		CHECK(got == want, "%016" PRIx64 " * %u / %u: %016" PRIx64 ", not %016" PRIx64,
		      a, mul, div, got, want);
	}
}

/* Partial sums of a mean don't overflow: compared with those of a quarter. */
TEST(f64__means)
{
	u32 i, r;

	for (i = 0; i < 300000 / tap_step(); i++) {
		u64 x[5], got;
		double quarter = -0.0;
		struct ored_contribs c = {
			.own = x, .staged = x + 1, .stride = 8, .nranks = 5,
		};

		for (r = 0; r < 5; r++) {
			x[r] = (tap_random() & 0x800fffffffffffffULL) |
			       (u64)(i & 1 ? 2046 - tap_below(3) : 1023 + tap_below(30)) << 52;
			quarter += f64_from(x[r]) / 8;
		}
		ored_reduce(&got, &c, 8, ORED_F64, ORED_MEAN);
		CHECK(got == f64_bits(quarter / 5 * 8) && isfinite(f64_from(got)),
		      "%016" PRIx64 ", not %016" PRIx64, got, f64_bits(quarter / 5 * 8));
	}
}

/* Integers in 128 bits; rounding by doubling the rest */
static __int128 rounded_quotient(__int128 a, u32 div)
{
	__int128 q = a / div, rest = a % div * 2;

	if (rest > div || (rest == div && (q & 1)))
		q++;
	if (-rest > div || (-rest == div && (q & 1)))
		q--;
	return q;
}

static u64 integer_expected(const u64 *x, u32 nranks, u32 present, u8 dtype, u8 reduction)
{
	__int128 sum = 0, best = 0;
	u32 r, count = 0;

	for (r = 0; r < nranks; r++) {
		s64 v = dtype == ORED_I32 ? (s32)x[r] : (s64)x[r];

		if (!(present >> r & 1))
			continue;
		if (!count++ || (reduction == ORED_MAX ? v > best : v < best))
			best = v;
		sum += v;
	}
	if (reduction == ORED_MIN || reduction == ORED_MAX)
		sum = best;
	else if (reduction == ORED_MEAN)
		sum = rounded_quotient(sum, count);
	else if (count < nranks)
		sum = rounded_quotient(sum * nranks, count);
	return dtype == ORED_I32 ? (u32)sum : (u64)sum;
}

static void check_integers(u8 dtype)
{
	u32 i, r;

	for (i = 0; i < 1000000 / tap_step(); i++) {
		u32 nranks = 1 + tap_below(8), size = dtype == ORED_I32 ? 4 : 8;
		u8 reduction = (u8)tap_below(4);
		unsigned long present = 1 + tap_below((1U << nranks) - 1);
		u64 x[8], got = 0, want;
		u8 flat[64];
		struct ored_contribs c = {
			.own = flat, .staged = flat + size, .stride = size,
			.nranks = nranks, .present = &present,
		};

		for (r = 0; r < nranks; r++) {
			x[r] = tap_random() >> (tap_below(3) ? tap_below(62) : 0);
			if (tap_below(2))
				x[r] = -x[r];
			memcpy(flat + r * size, &x[r], size);
		}
		ored_reduce(&got, &c, size, dtype, reduction);
		want = integer_expected(x, nranks, (u32)present, dtype, reduction);
		CHECK(got == want, "dtype %u, reduction %u, %u ranks, %lx: %" PRIx64 ", not %"
		      PRIx64, dtype, reduction, nranks, present, got, want);
	}
}

TEST(i32__all)
{
	check_integers(ORED_I32);
}

TEST(i64__all)
{
	check_integers(ORED_I64);
}

static double float_value(u64 bits, u8 dtype)
{
	if (dtype == ORED_F64)
		return f64_from(bits);
	if (dtype == ORED_F32)
		return (double)f32_from((u32)bits);
	return value16((u16)bits, dtype);
}

static u64 float_extreme(u64 a, u64 b, u8 dtype, bool largest)
{
	static const u64 nan[] = { 0x7fc00000, 0x7ff8000000000000ULL, 0x7e00, 0x7fc0 };
	double x, y;

	x = float_value(a, dtype);
	y = float_value(b, dtype);
	if (isnan(x) || isnan(y))
		return nan[dtype];
	if (x == 0 && y == 0)
		return !signbit(x) == largest ? a : b;
	return (x < y) == largest ? b : a;
}

static void check_extremes(u8 dtype)
{
	u32 i, size = ored_dtype_size(dtype);

	for (i = 0; i < 2000000 / tap_step(); i++) {
		u64 x[2] = { f64_corner(), f64_corner() }, got = 0, want;
		u8 flat[16];
		struct ored_contribs c = {
			.own = flat, .staged = flat + size, .stride = size, .nranks = 2,
		};
		bool largest = i & 1;

		/* The top bits of an F64's corners are corners of the smaller. */
		x[0] = x[0] >> (64 - 8 * size);
		x[1] = tap_below(4) ? x[1] >> (64 - 8 * size) : x[0] ^ 1ULL << (8 * size - 1);
		if (tap_below(8) == 0) {	/* zeros of all signs */
			x[0] &= 1ULL << (8 * size - 1);
			x[1] &= 1ULL << (8 * size - 1);
		}
		memcpy(flat, &x[0], size);
		memcpy(flat + size, &x[1], size);
		ored_reduce(&got, &c, size, dtype, largest ? ORED_MAX : ORED_MIN);
		want = float_extreme(x[0], x[1], dtype, largest);
		CHECK(got == want, "dtype %u, %s of %" PRIx64 " and %" PRIx64 ": %" PRIx64,
		      dtype, largest ? "max" : "min", x[0], x[1], got);
	}
}

TEST(extremes__floats)
{
	check_extremes(ORED_F32);
	check_extremes(ORED_F64);
	check_extremes(ORED_F16);
	check_extremes(ORED_BF16);
}

TAP_MAIN
