/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the vector units do: the same as the references in core, bit for bit.
 * Each table's functions need its instruction set and, in the kernel, the FPU;
 * whoever calls them has seen to both.
 */
#ifndef ORED_SIMD_H
#define ORED_SIMD_H

#include "../core/hadamard.h"
#include "../core/reduce.h"

/**
 * struct ored_simd - functions of one instruction set
 * @name: for the log
 * @reduce: as in struct ored_reduce_unit
 * @hadamard: as ored_hadamard_soft
 */
struct ored_simd {
	const char *name;
	u32 (*reduce)(void *dst, const struct ored_contribs *c, u32 len,
		      u8 dtype, u8 reduction);
	struct ored_hadamard_ops hadamard;
};

extern const struct ored_simd ored_simd_avx2;
extern const struct ored_simd ored_simd_avx512;
extern const struct ored_simd ored_simd_neon;

#endif /* ORED_SIMD_H */
