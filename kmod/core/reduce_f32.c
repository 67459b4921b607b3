// SPDX-License-Identifier: GPL-2.0
/*
 * Sums and means of F32, and of F16 and BF16, which are widened to F32, summed
 * there and rounded once at the end.
 *
 * F32 as integers: A partial sum is kept as m * 2^em in units of the smallest
 * subnormal: m is signed and has at most 24 bits (2^24 itself included), and
 * em is 0 or makes m use all of them. That's the encoding of IEEE 754 with the
 * exponent made one smaller, so that subnormals are no special case, and with
 * the sign folded into m, so that adding and subtracting aren't two cases.
 *
 * Two such numbers are aligned in 64 bits. A shift by up to ALIGN_BITS loses
 * nothing, and beyond ALIGN_BITS the smaller one is under a quarter of the
 * larger one's last bit: too small to matter, however it is cut.
 */

#include "half.h"
#include "reduce_parts.h"

#define F32_SIGN	0x80000000U
#define F32_INF		0x7f800000U
#define F32_NAN		0x7fc00000U
#define F32_FRAC_BITS	23

#define ALIGN_BITS	36
#define ELEMENT_ALIGN		((s64)1 << ALIGN_BITS)
/* The sum of two has its highest bit here, unless it carries or cancels. */
#define TOP_BIT		(ALIGN_BITS + F32_FRAC_BITS)
/*
 * Where the highest bit is moved for rounding: so high that all moves go one
 * way, and with one bit left for what rounding carries, below the sign.
 */
#define ROUND_BIT	61
#define ROUND_SHIFT	(ROUND_BIT - F32_FRAC_BITS)
/*
 * From this exponent on a number may be infinite, NaN or about to become so.
 * Sums of smaller ones stay finite until they meet it.
 */
#define HIGH_EM		253

/*
 * Elements whose partial sums are built side by side: enough to hide how long
 * one addition takes behind the others; and a cache line of each contribution.
 */
#define BLOCK		16

struct partial {
	s32 m;
	u32 em;
};

static inline bool f32_is_special(u32 a)
{
	return (a & ~F32_SIGN) >= F32_INF;
}

static inline bool f32_is_nan(u32 a)
{
	return (a & ~F32_SIGN) > F32_INF;
}

static inline struct partial f32_unpack(u32 a)
{
	u32 abs = a & ~F32_SIGN;
	u32 exponent = abs >> F32_FRAC_BITS;
	u32 em = exponent - (exponent != 0);
	s32 m = (s32)(abs - (em << F32_FRAC_BITS));
	s32 sign = (s32)a >> 31;

	return (struct partial){ .m = (m ^ sign) - sign, .em = em };
}

/* A zero comes out as +0. */
static inline u32 f32_pack(struct partial p)
{
	u32 sign = (u32)p.m & F32_SIGN;
	u32 abs = (p.em << F32_FRAC_BITS) + (u32)(p.m < 0 ? -p.m : p.m);

	return sign | min(abs, F32_INF);
}

/*
 * Neither is infinite or NaN. Rounds to nearest, ties to even: the last shift
 * rounds down, which after what is added before it is right for negative sums
 * too. A negative power of two is taken for one bit shorter than it is, and
 * stays exact.
 */
static inline struct partial f32_step(struct partial a, struct partial b)
{
	u32 em = max(a.em, b.em);
	s64 x = (s64)a.m * ELEMENT_ALIGN >> min_t(u32, em - a.em, 63);
	s64 y = (s64)b.m * ELEMENT_ALIGN >> min_t(u32, em - b.em, 63);
	s64 sum = x + y;
	u32 room = em + ROUND_BIT - TOP_BIT;
	u32 shift = ROUND_BIT + 1 - (u32)fls64((u64)(sum ^ (sum >> 63)));

	/* A subnormal has no exponent left to pay for more. */
	shift = min(shift, room);
	/* A zero must not look larger than what is added to it next. */
	if (!sum)
		room = shift;
	sum = (s64)((u64)sum << shift);
	sum += ((s64)1 << (ROUND_SHIFT - 1)) - 1 + (sum >> ROUND_SHIFT & 1);

	return (struct partial){
		.m = (s32)(sum >> ROUND_SHIFT),
		.em = room - shift,
	};
}

