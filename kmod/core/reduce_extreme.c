// SPDX-License-Identifier: GPL-2.0
/*
 * Minima and maxima, which no rounding touches: contributions are compared as
 * integers of the dtype's size. A float's sign and magnitude become such an
 * integer by flipping the magnitude of the negative ones; so -0 is below +0,
 * whatever the order. NaN wins: it is set aside as a flag.
 */

#include "reduce_parts.h"

static __always_inline s64 load(const void *x, u32 size)
{
	switch (size) {
	case 2:
		return *(const s16 *)x;
	case 4:
		return *(const s32 *)x;
	default:
		return get_unaligned((const s64 *)x);
	}
}

static __always_inline void store(void *x, s64 value, u32 size)
{
	switch (size) {
	case 2:
		*(s16 *)x = (s16)value;
		break;
	case 4:
		*(s32 *)x = (s32)value;
		break;
	default:
		put_unaligned(value, (s64 *)x);
	}
}

/* Its own inverse */
static __always_inline s64 flipped(s64 bits, u32 size)
{
	return bits ^ ((bits >> 63) & (S64_MAX >> (64 - 8 * size)));
}

/*
 * @inf: bits of +infinity, S64_MAX for integers; @nan: of the NaN to give. A NaN
 * is above +infinity or, its sign set, below what -infinity is flipped to.
 */
static __always_inline void extreme(void *dst, const struct ored_contribs *c,
				    u32 len, u32 size, s64 inf, s64 nan,
				    bool largest)
{
	bool is_float = inf != S64_MAX;
	u32 offset, rank;

	for (offset = 0; offset < len; offset += size) {
		s64 best = largest ? S64_MIN : S64_MAX;
		bool has_nan = false;

		for_each_present(rank, c) {
			s64 x = load(contribution(c, rank, offset), size);

			if (is_float) {
				x = flipped(x, size);
				has_nan |= x > inf || x < ~inf;
			}
			best = largest ? max(best, x) : min(best, x);
		}
		if (is_float)
			best = has_nan ? nan : flipped(best, size);
		store((u8 *)dst + offset, best, size);
	}
}

void ored_reduce_extreme(void *dst, const struct ored_contribs *c, u32 len,
			 u8 dtype, bool largest)
{
	switch (dtype) {
	case ORED_F32:
		return extreme(dst, c, len, 4, 0x7f800000, 0x7fc00000, largest);
	case ORED_F64:
		return extreme(dst, c, len, 8, 0x7ff0000000000000LL,
			       0x7ff8000000000000LL, largest);
	case ORED_F16:
		return extreme(dst, c, len, 2, 0x7c00, 0x7e00, largest);
	case ORED_BF16:
		return extreme(dst, c, len, 2, 0x7f80, 0x7fc0, largest);
	case ORED_I32:
		return extreme(dst, c, len, 4, S64_MAX, 0, largest);
	case ORED_I64:
		return extreme(dst, c, len, 8, S64_MAX, 0, largest);
	}
}
