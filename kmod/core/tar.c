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
	map->unit = 0;
	map->chunks = DIV_ROUND_UP(bytes, payload);
	map->longest = DIV_ROUND_UP(map->chunks, nranks);
	map->quot = map->chunks / nranks;
	map->rem = map->chunks % nranks;
}

/**
 * ored_map_deal() - cuts a bucket by elements
 * @map: what to fill in
 * @bytes: length of the bucket, a multiple of @unit, 1 to ORED_MAX_BUCKET
 * @payload: bytes of a full chunk, a multiple of @unit, not 0
 * @nranks: ranks, not 0
 * @unit: bytes of an element, not 0
 *
 * No shard has more chunks than the longest of ored_map_init() for the same
 * bucket has.
 */
void ored_map_deal(struct ored_map *map, u32 bytes, u32 payload, u32 nranks, u32 unit)
{
	map->bytes = bytes;
	map->payload = payload;
	map->nranks = nranks;
	map->unit = unit;
	map->quot = bytes / unit / nranks;
	map->rem = bytes / unit % nranks;
	map->longest = DIV_ROUND_UP(ored_map_dealt(map, 0), payload);
	map->chunks = map->longest * nranks;
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

	if (map->unit)
		return ored_map_dealt(map, rank);
	if (!count)
		return 0;
	start = (u64)ored_map_first(map, rank) * map->payload;
	end = start + (u64)count * map->payload;
	return min_t(u64, end, map->bytes) - start;
}

/**
 * ored_tar2d_init() - divides a group
 * @t: what to fill in
 * @nranks: ranks
 * @groups: subgroups
 *
 * Return: 0; -EINVAL: the ranks can't be divided like that
 */
int ored_tar2d_init(struct ored_tar2d *t, u32 nranks, u32 groups)
{
	if (!groups || !nranks || nranks % groups)
		return -EINVAL;
	t->nranks = nranks;
	t->groups = groups;
	t->size = nranks / groups;
	return 0;
}

/**
 * ored_tar2d_turn() - what a rank does in a round
 * @t: how the group is divided
 * @rank: who
 * @round: below ored_tar2d_rounds()
 * @turn: receives it
 */
void ored_tar2d_turn(const struct ored_tar2d *t, u32 rank, u32 round,
		     struct ored_tar2d_turn *turn)
{
	u32 place = rank % t->size, first = rank - place, step;

	if (round >= t->size - 1 && round < t->size - 1 + t->groups - 1) {
		step = (round - (t->size - 1) + 1) * t->size;
		turn->stage = ORED_TAR2D_ACROSS;
		turn->to = (rank + step) % t->nranks;
		turn->from = (rank + t->nranks - step) % t->nranks;
		turn->sent = place;
		turn->heard = place;
		return;
	}
	turn->stage = round < t->size - 1 ? ORED_TAR2D_SCATTER : ORED_TAR2D_GATHER;
	step = turn->stage == ORED_TAR2D_SCATTER ? round + 1 :
	       round - (t->size - 1) - (t->groups - 1) + 1;
	turn->to = first + (place + step) % t->size;
	turn->from = first + (place + t->size - step) % t->size;
	turn->sent = turn->stage == ORED_TAR2D_SCATTER ? turn->to - first : place;
	turn->heard = turn->stage == ORED_TAR2D_SCATTER ? place : turn->from - first;
}
