// SPDX-License-Identifier: GPL-2.0

#include "../../uapi/linux/ored.h"
#include "pull.h"

/**
 * ored_block_bytes() - the length of a block
 * @bytes: of the generation
 * @block: which, not beyond its end
 */
u32 ored_block_bytes(u64 bytes, u32 block)
{
	return (u32)min_t(u64, bytes - (u64)block * ORED_AREA_BLOCK, ORED_AREA_BLOCK);
}

/**
 * ored_block_chunks() - how many chunks a block has
 * @bytes: of the generation
 * @block: which, not beyond its end
 * @chunk: length of a chunk
 */
u32 ored_block_chunks(u64 bytes, u32 block, u32 chunk)
{
	return DIV_ROUND_UP(ored_block_bytes(bytes, block), chunk);
}

/**
 * ored_chunk_bytes() - the length of a chunk
 * @bytes: of the generation
 * @block: of the block, not beyond its end
 * @chunk: of a chunk that isn't a block's last
 * @index: which of the block's
 */
u32 ored_chunk_bytes(u64 bytes, u32 block, u32 chunk, u32 index)
{
	return min(ored_block_bytes(bytes, block) - index * chunk, chunk);
}

static struct ored_pull_block *at(struct ored_pull *p, u32 block)
{
	return &p->block[block % ORED_PULL_BLOCKS];
}

/**
 * ored_pull_begin() - nothing has been asked for yet
 * @p: what to fill in
 * @bytes: of the generation
 * @chunk: of a chunk, at least ORED_PULL_CHUNK_MIN
 * @first: first block that is wanted
 * @end: first that isn't; not beyond the generation's end
 */
void ored_pull_begin(struct ored_pull *p, u64 bytes, u32 chunk, u32 first, u32 end)
{
	memset(p, 0, sizeof(*p));
	p->bytes = bytes;
	p->chunk = chunk;
	p->end = end;
	p->base = first;
	p->next = first;
}

/* Nothing of a block under way has come. */
static void want_all(struct ored_pull *p, u32 block)
{
	u32 n = ored_block_chunks(p->bytes, block, p->chunk), w;
	struct ored_pull_block *b = at(p, block);

	for (w = 0; w < ORED_PULL_WORDS; w++) {
		u32 bits = min(n - min(n, 64 * w), 64U);

		p->nwant -= hweight64(b->want[w]);
		p->inflight -= hweight64(b->out[w]);
		b->want[w] = bits ? ~0ULL >> (64 - bits) : 0;
		b->out[w] = 0;
	}
	b->known = false;
	b->whole = false;
	p->nwant += n;
}

/**
 * ored_pull_rechunk() - goes on with chunks of another length
 * @p: the state
 * @chunk: their length, at least ORED_PULL_CHUNK_MIN
 *
 * Blocks that are whole stay so.
 */
void ored_pull_rechunk(struct ored_pull *p, u32 chunk)
{
	u32 block;

	if (chunk == p->chunk)
		return;
	p->chunk = chunk;
	p->head = p->tail;
	p->inflight = 0;
	p->nwant = 0;
	for (block = p->base; block < p->next; block++) {
		struct ored_pull_block *b = at(p, block);

		memset(b->want, 0, sizeof(b->want));
		memset(b->out, 0, sizeof(b->out));
		if (!b->whole)
			want_all(p, block);
	}
}

static bool begin_block(struct ored_pull *p)
{
	if (p->next >= p->end || p->next - p->base >= ORED_PULL_BLOCKS)
		return false;
	memset(at(p, p->next), 0, sizeof(struct ored_pull_block));
	want_all(p, p->next++);
	return true;
}

/* The lowest @most bits of @mask */
static u64 lowest(u64 mask, u32 most)
{
	u64 rest = mask;

	while (most-- && rest)
		rest &= rest - 1;
	return mask & ~rest;
}

/* What is to be asked for of blocks under way, the lowest first */
static bool find(struct ored_pull *p, struct ored_pull_ask *ask)
{
	u32 block, w;

	for (block = p->base; p->nwant && block < p->next; block++) {
		for (w = 0; w < ORED_PULL_WORDS; w++) {
			if (!at(p, block)->want[w])
				continue;
			ask->block = block;
			ask->word = (u8)w;
			ask->mask = at(p, block)->want[w];
			return true;
		}
	}
	return false;
}

/* What of an ask hasn't come. Its block's place may be another block's by now. */
static u64 outstanding(const struct ored_pull *p, const struct ored_pull_ask *ask)
{
	const struct ored_pull_block *b = &p->block[ask->block % ORED_PULL_BLOCKS];

	return ask->block < p->base || b->whole ? 0 : ask->mask & b->out[ask->word];
}

/* What of the oldest ask hasn't come is to be asked for again. */
static u32 forget_oldest(struct ored_pull *p)
{
	struct ored_pull_ask *ask = &p->ask[p->head++ % ORED_PULL_ASKS];
	u64 lost = outstanding(p, ask);
	u32 n = hweight64(lost);

	at(p, ask->block)->out[ask->word] &= ~lost;
	at(p, ask->block)->want[ask->word] |= lost;
	p->inflight -= n;
	p->nwant += n;
	p->again += n;
	return n;
}

