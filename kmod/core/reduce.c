// SPDX-License-Identifier: GPL-2.0
/* Reduction: what there is, and who does it. */

#include "reduce_parts.h"

u32 ored_dtype_size(u8 dtype)
{
	static const u8 size[] = {
		[ORED_F32]	= 4,
		[ORED_F64]	= 8,
		[ORED_F16]	= 2,
		[ORED_BF16]	= 2,
		[ORED_I32]	= 4,
		[ORED_I64]	= 8,
	};

	return dtype < ARRAY_SIZE(size) ? size[dtype] : 0;
}

static void reduce_sum(void *dst, const struct ored_contribs *c, u32 len,
		       u8 dtype, const struct ored_scale *scale)
{
	switch (dtype) {
	case ORED_F32:
		return ored_reduce_f32(dst, c, len, scale);
	case ORED_F64:
		return ored_reduce_f64(dst, c, len, scale);
	case ORED_F16:
		return ored_reduce_f16(dst, c, len, scale);
	case ORED_BF16:
		return ored_reduce_bf16(dst, c, len, scale);
	case ORED_I32:
		return ored_reduce_i32(dst, c, len, scale);
	case ORED_I64:
		return ored_reduce_i64(dst, c, len, scale);
	}
}

u32 ored_reduce(void *dst, const struct ored_contribs *c, u32 len,
		u8 dtype, u8 reduction)
{
	u32 present = contribs_count(c);
	struct ored_scale scale;

	if (!present)
		return 0;
	if (reduction == ORED_MIN || reduction == ORED_MAX) {
		ored_reduce_extreme(dst, c, len, dtype, reduction == ORED_MAX);
		return present;
	}
	scale = scale_of(reduction, c->nranks, present);
	reduce_sum(dst, c, len, dtype, &scale);

	return present;
}
