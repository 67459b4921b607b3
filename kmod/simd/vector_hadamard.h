/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The Hadamard transform in vectors, for whoever has defined VECTOR_BYTES,
 * f16_widen(), f16_narrow(), LANES_LOG, RADIX_LOG (how many levels fit the
 * registers) and lane_levels(). Rows of a tile are whole vectors, so that its columns need no
 * shuffles; a block alone is as good as a tile of one vector's width, until the
 * last levels.
 */
#ifndef ORED_SIMD_VECTOR_HADAMARD_H
#define ORED_SIMD_VECTOR_HADAMARD_H

#include "../../uapi/linux/ored.h"
#include "../core/hadamard.h"
#include "vector.h"

#define WIDTH		ORED_HADAMARD_WIDTH
#define ROW_VECTORS	(WIDTH / LANES)

/* The sign bits of lanes @at and up; bit i of @signs is that of column i. */
static __always_inline vu32 sign_mask(u32 signs, u32 at)
{
	vu32 mask;
	u32 i;

	for (i = 0; i < LANES; i++)
		mask[i] = 31 - i;
	return (((vu32){ 0 } + (signs >> at)) << mask) & 0x80000000U;
}

static __always_inline vf32 narrow_load(const u8 *src, u8 dtype)
{
	if (dtype == ORED_F32)
		return *(const vf32 *)src;
	if (dtype == ORED_BF16)
		return (vf32)(__builtin_convertvector(*(const vu16_half *)src, vu32) << 16);
	return f16_widen(src);
}

static __always_inline void narrow_store(u8 *dst, vf32 x, u8 dtype)
{
	x = canonical(x);
	if (dtype == ORED_F32)
		*(vf32 *)dst = x;
	else if (dtype == ORED_BF16)
		*(vu16_half *)dst = __builtin_convertvector(bf16_round(x) >> 16, vu16_half);
	else
		f16_narrow(dst, x);
}

static __always_inline void load_rows(const struct ored_hadamard *h, float *x,
				      const u8 *bucket, u64 first, u32 width,
				      u32 from, u32 to, u8 dtype, u32 size)
{
	const float scale = 1.0f / (float)(1U << ored_hadamard_shift(h));
	u8 part[WIDTH * 4] = { 0 };
	u32 row, i;

	for (row = from; row < to; row++) {
		const u8 *src = bucket + (ored_hadamard_row(h, row) + first) * size;
		u32 signs = h->inverse ? 0 : ored_hadamard_signs(h, first, row);
		float *to_row = x + ored_hadamard_loaded(h, row) * WIDTH;

		if (width < WIDTH)
			src = memcpy(part, src, width * size);
		for (i = 0; i < WIDTH; i += LANES) {
			vf32 v = narrow_load(src + i * size, dtype) * scale;

			*(vf32 *)&to_row[i] = (vf32)((vu32)v ^ sign_mask(signs, i));
		}
	}
}

static __always_inline void store_rows(const struct ored_hadamard *h, u8 *bucket,
				       const float *x, u64 first, u32 width,
				       u32 from, u32 to, u8 dtype, u32 size)
{
	u8 part[WIDTH * 4];
	u32 row, i;

	for (row = from; row < to; row++) {
		u8 *place = bucket + (ored_hadamard_row(h, row) + first) * size;
		u8 *dst = width < WIDTH ? part : place;
		u32 signs = h->inverse ? ored_hadamard_signs(h, first, row) : 0;
		const float *from_row = x + ored_hadamard_stored(h, row) * WIDTH;

		for (i = 0; i < WIDTH; i += LANES) {
			vu32 v = *(const vu32 *)&from_row[i] ^ sign_mask(signs, i);

			narrow_store(dst + i * size, (vf32)v, dtype);
		}
		if (width < WIDTH)
			memcpy(place, part, width * size);
	}
}

static void vector_load(const struct ored_hadamard *h, u32 *x, const void *bucket,
			u64 first, u32 width, u32 from, u32 to)
{
	float *f = (float *)x;

	if (h->dtype == ORED_F32)
		load_rows(h, f, bucket, first, width, from, to, ORED_F32, 4);
	else if (h->dtype == ORED_BF16)
		load_rows(h, f, bucket, first, width, from, to, ORED_BF16, 2);
	else
		load_rows(h, f, bucket, first, width, from, to, ORED_F16, 2);
}

static void vector_store(const struct ored_hadamard *h, void *bucket, const u32 *x,
			 u64 first, u32 width, u32 from, u32 to)
{
	const float *f = (const float *)x;

	if (h->dtype == ORED_F32)
		store_rows(h, bucket, f, first, width, from, to, ORED_F32, 4);
	else if (h->dtype == ORED_BF16)
		store_rows(h, bucket, f, first, width, from, to, ORED_BF16, 2);
	else
		store_rows(h, bucket, f, first, width, from, to, ORED_F16, 2);
}

/* The level that adds and subtracts vectors @half apart, of @n */
static __always_inline void level(vf32 *v, u32 n, u32 half)
{
	u32 k;

#pragma GCC unroll 8
	for (k = 0; k < n / 2; k++) {
		vf32 *a = &v[k / half * 2 * half + k % half], *b = a + half;
		vf32 sum = *a + *b;

		*b = *a - *b;
		*a = sum;
	}
}

/* All @log levels of 2^@log vectors, in registers */
static __always_inline void registers(vf32 *v, u32 log)
{
	if (log >= 4)
		level(v, 1U << log, 8);
	if (log >= 3)
		level(v, 1U << log, 4);
	if (log >= 2)
		level(v, 1U << log, 2);
	level(v, 1U << log, 1);
}

