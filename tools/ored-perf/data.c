// SPDX-License-Identifier: GPL-2.0
/*
 * What ranks contribute, and what must come of it: small integers, so that sums
 * of F16 are exact. They repeat, so that an expected result is a few elements,
 * each of them computed here by other means than the module's.
 */

#include <math.h>
#include <string.h>
#include "../../kmod/core/half.h"
#include "ored-perf.h"

#define LEAST	1
#define MOST	8

union elements {
	char		bytes[PATTERN * sizeof(uint64_t)];
	float		f32[PATTERN];
	double		f64[PATTERN];
	uint16_t	half[PATTERN];
	int32_t		i32[PATTERN];
	int64_t		i64[PATTERN];
};

static const struct {
	const char *name;
	size_t size;
} dtypes[DTYPES] = {
	[ORED_F32]	= { "float", 4 },
	[ORED_F64]	= { "double", 8 },
	[ORED_F16]	= { "half", 2 },
	[ORED_BF16]	= { "bfloat16", 2 },
	[ORED_I32]	= { "int32", 4 },
	[ORED_I64]	= { "int64", 8 },
};

const char *dtype_name(uint8_t dtype)
{
	return dtypes[dtype].name;
}

size_t dtype_size(uint8_t dtype)
{
	return dtypes[dtype].size;
}

const char *reduction_name(uint8_t reduction)
{
	static const char *const names[REDUCTIONS] = {
		[ORED_SUM] = "sum", [ORED_MEAN] = "mean", [ORED_MIN] = "min", [ORED_MAX] = "max",
	};

	return names[reduction];
}

const char *collective_name(uint8_t kind)
{
	static const char *const names[COLLECTIVES] = {
		[ORED_ALLREDUCE] = "all_reduce", [ORED_REDUCE_SCATTER] = "reduce_scatter",
		[ORED_ALL_GATHER] = "all_gather", [ORED_BROADCAST] = "broadcast",
	};

	return names[kind];
}

bool reduces(uint8_t kind)
{
	return kind == ORED_ALLREDUCE || kind == ORED_REDUCE_SCATTER;
}

struct part bucket_of(const struct row *row)
{
	return (struct part){ 0, row->bytes / dtypes[row->dtype].size };
}

/* As ored(7) says: the first ranks have one more if it doesn't divide. */
static struct part shard_of(const struct row *row, uint32_t rank, uint32_t nranks)
{
	uint64_t all = bucket_of(row).count, least = all / nranks, longer = all % nranks;

	return (struct part){ rank * least + (rank < longer ? rank : longer),
			      least + (rank < longer) };
}

struct part given_of(const struct row *row, uint32_t rank, uint32_t nranks)
{
	return row->kind == ORED_ALL_GATHER ? shard_of(row, rank, nranks) : bucket_of(row);
}

struct part got_of(const struct row *row, uint32_t rank, uint32_t nranks)
{
	return row->kind == ORED_REDUCE_SCATTER ? shard_of(row, rank, nranks) : bucket_of(row);
}

