// SPDX-License-Identifier: GPL-2.0

#include "chunkmap.h"

/**
 * ored_chunkmap_reset() - nothing has arrived
 * @map: the flow's, with @bits and @room set
 * @used: chunks from it on have never been claimed; all bits below are cleared
 */
void ored_chunkmap_reset(struct ored_chunkmap *map, u32 used)
{
	memset(map->bits, 0, BITS_TO_LONGS(min(used, map->room)) * sizeof(long));
	map->count = 0;
	map->base = 0;
	map->top = 0;
	ored_chunkmap_acked(map);
}

/**
 * ored_chunkmap_arrived() - notes a chunk for the next ACK
 * @map: the flow's
 * @chunk: claimed just now, or a duplicate
 */
void ored_chunkmap_arrived(struct ored_chunkmap *map, u32 chunk)
{
	map->top = max(map->top, chunk + 1);
	map->low = map->high ? min(map->low, chunk) : chunk;
	map->high = max(map->high, chunk + 1);
	map->unacked++;
}

static void advance(struct ored_chunkmap *map)
{
	while (map->base < map->top) {
		u32 bit = map->base % BITS_PER_LONG;
		unsigned long word = READ_ONCE(map->bits[map->base / BITS_PER_LONG]);
		unsigned long zeros = ~word >> bit;

		if (zeros) {
			map->base += (u32)__ffs(zeros);
			break;
		}
		map->base += BITS_PER_LONG - bit;
	}
	map->base = min(map->base, map->top);
}

/**
 * ored_chunkmap_complete() - have all chunks of the op arrived?
 * @map: the flow's
 */
bool ored_chunkmap_complete(struct ored_chunkmap *map)
{
	advance(map);
	return map->base >= map->count;
}

/**
 * ored_chunkmap_ack_from() - the bits of an ACK, from a given chunk on
 * @map: the flow's
 * @first: a multiple of 64
 * @bits: room for ORED_ACK_BITS / 8 bytes
 *
 * Return: number of bits, a multiple of 64 up to ORED_ACK_BITS; 0 if nothing
 * has arrived from @first on
 */
u32 ored_chunkmap_ack_from(struct ored_chunkmap *map, u32 first, u8 *bits)
{
	u32 n, i;

	advance(map);
	if (first >= map->top)
		return 0;
	n = min_t(u32, (map->top - first + 63) / 64 * 64, ORED_ACK_BITS);
	for (i = 0; i < n; i += 32) {
		u32 at = first + i, word = 0;

		if (at < map->room)
			word = (u32)(READ_ONCE(map->bits[at / BITS_PER_LONG]) >>
				     (at % BITS_PER_LONG));
		put_unaligned_le32(word, bits + i / 8);
	}
	return n;
}

/**
 * ored_chunkmap_ack() - the bits of an ACK that tells of the latest arrivals
 * @map: the flow's
 * @first: receives the chunk of the first bit
 * @bits: room for ORED_ACK_BITS / 8 bytes
 *
 * Starts at the base, so that every hole is shown, unless the latest arrivals
 * are too far above it.
 *
 * Return: number of bits, as ored_chunkmap_ack_from()
 */
u32 ored_chunkmap_ack(struct ored_chunkmap *map, u32 *first, u8 *bits)
{
	advance(map);
	*first = map->base / 64 * 64;
	if (map->high > *first + ORED_ACK_BITS)
		*first = max(*first, min(map->low, map->high - ORED_ACK_BITS + 63) / 64 * 64);
	return ored_chunkmap_ack_from(map, *first, bits);
}

/**
 * ored_chunkmap_acked() - an ACK has been made of what arrived
 * @map: the flow's
 */
void ored_chunkmap_acked(struct ored_chunkmap *map)
{
	map->low = 0;
	map->high = 0;
	map->unacked = 0;
}
