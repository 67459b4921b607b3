/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Vectors of VECTOR_BYTES, in the compiler's own notation: the same source for
 * every instruction set. Loads and stores need no more than the alignment that
 * a bucket has.
 */
#ifndef ORED_SIMD_VECTOR_H
#define ORED_SIMD_VECTOR_H

typedef float vf32 __attribute__((__vector_size__(VECTOR_BYTES), __may_alias__)) __aligned(2);
typedef double vf64 __attribute__((__vector_size__(VECTOR_BYTES), __may_alias__)) __aligned(2);
typedef u32 vu32 __attribute__((__vector_size__(VECTOR_BYTES), __may_alias__)) __aligned(2);
typedef s16 vs16 __attribute__((__vector_size__(VECTOR_BYTES), __may_alias__)) __aligned(2);
typedef s32 vs32 __attribute__((__vector_size__(VECTOR_BYTES), __may_alias__)) __aligned(2);
typedef s64 vs64 __attribute__((__vector_size__(VECTOR_BYTES), __may_alias__)) __aligned(2);
typedef u64 vu64 __attribute__((__vector_size__(VECTOR_BYTES), __may_alias__)) __aligned(2);
typedef float vf32_half __attribute__((__vector_size__(VECTOR_BYTES / 2), __may_alias__))
	__aligned(2);
typedef u16 vu16_half __attribute__((__vector_size__(VECTOR_BYTES / 2), __may_alias__))
	__aligned(2);

#define LANES		(VECTOR_BYTES / 4)	/* of F32 */

/* For results: every NaN becomes the canonical one. */
static __always_inline vf32 canonical(vf32 x)
{
	vs32 bits = (vs32)x;
	vs32 nan = (bits & 0x7fffffff) > 0x7f800000;

	return (vf32)((bits & ~nan) | (nan & 0x7fc00000));
}

/* The sign bit of what is infinite or NaN; without a comparison, to be gathered */
static __always_inline vs32 special_sign(vf32 x)
{
	return (vs32)(((vu32)x & 0x7fffffff) + 0x00800000);
}

static __always_inline vs64 special_sign64(vf64 x)
{
	return (vs64)(((vu64)x & 0x7fffffffffffffffULL) + 0x0010000000000000ULL);
}

/* BF16 is the upper half of F32: the even and the odd elements of a vector. */
static __always_inline vf32 bf16_even(vu32 x)
{
	return (vf32)(x << 16);
}

static __always_inline vf32 bf16_odd(vu32 x)
{
	return (vf32)(x & 0xffff0000U);
}

/* Rounds to the upper half; no NaN but one that was widened, or the canonical one */
#ifdef BF16_ROUND
static __always_inline vu32 bf16_round(vf32 x);
#else
static __always_inline vu32 bf16_round(vf32 x)
{
	vu32 bits = (vu32)x;

	return bits + 0x7fff + (bits >> 16 & 1);
}
#endif

static __always_inline vu32 bf16_join(vf32 even, vf32 odd)
{
	return bf16_round(even) >> 16 | (bf16_round(odd) & 0xffff0000U);
}

#endif /* ORED_SIMD_VECTOR_H */
