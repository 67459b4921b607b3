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

TAP_MAIN