/**
 * ored_pull_next() - what to ask for next
 * @p: the state
 * @most: chunks, at least 1
 * @clock: now, microseconds; never less than before
 * @ask: receives it; it counts as asked for
 *
 * Return: false if there is nothing that can be asked for now
 */
bool ored_pull_next(struct ored_pull *p, u32 most, u32 clock, struct ored_pull_ask *ask)
{
	struct ored_pull_block *b;
	u32 n;

	while (p->head != p->tail && !outstanding(p, &p->ask[p->head % ORED_PULL_ASKS]))
		p->head++;
	if (p->tail - p->head == ORED_PULL_ASKS)
		return false;
	if (!find(p, ask) && !(begin_block(p) && find(p, ask)))
		return false;
	ask->mask = lowest(ask->mask, most);
	ask->clock = clock;
	b = at(p, ask->block);
	n = hweight64(ask->mask);
	b->want[ask->word] &= ~ask->mask;
	b->out[ask->word] |= ask->mask;
	p->nwant -= n;
	p->inflight += n;
	p->ask[p->tail++ % ORED_PULL_ASKS] = *ask;
	return true;
}

/**
 * ored_pull_check() - is a chunk wanted that has come?
 * @p: the state
 * @block: its block, from the network
 * @index: which of the block's, from the network
 * @len: its length
 * @crc: of the block, from the network
 *
 * Return: 0: it may be placed; -EEXIST: it is there already, or its block;
 * -ERANGE: there is no such chunk, or not of that length; -EBADMSG: another chunk of
 * the block had told another CRC32C: ored_pull_verified() shall know that it isn't good
 */
int ored_pull_check(struct ored_pull *p, u32 block, u32 index, u32 len, u32 crc)
{
	struct ored_pull_block *b = at(p, block);

	if (block >= p->end || index >= ored_block_chunks(p->bytes, block, p->chunk) ||
	    len != ored_chunk_bytes(p->bytes, block, p->chunk, index))
		return -ERANGE;
	if (block < p->base) {
		p->duplicates++;
		return -EEXIST;
	}
	/* What hasn't been asked for can't have been lost. */
	if (block >= p->next)
		return -ERANGE;
	if (b->whole || !((b->want[index / 64] | b->out[index / 64]) >> index % 64 & 1)) {
		p->duplicates++;
		return -EEXIST;
	}
	if (b->known && b->crc != crc)
		return -EBADMSG;
	b->known = true;
	b->crc = crc;
	return 0;
}

/**
 * ored_pull_arrived() - a chunk has been placed
 * @p: the state
 * @block: its block
 * @index: which of the block's; ored_pull_check() was 0
 *
 * Return: true if all of the block is there, for ored_pull_verified()
 */
bool ored_pull_arrived(struct ored_pull *p, u32 block, u32 index)
{
	struct ored_pull_block *b = at(p, block);
	u64 bit = 1ULL << index % 64;
	u32 w;

	p->chunks++;
	/* It may have been taken for lost. */
	if (b->out[index / 64] & bit)
		p->inflight--;
	else
		p->nwant--;
	b->out[index / 64] &= ~bit;
	b->want[index / 64] &= ~bit;
	for (w = 0; w < ORED_PULL_WORDS; w++) {
		if (b->out[w] | b->want[w])
			return false;
	}
	return true;
}

/**
 * ored_pull_verified() - a block was looked at
 * @p: the state
 * @block: which; under way
 * @good: its CRC32C is what it must be
 *
 * Return: 0, or -EBADMSG if it was damaged ORED_PULL_TRIES times
 */
int ored_pull_verified(struct ored_pull *p, u32 block, bool good)
{
	struct ored_pull_block *b = at(p, block);

	if (!good) {
		p->damaged++;
		if (++b->tries == ORED_PULL_TRIES)
			return -EBADMSG;
		want_all(p, block);
		return 0;
	}
	b->whole = true;
	while (p->base < p->next && at(p, p->base)->whole)
		p->base++;
	return 0;
}

/**
 * ored_pull_lost() - takes for lost what should have come by now
 * @p: the state
 * @echo: clock of the ask that something has come of
 * @reorder: how much later, in microseconds, a chunk may come than one that was asked
 *	for after it
 * @newest: receives the clock of the latest ask of which something is lost
 *
 * Return: chunks that are
 */
u32 ored_pull_lost(struct ored_pull *p, u32 echo, u32 reorder, u32 *newest)
{
	u32 lost = 0;

	while (p->head != p->tail) {
		u32 clock = p->ask[p->head % ORED_PULL_ASKS].clock, n;

		if ((s32)(echo - clock) <= (s32)min_t(u32, reorder, S32_MAX))
			break;
		n = forget_oldest(p);
		lost += n;
		if (n)
			*newest = clock;
	}
	return lost;
}

/**
 * ored_pull_give_up() - takes for lost all that hasn't come
 * @p: the state
 *
 * Return: chunks that are
 */
u32 ored_pull_give_up(struct ored_pull *p)
{
	u32 lost = 0;

	while (p->head != p->tail)
		lost += forget_oldest(p);
	return lost;
}
