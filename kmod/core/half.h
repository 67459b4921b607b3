/* SPDX-License-Identifier: GPL-2.0 */
/*
 * F16 and BF16 as F32 and back, on bit patterns. Widening is exact; narrowing
 * rounds to nearest, ties to even, keeps subnormals and makes every NaN the
 * canonical one of the narrow type.
 */
#ifndef ORED_CORE_HALF_H
#define ORED_CORE_HALF_H

#include "shim.h"

#define ORED_F16_NAN	0x7e00U
#define ORED_BF16_NAN	0x7fc0U

static inline u32 ored_bf16_widen(u16 h)
{
	return (u32)h << 16;
}

static inline u16 ored_bf16_narrow(u32 a)
{
	if (unlikely((a & 0x7fffffffU) > 0x7f800000U))
		return ORED_BF16_NAN;
	return (u16)((a + 0x7fffU + (a >> 16 & 1)) >> 16);
}

static inline u32 ored_f16_widen(u16 h)
{
	u32 sign = (u32)(h & 0x8000U) << 16;
	u32 abs = h & 0x7fffU;
	u32 bits;

	if (unlikely(abs >= 0x7c00U))
		return sign | 0x7f800000U | (abs & 0x3ffU) << 13;
	if (likely(abs >= 0x400U))
		return sign | ((abs << 13) + (112U << 23));
	if (!abs)
		return sign;
	/* Subnormal: its highest bit becomes the one that isn't stored. */
	bits = (u32)fls64(abs);

	return sign | (((102U + bits) << 23) + (abs << (24 - bits) & 0x7fffffU));
}

/* @a's magnitude, below 2^-14, in units of the smallest subnormal, 2^-24 */
static inline u32 ored_f16_narrow_subnormal(u32 abs)
{
	u32 shift = 126 - (abs >> 23);
	u32 m = (abs & 0x7fffffU) | 0x800000U;

	if (shift > 24)
		return 0;
	return (m + (1U << (shift - 1)) - 1 + (m >> shift & 1)) >> shift;
}

static inline u16 ored_f16_narrow(u32 a)
{
	u32 sign = a >> 16 & 0x8000U;
	u32 abs = a & 0x7fffffffU;

	if (unlikely(abs > 0x7f800000U))
		return ORED_F16_NAN;
	if (unlikely(abs >= 0x47800000U))	/* 65536 */
		return (u16)(sign | 0x7c00U);
	if (abs < 0x38800000U)			/* 2^-14 */
		return (u16)(sign | ored_f16_narrow_subnormal(abs));
	abs -= 112U << 23;

	return (u16)(sign | (abs + 0xfffU + (abs >> 13 & 1)) >> 13);
}

#endif /* ORED_CORE_HALF_H */
