/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reduction in vectors, for whoever has defined VECTOR_BYTES, REGISTERS, f16_widen()
 * and f16_narrow(). Blocks of a few vectors are summed over all ranks in registers.
 * What vectors aren't good at is left to the caller, who has the reference do it when
 * the FPU is free again: lengths below a vector, and means that meet infinities or
 * NaN, since a partial sum must not overflow there and here it does.
 */
#ifndef ORED_SIMD_VECTOR_REDUCE_H
#define ORED_SIMD_VECTOR_REDUCE_H

#include "../core/reduce_parts.h"
#include "vector.h"

/* Vectors of a block: as many as keep all adders busy */
#define BLOCK		8
/* Of 16-bit elements, which make two of F32 each; the registers must be there. */
#if REGISTERS >= 32
#define BLOCK_HALVES	8
#else
#define BLOCK_HALVES	4
#endif

/* A reduction */
struct job {
	const struct ored_contribs *c;
	struct ored_scale scale;
	float factor;	/* 1 / scale.div, if that is exact */
	u8 reduction;
	u32 done;	/* how far it went */
};

/*
 * Has @add take in @n vectors of each contribution. The usual case, in which
 * none is missing, comes without a decision for each.
 */
static __always_inline void take_all(void (*add)(void *sums, const u8 *x, u32 n),
				     void *sums, const struct ored_contribs *c,
				     size_t offset, u32 n)
{
	const u8 *staged = (const u8 *)c->staged + offset;
	u32 rank;

	if (unlikely(c->present)) {
		for_each_present(rank, c)
			add(sums, contribution(c, rank, offset), n);
		return;
	}
	for (rank = 0; rank < c->rank; rank++, staged += c->stride)
		add(sums, staged, n);
	add(sums, (const u8 *)c->own + offset, n);
	for (rank++; rank < c->nranks; rank++, staged += c->stride)
		add(sums, staged, n);
}

static __always_inline void add_f32(void *sums, const u8 *x, u32 n)
{
	vf32 *sum = sums;
	u32 i;

#pragma GCC unroll 16
	for (i = 0; i < n; i++)
		sum[i] += ((const vf32 *)x)[i];
}

/*
 * 16-bit elements fill two sums: here the even and the odd ones, which take turns
 * at the adders and the multipliers, ...
 */
static __always_inline void add_bf16(void *sums, const u8 *x, u32 n)
{
	vf32 *sum = sums;
	u32 i;

#pragma GCC unroll 16
	for (i = 0; i < n; i++, x += VECTOR_BYTES) {
		vu32 both = *(const vu32 *)x;

		sum[2 * i] += bf16_even(both);
		sum[2 * i + 1] = add_by_fma(sum[2 * i + 1], bf16_odd(both));
	}
}

/* ... and here the first and the second half */
static __always_inline void add_f16(void *sums, const u8 *x, u32 n)
{
	vf32 *sum = sums;
	u32 i;

#pragma GCC unroll 16
	for (i = 0; i < 2 * n; i++, x += VECTOR_BYTES / 2)
		sum[i] += f16_widen(x);
}

static __always_inline void add_f64(void *sums, const u8 *x, u32 n)
{
	vf64 *sum = sums;
	u32 i;

#pragma GCC unroll 16
	for (i = 0; i < n; i++)
		sum[i] += ((const vf64 *)x)[i];
}

/* In unsigned arithmetic, which wraps */
static __always_inline void add_i32(void *sums, const u8 *x, u32 n)
{
	vu32 *sum = sums;
	u32 i;

#pragma GCC unroll 16
	for (i = 0; i < n; i++)
		sum[i] += ((const vu32 *)x)[i];
}

static __always_inline void add_i64(void *sums, const u8 *x, u32 n)
{
	vu64 *sum = sums;
	u32 i;

#pragma GCC unroll 16
	for (i = 0; i < n; i++)
		sum[i] += ((const vu64 *)x)[i];
}

/* @x * @mul / @div: in F64 the product is exact and the quotient close enough. */
static __always_inline vf32 f32_muldiv(vf32 x, u32 mul, u32 div)
{
	union {
		vf32 whole;
		vf32_half half[2];
	} u = { .whole = x };
	u32 i;

	for (i = 0; i < 2; i++) {
		vf64 wide = __builtin_convertvector(u.half[i], vf64);

		wide = wide * (double)mul / (double)div;
		u.half[i] = __builtin_convertvector(wide, vf32_half);
	}
	return u.whole;
}