/*
 * The @log highest levels of @rows rows, each @width floats, for vectors @from to
 * @to of those that the first of 2^@log parts has. With @within, rows are single
 * vectors, and the levels inside them follow.
 */
static __always_inline void radix(float *x, u32 rows, u32 width, u32 log, u32 from,
				  u32 to, float scale, bool within)
{
	const size_t stride = (size_t)(rows >> log) * width;
	vf32 v[1 << RADIX_LOG];
	u32 at, i;

	for (at = from * LANES; at < to * LANES; at += LANES) {
#pragma GCC unroll 16
		for (i = 0; i < 1U << log; i++)
			v[i] = *(const vf32 *)&x[at + i * stride];
		if (scale != 1) {
#pragma GCC unroll 16
			for (i = 0; i < 1U << log; i++)
				v[i] *= scale;
		}
		if (log)
			registers(v, log);
#pragma GCC unroll 16
		for (i = 0; i < 1U << log; i++)
			*(vf32 *)&x[at + i * stride] = within ? lane_levels(v[i]) : v[i];
	}
}

static void highest(float *x, u32 rows, u32 log, u32 from, u32 to)
{
	switch (log) {
	case 1:
		return radix(x, rows, WIDTH, 1, from, to, 1, false);
	case 2:
		return radix(x, rows, WIDTH, 2, from, to, 1, false);
	case 3:
		return radix(x, rows, WIDTH, 3, from, to, 1, false);
#if RADIX_LOG >= 4
	case 4:
		return radix(x, rows, WIDTH, 4, from, to, 1, false);
#endif
	}
}

/* As highest(), for rows of one vector, of which all are meant */
static void one_highest(float *x, u32 rows, u32 log, float scale)
{
	switch (log) {
	case 1:
		return radix(x, rows, LANES, 1, 0, rows >> 1, scale, false);
	case 2:
		return radix(x, rows, LANES, 2, 0, rows >> 2, scale, false);
	case 3:
		return radix(x, rows, LANES, 3, 0, rows >> 3, scale, false);
#if RADIX_LOG >= 4
	case 4:
		return radix(x, rows, LANES, 4, 0, rows >> 4, scale, false);
#endif
	}
}

/* All levels that are left of 2^@log rows of one vector */
static void one_lowest(float *x, u32 log, float scale)
{
	switch (log) {
	case 0:
		return radix(x, 1, LANES, 0, 0, 1, scale, true);
	case 1:
		return radix(x, 2, LANES, 1, 0, 1, scale, true);
	case 2:
		return radix(x, 4, LANES, 2, 0, 1, scale, true);
	case 3:
		return radix(x, 8, LANES, 3, 0, 1, scale, true);
#if RADIX_LOG >= 4
	case 4:
		return radix(x, 16, LANES, 4, 0, 1, scale, true);
#endif
	}
}

/* All levels of 2^@log rows */
static void all(float *x, u32 log)
{
	u32 left, levels, i;

	for (left = log; left; left -= levels) {
		levels = min_t(u32, left, RADIX_LOG);
		for (i = 0; i < 1U << (log - left); i++)
			highest(x + ((size_t)i << left) * WIDTH, 1U << left, levels,
				0, (1U << (left - levels)) * ROW_VECTORS);
	}
}

/* The @log highest levels of a tile, for one of the FAR_STEPS */
static void far_step(float *x, u32 log, u32 step)
{
	const u32 vectors = (1U << ORED_HADAMARD_PART_LOG) * ROW_VECTORS;
	u32 from = vectors * step / ORED_HADAMARD_FAR_STEPS;
	u32 to = vectors * (step + 1) / ORED_HADAMARD_FAR_STEPS;
	u32 left = log - ORED_HADAMARD_PART_LOG, levels, i, parts = 1;

	for (; left; left -= levels, parts <<= levels, log -= levels) {
		levels = min_t(u32, left, RADIX_LOG);
		for (i = 0; i < parts; i++) {
			u32 part, sub = 1U << (left - levels);

			/* The columns of this step are in each of @sub places. */
			for (part = 0; part < sub; part++)
				highest(x + ((size_t)i << log) * WIDTH, 1U << log, levels,
					part * vectors + from, part * vectors + to);
		}
	}
}

static void vector_mix(u32 *bits, u32 log, u32 step)
{
	float *x = (float *)bits;

	if (log <= ORED_HADAMARD_PART_LOG) {
		all(x, log);
	} else if (step < ORED_HADAMARD_FAR_STEPS) {
		far_step(x, log, step);
	} else {
		step -= ORED_HADAMARD_FAR_STEPS;
		all(x + ((size_t)step << ORED_HADAMARD_PART_LOG) * WIDTH,
		    ORED_HADAMARD_PART_LOG);
	}
}

static void vector_mix_one(u32 *bits, u32 log, u32 shift)
{
	float *x = (float *)bits, scale = 1.0f / (float)(1U << shift);
	u32 left = log - LANES_LOG, i;

	if (log < LANES_LOG) {
		ored_hadamard_soft.mix_one(bits, log, shift);
		return;
	}
	while (left > RADIX_LOG) {
		for (i = 0; i < 1U << log; i += LANES << left)
			one_highest(x + i, 1U << left, RADIX_LOG, scale);
		left -= RADIX_LOG;
		scale = 1;
	}
	for (i = 0; i < 1U << log; i += LANES << left)
		one_lowest(x + i, left, scale);
}

#define VECTOR_HADAMARD {			\
	.load = vector_load,			\
	.mix = vector_mix,			\
	.store = vector_store,			\
	.mix_one = vector_mix_one,		\
}

#endif /* ORED_SIMD_VECTOR_HADAMARD_H */
