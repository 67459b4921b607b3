// SPDX-License-Identifier: GPL-2.0
/* Reduction and Hadamard transform with AVX-512: F, BW, DQ and VL. */

#define VECTOR_BYTES	64
#define REGISTERS	32
#define LANES_LOG	4
#define RADIX_LOG	4
#define BF16_ROUND		/* has its own bf16_round() */

#include "simd.h"
#include "vector.h"

static __always_inline bool any_negative(vs32 x)
{
	return __builtin_ia32_cvtd2mask512(x);
}

/* As elsewhere; the last bit is added under a mask. */
static __always_inline vu32 bf16_round(vf32 x)
{
	vu32 bits = (vu32)x, sum = bits + 0x7fff;
	u16 odd;

	asm("vptestmd %2, %1, %0" : "=Yk"(odd) : "v"(bits), "v"((vu32){ 0 } + 0x10000));
	asm("vpsubd %1, %0, %0%{%2%}" : "+v"(sum) : "v"(~(vu32){ 0 }), "Yk"(odd));
	return sum;
}

static __always_inline vf32 f16_widen(const void *src)
{
	vf32 x;

	asm("vcvtph2ps %1, %0" : "=v"(x) : "m"(*(const vu16_half *)src));
	return x;
}

/* To nearest, ties to even, whatever the control register says */
static __always_inline void f16_narrow(void *dst, vf32 x)
{
	asm("vcvtps2ph $0, %1, %0" : "=m"(*(vu16_half *)dst) : "v"(x));
}

/* @sum + @x, but not by the adders: the product with 1 is exact. */
static __always_inline vf32 add_by_fma(vf32 sum, vf32 x)
{
	asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"((vf32){ 0 } + 1));
	return sum;
}

/* @y + @x * @signs, where @signs are 1 or -1: exact but for the addition */
static __always_inline vf32 add_signed(vf32 y, vf32 x, vf32 signs)
{
	asm("vfmadd213ps %2, %1, %0" : "+v"(x) : "v"(signs), "v"(y));
	return x;
}

/* The levels within a vector: each lane's partner plus or minus the lane */
static __always_inline vf32 lane_levels(vf32 v)
{
	const vf32 s8 = { 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1 };
	const vf32 s4 = { 1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1 };
	const vf32 s2 = { 1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1 };
	const vf32 s1 = { 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1 };

	v = add_signed(__builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15,
					       0, 1, 2, 3, 4, 5, 6, 7), v, s8);
	v = add_signed(__builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3,
					       12, 13, 14, 15, 8, 9, 10, 11), v, s4);
	v = add_signed(__builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5,
					       10, 11, 8, 9, 14, 15, 12, 13), v, s2);
	return add_signed(__builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6,
						  9, 8, 11, 10, 13, 12, 15, 14), v, s1);
}

#include "vector_reduce.h"
#include "vector_hadamard.h"

const struct ored_simd ored_simd_avx512 = {
	.name = "AVX-512",
	.reduce = vector_reduce,
	.hadamard = VECTOR_HADAMARD,
};
