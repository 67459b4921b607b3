// SPDX-License-Identifier: GPL-2.0
/* What a receiver knows of a flow, against a model that keeps one byte each. */

#include <pthread.h>

#include "tap.h"
#include "../../kmod/core/chunkmap.h"

#define ROOM	5000

struct model {
	struct ored_chunkmap map;
	u8 *there;
};

static void start(struct model *m, u32 room, u32 count)
{
	memset(m, 0, sizeof(*m));
	m->map.bits = malloc(BITS_TO_LONGS(room) * sizeof(long));
	m->there = calloc(1, room ? room : 1);
	if (!m->map.bits || !m->there)
		abort();
	/* What the memory held before mustn't matter. */
	memset(m->map.bits, 0xff, BITS_TO_LONGS(room) * sizeof(long));
	m->map.room = room;
	ored_chunkmap_reset(&m->map, room);
	m->map.count = count;
}

static void stop(struct model *m)
{
	free(m->map.bits);
	free(m->there);
}

static void arrive(struct model *m, u32 chunk)
{
	CHECK_EQ(ored_chunkmap_claim(&m->map, chunk), !m->there[chunk]);
	m->there[chunk] = 1;
	ored_chunkmap_arrived(&m->map, chunk);
}

static u32 model_base(const struct model *m)
{
	u32 base = 0;

	while (base < m->map.count && m->there[base])
		base++;
	return base;
}

static u32 model_top(const struct model *m)
{
	u32 top = m->map.count;

	while (top && !m->there[top - 1])
		top--;
	return top;
}

static void check_bits(struct model *m, u32 first, const u8 *bits, u32 n)
{
	u32 i, wrong = 0;

	CHECK_EQ(n % 64, 0);
	CHECK(n <= ORED_ACK_BITS);
	for (i = 0; i < n; i++) {
		bool bit = bits[i / 8] >> (i % 8) & 1;
		bool want = first + i < m->map.count && m->there[first + i];

		wrong += bit != want;
	}
	CHECK_EQ(wrong, 0);
	/* Only a full one may leave something out. */
	CHECK(n == ORED_ACK_BITS || first + n >= model_top(m));
}

/* Takes an ACK of the latest arrivals @low to @high and checks all about it. */
static void check_ack(struct model *m, u32 low, u32 high)
{
	u8 *bits = malloc(ORED_ACK_BITS / 8);
	u32 first = ~0U, n = ored_chunkmap_ack(&m->map, &first, bits);
	u32 base = model_base(m);

	CHECK_EQ(m->map.base, base);
	CHECK_EQ(first % 64, 0);
	CHECK(first <= low || first <= base, "first %u, low %u", first, low);
	CHECK(first >= base / 64 * 64);
	check_bits(m, first, bits, n);
	/* As much of the news is told as fits beside the base, else its start. */
	CHECK(high <= base || high <= first + n || n == ORED_ACK_BITS);
	if (high <= base / 64 * 64 + ORED_ACK_BITS)
		CHECK_EQ(first, base / 64 * 64);
	else if (high - low <= ORED_ACK_BITS - 64)
		CHECK(high <= first + n);
	ored_chunkmap_acked(&m->map);
	CHECK_EQ(m->map.unacked, 0);
	free(bits);
}

TEST(chunkmap_claim__once)
{
	struct model m;
	u32 i;

	start(&m, 130, 130);
	for (i = 0; i < 130; i++) {
		CHECK(ored_chunkmap_claim(&m.map, i));
		CHECK(!ored_chunkmap_claim(&m.map, i));
	}
	stop(&m);
}

TEST(chunkmap_complete__in_any_order)
{
	u32 count, i, step;
	struct model m;

	for (count = 1; count < 300; count += 7) {
		start(&m, count, count);
		/* a step that is prime to all counts visits every chunk */
		for (step = 307, i = 0; i < count; i++) {
			CHECK(!ored_chunkmap_complete(&m.map));
			arrive(&m, i * step % count);
		}
		CHECK(ored_chunkmap_complete(&m.map));
		CHECK_EQ(m.map.base, count);
		stop(&m);
	}
}

/* A rank whose shard is empty has nothing to wait for. */
TEST(chunkmap_complete__of_nothing)
{
	u8 bits[ORED_ACK_BITS / 8];
	struct model m;
	u32 first;

	start(&m, 64, 0);
	CHECK(ored_chunkmap_complete(&m.map));
	CHECK_EQ(ored_chunkmap_ack(&m.map, &first, bits), 0);
	CHECK_EQ(first, 0);
	stop(&m);
}

/* Claimed, but not yet said to have arrived: the base may not pass the top. */
TEST(chunkmap_complete__claims_ahead)
{
	struct model m;
	u32 i;

	start(&m, 200, 200);
	for (i = 0; i < 200; i++)
		ored_chunkmap_claim(&m.map, i);
	ored_chunkmap_arrived(&m.map, 9);
	CHECK(!ored_chunkmap_complete(&m.map));
	CHECK_EQ(m.map.base, 10);
	stop(&m);
}

