/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Taking over a generation, or some of its blocks: which chunks to ask for next,
 * what has come, what is lost. Selective repeat; who wants the chunks keeps all
 * state.
 *
 * A generation is cut into blocks of ORED_AREA_BLOCK bytes, each with a CRC32C, and a
 * block into chunks, one packet each. A few blocks are under way at a time. Chunks are
 * asked for several at a time, all of one word of one block. What was asked for is
 * kept in order, so that the chunks that are lost are found at its head: those that
 * were asked for sufficiently earlier than one that has come (RACK, RFC 8985).
 * A block that is whole is verified; if it is damaged it is asked for again as a whole,
 * ORED_PULL_TRIES times.
 *
 * The caller serialises; nothing here allocates.
 */
#ifndef ORED_CORE_PULL_H
#define ORED_CORE_PULL_H

#include "shim.h"

#define ORED_PULL_WORDS		3
#define ORED_PULL_CHUNK_MIN	344	/* so that a block has ORED_PULL_WORDS words at most */
#define ORED_PULL_BLOCKS	64	/* under way */
#define ORED_PULL_ASKS		256	/* a power of two */
#define ORED_PULL_TRIES		3

/**
 * struct ored_pull_block - a block that is under way
 * @want: chunks that are to be asked for
 * @out: chunks that have been asked for and haven't come
 * @crc: what the first chunk said that it must be
 * @tries: how often it was whole and damaged
 * @whole: verified
 * @known: @crc is
 */
struct ored_pull_block {
	u64	want[ORED_PULL_WORDS];
	u64	out[ORED_PULL_WORDS];
	u32	crc;
	u8	tries;
	bool	whole;
	bool	known;
};

/**
 * struct ored_pull_ask - what is asked for at once
 * @block: of which block
 * @clock: when, microseconds
 * @mask: chunks of @word
 * @word: chunk @word * 64 is the mask's first
 */
struct ored_pull_ask {
	u32	block;
	u32	clock;
	u64	mask;
	u8	word;
};

/**
 * struct ored_pull - the state of taking over
 * @bytes: of the generation
 * @chunk: length of a chunk
 * @end: first block that isn't wanted
 * @base: all wanted blocks below it are whole
 * @next: no block from it on is under way
 * @nwant: chunks of those under way that are to be asked for
 * @inflight: chunks that have been asked for and haven't come
 * @head: oldest ask
 * @tail: where the next goes
 * @block: block b is in place b % ORED_PULL_BLOCKS
 * @ask: what was asked for, in order
 * @chunks: that have come
 * @again: chunks that were asked for again
 * @duplicates: chunks that came twice
 * @damaged: blocks that were
 */
struct ored_pull {
	u64			bytes;
	u32			chunk;
	u32			end;
	u32			base;
	u32			next;
	u32			nwant;
	u32			inflight;
	u32			head;
	u32			tail;
	struct ored_pull_block	block[ORED_PULL_BLOCKS];
	struct ored_pull_ask	ask[ORED_PULL_ASKS];
	u64			chunks;
	u64			again;
	u64			duplicates;
	u64			damaged;
};

u32 ored_block_bytes(u64 bytes, u32 block);
u32 ored_block_chunks(u64 bytes, u32 block, u32 chunk);
u32 ored_chunk_bytes(u64 bytes, u32 block, u32 chunk, u32 index);

void ored_pull_begin(struct ored_pull *p, u64 bytes, u32 chunk, u32 first, u32 end);
void ored_pull_rechunk(struct ored_pull *p, u32 chunk);
bool ored_pull_next(struct ored_pull *p, u32 most, u32 clock, struct ored_pull_ask *ask);
int ored_pull_check(struct ored_pull *p, u32 block, u32 index, u32 len, u32 crc);
bool ored_pull_arrived(struct ored_pull *p, u32 block, u32 index);
int ored_pull_verified(struct ored_pull *p, u32 block, bool good);
u32 ored_pull_lost(struct ored_pull *p, u32 echo, u32 reorder, u32 *newest);
u32 ored_pull_give_up(struct ored_pull *p);

static inline bool ored_pull_complete(const struct ored_pull *p)
{
	return p->base == p->end;
}

#endif /* ORED_CORE_PULL_H */