u32 ored_f32_add(u32 a, u32 b)
{
	struct partial sum;

	if (unlikely(f32_is_special(a) || f32_is_special(b))) {
		if (f32_is_nan(a) || f32_is_nan(b))
			return F32_NAN;
		if (f32_is_special(a) && f32_is_special(b))
			return a == b ? a : F32_NAN;
		return f32_is_special(a) ? a : b;
	}
	sum = f32_step(f32_unpack(a), f32_unpack(b));

	return sum.m ? f32_pack(sum) : a & b & F32_SIGN;
}

/* 2^64 / n rounded up; 0 for n == 1, by which nobody needs to divide */
static u64 reciprocal(u32 n)
{
	return n > 1 ? div_u64(~0ULL, n) + 1 : 0;
}

/*
 * The quotient is taken with 32 more bits than @a.m has. That is enough to
 * round it by: it can't look like a tie and not be one, since what remains of
 * a division by n shows within as many bits as n has, and n has 9 at the most.
 * Products with the reciprocal are exact quotients while dividend * n is below
 * 2^64.
 */
static inline struct partial f32_divide(struct partial a, u64 recip)
{
	u64 dividend = (u64)(a.m < 0 ? -(s64)a.m : a.m) << 32;
	u64 quotient = mul_u64_u64_shr(dividend, recip, 64);
	s32 shift;

	/* One that becomes subnormal ends where the exponents end. */
	shift = max(fls64(quotient) - 1 - F32_FRAC_BITS, 32 - (s32)a.em);
	quotient += (1ULL << (shift - 1)) - 1 + (quotient >> shift & 1);
	quotient >>= shift;

	return (struct partial){
		.m = a.m < 0 ? -(s32)quotient : (s32)quotient,
		.em = a.em + (u32)shift - 32,
	};
}

u32 ored_f32_div_u32(u32 a, u32 n)
{
	struct partial quotient;

	if (f32_is_nan(a))
		return F32_NAN;
	if (n == 1 || f32_is_special(a))
		return a;
	quotient = f32_divide(f32_unpack(a), reciprocal(n));

	return (a & F32_SIGN) | f32_pack(quotient);
}

/*
 * @a times @mul / @div, rounded once; for sums that lack contributions, so it
 * may take its time. 30 more bits than the product has say on which side of a
 * tie the quotient is, for the same reason as above.
 */
static struct partial f32_scale(struct partial a, u32 mul, u32 div)
{
	u64 dividend = (u64)(a.m < 0 ? -(s64)a.m : a.m) * mul << 30;
	u64 quotient = div_u64(dividend, div);
	s32 shift;

	shift = max(fls64(quotient) - 1 - F32_FRAC_BITS, 30 - (s32)a.em);
	quotient += (1ULL << (shift - 1)) - 1 + (quotient >> shift & 1);
	quotient >>= shift;

	return (struct partial){
		.m = a.m < 0 ? -(s32)quotient : (s32)quotient,
		.em = a.em + (u32)shift - 30,
	};
}

/* How a sum becomes the result; @recip is of the divisor, if that is all. */
struct finish {
	struct ored_scale scale;
	u64 recip;
};

static inline struct partial f32_scaled(struct partial a,
					const struct finish *finish)
{
	if (finish->scale.mul != 1)
		return f32_scale(a, finish->scale.mul, finish->scale.div);
	return finish->recip ? f32_divide(a, finish->recip) : a;
}

static __always_inline u32 load(const void *x, u32 i, u8 dtype)
{
	if (dtype == ORED_F16)
		return ored_f16_widen(((const u16 *)x)[i]);
	if (dtype == ORED_BF16)
		return ored_bf16_widen(((const u16 *)x)[i]);
	return ((const u32 *)x)[i];
}

static __always_inline void store(void *x, u32 i, u32 bits, u8 dtype)
{
	if (dtype == ORED_F16)
		((u16 *)x)[i] = ored_f16_narrow(bits);
	else if (dtype == ORED_BF16)
		((u16 *)x)[i] = ored_bf16_narrow(bits);
	else
		((u32 *)x)[i] = bits;
}

/* A sum of element @i of block @offset whose steps overflow; any values. */
static u32 f32_sum_any(const struct ored_contribs *c, size_t offset, u32 i,
		       u8 dtype)
{
	u32 rank = next_present(c, 0);
	u32 sum = load(contribution(c, rank, offset), i, dtype);

	if (f32_is_nan(sum))
		return F32_NAN;
	while ((rank = next_present(c, rank + 1)) < c->nranks)
		sum = ored_f32_add(sum, load(contribution(c, rank, offset), i, dtype));

	return sum;
}

