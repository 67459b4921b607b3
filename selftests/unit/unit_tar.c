// SPDX-License-Identifier: GPL-2.0
/* How buckets are cut: nothing twice, nothing left out, no shard too long. */

#include "tap.h"
#include "../../kmod/core/tar.h"
#include "../../kmod/core/wire.h"
#include "../../uapi/linux/ored.h"

/* What must hold for any bucket, without walking all chunks */
static void check_shards(const struct ored_map *map)
{
	u64 bytes = 0, chunks = 0;
	u32 rank, least = ~0U, most = 0;

	for (rank = 0; rank < map->nranks; rank++) {
		u32 count = ored_map_count(map, rank);
		u64 shard = ored_map_shard_bytes(map, rank);

		CHECK_EQ(ored_map_first(map, rank), chunks);
		CHECK(shard <= (u64)count * map->payload);
		CHECK(!count == !shard);
		CHECK(!count || shard > (u64)(count - 1) * map->payload);
		least = min(least, count);
		most = max(most, count);
		chunks += count;
		bytes += shard;
	}
	CHECK_EQ(chunks, map->chunks);
	CHECK_EQ(bytes, map->bytes);
	CHECK(most - least <= 1);
}

/* Walks the chunks: each starts where the last one ended. */
static void check_chunks(const struct ored_map *map)
{
	u64 at = 0;
	u32 chunk;

	for (chunk = 0; chunk < map->chunks; chunk++) {
		u32 len = ored_map_length(map, chunk);

		CHECK_EQ(ored_map_offset(map, chunk), at);
		CHECK(len > 0 && len <= map->payload);
		CHECK(len == map->payload || chunk == map->chunks - 1);
		at += len;
	}
	CHECK_EQ(at, map->bytes);
}

TEST(map__small_buckets)
{
	static const u32 payload[] = { 512, 1432, 8936 };
	struct ored_map map;
	u32 p, nranks, bytes;

	for (p = 0; p < ARRAY_SIZE(payload); p++) {
		for (nranks = 1; nranks <= 9; nranks++) {
			for (bytes = 1; bytes < 20 * payload[p]; bytes += 61) {
				ored_map_init(&map, bytes, payload[p], nranks);
				check_shards(&map);
				check_chunks(&map);
			}
		}
	}
}

/* One byte, one element, and one off from every limit that there is */
TEST(map__limits)
{
	u32 nranks, k, payload = 1432;
	struct ored_map map;
	int d;

	for (nranks = 1; nranks <= 256; nranks = nranks < 16 ? nranks + 1 : nranks * 2) {
		for (k = 1; k <= 3 * nranks; k++) {
			for (d = -8; d <= 8; d += 4) {
				ored_map_init(&map, k * payload + (u32)d, payload,
					      nranks);
				check_shards(&map);
				check_chunks(&map);
				CHECK_EQ(map.chunks, k + (d > 0));
			}
		}
		ored_map_init(&map, 1, payload, nranks);
		CHECK_EQ(ored_map_count(&map, 0), 1);
		check_shards(&map);
	}
}

TEST(map__random_buckets)
{
	struct ored_map map;
	u32 i;

	for (i = 0; i < 3000; i++) {
		u32 bits = 1 + tap_below(30);

		ored_map_init(&map, 1 + tap_below(1U << bits),
			      512 + 8 * tap_below(8128), 1 + tap_below(256));
		check_shards(&map);
		if (map.chunks < 5000)
			check_chunks(&map);
	}
}

/* The largest bucket in the smallest chunks still fits a packet's fields. */
TEST(map__largest)
{
	static const u32 nranks[] = { 2, 3, 7, 8, 255, 256 };
	struct ored_map map;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(nranks); i++) {
		ored_map_init(&map, ORED_MAX_BUCKET, ORED_PAYLOAD_MIN, nranks[i]);
		check_shards(&map);
		CHECK(ored_map_count(&map, 0) - 1 < 1U << ORED_CHUNK_BITS);
		CHECK_EQ(ored_map_offset(&map, map.chunks - 1),
			 ORED_MAX_BUCKET - ORED_PAYLOAD_MIN);
		CHECK_EQ(ored_map_length(&map, map.chunks - 1), ORED_PAYLOAD_MIN);
	}
}

