/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Transpose AllReduce: which rank owns which chunk of a bucket.
 *
 * A bucket is cut into chunks of one packet's payload (the last may be
 * shorter), and the chunks into one contiguous shard per rank, so that no
 * packet spans two owners. Shards differ by one chunk at the most; of a small
 * bucket some are empty.
 *
 * Where shards are the caller's own, as in a reduce-scatter, he can't be told to
 * care for payloads: there the elements are dealt out as evenly as they can be,
 * the first shards having one more where it doesn't come out even, and each shard
 * is cut into chunks of its own, of which the last may be shorter.
 *
 * In each stage everybody has something for everybody. A stage has a round for
 * each peer, in which nobody sends to, or hears from, two.
 */
#ifndef ORED_CORE_TAR_H
#define ORED_CORE_TAR_H

#include "shim.h"

/**
 * struct ored_map - how one bucket is cut
 * @bytes: length of the bucket, not 0
 * @payload: bytes of a full chunk
 * @nranks: ranks, that is shards
 * @unit: bytes of an element, where elements are dealt out; 0: chunks are
 * @longest: chunks of the longest shard
 * @chunks: chunks in all; where elements are dealt out, @longest for each shard,
 *	of which the last may not be there
 * @quot: chunks or elements of every shard
 * @rem: the first @rem shards have one more
 */
struct ored_map {
	u32	bytes;
	u32	payload;
	u32	nranks;
	u32	unit;
	u32	longest;
	u32	chunks;
	u32	quot;
	u32	rem;
};

void ored_map_init(struct ored_map *map, u32 bytes, u32 payload, u32 nranks);
void ored_map_deal(struct ored_map *map, u32 bytes, u32 payload, u32 nranks, u32 unit);

/* What every shard has, and one more if it is among the first */
static inline u32 ored_map_share(const struct ored_map *map, u32 rank)
{
	return map->quot + (rank < map->rem);
}

/* Where elements are dealt out: bytes of @rank's shard */
static inline u32 ored_map_dealt(const struct ored_map *map, u32 rank)
{
	return ored_map_share(map, rank) * map->unit;
}

/* Chunks of @rank's shard */
static inline u32 ored_map_count(const struct ored_map *map, u32 rank)
{
	if (map->unit)
		return DIV_ROUND_UP(ored_map_dealt(map, rank), map->payload);
	return ored_map_share(map, rank);
}

/* First chunk of @rank's shard, counted over the bucket */
static inline u32 ored_map_first(const struct ored_map *map, u32 rank)
{
	if (map->unit)
		return map->longest * rank;
	return map->quot * rank + min(rank, map->rem);
}

/* Where elements are dealt out: where @rank's shard starts in the bucket */
static inline u32 ored_map_start(const struct ored_map *map, u32 rank)
{
	return (map->quot * rank + min(rank, map->rem)) * map->unit;
}

/* Where chunk @chunk, counted over the bucket, starts in it */
static inline u32 ored_map_offset(const struct ored_map *map, u32 chunk)
{
	if (map->unit)
		return ored_map_start(map, chunk / map->longest) +
		       chunk % map->longest * map->payload;
	return chunk * map->payload;
}

/* Bytes of chunk @chunk, counted over the bucket, which is there */
static inline u32 ored_map_length(const struct ored_map *map, u32 chunk)
{
	u32 end = map->bytes;

	if (map->unit)
		end = ored_map_start(map, chunk / map->longest + 1);
	return min(map->payload, end - ored_map_offset(map, chunk));
}

u64 ored_map_shard_bytes(const struct ored_map *map, u32 rank);

/*
 * 2D TAR, for a group of N ranks that consists of G subgroups of S = N/G, where
 * what crosses between subgroups is dear. The bucket is cut into S shards.
 *   scatter   S - 1 rounds inside the subgroup: its sum of shard p at place p
 *   across    G - 1 rounds between ranks of the same place: each sends its
 *             subgroup's sum, and adds all G in the order of subgroups
 *   gather    S - 1 rounds inside the subgroup, of whole sums
 * 2(N/G - 1) + (G - 1) rounds in all.
 *
 * The simulated network runs it (selftests/unit/unit_across.c); the kernel runs 1D
 * only, since what is gained is small and what is lost is large. Measured there, at
 * 100 Mbit/s, 100 us, 1 ms between ops and a bound of 1.5 times the quiet time and four
 * delays, a packet being 1432 bytes: packets that a rank sends, mean time of an op in ms,
 * and contributions that don't count in the end while 1 % of packets are lost.
 *
 *	 N  bytes    1D: packets  time  uncounted   2D (G): packets  time  uncounted
 *	16  64 KiB          88    11.4     0.10 %  (4)        105   13.4     0.82 %
 *	64  64 KiB          92    16.6     1.13 %  (8)        125   15.8     0.30 %
 *	16   1 MiB        1398   172.1     0.00 %  (4)       1669  215.1     2.70 %
 *	32   1 MiB        1424   180.3     0.00 %  (4)       1576  196.1     0.05 %
 *	64   1 MiB        1458   190.3     0.00 %  (8)       1951  241.7     1.28 %
 *	64   4 KiB           6    11.9     4.45 %  (8)          8    3.0     2.06 %
 *
 * A sum that doesn't cross in time is a subgroup's, S contributions at once. With one
 * rank of 16 dead 1D does without 11.7 % of all contributions; 2D without 28.1 % in its
 * subgroup, where nobody has its shard, which is a quarter of the bucket. And who
 * isn't heard by all can't be told dead from late by all.
 *
 * What it would take: a third stage in packets and slots (sums of subgroups, with the
 * set of contributors of each chunk, since divisors differ by chunk), two seals in the
 * term, ranks that are known by hearsay, and the order of adding by subgroups, which
 * changes the bits of results.
 */

/* The stages of 2D TAR */
enum ored_tar2d_stage {
	ORED_TAR2D_SCATTER,
	ORED_TAR2D_ACROSS,
	ORED_TAR2D_GATHER,
};

/**
 * struct ored_tar2d - a group of subgroups
 * @nranks: N, ranks in all
 * @groups: G, subgroups of consecutive ranks
 * @size: N / G, ranks of each, that is shards
 */
struct ored_tar2d {
	u32	nranks;
	u32	groups;
	u32	size;
};

/**
 * struct ored_tar2d_turn - what one rank does in one round
 * @stage: enum ored_tar2d_stage
 * @to: rank that it sends to
 * @from: rank that it hears from
 * @sent: shard that it sends
 * @heard: shard that it hears
 */
struct ored_tar2d_turn {
	u32	stage;
	u32	to;
	u32	from;
	u32	sent;
	u32	heard;
};

int ored_tar2d_init(struct ored_tar2d *t, u32 nranks, u32 groups);
void ored_tar2d_turn(const struct ored_tar2d *t, u32 rank, u32 round,
		     struct ored_tar2d_turn *turn);

/* Rounds of a whole op */
static inline u32 ored_tar2d_rounds(const struct ored_tar2d *t)
{
	return 2 * (t->size - 1) + (t->groups - 1);
}

#endif /* ORED_CORE_TAR_H */
