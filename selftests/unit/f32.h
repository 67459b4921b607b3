/* SPDX-License-Identifier: GPL-2.0 */
/*
 * F32 as the processor's own FPU sees it, for comparison. Every value passes
 * through a volatile, so that nothing is computed at compile time or wider.
 */
#ifndef ORED_UNIT_F32_H
#define ORED_UNIT_F32_H

#include <string.h>
#include "tap.h"
#include "../../kmod/core/shim.h"

#define F32_NAN	0x7fc00000U

static inline float f32_from(u32 bits)
{
	volatile float f;

	memcpy((void *)&f, &bits, sizeof(f));
	return f;
}

/* Bits of @value, with the one NaN that results may have */
static inline u32 f32_bits(volatile float value)
{
	float f = value;
	u32 bits;

	memcpy(&bits, &f, sizeof(bits));
	return f != f ? F32_NAN : bits;
}

static inline u32 fpu_add(u32 a, u32 b)
{
	volatile float sum = f32_from(a) + f32_from(b);

	return f32_bits(sum);
}

static inline u32 fpu_div(u32 a, u32 n)
{
	volatile float quotient = f32_from(a) / (float)n;

	return f32_bits(quotient);
}

/*
 * @x rounded to the 24 bits of an F32, or to the smallest subnormal, but of any
 * magnitude. Right also for doubles that are sums or quotients rounded once:
 * 53 bits are enough for the second rounding to do no harm.
 */
static inline double f32_round_unbounded(double x)
{
	volatile float narrow;

	if (x > -0x1p126 && x < 0x1p126) {
		narrow = (float)x;
		return narrow;
	}
	narrow = (float)(x / 0x1p64);
	return narrow * 0x1p64;
}

/* Gradients: signs and fractions at random, exponents within 16 of each other */
static inline u32 f32_gradient(void)
{
	u64 r = tap_random();

	return ((u32)r & 0x807fffffU) | (u32)(100 + (r >> 60)) << 23;
}

/* Bits from all corners: subnormals, the largest, NaN, few bits, many bits */
static inline u32 f32_corner(void)
{
	u64 r = tap_random();
	u32 sign = (u32)r & 0x80000000U;

	switch (r >> 61) {
	case 0:
		return f32_gradient();
	case 1:
		return sign | tap_below(5000);
	case 2:
		return sign | (0x7f800000U - 2000 + tap_below(4000));
	case 3:
		return ((u32)r & 0xff800000U) | (r & (1ULL << 40) ? 0x7fffff : 0);
	case 4:
		return (u32)r & 0xff80000fU;
	case 5:
		return sign | (0x00800000U - 2000 + tap_below(4000));
	default:
		return (u32)r;
	}
}

/* A partner for @a that brings out rounding and cancellation */
static inline u32 f32_partner(u32 a)
{
	u64 r = tap_random();

	switch (r >> 62) {
	case 0:		/* nearly the opposite */
		return (a ^ 0x80000000U) + (u32)(r & 7) - 3;
	case 1:		/* 0 to 31 binary digits smaller, few of them set */
		return ((u32)r & 0x80000000U) |
		       ((a & 0x7f800000U) - ((u32)(r >> 32 & 31) << 23) +
			((u32)r & 0x00400001U)) % 0x7f800000U;
	default:
		return f32_corner();
	}
}

#endif /* ORED_UNIT_F32_H */