/* A mean that isn't finite will not be used. */
static __always_inline void f32_results(vf32 *sum, u32 n, struct job job)
{
	const float div = (float)job.scale.div;
	u32 i;

	if (job.factor != 0) {
#pragma GCC unroll 16
		for (i = 0; i < n; i++)
			sum[i] *= job.factor;
		return;
	}
	if (job.scale.mean) {
#pragma GCC unroll 16
		for (i = 0; i < n; i++)
			sum[i] /= div;
		return;
	}
	if (unlikely(job.scale.mul != 1)) {
#pragma GCC unroll 16
		for (i = 0; i < n; i++)
			sum[i] = f32_muldiv(sum[i], job.scale.mul, job.scale.div);
	}
#pragma GCC unroll 16
	for (i = 0; i < n; i++)
		sum[i] = canonical(sum[i]);
}

/*
 * What can't be right if partial sums of a mean have overflowed, or contributions
 * weren't finite: the signs of the lanes say so. BF16 is looked at when it is
 * packed, since there is half as much of it.
 */
static __always_inline vs32 unusable(const vf32 *sum, u32 n, u8 dtype)
{
	vs32 signs = { 0 };
	u32 i;

	if (dtype == ORED_BF16) {
#pragma GCC unroll 16
		for (i = 0; i < n; i++) {
			vu32 both = (vu32)sum[i];

			signs |= (vs32)((both & 0x7fff7fff) + 0x00800080);
		}
		return signs | signs << 16;
	}
#pragma GCC unroll 16
	for (i = 0; i < n; i++)
		signs |= special_sign(sum[i]);
	return signs;
}

static __always_inline void f32_store(u8 *dst, const vf32 *result, u32 n, u8 dtype)
{
	u32 i;

#pragma GCC unroll 16
	for (i = 0; i < n; i++) {
		if (dtype == ORED_F16)
			f16_narrow(dst + i * VECTOR_BYTES / 2, result[i]);
		else
			*(vf32 *)(dst + i * VECTOR_BYTES) = result[i];
	}
}

/* Return: false if it is one for the reference */
static __always_inline bool f32_block(u8 *dst, struct job job, u8 dtype,
				      size_t offset, u32 n)
{
	u32 sums = dtype == ORED_F32 ? n : 2 * n;
	vf32 sum[BLOCK > 2 * BLOCK_HALVES ? BLOCK : 2 * BLOCK_HALVES];
	u32 i;

	/* -0 is what can be added to without a change. */
#pragma GCC unroll 16
	for (i = 0; i < sums; i++)
		sum[i] = -(vf32){ 0 };
	take_all(dtype == ORED_F32 ? add_f32 : dtype == ORED_BF16 ? add_bf16 : add_f16,
		 sum, job.c, offset, n);
	f32_results(sum, sums, job);
	if (dtype == ORED_BF16) {
		sums = n;
#pragma GCC unroll 16
		for (i = 0; i < n; i++)
			sum[i] = (vf32)bf16_join(sum[2 * i], sum[2 * i + 1]);
	}
	if (job.scale.mean && unlikely(any_negative(unusable(sum, sums, dtype))))
		return false;
	f32_store(dst, sum, sums, dtype);
	return true;
}

static __always_inline bool f64_block(u8 *dst, struct job job,
				      size_t offset, u32 n)
{
	vs64 special = { 0 };
	vf64 sum[BLOCK];
	u32 i;

#pragma GCC unroll 16
	for (i = 0; i < n; i++)
		sum[i] = -(vf64){ 0 };
	take_all(add_f64, sum, job.c, offset, n);
#pragma GCC unroll 16
	for (i = 0; i < n; i++)
		special |= special_sign64(sum[i]);
	/* Only the sign bits of the lanes' upper halves count. */
	if (unlikely(any_negative((vs32)(special & (s64)(1ULL << 63)))))
		return false;
#pragma GCC unroll 16
	for (i = 0; i < n; i++)
		((vf64 *)dst)[i] = sum[i] / (double)job.scale.div;
	return true;
}

