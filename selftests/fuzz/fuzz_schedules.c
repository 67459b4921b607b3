// SPDX-License-Identifier: GPL-2.0
/*
 * How a bucket is cut and who sends what to whom. The input chooses bucket,
 * payload, ranks and kind, and is then a script of arrivals, in any order and more
 * than once: every chunk has one owner, every rank gets every chunk that its
 * collective promises, and nothing counts twice.
 */

#include "fuzz.h"
#include "../../kmod/core/chunkmap.h"
#include "../../kmod/core/incast.h"
#include "../../kmod/core/kind.h"
#include "../../kmod/core/tar.h"
#include "../../kmod/core/wire.h"
#include "../../uapi/linux/ored.h"

#define WALK_MOST	4096U	/* chunks that are looked at one by one */
#define MODEL_RANKS	12
#define MODEL_CHUNKS	200
#define TWICE		400	/* packets of the script that come at random */

/* In one bucket each: shards and chunks lie end to end and leave nothing out. */
static void check_cut(const struct ored_map *map)
{
	u64 bytes = 0, at = 0;
	u32 rank, chunk, chunks = 0;

	for (rank = 0; rank < map->nranks; rank++) {
		MUST(ored_map_first(map, rank) == chunks);
		MUST(ored_map_count(map, rank) <= ored_map_count(map, 0));
		MUST(ored_map_count(map, rank) + 1 >= ored_map_count(map, 0));
		chunks += ored_map_count(map, rank);
		bytes += ored_map_shard_bytes(map, rank);
	}
	MUST(chunks == map->chunks && bytes == map->bytes);
	/* A packet names a chunk by its place in the shard. */
	MUST(map->nranks == 1 || ored_map_count(map, 0) - 1 < 1U << ORED_CHUNK_BITS);
	for (chunk = 0; chunk < min(map->chunks, WALK_MOST); chunk++) {
		MUST(ored_map_offset(map, chunk) == at);
		MUST(ored_map_length(map, chunk) > 0);
		MUST(ored_map_length(map, chunk) <= map->payload);
		at += ored_map_length(map, chunk);
	}
	MUST(map->chunks > WALK_MOST || at == map->bytes);
}

/* The same where elements are dealt out, and each shard has its own chunks */
static void check_deal(const struct ored_map *map)
{
	u32 rank, i, at = 0;

	for (rank = 0; rank < map->nranks; rank++) {
		u32 first = ored_map_first(map, rank), count = ored_map_count(map, rank);

		MUST(count && count <= map->longest);
		MUST(map->nranks == 1 || count - 1 < 1U << ORED_CHUNK_BITS);
		MUST(ored_map_start(map, rank) == at);
		at += ored_map_shard_bytes(map, rank);
		for (i = 0; i < min(count, WALK_MOST / map->nranks); i++) {
			u32 len = ored_map_length(map, first + i);

			MUST(ored_map_offset(map, first + i) ==
			     ored_map_start(map, rank) + i * map->payload);
			MUST(len == map->payload || (i == count - 1 && len < map->payload));
			MUST(len && len % map->unit == 0);
		}
		MUST(ored_map_offset(map, first + count - 1) +
		     ored_map_length(map, first + count - 1) == at);
	}
	MUST(at == map->bytes);
}

/* In a round everybody sends to one and hears one; in all rounds, everybody. */
static void check_rounds(u32 nranks)
{
	u8 *met = calloc(nranks, nranks);
	u32 rank, round, to;

	for (round = 1; round < nranks; round++) {
		u8 *hears = calloc(nranks, 1);

		for (rank = 0; rank < nranks; rank++) {
			to = ored_incast_peer(rank, nranks, round - 1);
			MUST(to < nranks && to != rank);
			MUST(to == (rank + round) % nranks);
			MUST(!hears[to]++);
			MUST(!met[rank * nranks + to]++);
		}
		free(hears);
	}
	free(met);
}

