// SPDX-License-Identifier: GPL-2.0
/*
 * Taking over a generation from a peer that sends what it likes, whenever it likes:
 * the input is a script of what comes, and of what time does. Nothing may be placed
 * twice or outside, and the counters must be what the bits say.
 */

#include "fuzz.h"
#include "../../kmod/core/pull.h"
#include "../../uapi/linux/ored.h"

#define BLOCKS 80

struct state {
	struct ored_pull	p;
	u64			placed[BLOCKS][ORED_PULL_WORDS];
	u32			clock;
	bool			over;
};

static void check(const struct ored_pull *p)
{
	u32 want = 0, out = 0, b, w;

	MUST(p->base <= p->next && p->next <= p->end);
	MUST(p->next - p->base <= ORED_PULL_BLOCKS);
	MUST(p->tail - p->head <= ORED_PULL_ASKS);
	for (b = p->base; b < p->next; b++) {
		const struct ored_pull_block *block = &p->block[b % ORED_PULL_BLOCKS];

		for (w = 0; w < ORED_PULL_WORDS; w++) {
			MUST(!(block->want[w] & block->out[w]));
			MUST(!block->whole || !(block->want[w] | block->out[w]));
			want += hweight64(block->want[w]);
			out += hweight64(block->out[w]);
		}
	}
	MUST(p->nwant == want && p->inflight == out);
}

static void judge(struct state *s, u32 block, bool good)
{
	memset(s->placed[block], 0, sizeof(s->placed[block]));
	s->over = ored_pull_verified(&s->p, block, good);
}

/* A chunk comes, mostly one that there is. */
static void come(struct state *s, struct fuzz_input *in)
{
	u32 block = fuzz_u8(in) & 128 ? fuzz_u32(in) : s->p.base + fuzz_u8(in) % 4;
	u32 index = fuzz_u8(in), len, crc = fuzz_u8(in) == 7;
	int err;

	if (block < s->p.end && index < ored_block_chunks(s->p.bytes, block, s->p.chunk))
		len = ored_chunk_bytes(s->p.bytes, block, s->p.chunk, index);
	else
		len = fuzz_u16(in);
	err = ored_pull_check(&s->p, block, index, len, crc);
	if (err == -EBADMSG) {
		judge(s, block, false);
		return;
	}
	if (err)
		return;
	MUST(block >= s->p.base && block < s->p.next);
	MUST((u64)block * ORED_AREA_BLOCK + (u64)index * s->p.chunk + len <= s->p.bytes);
	MUST(!(s->placed[block][index / 64] >> index % 64 & 1));
	s->placed[block][index / 64] |= 1ULL << index % 64;
	if (ored_pull_arrived(&s->p, block, index))
		judge(s, block, fuzz_u8(in) != 1);
}

static void rechunk(struct state *s, u32 chunk)
{
	u32 b;

	if (chunk != s->p.chunk) {
		for (b = s->p.base; b < s->p.next; b++)
			memset(s->placed[b], 0, sizeof(s->placed[b]));
	}
	ored_pull_rechunk(&s->p, chunk);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct fuzz_input in = { data, len };
	struct state *s = calloc(1, sizeof(*s));
	u64 bytes = 1 + fuzz_u32(&in) % ((u64)BLOCKS * ORED_AREA_BLOCK);
	struct ored_pull_ask ask;
	u32 newest;

	ored_pull_begin(&s->p, bytes, ORED_PULL_CHUNK_MIN + fuzz_u16(&in) % 60000, 0,
			DIV_ROUND_UP(bytes, ORED_AREA_BLOCK));
	while (in.left && !s->over) {
		switch (fuzz_u8(&in) % 8) {
		case 0:
			if (ored_pull_next(&s->p, 1 + fuzz_u8(&in) % 64, s->clock, &ask))
				MUST(ask.mask && ask.block < s->p.next);
			break;
		case 1:
			ored_pull_lost(&s->p, s->clock - fuzz_u8(&in), fuzz_u8(&in), &newest);
			break;
		case 2:
			if (fuzz_u8(&in) == 3)
				ored_pull_give_up(&s->p);
			break;
		case 3:
			if (fuzz_u8(&in) == 3)
				rechunk(s, ORED_PULL_CHUNK_MIN + fuzz_u16(&in) % 60000);
			break;
		default:
			come(s, &in);
		}
		s->clock += fuzz_u8(&in) % 4;
		if (!s->over)
			check(&s->p);
	}
	free(s);
	return 0;
}
