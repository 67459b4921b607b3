// SPDX-License-Identifier: GPL-2.0
/*
 * The vector units against the reference, bit for bit: every dtype, reduction,
 * length and alignment; in emulators fewer and shorter ones. Built without sanitizers,
 * for the number; guards stand behind every result.
 */

#include <string.h>
#include "tap.h"
#include "units.h"
#include "../../uapi/linux/ored.h"

#define COUNT		4096		/* elements */
#define RANKS		3
#define LINE		64		/* bytes of a cache line: all places in it */
#define GUARD		64		/* bytes */
#define BYTES		(COUNT * 8)
#define CANARY		0xa5

static u8 own[BYTES + LINE] __attribute__((__aligned__(64)));
static u8 staged[RANKS * (BYTES + LINE)] __attribute__((__aligned__(64)));
static u8 want[BYTES + LINE] __attribute__((__aligned__(64)));
static u8 got[GUARD + BYTES + LINE + GUARD] __attribute__((__aligned__(64)));

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

/* What own data, ... are shifted by: as little as the dtype allows, but 4 bytes for F64 */
static u32 shift_bytes(u8 dtype)
{
	return ored_dtype_size(dtype) == 2 ? 2 : 4;
}

/*
 * One combination at one alignment, in all lengths; the reference once for all. 16-bit
 * elements have twice as many places: each length is tried at every other one of them.
 */
static void all_lengths(const struct ored_simd *unit, u8 dtype, u8 reduction, u32 shift,
			const unsigned long *present, bool in_place)
{
	u32 size = ored_dtype_size(dtype), step = shift_bytes(dtype), n;
	struct ored_contribs c = {
		.own = own + shift * step,
		.staged = staged + shift * 7 * step % LINE,
		.stride = BYTES + shift * 5 * step % LINE,
		.rank = shift % RANKS, .nranks = RANKS, .present = present,
	};
	u8 *dst = got + GUARD + shift * 3 * step % LINE;
	const u32 most = COUNT / tap_step(), among = in_place ? 61 : 2 * tap_step() - 1;
	const u32 least = size == 2 ? 2 : 1;
	u32 wrong = 0;

	ored_reduce(want, &c, most * size, dtype, reduction);
	for (n = shift / 2 % least; n <= most; n += least + tap_below(among)) {
		u32 len = n * size;

		memset(dst, CANARY, len + GUARD);
		if (in_place) {
			memcpy(dst, own + shift * step, len);
			c.own = dst;
		}
		unit_reduce(unit, dst, &c, len, dtype, reduction);
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
		for (shift = 0; shift < LINE / shift_bytes(dtype); shift++) {
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
			CHECK_EQ(unit_reduce(units[u], got, &c, 200, dtype, reduction), i);
			CHECK(!memcmp(got, want, 200), "%s, dtype %u, reduction %u, %u ranks",
			      units[u]->name, dtype, reduction, nranks);
		}
	}
}

/* Values that vectors can take the mean of, but for an infinity in element @at */
static void fill_but_for(u8 *p, u32 n, u8 dtype, u32 at)
{
	static const u64 infinite[] = {
		[ORED_F32] = 0x7f800000, [ORED_F64] = 0x7ff0000000000000ULL,
		[ORED_F16] = 0x7c00, [ORED_BF16] = 0x7f80,
	};
	u32 size = ored_dtype_size(dtype);

	fill(p, n * size, dtype, true);
	memcpy(p + at * size, &infinite[dtype], size);
}

/* A mean of @n elements, the @at-th of which is infinite: vectors go up to that one. */
static void stops_at(const struct ored_simd *unit, u8 dtype, u32 n, u32 at, bool in_place)
{
	u32 size = ored_dtype_size(dtype), done, len = n * size, i;
	struct ored_contribs c = {
		.own = own, .staged = staged, .stride = len, .nranks = RANKS,
	};
	u8 *dst = in_place ? own : got;
	bool touched = false;

	fill_but_for(own, n, dtype, at);
	fill(staged, 2 * len, dtype, true);
	ored_reduce(want, &c, len, dtype, ORED_MEAN);
	memset(got, CANARY, len);
	if (in_place)
		memcpy(got, own, len);
	done = unit->reduce(dst, &c, len, dtype, ORED_MEAN);
	CHECK(done <= at * size && at * size - done < 64 && done % size == 0 &&
	      !memcmp(dst, want, done), "%s, dtype %u: %u bytes done before element %u",
	      unit->name, dtype, done, at);
	for (i = done; i < len && !touched; i++)
		touched = dst[i] != (in_place ? got[i] : CANARY);
	CHECK(!touched, "%s, dtype %u, element %u of %u: byte %u is touched", unit->name, dtype,
	      at, n, i);
}

