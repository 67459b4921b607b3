/* SPDX-License-Identifier: GPL-2.0 */
/* The vector units that this processor has, for tests that try them all. */
#ifndef ORED_UNIT_UNITS_H
#define ORED_UNIT_UNITS_H

#include <stdio.h>
#include "../../kmod/simd/simd.h"

#define MAX_UNITS 2

static inline unsigned int unit_count(const struct ored_simd *units[MAX_UNITS])
{
	unsigned int count = 0;

#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		units[count++] = &ored_simd_avx2;
	if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl"))
		units[count++] = &ored_simd_avx512;
	if (count < MAX_UNITS)
		printf("# this processor has %u of 2 vector units\n", count);
#elif defined(__aarch64__)
	units[count++] = &ored_simd_neon;
#endif
	return count;
}

/* ored_reduce() by @unit, as far as that goes */
static inline u32 unit_reduce(const struct ored_simd *unit, void *dst,
			      const struct ored_contribs *c, u32 len, u8 dtype, u8 reduction)
{
	const struct ored_reduce_unit by = { .reduce = unit->reduce };

	return ored_reduce_by(&by, dst, c, len, dtype, reduction);
}

#endif /* ORED_UNIT_UNITS_H */