static __always_inline bool int_block(u8 *dst, struct job job, u8 dtype,
				      size_t offset, u32 n)
{
	vu32 sum[BLOCK] = { 0 };
	u32 i;

	take_all(dtype == ORED_I32 ? add_i32 : add_i64, sum, job.c, offset, n);
#pragma GCC unroll 16
	for (i = 0; i < n; i++)
		((vu32 *)dst)[i] = sum[i];
	return true;
}

/*
 * Minima and maxima as in the reference. @inf is the largest integer for dtypes
 * that have no infinity.
 */
#define DEFINE_EXTREME_BLOCK(name, vector, element, largest)			\
static __always_inline void name(u8 *dst, struct job job,			\
				 size_t offset, u32 n, element inf, element nan)	\
{										\
	const struct ored_contribs *c = job.c;					\
	const bool is_float = inf != (largest);					\
	const bool is_max = job.reduction == ORED_MAX;				\
	const u32 sign = sizeof(element) * 8 - 1;				\
	vector best[BLOCK], is_nan[BLOCK] = { 0 }, start = { 0 };		\
	u32 rank, i;								\
										\
	for (i = 0; i < n; i++)							\
		best[i] = start + (element)(is_max ? ~(largest) : (largest));	\
	for_each_present(rank, c) {						\
		const vector *src = contribution(c, rank, offset);		\
										\
		for (i = 0; i < n; i++) {					\
			vector x = src[i], take;				\
										\
			if (is_float) {						\
				x ^= (x >> sign) & (largest);			\
				is_nan[i] |= (x > inf) | (x < (element)~inf);	\
			}							\
			if (is_max)						\
				take = x > best[i];				\
			else							\
				take = x < best[i];				\
			best[i] = (x & take) | (best[i] & ~take);		\
		}								\
	}									\
	for (i = 0; i < n; i++) {						\
		if (is_float) {							\
			best[i] ^= (best[i] >> sign) & (largest);		\
			best[i] = (best[i] & ~is_nan[i]) | (is_nan[i] & nan);	\
		}								\
		((vector *)dst)[i] = best[i];					\
	}									\
}

DEFINE_EXTREME_BLOCK(s16_extreme, vs16, s16, (s16)0x7fff)
DEFINE_EXTREME_BLOCK(s32_extreme, vs32, s32, (s32)0x7fffffff)
DEFINE_EXTREME_BLOCK(s64_extreme, vs64, s64, (s64)0x7fffffffffffffffLL)

static __always_inline void extreme_block(u8 *dst, struct job job, u8 dtype,
					  size_t offset, u32 n)
{
	switch (dtype) {
	case ORED_F32:
		return s32_extreme(dst, job, offset, n, 0x7f800000, 0x7fc00000);
	case ORED_F64:
		return s64_extreme(dst, job, offset, n, 0x7ff0000000000000LL,
				   0x7ff8000000000000LL);
	case ORED_F16:
		return s16_extreme(dst, job, offset, n, 0x7c00, 0x7e00);
	case ORED_BF16:
		return s16_extreme(dst, job, offset, n, 0x7f80, 0x7fc0);
	case ORED_I32:
		return s32_extreme(dst, job, offset, n, 0x7fffffff, 0);
	default:
		return s64_extreme(dst, job, offset, n, 0x7fffffffffffffffLL, 0);
	}
}

static __always_inline bool block(u8 *dst, struct job job, u8 dtype,
				  bool extreme, size_t offset, u32 n)
{
	if (extreme) {
		extreme_block(dst, job, dtype, offset, n);
		return true;
	}
	if (dtype == ORED_F64)
		return f64_block(dst, job, offset, n);
	if (dtype == ORED_I32 || dtype == ORED_I64)
		return int_block(dst, job, dtype, offset, n);
	return f32_block(dst, job, dtype, offset, n);
}

/*
 * What is left behind the last whole vector: the vector that ends where the data
 * end is computed. In place, the first part of it is nonsense by now and not
 * stored; else it is what is there already. Return: by how many bytes that went on
 */
static __always_inline size_t end_block(u8 *dst, struct job j, u8 dtype, bool extreme,
					size_t offset, u32 len)
{
	u8 whole[VECTOR_BYTES], *to = dst + len - VECTOR_BYTES;
	bool in_place = dst == j.c->own;
	u32 rest = len - offset;

	if (len < VECTOR_BYTES ||
	    !block(in_place ? whole : to, j, dtype, extreme, len - VECTOR_BYTES, 1))
		return 0;
	if (in_place)
		memcpy(dst + offset, whole + VECTOR_BYTES - rest, rest);
	return rest;
}