static uint32_t float_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static float bits_float(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Rounded to the type once, but for means of halves, which pass through F32 as documented */
static void put(union elements *e, uint8_t dtype, unsigned int i, double value)
{
	switch (dtype) {
	case ORED_F32:
		e->f32[i] = (float)value;
		break;
	case ORED_F64:
		e->f64[i] = value;
		break;
	case ORED_F16:
		e->half[i] = ored_f16_narrow(float_bits((float)value));
		break;
	case ORED_BF16:
		e->half[i] = ored_bf16_narrow(float_bits((float)value));
		break;
	case ORED_I32:
		e->i32[i] = (int32_t)nearbyint(value);
		break;
	case ORED_I64:
		e->i64[i] = (int64_t)nearbyint(value);
		break;
	}
}

static double get(const void *at, uint8_t dtype)
{
	union elements e;

	memcpy(&e, at, dtypes[dtype].size);
	switch (dtype) {
	case ORED_F32:
		return e.f32[0];
	case ORED_F64:
		return e.f64[0];
	case ORED_F16:
		return bits_float(ored_f16_widen(e.half[0]));
	case ORED_BF16:
		return bits_float(ored_bf16_widen(e.half[0]));
	case ORED_I32:
		return e.i32[0];
	default:
		return (double)e.i64[0];
	}
}

static unsigned int contribution(uint32_t rank, uint32_t seed, uint64_t op, unsigned int i)
{
	uint64_t x = rank * 5ULL + seed * 7ULL + op * 3 + i;

	return LEAST + x * (1 + rank % 3) % (MOST - LEAST + 1);
}

void data_fill(void *bucket, const struct row *row, uint32_t rank, uint32_t seed, uint64_t op)
{
	size_t whole = PATTERN * dtypes[row->dtype].size, at;
	union elements e;
	unsigned int i;

	for (i = 0; i < PATTERN; i++)
		put(&e, row->dtype, i, contribution(rank, seed, op, i));
	for (at = 0; at < row->bytes; at += whole)
		memcpy((char *)bucket + at, e.bytes,
		       row->bytes - at < whole ? row->bytes - at : whole);
}

static double reduced(const struct row *row, uint32_t nranks, uint32_t seed, uint64_t op,
		      unsigned int i)
{
	double least = MOST, most = LEAST, sum = 0;
	uint32_t rank;

	for (rank = 0; rank < nranks; rank++) {
		double value = contribution(rank, seed, op, i);

		least = fmin(least, value);
		most = fmax(most, value);
		sum += value;
	}
	switch (row->reduction) {
	case ORED_MIN:
		return least;
	case ORED_MAX:
		return most;
	case ORED_MEAN:
		return sum / nranks;
	default:
		return sum;
	}
}

/*
 * Whoever contributed, a result with gaps lies between these: it is scaled. What is
 * only handed on is anybody's, or 0.
 */
static uint64_t outside(const void *bucket, const struct row *row, struct part part,
			uint32_t nranks)
{
	double most = reduces(row->kind) && row->reduction == ORED_SUM ? (double)MOST * nranks :
									  MOST;
	double least = row->kind == ORED_ALL_GATHER ? 0 : LEAST;
	size_t size = dtypes[row->dtype].size;
	uint64_t i, wrong = 0;

	for (i = part.first; i < part.first + part.count; i++) {
		double value = get((const char *)bucket + i * size, row->dtype);

		wrong += !(value >= least && value <= most);
	}
	return wrong;
}

/*
 * By whole patterns as long as these are right: on hosts that share processors the
 * time that checking takes is taken from who hasn't finished.
 */
static uint64_t differ(const void *bucket, const struct row *row, struct part part,
		       const union elements *expected)
{
	size_t size = dtypes[row->dtype].size;
	uint64_t i = part.first, end = part.first + part.count, wrong = 0;

	while (i < end) {
		const char *at = (const char *)bucket + i * size;

		if (i % PATTERN == 0 && end - i >= PATTERN &&
		    !memcmp(at, expected->bytes, PATTERN * size)) {
			i += PATTERN;
			continue;
		}
		wrong += memcmp(at, expected->bytes + i % PATTERN * size, size) != 0;
		i++;
	}
	return wrong;
}

/* Of what one rank has contributed */
static uint64_t unlike(const void *bucket, const struct row *row, struct part part,
		       uint32_t from, uint32_t seed, uint64_t op)
{
	union elements e;
	unsigned int i;

	for (i = 0; i < PATTERN; i++)
		put(&e, row->dtype, i, contribution(from, seed, op, i));
	return differ(bucket, row, part, &e);
}

uint64_t data_wrong(const void *bucket, const struct row *row, uint32_t rank, uint32_t nranks,
		    uint32_t seed, uint64_t op, bool whole)
{
	struct part got = got_of(row, rank, nranks);
	uint64_t wrong = 0;
	union elements e;
	unsigned int i;
	uint32_t r;

	if (!whole)
		return outside(bucket, row, got, nranks);
	if (row->kind == ORED_BROADCAST)
		return unlike(bucket, row, got, 0, seed, op);
	if (row->kind == ORED_ALL_GATHER) {
		for (r = 0; r < nranks; r++)
			wrong += unlike(bucket, row, shard_of(row, r, nranks), r, seed, op);
		return wrong;
	}
	for (i = 0; i < PATTERN; i++)
		put(&e, row->dtype, i, reduced(row, nranks, seed, op, i));
	return differ(bucket, row, got, &e);
}
