/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reduction of contributions in integer arithmetic.
 *
 * This is the reference of every other implementation and what runs wherever
 * the FPU can't be used, softirq above all. The rules, for every dtype:
 *
 * - Contributions are combined in the order of ranks, ((x0 + x1) + x2) + ...,
 *   each step rounded to the dtype. So the result depends neither on the order
 *   of arrival nor on who computes it.
 * - Rounding is to nearest, ties to even. Subnormals are kept, not flushed.
 * - F16 and BF16 give what F32 gives for the same numbers, rounded once to the
 *   dtype at the end.
 * - What overflows becomes infinite. inf + -inf is NaN.
 * - NaN wins, in MIN and MAX too. A result that is NaN is always the canonical
 *   quiet one (0x7fc00000 for F32), whatever NaN, sign and payload went in;
 *   with one rank too.
 * - A sum of zeros is -0 only if each of them is -0; x + -x is +0. For MIN and
 *   MAX -0 is less than +0.
 * - MEAN is that sum, then one correctly rounded division by the number of
 *   contributors: what numpy.float32(sum) / numpy.float32(present) gives; but
 *   its partial sums don't overflow, so that a mean is finite if all
 *   contributions are.
 * - Where contributions are missing, SUM is scaled to all ranks: the sum times
 *   the number of ranks divided by that of contributors, rounded once. MIN and
 *   MAX are over those who have contributed.
 * - I32 and I64: SUM wraps. MEAN and a scaled SUM are taken of the exact sum
 *   and rounded to nearest, ties to even; the latter wraps then.
 *
 * Elements are in host order.
 */
#ifndef ORED_CORE_REDUCE_H
#define ORED_CORE_REDUCE_H

#include "shim.h"

/**
 * struct ored_contribs - where the contributions to a chunk are
 * @own: the own one, that of @rank
 * @staged: those of all other ranks, by rank and without a gap for the own one
 * @stride: bytes from one staged contribution to the next
 * @rank: the own rank, below @nranks
 * @nranks: number of ranks, 1 to ORED_MAX_RANKS
 * @present: bit r: rank r has contributed; only these are looked at. NULL: all
 *
 * @own, @staged and @stride are multiples of 4, whatever the dtype; @staged
 * isn't looked at if there is only one rank.
 */
struct ored_contribs {
	const void *own;
	const void *staged;
	size_t stride;
	u32 rank;
	u32 nranks;
	const unsigned long *present;
};

/**
 * ored_dtype_size() - bytes of an element
 * @dtype: enum ored_dtype
 *
 * Return: the size; 0 for a dtype that doesn't exist.
 */
u32 ored_dtype_size(u8 dtype);

/**
 * ored_reduce() - combine all contributions to a chunk
 * @dst: where the result goes, a multiple of 4; may be @c->own, else it
 *	overlaps no contribution
 * @c: the contributions
 * @len: bytes of each contribution, a multiple of the dtype's size
 * @dtype: enum ored_dtype
 * @reduction: enum ored_reduction
 *
 * For any context. Allocates nothing and needs little stack; takes time in
 * proportion to @len times the number of ranks.
 *
 * Return: how many have contributed. If nobody has, @dst isn't touched.
 */
u32 ored_reduce(void *dst, const struct ored_contribs *c, u32 len,
		u8 dtype, u8 reduction);

/* Bytes of contributions that are reduced without a pause */
#define ORED_REDUCE_SECTION	(128 << 10)

/* Bytes of each contribution that the reference begins with where a unit stops */
#define ORED_REDUCE_LITTLE	256

/**
 * ored_reduce_piece() - how much to reduce without a pause
 * @nranks: ranks
 *
 * Return: bytes of each contribution, some ORED_REDUCE_SECTION in all; a
 * multiple of 256, and so of any dtype's size.
 */
static inline u32 ored_reduce_piece(u32 nranks)
{
	return max_t(u32, ORED_REDUCE_SECTION / nranks & ~255U, 256);
}

/**
 * struct ored_reduce_unit - a faster one than the reference
 * @reduce: as ored_reduce(), but only from the start on as far as it can; somebody has
 *	contributed, and it isn't one whose arithmetic only the reference has. Returns
 *	how far it went: bytes, a multiple of the dtype's size
 * @begin: called before it; false: it can't be used now. May be NULL, as @end
 * @end: called after it
 */
struct ored_reduce_unit {
	u32 (*reduce)(void *dst, const struct ored_contribs *c, u32 len,
		      u8 dtype, u8 reduction);
	bool (*begin)(void);
	void (*end)(void);
};

/**
 * ored_reduce_by() - ored_reduce(), by a faster unit where that can and may do it
 * @unit: the unit
 * @dst: as there
 * @c: as there
 * @len: as there
 * @dtype: as there
 * @reduction: as there
 *
 * Between @unit->begin() and @unit->end() only vectors are computed, and as much as
 * ored_reduce_piece() at the most, whatever has been contributed.
 *
 * Return: as there
 */
u32 ored_reduce_by(const struct ored_reduce_unit *unit, void *dst,
		   const struct ored_contribs *c, u32 len, u8 dtype, u8 reduction);

/*
 * The operations that floats are made of, on bit patterns. They are what tests
 * and faster implementations are held against; ored_reduce() doesn't call them
 * element by element.
 */

/**
 * ored_f32_add() - sum of two F32
 * @a: bits of the one
 * @b: bits of the other
 *
 * Return: bits of the sum.
 */
u32 ored_f32_add(u32 a, u32 b);

/**
 * ored_f32_div_u32() - an F32 divided by a small integer
 * @a: bits of the dividend
 * @n: divisor, 1 to ORED_MAX_RANKS
 *
 * Return: bits of the quotient.
 */
u32 ored_f32_div_u32(u32 a, u32 n);

/**
 * ored_f64_add() - sum of two F64
 * @a: bits of the one
 * @b: bits of the other
 *
 * Return: bits of the sum.
 */
u64 ored_f64_add(u64 a, u64 b);

/**
 * ored_f64_muldiv() - an F64 times a fraction, rounded once
 * @a: bits
 * @mul: 1 to ORED_MAX_RANKS
 * @div: 1 to ORED_MAX_RANKS
 *
 * Return: bits of @a * @mul / @div.
 */
u64 ored_f64_muldiv(u64 a, u32 mul, u32 div);

#endif /* ORED_CORE_REDUCE_H */
