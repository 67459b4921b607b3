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

static struct ored_contribs part_of(const struct ored_contribs *c, u32 offset)
{
	struct ored_contribs part = *c;

	part.own = (const u8 *)c->own + offset;
	part.staged = (const u8 *)c->staged + offset;

	return part;
}

/* Return: how far the unit got */
static u32 by_unit(const struct ored_reduce_unit *unit, void *dst,
		   const struct ored_contribs *c, u32 len, u8 dtype, u8 reduction)
{
	u32 done;

	if (unit->begin && !unit->begin())
		return 0;
	done = unit->reduce(dst, c, len, dtype, reduction);
	if (unit->end)
		unit->end();

	return done;
}

/*
 * The unit by pieces; where it stops the reference goes on with a little, and with twice
 * as much each time that it was of no use to ask the unit again.
 */
static void by_both(const struct ored_reduce_unit *unit, u8 *dst,
		    const struct ored_contribs *c, u32 len, u8 dtype, u8 reduction)
{
	u32 piece = ored_reduce_piece(c->nranks), done = 0, little = 0, want, n;
	struct ored_contribs part;

	while (done < len) {
		want = min(len - done, piece);
		part = part_of(c, done);
		n = by_unit(unit, dst + done, &part, want, dtype, reduction);
		done += n;
		if (n == want)
			continue;
		little = n || !little ? ORED_REDUCE_LITTLE : 2 * little;
		n = min(len - done, little);
		part = part_of(c, done);
		ored_reduce(dst + done, &part, n, dtype, reduction);
		done += n;
	}
}

u32 ored_reduce_by(const struct ored_reduce_unit *unit, void *dst,
		   const struct ored_contribs *c, u32 len, u8 dtype, u8 reduction)
{
	u32 present = contribs_count(c);
	struct ored_scale scale;

	if (!present)
		return 0;
	scale = scale_of(reduction, c->nranks, present);
	if (reduction != ORED_MIN && reduction != ORED_MAX && reference_only(dtype, &scale))
		return ored_reduce(dst, c, len, dtype, reduction);
	by_both(unit, dst, c, len, dtype, reduction);

	return present;
}