/* The next op reuses the memory and clears what was used, nothing beyond. */
TEST(chunkmap_reset__clears_what_was_used)
{
	struct model m;
	u32 used, i;

	for (used = 0; used <= 200; used++) {
		start(&m, 200, 200);
		for (i = 0; i < used; i++)
			arrive(&m, i);
		ored_chunkmap_reset(&m.map, used);
		memset(m.there, 0, 200);
		m.map.count = 200;
		CHECK_EQ(m.map.base, 0);
		CHECK_EQ(m.map.top, 0);
		CHECK_EQ(m.map.unacked, 0);
		for (i = 0; i < 200; i++)
			CHECK(ored_chunkmap_claim(&m.map, i));
		stop(&m);
	}
	start(&m, 100, 100);
	ored_chunkmap_reset(&m.map, ~0U);
	CHECK(ored_chunkmap_claim(&m.map, 99));
	stop(&m);
}

TEST(chunkmap_ack__every_single_chunk)
{
	struct model m;
	u32 chunk;

	for (chunk = 0; chunk < ROOM; chunk += chunk < 1200 ? 1 : 97) {
		start(&m, ROOM, ROOM);
		arrive(&m, chunk);
		check_ack(&m, chunk, chunk + 1);
		stop(&m);
	}
}

TEST(chunkmap_ack__every_hole)
{
	struct model m;
	u32 hole, i;

	for (hole = 0; hole < 1500; hole += 11) {
		start(&m, 1500, 1500);
		for (i = 0; i < 1500; i++) {
			if (i != hole)
				arrive(&m, i);
		}
		check_ack(&m, 0, 1500);
		CHECK_EQ(m.map.base, hole);
		arrive(&m, hole);
		check_ack(&m, hole, hole + 1);
		CHECK(ored_chunkmap_complete(&m.map));
		stop(&m);
	}
}

TEST(chunkmap_ack_from__everywhere)
{
	u8 *bits = malloc(ORED_ACK_BITS / 8);
	struct model m;
	u32 first, i;

	start(&m, ROOM, ROOM);
	for (i = 0; i < ROOM / 2; i++)
		arrive(&m, tap_below(ROOM - 300));
	for (first = 0; first < ROOM + 2000; first += 64) {
		u32 n = ored_chunkmap_ack_from(&m.map, first, bits);

		CHECK_EQ(!n, first >= model_top(&m));
		check_bits(&m, first, bits, n);
	}
	free(bits);
	stop(&m);
}

/* Bits beyond the room, of which there may be up to 63, are zeros. */
TEST(chunkmap_ack_from__room_of_any_length)
{
	u8 *bits = malloc(ORED_ACK_BITS / 8);
	struct model m;
	u32 room;

	for (room = 1; room < 1100; room++) {
		start(&m, room, room);
		arrive(&m, room - 1);
		check_bits(&m, 0, bits, ored_chunkmap_ack_from(&m.map, 0, bits));
		stop(&m);
	}
	free(bits);
}

TEST(chunkmap_ack__random_arrivals)
{
	u32 round, i;

	for (round = 0; round < 400; round++) {
		u32 count = 1 + tap_below(round & 1 ? ROOM : 200);
		u32 spread = 1 + tap_below(3000), at = 0;
		u32 low = ~0U, high = 0, unacked = 0;
		struct model m;

		start(&m, ROOM, count);
		for (i = 0; i < 2 * count; i++) {
			u32 chunk = min(at + tap_below(spread), count - 1);

			at += tap_below(3);
			arrive(&m, chunk);
			low = min(low, chunk);
			high = max(high, chunk + 1);
			CHECK_EQ(m.map.unacked, ++unacked);
			if (!tap_below(20)) {
				check_ack(&m, low, high);
				low = ~0U;
				high = 0;
				unacked = 0;
			}
		}
		CHECK_EQ(ored_chunkmap_complete(&m.map), model_base(&m) == count);
		stop(&m);
	}
}

#define THREADS	4

static struct ored_chunkmap shared;
static u32 won[THREADS][ROOM];

static void *claim_all(void *arg)
{
	u32 *mine = arg, i;

	for (i = 0; i < ROOM; i++)
		mine[i] = ored_chunkmap_claim(&shared, i);
	return NULL;
}

/* However many try at once, one of them gets each chunk. */
TEST(chunkmap_claim__many_threads)
{
	pthread_t thread[THREADS];
	struct model m;
	u32 round, t, i;

	for (round = 0; round < 20; round++) {
		start(&m, ROOM, ROOM);
		shared = m.map;
		for (t = 0; t < THREADS; t++)
			CHECK_EQ(pthread_create(&thread[t], NULL, claim_all,
						won[t]), 0);
		for (t = 0; t < THREADS; t++)
			pthread_join(thread[t], NULL);
		for (i = 0; i < ROOM; i++)
			CHECK_EQ(won[0][i] + won[1][i] + won[2][i] + won[3][i], 1);
		stop(&m);
	}
}

TAP_MAIN
