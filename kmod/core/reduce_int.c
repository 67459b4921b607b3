// SPDX-License-Identifier: GPL-2.0
/*
 * Sums and means of I32 and I64. Sums wrap. What is scaled or divided is the
 * exact sum, in 128 bits, rounded to nearest, ties to even: a mean never
 * overflows, and a sum that lacks contributions wraps only as a whole one would.
 */

#include "reduce_parts.h"

/* An exact sum in two's complement: 256 of 64 bits need 72. */
struct wide {
	u64 low;
	s64 high;
};

static void wide_add(struct wide *sum, s64 x)
{
	sum->low += (u64)x;
	sum->high += (x >> 63) + (sum->low < (u64)x);
}

static struct wide wide_negated(struct wide a)
{
	a.low = -a.low;
	a.high = -a.high - (a.low != 0);
	return a;
}

/* @a, not negative, times @mul / @div, of which 64 bits are enough */
static u64 wide_muldiv(struct wide a, u32 mul, u32 div)
{
	u64 low = (a.low & 0xffffffffU) * mul;
	u64 middle = (a.low >> 32) * mul + (low >> 32);
	u64 high = (u64)a.high * mul + (middle >> 32);
	u32 rest, q1, q0;

	/* Long division, in digits of 32 bits; the first is beyond the result. */
	div_u64_rem(high, div, &rest);
	q1 = (u32)div_u64_rem((u64)rest << 32 | (u32)middle, div, &rest);
	q0 = (u32)div_u64_rem((u64)rest << 32 | (u32)low, div, &rest);

	return ((u64)q1 << 32 | q0) +
	       (2 * rest > div || (2 * rest == div && (q0 & 1)));
}

static u64 wide_scaled(struct wide sum, const struct ored_scale *scale)
{
	if (scale->div == 1 && scale->mul == 1)
		return sum.low;
	if (sum.high < 0)
		return -wide_muldiv(wide_negated(sum), scale->mul, scale->div);
	return wide_muldiv(sum, scale->mul, scale->div);
}

void ored_reduce_i32(void *dst, const struct ored_contribs *c, u32 len,
		     const struct ored_scale *scale)
{
	u32 offset, rank;

	for (offset = 0; offset < len; offset += sizeof(s32)) {
		s64 sum = 0;

		for_each_present(rank, c)
			sum += *(const s32 *)contribution(c, rank, offset);
		*(u32 *)((u8 *)dst + offset) =
			(u32)wide_scaled((struct wide){ .low = (u64)sum, .high = sum >> 63 },
					 scale);
	}
}

void ored_reduce_i64(void *dst, const struct ored_contribs *c, u32 len,
		     const struct ored_scale *scale)
{
	u32 offset, rank;

	for (offset = 0; offset < len; offset += sizeof(s64)) {
		struct wide sum = { 0 };

		for_each_present(rank, c)
			wide_add(&sum, get_unaligned((const s64 *)contribution(c, rank, offset)));
		put_unaligned(wide_scaled(sum, scale), (u64 *)((u8 *)dst + offset));
	}
}
