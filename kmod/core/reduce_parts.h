/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of the reduction share. Nobody else includes this. */
#ifndef ORED_CORE_REDUCE_PARTS_H
#define ORED_CORE_REDUCE_PARTS_H

#include "../../uapi/linux/ored.h"
#include "reduce.h"

/**
 * struct ored_scale - how a sum becomes the result
 * @mul: by what to multiply it
 * @div: by what to divide it then
 * @mean: partial sums don't overflow
 */
struct ored_scale {
	u32 mul;
	u32 div;
	bool mean;
};

/* The first rank from @rank on that has contributed; if none, @c->nranks */
static inline u32 next_present(const struct ored_contribs *c, u32 rank)
{
	if (c->present) {
		while (rank < c->nranks && !test_bit(rank, c->present))
			rank++;
	}

	return rank;
}

#define for_each_present(rank, c) \
	for (rank = next_present(c, 0); rank < (c)->nranks; \
	     rank = next_present(c, rank + 1))

static inline const void *contribution(const struct ored_contribs *c, u32 rank,
				       size_t offset)
{
	const u8 *base = c->own;

	if (rank != c->rank)
		base = (const u8 *)c->staged +
		       (rank - (rank > c->rank)) * c->stride;

	return base + offset;
}

static inline u32 contribs_count(const struct ored_contribs *c)
{
	u32 rank, present = 0;

	if (!c->present)
		return c->nranks;
	for_each_present(rank, c)
		present++;

	return present;
}

static inline struct ored_scale scale_of(u8 reduction, u32 nranks, u32 present)
{
	struct ored_scale scale = { .mul = 1, .div = 1 };

	scale.mean = reduction == ORED_MEAN;
	if (scale.mean || present < nranks)
		scale.div = present;
	if (!scale.mean && present < nranks)
		scale.mul = nranks;

	return scale;
}

/* Is it one whose arithmetic only the reference has? */
static inline bool reference_only(u8 dtype, const struct ored_scale *scale)
{
	if (dtype == ORED_I32 || dtype == ORED_I64)
		return scale->mul != 1 || scale->div != 1;

	return dtype == ORED_F64 && scale->mul != 1;
}

/* @len bytes each, and at least one contribution */
void ored_reduce_f32(void *dst, const struct ored_contribs *c, u32 len,
		     const struct ored_scale *scale);
void ored_reduce_f16(void *dst, const struct ored_contribs *c, u32 len,
		     const struct ored_scale *scale);
void ored_reduce_bf16(void *dst, const struct ored_contribs *c, u32 len,
		      const struct ored_scale *scale);
void ored_reduce_f64(void *dst, const struct ored_contribs *c, u32 len,
		     const struct ored_scale *scale);
void ored_reduce_i32(void *dst, const struct ored_contribs *c, u32 len,
		     const struct ored_scale *scale);
void ored_reduce_i64(void *dst, const struct ored_contribs *c, u32 len,
		     const struct ored_scale *scale);
void ored_reduce_extreme(void *dst, const struct ored_contribs *c, u32 len,
			 u8 dtype, bool largest);

#endif /* ORED_CORE_REDUCE_PARTS_H */
