/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What has arrived of a flow, as its receiver keeps it: one bit per chunk.
 *
 * A bit is claimed, atomically, by the one packet that may place the chunk;
 * any other with the same chunk is a duplicate. That needs no lock, so any
 * number of processors may receive at once. The struct itself, from which
 * ACKs are made, is the caller's to serialise.
 */
#ifndef ORED_CORE_CHUNKMAP_H
#define ORED_CORE_CHUNKMAP_H

#include "shim.h"
#include "wire.h"

/**
 * struct ored_chunkmap - one flow's receiver
 * @bits: claimed chunks, room for @room of them
 * @room: chunks that fit
 * @count: chunks of this op; chunks from it on are out of bounds
 * @base: all chunks below it have arrived
 * @top: no chunk from it on has arrived
 * @low: lowest chunk that has arrived since the last ACK
 * @high: highest such, plus 1; 0: none
 * @unacked: how many
 */
struct ored_chunkmap {
	unsigned long	*bits;
	u32		room;
	u32		count;
	u32		base;
	u32		top;
	u32		low;
	u32		high;
	u32		unacked;
};

/**
 * ored_chunkmap_claim() - may this packet place its chunk?
 * @map: the flow's
 * @chunk: below @count
 *
 * Return: false for a duplicate
 */
static inline bool ored_chunkmap_claim(struct ored_chunkmap *map, u32 chunk)
{
	return !test_and_set_bit(chunk, map->bits);
}

void ored_chunkmap_reset(struct ored_chunkmap *map, u32 used);
void ored_chunkmap_arrived(struct ored_chunkmap *map, u32 chunk);
bool ored_chunkmap_complete(struct ored_chunkmap *map);
u32 ored_chunkmap_ack(struct ored_chunkmap *map, u32 *first, u8 *bits);
u32 ored_chunkmap_ack_from(struct ored_chunkmap *map, u32 first, u8 *bits);
void ored_chunkmap_acked(struct ored_chunkmap *map);

#endif /* ORED_CORE_CHUNKMAP_H */
