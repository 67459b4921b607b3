/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Transpose AllReduce: which rank owns which chunk of a bucket.
 *
 * A bucket is cut into chunks of one packet's payload (the last may be
 * shorter), and the chunks into one contiguous shard per rank, so that no
 * packet spans two owners. Shards differ by one chunk at the most; of a small
 * bucket some are empty.
 */
#ifndef ORED_CORE_TAR_H
#define ORED_CORE_TAR_H

#include "shim.h"

/**
 * struct ored_map - how one bucket is cut
 * @bytes: length of the bucket, not 0
 * @payload: bytes of a full chunk
 * @nranks: ranks, that is shards
 * @chunks: chunks in all
 * @quot: chunks of every shard
 * @rem: the first @rem shards have one more
 */
struct ored_map {
	u32	bytes;
	u32	payload;
	u32	nranks;
	u32	chunks;
	u32	quot;
	u32	rem;
};

void ored_map_init(struct ored_map *map, u32 bytes, u32 payload, u32 nranks);

/* Chunks of @rank's shard */
static inline u32 ored_map_count(const struct ored_map *map, u32 rank)
{
	return map->quot + (rank < map->rem);
}

/* First chunk of @rank's shard, counted over the bucket */
static inline u32 ored_map_first(const struct ored_map *map, u32 rank)
{
	return map->quot * rank + min(rank, map->rem);
}

/* Where chunk @chunk, counted over the bucket, starts in it */
static inline u32 ored_map_offset(const struct ored_map *map, u32 chunk)
{
	return chunk * map->payload;
}

/* Bytes of chunk @chunk, counted over the bucket */
static inline u32 ored_map_length(const struct ored_map *map, u32 chunk)
{
	return min(map->payload, map->bytes - ored_map_offset(map, chunk));
}

u64 ored_map_shard_bytes(const struct ored_map *map, u32 rank);

#endif /* ORED_CORE_TAR_H */
