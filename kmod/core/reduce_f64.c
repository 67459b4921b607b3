// SPDX-License-Identifier: GPL-2.0
/*
 * Sums and means of F64, as integers. A partial sum is m * 2^em in units of the
 * smallest subnormal, as for F32, but with 53 bits there is no room left in 64
 * to align two of them exactly: what is shifted out of the smaller one sets its
 * last bit instead. That is enough for rounding, since where something is
 * shifted out the rounding is done some bits higher up.
 */

#include "reduce_parts.h"

#define F64_SIGN	BIT_ULL(63)
#define F64_INF		0x7ff0000000000000ULL
#define F64_NAN		0x7ff8000000000000ULL
#define F64_FRAC_BITS	52

/* Bits below those of m while two are added */
#define GUARD_BITS	8

struct partial64 {
	s64 m;
	s32 em;
};

static bool is_special(u64 a)
{
	return (a & ~F64_SIGN) >= F64_INF;
}

static bool is_nan(u64 a)
{
	return (a & ~F64_SIGN) > F64_INF;
}

static struct partial64 unpack(u64 a)
{
	u64 abs = a & ~F64_SIGN;
	u64 exponent = abs >> F64_FRAC_BITS;
	u64 em = exponent - (exponent != 0);
	s64 m = (s64)(abs - (em << F64_FRAC_BITS));

	return (struct partial64){ .m = a & F64_SIGN ? -m : m, .em = (s32)em };
}

/* A zero comes out as +0. */
static u64 pack(struct partial64 p)
{
	u64 abs = ((u64)p.em << F64_FRAC_BITS) + (u64)(p.m < 0 ? -p.m : p.m);

	return ((u64)p.m & F64_SIGN) | min_t(u64, abs, F64_INF);
}

/* Rounds @m * 2^@em, whose last bit may stand for any that follow it. */
static struct partial64 rounded(u64 m, s32 em, bool negative)
{
	s32 shift = max(fls64(m) - 1 - F64_FRAC_BITS, -em);

	if (shift > 0) {
		m += (1ULL << (shift - 1)) - 1 + (m >> shift & 1);
		m >>= shift;
	} else {
		m <<= -shift;
	}

	return (struct partial64){
		.m = negative ? -(s64)m : (s64)m,
		.em = em + shift,
	};
}

static s64 shift_and_jam(s64 m, s32 shift)
{
	if (shift > 62)
		return m != 0;
	return m >> shift | ((m & (s64)((1ULL << shift) - 1)) != 0);
}

static struct partial64 add(struct partial64 a, struct partial64 b)
{
	s32 em = max(a.em, b.em);
	s64 sum = shift_and_jam(a.m * (1 << GUARD_BITS), em - a.em) +
		  shift_and_jam(b.m * (1 << GUARD_BITS), em - b.em);

	/* A zero must not look larger than what is added to it next. */
	if (!sum)
		return (struct partial64){ 0 };
	return rounded((u64)(sum < 0 ? -sum : sum), em - GUARD_BITS, sum < 0);
}

/* @a times @mul / @div, rounded once */
static struct partial64 muldiv(struct partial64 a, u32 mul, u32 div)
{
	u64 dividend = (u64)(a.m < 0 ? -a.m : a.m) * mul;
	s32 room = 64 - fls64(dividend);
	u32 rest;

	if (!dividend)
		return a;
	dividend = div_u64_rem(dividend << room, div, &rest);

	return rounded(dividend | (rest != 0), a.em - room, a.m < 0);
}

u64 ored_f64_add(u64 a, u64 b)
{
	struct partial64 sum;

	if (unlikely(is_special(a) || is_special(b))) {
		if (is_nan(a) || is_nan(b))
			return F64_NAN;
		if (is_special(a) && is_special(b))
			return a == b ? a : F64_NAN;
		return is_special(a) ? a : b;
	}
	sum = add(unpack(a), unpack(b));

	return sum.m ? pack(sum) : a & b & F64_SIGN;
}

u64 ored_f64_muldiv(u64 a, u32 mul, u32 div)
{
	if (is_nan(a))
		return F64_NAN;
	if (mul == div || is_special(a))
		return a;
	return (a & F64_SIGN) | pack(muldiv(unpack(a), mul, div));
}

static u64 load(const struct ored_contribs *c, u32 rank, size_t offset)
{
	return get_unaligned((const u64 *)contribution(c, rank, offset));
}

static u64 sum_of(const struct ored_contribs *c, size_t offset,
		  const struct ored_scale *scale)
{
	u64 sum = F64_SIGN;	/* -0 is neutral */
	u32 rank;

	for_each_present(rank, c)
		sum = ored_f64_add(sum, load(c, rank, offset));

	return ored_f64_muldiv(sum, scale->mul, scale->div);
}

/* As for F32: partial sums may leave the range. */
static u64 mean_of(const struct ored_contribs *c, size_t offset,
		   const struct ored_scale *scale)
{
	struct partial64 sum = { 0 };
	u64 sign = F64_SIGN, special = 0;
	u32 rank;

	for_each_present(rank, c) {
		u64 x = load(c, rank, offset);

		/* Only if all are negative can the result be -0. */
		sign &= x;
		if (!is_special(x))
			sum = add(sum, unpack(x));
		else if (is_nan(x) || (special && special != x))
			special = F64_NAN;
		else
			special = x;
	}
	if (special)
		return special;
	if (sum.m)
		sign = (u64)sum.m & F64_SIGN;

	return sign | min_t(u64, pack(muldiv(sum, scale->mul, scale->div)) & ~F64_SIGN,
			    F64_INF - 1);
}

void ored_reduce_f64(void *dst, const struct ored_contribs *c, u32 len,
		     const struct ored_scale *scale)
{
	u32 offset;

	for (offset = 0; offset < len; offset += sizeof(u64)) {
		u64 bits = scale->mean ? mean_of(c, offset, scale) :
					 sum_of(c, offset, scale);

		put_unaligned(bits, (u64 *)((u8 *)dst + offset));
	}
}
