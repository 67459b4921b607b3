// SPDX-License-Identifier: GPL-2.0
/* Reduction and Hadamard transform with AVX2, F16C and FMA. */

#define VECTOR_BYTES	32
#define REGISTERS	16
#define LANES_LOG	3
#define RADIX_LOG	3

#include "simd.h"
#include "vector.h"

static __always_inline bool any_negative(vs32 x)
{
	return __builtin_ia32_movmskps256((vf32)x);
}

static __always_inline vf32 f16_widen(const void *src)
{
	vf32 x;

	asm("vcvtph2ps %1, %0" : "=x"(x) : "m"(*(const vu16_half *)src));
	return x;
}

/* To nearest, ties to even, whatever the control register says */
static __always_inline void f16_narrow(void *dst, vf32 x)
{
	asm("vcvtps2ph $0, %1, %0" : "=m"(*(vu16_half *)dst) : "x"(x));
}

/* @sum + @x, but not by the adders: the product with 1 is exact. */
static __always_inline vf32 add_by_fma(vf32 sum, vf32 x)
{
	asm("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(x), "x"((vf32){ 0 } + 1));
	return sum;
}

/* @y + @x * @signs, where @signs are 1 or -1: exact but for the addition */
static __always_inline vf32 add_signed(vf32 y, vf32 x, vf32 signs)
{
	asm("vfmadd213ps %2, %1, %0" : "+x"(x) : "x"(signs), "x"(y));
	return x;
}

/* The levels within a vector: each lane's partner plus or minus the lane */
static __always_inline vf32 lane_levels(vf32 v)
{
	const vf32 s4 = { 1, 1, 1, 1, -1, -1, -1, -1 };
	const vf32 s2 = { 1, 1, -1, -1, 1, 1, -1, -1 };
	const vf32 s1 = { 1, -1, 1, -1, 1, -1, 1, -1 };

	v = add_signed(__builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3), v, s4);
	v = add_signed(__builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5), v, s2);
	return add_signed(__builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6), v, s1);
}

#include "vector_reduce.h"
#include "vector_hadamard.h"

const struct ored_simd ored_simd_avx2 = {
	.name = "AVX2",
	.reduce = vector_reduce,
	.hadamard = VECTOR_HADAMARD,
};
