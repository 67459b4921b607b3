// SPDX-License-Identifier: GPL-2.0
/* Reduction and Hadamard transform with NEON. */

#define VECTOR_BYTES	16
#define REGISTERS	32
#define LANES_LOG	2
#define RADIX_LOG	4

#include "simd.h"
#include "vector.h"

static __always_inline bool any_negative(vs32 x)
{
	vs64 halves = (vs64)x;

	return (halves[0] | halves[1]) & 0x8000000080000000ULL;
}

static __always_inline vf32 f16_widen(const void *src)
{
	vu16_half h = *(const vu16_half *)src;
	vf32 x;

	asm("fcvtl %0.4s, %1.4h" : "=w"(x) : "w"(h));
	return x;
}

/* As the control register says: to nearest, ties to even */
static __always_inline void f16_narrow(void *dst, vf32 x)
{
	vu16_half h;

	asm("fcvtn %0.4h, %1.4s" : "=w"(h) : "w"(x));
	*(vu16_half *)dst = h;
}

/* All units are alike here. */
static __always_inline vf32 add_by_fma(vf32 sum, vf32 x)
{
	return sum + x;
}

/* The levels within a vector: each lane's partner plus or minus the lane */
static __always_inline vf32 lane_levels(vf32 v)
{
	const vf32 s2 = { 1, 1, -1, -1 }, s1 = { 1, -1, 1, -1 };

	v = __builtin_shufflevector(v, v, 2, 3, 0, 1) + v * s2;
	return __builtin_shufflevector(v, v, 1, 0, 3, 2) + v * s1;
}

#include "vector_reduce.h"
#include "vector_hadamard.h"

const struct ored_simd ored_simd_neon = {
	.name = "NEON",
	.reduce = vector_reduce,
	.hadamard = VECTOR_HADAMARD,
};