/*
 * @n vectors, if there are as many left. If there are not, but more than half as
 * many, the last ones of all are computed, some of them again; unless in place,
 * where those are gone. Return: by how many bytes that went on; 0 too if there is one
 * among them that isn't for vectors
 */
static __always_inline size_t some(u8 *dst, struct job j, u8 dtype, bool extreme,
				   size_t offset, u32 len, u32 n)
{
	size_t bytes = n * VECTOR_BYTES, at = offset;

	if (at + bytes > len) {
		if (len < bytes || 2 * (len - at) <= bytes || dst == j.c->own)
			return 0;
		at = len - bytes;
	}
	if (unlikely(!block(dst + at, j, dtype, extreme, at, n)))
		return 0;
	return at + bytes - offset;
}

/*
 * @j is a copy that the compiler can keep in registers while results are stored.
 * Return: how far it went
 */
static __always_inline u32 blocks(u8 *dst, const struct job *job, u8 dtype,
				  bool extreme, u32 len)
{
	const bool halves = dtype == ORED_F16 || dtype == ORED_BF16;
	const u32 n = halves ? BLOCK_HALVES : BLOCK;
	const struct job j = *job;
	size_t offset = 0, done;

	do {
		done = some(dst, j, dtype, extreme, offset, len, n);
		offset += done;
	} while (done);
	if (n == 8)
		offset += some(dst, j, dtype, extreme, offset, len, 4);
	offset += some(dst, j, dtype, extreme, offset, len, 2);
	offset += some(dst, j, dtype, extreme, offset, len, 1);
	if (offset < len && len - offset < VECTOR_BYTES)
		offset += end_block(dst, j, dtype, extreme, offset, len);
	return offset;
}

/* One copy of the code for each dtype; min and max share theirs. */
#define DEFINE_BLOCKS(name, dtype, extreme)					\
static void name(u8 *dst, struct job *job, u32 len)				\
{										\
	job->done = blocks(dst, job, dtype, extreme, len);			\
}

DEFINE_BLOCKS(sum_f32, ORED_F32, false)
DEFINE_BLOCKS(sum_f64, ORED_F64, false)
DEFINE_BLOCKS(sum_f16, ORED_F16, false)
DEFINE_BLOCKS(sum_bf16, ORED_BF16, false)
DEFINE_BLOCKS(sum_i32, ORED_I32, false)
DEFINE_BLOCKS(sum_i64, ORED_I64, false)
DEFINE_BLOCKS(extreme_f32, ORED_F32, true)
DEFINE_BLOCKS(extreme_f64, ORED_F64, true)
DEFINE_BLOCKS(extreme_f16, ORED_F16, true)
DEFINE_BLOCKS(extreme_bf16, ORED_BF16, true)
DEFINE_BLOCKS(extreme_i32, ORED_I32, true)
DEFINE_BLOCKS(extreme_i64, ORED_I64, true)

static u32 vector_reduce(void *dst, const struct ored_contribs *c, u32 len,
			 u8 dtype, u8 reduction)
{
	static void (*const sum[])(u8 *dst, struct job *job, u32 len) = {
		[ORED_F32] = sum_f32, [ORED_F64] = sum_f64,
		[ORED_F16] = sum_f16, [ORED_BF16] = sum_bf16,
		[ORED_I32] = sum_i32, [ORED_I64] = sum_i64,
	};
	static void (*const extreme[])(u8 *dst, struct job *job, u32 len) = {
		[ORED_F32] = extreme_f32, [ORED_F64] = extreme_f64,
		[ORED_F16] = extreme_f16, [ORED_BF16] = extreme_bf16,
		[ORED_I32] = extreme_i32, [ORED_I64] = extreme_i64,
	};
	u32 present = contribs_count(c);
	struct job job = { .c = c, .reduction = reduction };

	if (reduction == ORED_MIN || reduction == ORED_MAX) {
		extreme[dtype](dst, &job, len);
		return job.done;
	}
	job.scale = scale_of(reduction, c->nranks, present);
	/* Powers of two divide as exactly by multiplication, and faster. */
	if (job.scale.mean && !(present & (present - 1)))
		job.factor = 1.0f / (float)present;
	sum[dtype](dst, &job, len);
	return job.done;
}

#endif /* ORED_SIMD_VECTOR_REDUCE_H */