/* In 2D a rank starts with its own shards, and each turn's two sides agree. */
static void check_turns(u32 nranks, u32 groups)
{
	struct ored_tar2d_turn turn, peer;
	struct ored_tar2d t;
	u32 rank, round, *whole;

	if (ored_tar2d_init(&t, nranks, groups)) {
		MUST(!groups || nranks % groups);
		return;
	}
	/* Contributions to a rank's own shard, and then whole shards it has. */
	whole = calloc(nranks, sizeof(*whole));
	for (round = 0; round < ored_tar2d_rounds(&t); round++) {
		for (rank = 0; rank < nranks; rank++) {
			ored_tar2d_turn(&t, rank, round, &turn);
			MUST(turn.to < nranks && turn.to != rank);
			MUST(turn.sent < t.size && turn.heard < t.size);
			ored_tar2d_turn(&t, turn.to, round, &peer);
			MUST(peer.from == rank && peer.stage == turn.stage);
			MUST(peer.heard == turn.sent);
			MUST((turn.stage == ORED_TAR2D_ACROSS) ==
			     (turn.to / t.size != rank / t.size));
			/* Shards that aren't whole go to their owner only. */
			MUST(turn.stage == ORED_TAR2D_GATHER ||
			     turn.sent == turn.to % t.size);
			whole[turn.to]++;
		}
	}
	for (rank = 0; rank < nranks; rank++)
		MUST(whole[rank] == 2 * (t.size - 1) + (groups - 1));
	free(whole);
}

/* What one rank has heard of a stage from one other */
struct heard {
	struct ored_chunkmap map;
	u32 fresh;
};

struct model {
	struct ored_map cut;
	u16 word;		/* what is played */
	struct heard *heard;	/* by receiver and sender */
	u32 *contributions;	/* by chunk of the bucket */
};

static struct heard *heard_by(struct model *m, u32 to, u32 from)
{
	return &m->heard[to * m->cut.nranks + from];
}

/* In scatter a sender's chunks are the receiver's shard, in gather its own. */
static u32 owner_of(u32 stage, u32 from, u32 to)
{
	return stage ? from : to;
}

static void begin_stage(struct model *m, u32 stage)
{
	u32 from, to, room = ored_map_count(&m->cut, 0);

	for (to = 0; to < m->cut.nranks; to++) {
		for (from = 0; from < m->cut.nranks; from++) {
			struct heard *h = heard_by(m, to, from);

			h->fresh = 0;
			ored_chunkmap_reset(&h->map, room);
			h->map.count = stage ? ored_kind_gathers(&m->cut, m->word, from, to) :
					       ored_kind_scatters(&m->cut, m->word, from, to);
		}
	}
}

static void arrive(struct model *m, u32 stage, u32 from, u32 to, u32 chunk)
{
	struct heard *h = heard_by(m, to, from);
	u32 whole = ored_map_first(&m->cut, owner_of(stage, from, to)) + chunk;

	if (ored_chunkmap_claim(&h->map, chunk)) {
		h->fresh++;
		if (!stage)
			m->contributions[whole]++;
	}
	ored_chunkmap_arrived(&h->map, chunk);
	MUST(h->fresh <= h->map.count);
	MUST(m->contributions[whole] < m->cut.nranks);
}

/* Arrivals as the script wants them, then what is left, round by round. */
static void play_stage(struct model *m, u32 stage, struct fuzz_input *in)
{
	u32 n = m->cut.nranks, i, from, round, to, chunk, count;

	for (i = 0; i < TWICE && in->left; i++) {
		from = fuzz_u8(in) % n;
		to = ored_incast_peer(from, n, fuzz_u8(in) % (n - 1));
		count = heard_by(m, to, from)->map.count;
		if (count)
			arrive(m, stage, from, to, fuzz_u8(in) % count);
	}
	for (round = 1; round < n; round++) {
		for (from = 0; from < n; from++) {
			to = ored_incast_peer(from, n, round - 1);
			count = heard_by(m, to, from)->map.count;
			for (chunk = 0; chunk < count; chunk++)
				arrive(m, stage, from, to, chunk);
		}
	}
}