/* --- 2D TAR ------------------------------------------------------------------ */

#define MAX_2D	48

/* How often each rank's contribution is in what a rank holds of a shard */
static u32 held[MAX_2D][MAX_2D][MAX_2D];	/* by holder, shard, contributor */
static u32 before[MAX_2D][MAX_2D][MAX_2D];

/* A round: all send what they held before it. */
static void play_round(const struct ored_tar2d *t, u32 round)
{
	u32 rank, r, heard[MAX_2D] = {};

	memcpy(before, held, sizeof(held));
	for (rank = 0; rank < t->nranks; rank++) {
		struct ored_tar2d_turn turn, other;

		ored_tar2d_turn(t, rank, round, &turn);
		CHECK(turn.to < t->nranks && turn.from < t->nranks);
		CHECK(turn.to != rank && turn.sent < t->size && turn.heard < t->size);
		heard[turn.to]++;
		/* Both ends see it alike. */
		ored_tar2d_turn(t, turn.to, round, &other);
		CHECK_EQ(other.from, rank);
		CHECK_EQ(other.heard, turn.sent);
		CHECK_EQ(other.stage, turn.stage);
		/* Only the middle stage crosses, and only between places. */
		if (turn.stage == ORED_TAR2D_ACROSS)
			CHECK(turn.to % t->size == rank % t->size);
		else
			CHECK_EQ(turn.to / t->size, rank / t->size);
		for (r = 0; r < t->nranks; r++) {
			u32 *at = &held[turn.to][turn.sent][r];

			if (turn.stage == ORED_TAR2D_SCATTER)	/* one contribution */
				*at += r == rank;
			else if (turn.stage == ORED_TAR2D_ACROSS) /* a subgroup's sum */
				*at += r / t->size == rank / t->size ?
				       before[rank][turn.sent][r] : 0;
			else			/* a whole sum, in place of the own */
				*at = before[rank][turn.sent][r];
		}
	}
	for (rank = 0; rank < t->nranks; rank++)
		CHECK_EQ(heard[rank], 1);
}

/* In the end everybody holds every contribution to every shard, once. */
static void play(const struct ored_tar2d *t)
{
	u32 rank, shard, r, round;

	memset(held, 0, sizeof(held));
	for (rank = 0; rank < t->nranks; rank++)
		held[rank][rank % t->size][rank] = 1;
	for (round = 0; round < ored_tar2d_rounds(t); round++)
		play_round(t, round);
	for (rank = 0; rank < t->nranks; rank++)
		for (shard = 0; shard < t->size; shard++)
			for (r = 0; r < t->nranks; r++)
				CHECK_EQ(held[rank][shard][r], 1);
}

TEST(tar2d__every_contribution_once)
{
	u32 nranks, groups;
	struct ored_tar2d t;

	for (nranks = 1; nranks <= MAX_2D; nranks++) {
		for (groups = 1; groups <= nranks; groups++) {
			if (nranks % groups) {
				CHECK_EQ(ored_tar2d_init(&t, nranks, groups), -EINVAL);
				continue;
			}
			CHECK_EQ(ored_tar2d_init(&t, nranks, groups), 0);
			CHECK_EQ(ored_tar2d_rounds(&t), 2 * (nranks / groups - 1) + groups - 1);
			if (nranks <= 12 || groups == 4)
				play(&t);
		}
	}
	CHECK_EQ(ored_tar2d_init(&t, 8, 0), -EINVAL);
	CHECK_EQ(ored_tar2d_init(&t, 0, 1), -EINVAL);
	/* 64 ranks in 8 subgroups: 21 rounds instead of 126 */
	CHECK_EQ(ored_tar2d_init(&t, 64, 8), 0);
	CHECK_EQ(ored_tar2d_rounds(&t), 21);
}

TAP_MAIN