TEST(simd__stops_at_what_is_not_for_vectors)
{
	u32 u, n, at;
	u8 dtype;

	for (u = 0; u < count; u++)
		for (dtype = 0; dtype <= ORED_BF16; dtype++)
			for (n = 1; n < 300; n += 1 + tap_below(20))
				for (at = 0; at < n; at++)
					stops_at(units[u], dtype, n, at, at & 1);
}

static const struct ored_simd *asked;
static u32 asks, longest;
static bool held, refuse_some;

static bool ask(void)
{
	CHECK(!held);
	held = !refuse_some || tap_below(2);
	return held;
}

static void released(void)
{
	CHECK(held);
	held = false;
}

static u32 asked_reduce(void *dst, const struct ored_contribs *c, u32 len, u8 dtype,
			u8 reduction)
{
	CHECK(held);
	asks++;
	longest = len > longest ? len : longest;
	return asked->reduce(dst, c, len, dtype, reduction);
}

static const struct ored_reduce_unit asking = {
	.reduce = asked_reduce, .begin = ask, .end = released,
};

/* The unit comes and goes, and stops now and then: the same bits. */
TEST(simd__both_in_turns)
{
	struct ored_contribs c = {
		.own = own, .staged = staged, .stride = BYTES, .nranks = RANKS,
	};
	u32 u, turn;

	refuse_some = true;
	for (u = 0; u < count; u++) {
		asked = units[u];
		for (turn = 0; turn < 200; turn++) {
			u8 dtype = (u8)tap_below(ORED_I64 + 1);
			u8 reduction = (u8)tap_below(ORED_MAX + 1);
			u32 len = tap_below(COUNT) * ored_dtype_size(dtype);

			fill(own, len, dtype, turn & 1);
			fill(staged, sizeof(staged), dtype, turn & 1);
			ored_reduce(want, &c, len, dtype, reduction);
			CHECK_EQ(ored_reduce_by(&asking, got, &c, len, dtype, reduction), RANKS);
			CHECK(!held && !memcmp(got, want, len), "%s, dtype %u, reduction %u",
			      asked->name, dtype, reduction);
		}
	}
	refuse_some = false;
}

/* Neither is the unit asked for too much, nor too often where it is of no use. */
TEST(simd__how_often_it_is_asked)
{
	static u8 many[ORED_MAX_RANKS * BYTES];
	struct ored_contribs c = {
		.own = own, .staged = many, .stride = BYTES, .nranks = ORED_MAX_RANKS,
	};
	u32 u;

	for (u = 0; u < count; u++) {
		asked = units[u];
		asks = 0;
		longest = 0;
		memset(own, 0, BYTES);
		ored_reduce_by(&asking, got, &c, BYTES, ORED_F32, ORED_MEAN);
		CHECK_EQ(longest, ored_reduce_piece(ORED_MAX_RANKS));
		CHECK_EQ(asks, BYTES / longest);

		asks = 0;
		memset(own, 0xff, BYTES);	/* NaN */
		ored_reduce_by(&asking, got, &c, BYTES, ORED_F32, ORED_MEAN);
		CHECK(asks >= 2 && asks <= 8, "%s: %u times", asked->name, asks);

		asks = 0;
		ored_reduce_by(&asking, got, &c, BYTES, ORED_I32, ORED_MEAN);
		CHECK_EQ(asks, 0);
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
		CHECK_EQ(unit_reduce(units[u], got, &c, 64, ORED_F32, ORED_MEAN), 0);
		CHECK_EQ(got[0], CANARY);
	}
}

TAP_MAIN