/* Chunks that a rank should hear in a stage, over all senders */
static u32 due(const struct model *m, u32 stage, u32 rank)
{
	u32 own = ored_map_count(&m->cut, rank), n = m->cut.nranks, chunks = 0, r;
	bool root = rank == ored_params_root(m->word);

	for (r = 0; r < n; r++)
		chunks += ored_map_count(&m->cut, r);
	switch (ored_params_kind(m->word)) {
	case ORED_ALLREDUCE:
		return stage ? chunks - own : own * (n - 1);
	case ORED_REDUCE_SCATTER:
		return stage ? 0 : own * (n - 1);
	case ORED_BROADCAST:
		return root ? 0 : stage ? chunks - own : own;
	default:
		return stage ? chunks - own : 0;
	}
}

static void check_stage(struct model *m, u32 stage)
{
	u32 rank, from, chunk, got;

	for (rank = 0; rank < m->cut.nranks; rank++) {
		got = 0;
		for (from = 0; from < m->cut.nranks; from++) {
			struct heard *h = heard_by(m, rank, from);

			if (from == rank)
				continue;
			MUST(h->fresh == h->map.count);
			MUST(ored_chunkmap_complete(&h->map));
			got += h->fresh;
		}
		/* All of its shard from each, or the whole bucket once. */
		MUST(got == due(m, stage, rank));
	}
	for (chunk = 0; chunk < m->cut.chunks && ored_params_kind(m->word) == ORED_ALLREDUCE;
	     chunk++)
		MUST(m->contributions[chunk] == m->cut.nranks - 1);
}

static void play(const struct ored_map *cut, u16 word, struct fuzz_input *in)
{
	u32 pairs = cut->nranks * cut->nranks, stage, i, room = ored_map_count(cut, 0);
	struct model m = { .cut = *cut, .word = word };

	m.heard = calloc(pairs, sizeof(*m.heard));
	m.contributions = calloc(cut->chunks, sizeof(u32));
	for (i = 0; i < pairs; i++) {
		m.heard[i].map.room = room;
		m.heard[i].map.bits = malloc(BITS_TO_LONGS(room) * sizeof(long));
	}
	for (stage = 0; stage < 2; stage++) {
		begin_stage(&m, stage);
		play_stage(&m, stage, in);
		check_stage(&m, stage);
	}
	for (i = 0; i < pairs; i++)
		free(m.heard[i].map.bits);
	free(m.heard);
	free(m.contributions);
}

/* An op of any kind, on a model of all its packets; some can't be. */
static void play_kind(u32 bytes, u32 payload, u32 nranks, struct fuzz_input *in)
{
	u32 kind = fuzz_u8(in), dtype = fuzz_u8(in) % 16;
	struct ored_params p = { .bytes = 1 + bytes % (MODEL_CHUNKS * payload) };
	struct ored_map map;

	p.word = kind % 8 == ORED_BROADCAST ? ored_params_broadcast((u8)dtype, 1) :
		 ored_params_word((u8)dtype, 0, (u8)kind, 1);
	if (kind % 8 == ORED_BARRIER)
		p.bytes = nranks * ORED_BARRIER_BYTES;
	if (!ored_kind_fits(&p, nranks, ORED_MAX_BUCKET))
		return;
	ored_kind_map(&map, &p, payload, nranks);
	if (map.unit)
		check_deal(&map);
	play(&map, p.word, in);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct fuzz_input in = { data, len };
	struct ored_map map;
	u32 nranks = 1 + fuzz_u8(&in);
	u32 payload = ORED_PAYLOAD_MIN + fuzz_u16(&in) % 8064 * ORED_PAYLOAD_ALIGN;
	u32 bytes = 1 + fuzz_u32(&in) % ORED_MAX_BUCKET;

	ored_map_init(&map, bytes, payload, nranks);
	check_cut(&map);
	check_rounds(nranks);
	check_turns(nranks, payload % 17);
	/* A model of all its packets for a bucket of a size like that. */
	nranks = 2 + nranks % (MODEL_RANKS - 1);
	play_kind(bytes, payload, nranks, &in);
	return 0;
}
