// SPDX-License-Identifier: GPL-2.0

#include "tar.h"

/**
 * ored_map_init() - cuts a bucket
 * @map: what to fill in
 * @bytes: length of the bucket, 1 to ORED_MAX_BUCKET
 * @payload: bytes of a full chunk, not 0
 * @nranks: ranks, not 0
 */
void ored_map_init(struct ored_map *map, u32 bytes, u32 payload, u32 nranks)
{
	map->bytes = bytes;
	map->payload = payload;
	map->nranks = nranks;
	map->chunks = DIV_ROUND_UP(bytes, payload);
	map->quot = map->chunks / nranks;
	map->rem = map->chunks % nranks;
}

/**
 * ored_map_shard_bytes() - length of a rank's shard
 * @map: how the bucket is cut
 * @rank: whose shard
 */
u64 ored_map_shard_bytes(const struct ored_map *map, u32 rank)
{
	u32 count = ored_map_count(map, rank);
	u64 start, end;

	if (!count)
		return 0;
	start = (u64)ored_map_first(map, rank) * map->payload;
	end = start + (u64)count * map->payload;
	return min_t(u64, end, map->bytes) - start;
}