/*
 * The same for a mean: partial sums may leave the range, since what they are
 * divided by brings the result back into it.
 */
static u32 f32_mean_any(const struct ored_contribs *c, size_t offset, u32 i,
			u8 dtype, const struct finish *finish)
{
	struct partial sum = { 0 };
	u32 sign = F32_SIGN, special = 0;
	u32 rank;

	for_each_present(rank, c) {
		u32 x = load(contribution(c, rank, offset), i, dtype);

		/* Only if all are negative can the result be -0. */
		sign &= x;
		if (!f32_is_special(x))
			sum = f32_step(sum, f32_unpack(x));
		else if (f32_is_nan(x) || (special && special != x))
			special = F32_NAN;
		else
			special = x;
	}
	if (special)
		return special;
	if (sum.m)
		sign = (u32)sum.m & F32_SIGN;

	/* Rounding may have taken it beyond what any of them can be. */
	return sign | min(f32_pack(f32_scaled(sum, finish)) & ~F32_SIGN, F32_INF - 1);
}

static u32 f32_any(const struct ored_contribs *c, size_t offset, u32 i,
		   u8 dtype, const struct finish *finish)
{
	u32 sum;

	if (finish->scale.mean)
		return f32_mean_any(c, offset, i, dtype, finish);
	sum = f32_sum_any(c, offset, i, dtype);
	if (finish->scale.mul == 1 || f32_is_special(sum))
		return sum;

	return (sum & F32_SIGN) | f32_pack(f32_scaled(f32_unpack(sum), finish));
}

/*
 * The sums of @n elements.
 * Return: false if a high exponent was met, and the sums aren't right.
 */
static __always_inline bool f32_sum_low(struct partial *sum,
					const struct ored_contribs *c,
					size_t offset, u32 n, u8 dtype)
{
	u32 rank = next_present(c, 0);
	const void *x = contribution(c, rank, offset);
	u32 i;

	for (i = 0; i < n; i++) {
		sum[i] = f32_unpack(load(x, i, dtype));
		if (unlikely(sum[i].em >= HIGH_EM))
			return false;
	}
	while ((rank = next_present(c, rank + 1)) < c->nranks) {
		x = contribution(c, rank, offset);
		for (i = 0; i < n; i++) {
			struct partial p = f32_unpack(load(x, i, dtype));

			if (unlikely(max(sum[i].em, p.em) >= HIGH_EM))
				return false;
			sum[i] = f32_step(sum[i], p);
		}
	}

	return true;
}

static __always_inline void f32_block(void *dst, const struct ored_contribs *c,
				      size_t offset, u32 n, u8 dtype,
				      const struct finish *finish)
{
	struct partial sum[BLOCK];
	bool low = f32_sum_low(sum, c, offset, n, dtype);
	u32 i, bits;

	for (i = 0; i < n; i++) {
		/* Only the contributions can tell a zero's sign. */
		if (unlikely(!low || !sum[i].m))
			bits = f32_any(c, offset, i, dtype, finish);
		else	/* The sign stays where a division leaves nothing. */
			bits = ((u32)sum[i].m & F32_SIGN) |
			       f32_pack(f32_scaled(sum[i], finish));
		store(dst, i, bits, dtype);
	}
}

static __always_inline void reduce(void *dst, const struct ored_contribs *c,
				   u32 len, u8 dtype, u32 size,
				   const struct ored_scale *scale)
{
	struct finish finish = { .scale = *scale };
	u32 count = len / size;
	u32 i;

	if (scale->mul == 1)
		finish.recip = reciprocal(scale->div);
	for (i = 0; i + BLOCK <= count; i += BLOCK)
		f32_block((u8 *)dst + i * size, c, i * size, BLOCK, dtype, &finish);
	if (i < count)
		f32_block((u8 *)dst + i * size, c, i * size, count - i, dtype, &finish);
}

void ored_reduce_f32(void *dst, const struct ored_contribs *c, u32 len,
		     const struct ored_scale *scale)
{
	reduce(dst, c, len, ORED_F32, sizeof(u32), scale);
}

void ored_reduce_f16(void *dst, const struct ored_contribs *c, u32 len,
		     const struct ored_scale *scale)
{
	reduce(dst, c, len, ORED_F16, sizeof(u16), scale);
}

void ored_reduce_bf16(void *dst, const struct ored_contribs *c, u32 len,
		      const struct ored_scale *scale)
{
	reduce(dst, c, len, ORED_BF16, sizeof(u16), scale);
}
