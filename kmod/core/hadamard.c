// SPDX-License-Identifier: GPL-2.0
/*
 * The order of the Hadamard transform of a bucket, and its arithmetic in
 * integers. Most of a bucket goes tile by tile: blocks that are neighbours are
 * transformed side by side. Where fewer are left than are worth a tile each of
 * them is gathered and transformed alone.
 */

#include "../../uapi/linux/ored.h"
#include "hadamard.h"
#include "half.h"
#include "reduce.h"

#define SIGN		0x80000000U
#define NAN_BITS	0x7fc00000U
/* Up to so many blocks are transformed one by one. */
#define FEW		4
/* Rows that are loaded or stored at a time */
#define ROWS		512
/* Stands for the block of last elements, in the signs' seed only */
#define LAST_BLOCK	BIT_ULL(40)

bool ored_hadamard_takes(u8 dtype)
{
	return dtype == ORED_F32 || dtype == ORED_F16 || dtype == ORED_BF16;
}

u8 ored_hadamard_log(u64 count)
{
	return (u8)min(fls64(count) - 1, ORED_HADAMARD_LOG);
}

u32 ored_hadamard_scratch(u64 count)
{
	u8 log = ored_hadamard_log(count);

	return (count >> log > FEW ? ORED_HADAMARD_WIDTH : 1U) << log;
}

u64 ored_hadamard_seed(u32 group, u64 epoch, u64 op)
{
	u64 x = ored_hadamard_stir(epoch + 0x9e3779b97f4a7c15ULL);

	x = ored_hadamard_stir((x ^ x >> 31) + group);
	x = ored_hadamard_stir((x ^ x >> 31) + op);

	return x ^ x >> 31;
}

static bool has_longer_rows(const struct ored_hadamard *h)
{
	return h->count & ((1ULL << h->log) - 1);
}

static u64 plain_tiles(const struct ored_hadamard *h)
{
	u64 blocks = h->count >> h->log;

	return (blocks + ORED_HADAMARD_WIDTH - 1) / ORED_HADAMARD_WIDTH;
}

u64 ored_hadamard_tiles(const struct ored_hadamard *h)
{
	return plain_tiles(h) + has_longer_rows(h);
}

static u32 element(const void *bucket, u64 i, u8 dtype)
{
	if (dtype == ORED_F16)
		return ored_f16_widen(((const u16 *)bucket)[i]);
	if (dtype == ORED_BF16)
		return ored_bf16_widen(((const u16 *)bucket)[i]);
	return ((const u32 *)bucket)[i];
}

static void set_element(void *bucket, u64 i, u32 bits, u8 dtype)
{
	if ((bits & ~SIGN) > 0x7f800000U)
		bits = NAN_BITS;
	if (dtype == ORED_F16)
		((u16 *)bucket)[i] = ored_f16_narrow(bits);
	else if (dtype == ORED_BF16)
		((u16 *)bucket)[i] = ored_bf16_narrow(bits);
	else
		((u32 *)bucket)[i] = bits;
}

/* The place of @row's element of a block, which may be that of last elements */
static u64 place(const struct ored_hadamard *h, u64 block, u32 row)
{
	if (block == LAST_BLOCK)
		return ored_hadamard_row(h, row + 1) - 1;
	return ored_hadamard_row(h, row) + block;
}

/* Column @column of a tile's signs, in the highest bit */
static u32 sign(const struct ored_hadamard *h, u64 first, u32 column, u32 row)
{
	return ored_hadamard_signs(h, first, row) << (31 - column) & SIGN;
}

static void mix_block(const struct ored_hadamard *h,
		      const struct ored_hadamard_unit *unit, void *bucket,
		      u32 *x, u64 first, u32 column)
{
	u32 row, rows = 1U << h->log;

	for (row = 0; row < rows; row++) {
		u32 bits = element(bucket, place(h, first + column, row), h->dtype);

		if (!h->inverse)
			bits ^= sign(h, first, column, row);
		x[ored_hadamard_loaded(h, row)] = bits;
	}
	if (unit->begin)
		unit->begin();
	unit->ops->mix_one(x, h->log, ored_hadamard_shift(h));
	if (unit->end)
		unit->end();
	for (row = 0; row < rows; row++) {
		u32 bits = x[ored_hadamard_stored(h, row)];

		if (h->inverse)
			bits ^= sign(h, first, column, row);
		set_element(bucket, place(h, first + column, row), bits, h->dtype);
	}
}

