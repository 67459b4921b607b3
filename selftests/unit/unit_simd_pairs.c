// SPDX-License-Identifier: GPL-2.0
/*
 * The vector units against the reference, bit for bit: every dtype, reduction,
 * length and alignment; every ORED_STEP-th length, if that is in the environment,
 * for emulators. Built without sanitizers, for the number; guards stand
 * behind every result.
 */

#include <string.h>
#include "tap.h"
#include "units.h"
#include "../../uapi/linux/ored.h"

#define COUNT		4096		/* elements */
#define RANKS		3
#define SHIFTS		16		/* of 4 bytes each: a cache line */
#define GUARD		64		/* bytes */
#define BYTES		(COUNT * 8)
#define CANARY		0xa5

static u8 own[BYTES + 64] __attribute__((__aligned__(64)));
static u8 staged[RANKS * (BYTES + 64)] __attribute__((__aligned__(64)));
static u8 want[BYTES + 64] __attribute__((__aligned__(64)));
static u8 got[GUARD + BYTES + 64 + GUARD] __attribute__((__aligned__(64)));

static const struct ored_simd *units[MAX_UNITS];
static u32 count;

/* Half of the sums are of nothing but zeros, whose signs matter. */
static void fill_zeros(u8 *p, size_t bytes, u8 dtype)
{
	u32 size = ored_dtype_size(dtype);
	size_t i;

	memset(p, 0, bytes);
	for (i = 0; i + size <= bytes; i += size)
		p[i + size - 1] = tap_below(8) ? 0x80 : 0;
}

/* Mostly like gradients, so that sums aren't all special; now and then anything */
static void fill(u8 *p, size_t bytes, u8 dtype, bool tame)
{
	u32 size = ored_dtype_size(dtype);
	size_t i;

	for (i = 0; i + size <= bytes; i += size) {
		u64 r = tap_random();
		bool any = !tame && tap_below(64) == 0;

		if (!any && dtype == ORED_F32)
			r = (r & 0x807fffff) | (100 + (r >> 60)) << 23;
		else if (!any && dtype == ORED_F64)
			r = (r & 0x800fffffffffffffULL) | (u64)(1000 + tap_below(16)) << 52;
		else if (!any && dtype == ORED_F16)
			r = (r & 0x83ff) | (8 + (r >> 61)) << 10;
		else if (!any && dtype == ORED_BF16)
			r = (r & 0x807f) | (100 + (r >> 60)) << 7;
		else if (any && tap_below(2))	/* infinite, NaN, the largest, zero */
			r = r & 0x8000800080008000ULL ? ~(r & 0x8000800080008001ULL) :
							r & 0x8000800080008001ULL;
		memcpy(p + i, &r, size);
	}
}

/* One combination at one alignment, in all lengths; the reference once for all */
static void all_lengths(const struct ored_simd *unit, u8 dtype, u8 reduction, u32 shift,
			const unsigned long *present, bool in_place)
{
	u32 size = ored_dtype_size(dtype), n;
	struct ored_contribs c = {
		.own = own + 4 * shift,
		.staged = staged + 4 * (shift * 7 % SHIFTS),
		.stride = BYTES + 4 * (shift * 5 % SHIFTS),
		.rank = shift % RANKS, .nranks = RANKS, .present = present,
	};
	u8 *dst = got + GUARD + 4 * (shift * 3 % SHIFTS);
	u32 wrong = 0, step = getenv("ORED_STEP") ? (u32)atoi(getenv("ORED_STEP")) : 1;

	ored_reduce(want, &c, COUNT * size, dtype, reduction);
	for (n = 0; n <= COUNT; n += in_place ? 1 + tap_below(61) : step) {
		u32 len = n * size;

		memset(dst, CANARY, len + GUARD);
		if (in_place) {
			memcpy(dst, own + 4 * shift, len);
			c.own = dst;
		}
		unit->reduce(dst, &c, len, dtype, reduction);
		wrong += memcmp(dst, want, len) != 0;
		for (u32 i = 0; i < GUARD; i++)
			wrong += dst[len + i] != CANARY;
	}
	CHECK(!wrong, "%s, dtype %u, reduction %u, shift %u: %u wrong", unit->name, dtype,
	      reduction, shift, wrong);
}

static void all_shifts(u8 dtype, u8 reduction)
{
	static const unsigned long subset = 5;
	u32 u, shift;

	for (u = 0; u < count; u++) {
		for (shift = 0; shift < SHIFTS; shift++) {
			fill(own, sizeof(own), dtype, shift & 1);
			fill(staged, sizeof(staged), dtype, shift & 1);
			all_lengths(units[u], dtype, reduction, shift, NULL, false);
			all_lengths(units[u], dtype, reduction, shift, NULL, true);
			all_lengths(units[u], dtype, reduction, shift, &subset, true);
			fill_zeros(own, sizeof(own), dtype);
			fill_zeros(staged, sizeof(staged), dtype);
			all_lengths(units[u], dtype, reduction, shift, NULL, true);
		}
	}
}

TEST(simd__there_is_a_unit)
{
	count = unit_count(units);
	CHECK(count >= 1);
}

TEST(simd__every_length_and_alignment)
{
	u8 dtype, reduction;

	for (dtype = 0; dtype <= ORED_I64; dtype++)
		for (reduction = 0; reduction <= ORED_MAX; reduction++)
			all_shifts(dtype, reduction);
}

/* Every number of ranks, some of them missing, each of them the own one in turn */
TEST(simd__ranks)
{
	static u8 many[ORED_MAX_RANKS * 256];
	unsigned long present[BITS_TO_LONGS(ORED_MAX_RANKS)];
	u32 u, nranks, i;

	for (nranks = 1; nranks <= ORED_MAX_RANKS; nranks++) {
		u8 dtype = (u8)tap_below(ORED_I64 + 1);
		u8 reduction = (u8)tap_below(ORED_MAX + 1);
		struct ored_contribs c = {
			.own = own, .staged = many, .stride = 200,
			.rank = tap_below(nranks), .nranks = nranks,
			.present = nranks & 1 ? present : NULL,
		};

		for (i = 0; i < ARRAY_SIZE(present); i++)
			present[i] = tap_random();
		__set_bit(tap_below(nranks), present);
		fill(own, 200, dtype, nranks & 2);
		fill(many, sizeof(many), dtype, nranks & 2);
		i = ored_reduce(want, &c, 200, dtype, reduction);
		for (u = 0; u < count; u++) {
			CHECK_EQ(units[u]->reduce(got, &c, 200, dtype, reduction), i);
			CHECK(!memcmp(got, want, 200), "%s, dtype %u, reduction %u, %u ranks",
			      units[u]->name, dtype, reduction, nranks);
		}
	}
}

TEST(simd__nobody)
{
	unsigned long none = 0;
	struct ored_contribs c = {
		.own = own, .staged = staged, .nranks = 2, .present = &none,
	};
	u32 u;

	for (u = 0; u < count; u++) {
		memset(got, CANARY, 64);
		CHECK_EQ(units[u]->reduce(got, &c, 64, ORED_F32, ORED_MEAN), 0);
		CHECK_EQ(got[0], CANARY);
	}
}

TAP_MAIN