static void mix_tile(const struct ored_hadamard *h,
		     const struct ored_hadamard_unit *unit, void *bucket,
		     u32 *x, u64 first, u32 width)
{
	u32 rows = 1U << h->log, row, step;

	for (row = 0; row < rows; row += ROWS) {
		if (unit->begin)
			unit->begin();
		unit->ops->load(h, x, bucket, first, width, row, min_t(u32, row + ROWS, rows));
		if (unit->end)
			unit->end();
	}
	for (step = 0; step < ored_hadamard_steps(h->log); step++) {
		if (unit->begin)
			unit->begin();
		unit->ops->mix(x, h->log, step);
		if (unit->end)
			unit->end();
	}
	for (row = 0; row < rows; row += ROWS) {
		if (unit->begin)
			unit->begin();
		unit->ops->store(h, bucket, x, first, width, row, min_t(u32, row + ROWS, rows));
		if (unit->end)
			unit->end();
	}
}

void ored_hadamard_tile(const struct ored_hadamard *h,
			const struct ored_hadamard_unit *unit, void *bucket,
			u32 *x, u64 tile)
{
	u64 blocks = h->count >> h->log, first;
	u32 width, column;

	/* That of last elements comes first on the way there, last on the way back. */
	if (has_longer_rows(h) && !h->inverse)
		tile--;
	if (tile >= plain_tiles(h)) {
		mix_block(h, unit, bucket, x, LAST_BLOCK, 0);
		return;
	}
	first = tile * ORED_HADAMARD_WIDTH;
	width = (u32)min_t(u64, blocks - first, ORED_HADAMARD_WIDTH);
	if (width > FEW) {
		mix_tile(h, unit, bucket, x, first, width);
		return;
	}
	for (column = 0; column < width; column++)
		mix_block(h, unit, bucket, x, first, column);
}

static void soft_load(const struct ored_hadamard *h, u32 *x, const void *bucket,
		      u64 first, u32 width, u32 from, u32 to)
{
	u32 row, column;

	for (row = from; row < to; row++) {
		u32 *to_row = x + ored_hadamard_loaded(h, row) * ORED_HADAMARD_WIDTH;

		for (column = 0; column < width; column++) {
			u32 bits = element(bucket, place(h, first + column, row), h->dtype);

			if (!h->inverse)
				bits ^= sign(h, first, column, row);
			to_row[column] = ored_f32_div_u32(bits, 1U << ored_hadamard_shift(h));
		}
		for (; column < ORED_HADAMARD_WIDTH; column++)
			to_row[column] = 0;
	}
}

static void soft_store(const struct ored_hadamard *h, void *bucket, const u32 *x,
		       u64 first, u32 width, u32 from, u32 to)
{
	u32 row, column;

	for (row = from; row < to; row++) {
		const u32 *from_row = x + ored_hadamard_stored(h, row) * ORED_HADAMARD_WIDTH;

		for (column = 0; column < width; column++) {
			u32 bits = from_row[column];

			if (h->inverse)
				bits ^= sign(h, first, column, row);
			set_element(bucket, place(h, first + column, row), bits, h->dtype);
		}
	}
}

static void butterfly(u32 *a, u32 *b)
{
	u32 sum = ored_f32_add(*a, *b);

	*b = ored_f32_add(*a, *b ^ SIGN);
	*a = sum;
}

/* All sums and differences of the @count elements of @x, @stride apart */
static void butterflies(u32 *x, u32 count, u32 stride)
{
	u32 half, i, j;

	for (half = count / 2; half; half /= 2) {
		for (i = 0; i < count; i += 2 * half) {
			for (j = i; j < i + half; j++)
				butterfly(&x[j * stride], &x[(j + half) * stride]);
		}
	}
}

/* A step's time is of no matter here: the first one does it all. */
static void soft_mix(u32 *x, u32 log, u32 step)
{
	u32 column;

	for (column = 0; !step && column < ORED_HADAMARD_WIDTH; column++)
		butterflies(x + column, 1U << log, ORED_HADAMARD_WIDTH);
}

static void soft_mix_one(u32 *x, u32 log, u32 shift)
{
	u32 i;

	for (i = 0; i < 1U << log; i++)
		x[i] = ored_f32_div_u32(x[i], 1U << shift);
	butterflies(x, 1U << log, 1);
}

const struct ored_hadamard_ops ored_hadamard_soft = {
	.load = soft_load,
	.mix = soft_mix,
	.store = soft_store,
	.mix_one = soft_mix_one,
};
