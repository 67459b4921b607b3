// SPDX-License-Identifier: GPL-2.0
/* Taking over a generation: geometry, what is asked for, loss, and packets' form. */

#include "tap.h"
#include "../../kmod/core/area_wire.h"
#include "../../kmod/core/pull.h"
#include "../../kmod/core/wire.h"
#include "../../uapi/linux/ored.h"

#define BLOCK ORED_AREA_BLOCK

static void begin(struct ored_pull *p, u64 bytes, u32 chunk)
{
	ored_pull_begin(p, bytes, chunk, 0, (u32)((bytes + BLOCK - 1) / BLOCK));
}

/* Every byte is in exactly one chunk, and packets have room for it. */
TEST(geometry)
{
	static const u64 lengths[] = { 1, 343, 344, 345, BLOCK - 1, BLOCK, BLOCK + 1, 1000003 };
	static const u32 chunks[] = { ORED_PULL_CHUNK_MIN, 488, 1416, 8936, 65456, 65535 };
	u32 l, c, b, i;

	for (l = 0; l < ARRAY_SIZE(lengths); l++) {
		for (c = 0; c < ARRAY_SIZE(chunks); c++) {
			u64 sum = 0;

			for (b = 0; (u64)b * BLOCK < lengths[l]; b++) {
				u32 n = ored_block_chunks(lengths[l], b, chunks[c]);

				CHECK(n >= 1 && n <= 64 * ORED_PULL_WORDS);
				for (i = 0; i < n; i++) {
					u32 len = ored_chunk_bytes(lengths[l], b, chunks[c], i);

					CHECK(len >= 1 && len <= chunks[c]);
					CHECK(i == n - 1 || len == chunks[c]);
					sum += len;
				}
			}
			CHECK_EQ(sum, lengths[l]);
		}
	}
}

static u32 popcount(u64 v)
{
	return (u32)__builtin_popcountll(v);
}

/* Are the counters what the bits say? */
static void check_counters(const struct ored_pull *p)
{
	u32 want = 0, out = 0, b, w;

	for (b = p->base; b < p->next; b++) {
		for (w = 0; w < ORED_PULL_WORDS; w++) {
			const struct ored_pull_block *block = &p->block[b % ORED_PULL_BLOCKS];

			CHECK_EQ(block->want[w] & block->out[w], 0);
			want += popcount(block->want[w]);
			out += popcount(block->out[w]);
		}
	}
	CHECK_EQ(p->nwant, want);
	CHECK_EQ(p->inflight, out);
}

TEST(in_order)
{
	static struct ored_pull p;
	struct ored_pull_ask ask;
	u32 asked = 0, clock = 0, i;

	begin(&p, 3 * BLOCK + 1, 1416);
	while (ored_pull_next(&p, 10, clock++, &ask)) {
		CHECK(popcount(ask.mask) <= 10);
		asked += popcount(ask.mask);
	}
	CHECK_EQ(asked, 3 * 47 + 1);
	check_counters(&p);
	for (i = 0; i < 4; i++) {
		u32 n = ored_block_chunks(p.bytes, i, p.chunk), c;

		for (c = 0; c < n; c++) {
			u32 len = ored_chunk_bytes(p.bytes, i, p.chunk, c);

			CHECK_EQ(ored_pull_check(&p, i, c, len, 7), 0);
			CHECK_EQ(ored_pull_arrived(&p, i, c), c == n - 1);
			CHECK_EQ(ored_pull_check(&p, i, c, len, 7), -EEXIST);
		}
		CHECK_EQ(ored_pull_complete(&p), false);
		CHECK_EQ(ored_pull_verified(&p, i, true), 0);
	}
	CHECK(ored_pull_complete(&p));
	CHECK_EQ(p.inflight + p.nwant + p.again, 0);
	CHECK(!ored_pull_next(&p, 10, clock, &ask));
}

/* What has come makes room, also where the clock stands still. */
TEST(no_time_at_all)
{
	static struct ored_pull p;
	struct ored_pull_ask ask;
	u32 asks = 0, newest;

	begin(&p, 20 * BLOCK, 1416);
	while (ored_pull_next(&p, 1, 5, &ask)) {
		u32 index = (u32)__builtin_ctzll(ask.mask);

		CHECK_EQ(ored_pull_check(&p, ask.block, index, index < 46 ? 1416 : 400, 0), 0);
		if (ored_pull_arrived(&p, ask.block, index))
			ored_pull_verified(&p, ask.block, true);
		CHECK_EQ(ored_pull_lost(&p, 5, 0, &newest), 0);
		asks++;
	}
	CHECK_EQ(asks, 20 * 47);
	CHECK(ored_pull_complete(&p));
}

TEST(bounds)
{
	static struct ored_pull p;
	struct ored_pull_ask ask;

	begin(&p, 2 * BLOCK + 100, 1416);
	CHECK(ored_pull_next(&p, 64, 0, &ask));
	CHECK_EQ(ored_pull_check(&p, 3, 0, 1416, 0), -ERANGE);
	CHECK_EQ(ored_pull_check(&p, ~0U, 0, 1416, 0), -ERANGE);
	CHECK_EQ(ored_pull_check(&p, 2, 0, 100, 0), -ERANGE);	/* not asked for */
	CHECK_EQ(ored_pull_check(&p, 0, 47, 1416, 0), -ERANGE);
	CHECK_EQ(ored_pull_check(&p, 0, ~0U, 1416, 0), -ERANGE);
	CHECK_EQ(ored_pull_check(&p, 0, 46, 1416, 0), -ERANGE);	/* it is the short one */
	CHECK_EQ(ored_pull_check(&p, 0, 46, BLOCK - 46 * 1416, 0), 0);
	CHECK_EQ(ored_pull_check(&p, 0, 0, 1415, 0), -ERANGE);
	CHECK_EQ(ored_pull_check(&p, 0, 0, 1417, 0), -ERANGE);
	CHECK_EQ(ored_pull_check(&p, 0, 0, 1416, 1), -EBADMSG);	/* another CRC */
	check_counters(&p);
}

TEST(damaged)
{
	static struct ored_pull p;
	struct ored_pull_ask ask;
	u32 try;

	begin(&p, 1000, 344);
	for (try = 1; try <= ORED_PULL_TRIES; try++) {
		u32 i;

		while (ored_pull_next(&p, 2, try, &ask))
			;
		for (i = 0; i < 3; i++) {
			CHECK_EQ(ored_pull_check(&p, 0, i, i < 2 ? 344 : 312, try), 0);
			ored_pull_arrived(&p, 0, i);
		}
		CHECK_EQ(ored_pull_verified(&p, 0, false), try < ORED_PULL_TRIES ? 0 : -EBADMSG);
		check_counters(&p);
	}
	CHECK_EQ(p.damaged, ORED_PULL_TRIES);
}

TEST(chunks_of_another_length)
{
	static struct ored_pull p;
	struct ored_pull_ask ask;
	u32 i;

	begin(&p, 3 * BLOCK, 1416);
	for (i = 0; i < 6; i++)
		ored_pull_next(&p, 16, i, &ask);
	for (i = 0; i < 47; i++) {
		CHECK_EQ(ored_pull_check(&p, 0, i, i < 46 ? 1416 : 400, 0), 0);
		ored_pull_arrived(&p, 0, i);
	}
	ored_pull_verified(&p, 0, true);
	ored_pull_rechunk(&p, 8936);
	CHECK_EQ(p.base, 1);
	CHECK_EQ(p.inflight, 0);
	check_counters(&p);
	CHECK(ored_pull_next(&p, 16, 9, &ask));
	CHECK_EQ(ask.block, 1);
	CHECK_EQ(popcount(ask.mask), 8);
}

/*
 * A network that loses, doubles and swaps: chunks on their way are in a heap by the
 * time of their arrival. What comes is compared with what was sent.
 */
#define FLYING 4096

struct flying {
	u64	at;
	u32	block, index, clock;
	bool	bad;
};

struct net {
	struct flying	on[FLYING];
	u32		n;
	u32		loss, twice, jitter, corrupt;	/* per mille, and microseconds */
};

static bool per_mille(u32 share)
{
	return tap_random() % 1000 < share;
}

static void launch(struct net *net, u64 now, u32 block, u32 index, u32 clock)
{
	u32 copies = 1 + per_mille(net->twice);

	while (copies--) {
		if (per_mille(net->loss) || net->n == FLYING)
			continue;
		net->on[net->n++] = (struct flying) {
			.at = now + 200 + (net->jitter ? tap_random() % net->jitter : 0),
			.block = block, .index = index, .clock = clock,
			.bad = per_mille(net->corrupt),
		};
	}
}

static bool land(struct net *net, u64 now, struct flying *f)
{
	u32 i, best = FLYING;

	for (i = 0; i < net->n; i++) {
		if (net->on[i].at <= now && (best == FLYING || net->on[i].at < net->on[best].at))
			best = i;
	}
	if (best == FLYING)
		return false;
	*f = net->on[best];
	net->on[best] = net->on[--net->n];
	return true;
}

struct run {
	struct ored_pull	p;
	struct net		net;
	u8			*there;	/* by block: damaged chunks in it */
	u64			sent;
};

/* Takes everything over. Return: microseconds, 0: it never ended */
static u64 run(struct run *r, u64 bytes, u32 chunk, u32 window)
{
	u64 now, last = 0;

	begin(&r->p, bytes, chunk);
	r->there = calloc(1, r->p.end);
	for (now = 1; now < 100000000 && !ored_pull_complete(&r->p); now += 10) {
		struct ored_pull_ask ask;
		struct flying f;
		u32 newest;

		while (r->p.inflight < window &&
		       ored_pull_next(&r->p, window - r->p.inflight, (u32)now, &ask)) {
			for (; ask.mask; ask.mask &= ask.mask - 1) {
				u32 index = 64 * ask.word + (u32)__builtin_ctzll(ask.mask);

				r->sent++;
				launch(&r->net, now, ask.block, index, ask.clock);
			}
		}
		while (land(&r->net, now, &f)) {
			u32 len = ored_chunk_bytes(bytes, f.block, chunk, f.index);
			int err = ored_pull_check(&r->p, f.block, f.index, len, f.block);

			last = now;
			if (!err) {
				r->there[f.block] |= f.bad;
				if (ored_pull_arrived(&r->p, f.block, f.index)) {
					CHECK_EQ(ored_pull_verified(&r->p, f.block,
								    !r->there[f.block]), 0);
					r->there[f.block] = 0;
				}
			} else {
				CHECK_EQ(err, -EEXIST);
			}
			ored_pull_lost(&r->p, f.clock, 100 + r->net.jitter, &newest);
		}
		if (now - last > 20000) {
			ored_pull_give_up(&r->p);
			last = now;
		}
		if (now % 1000 == 1)
			check_counters(&r->p);
	}
	check_counters(&r->p);
	free(r->there);
	return ored_pull_complete(&r->p) ? now : 0;
}

TEST(clean_network)
{
	static struct run r;

	memset(&r, 0, sizeof(r));
	CHECK(run(&r, 20 * BLOCK + 7, 1416, 64));
	CHECK_EQ(r.sent, 20 * 47 + 1);
	CHECK_EQ(r.p.again + r.p.duplicates, 0);
}

TEST(bad_networks)
{
	u64 doubled = 0, again = 0;
	static struct run r;
	u32 i;

	for (i = 0; i < 60; i++) {
		u64 bytes = 1 + tap_random() % (40 * BLOCK);
		u32 chunk = ORED_PULL_CHUNK_MIN + (u32)(tap_random() % 9000);

		memset(&r, 0, sizeof(r));
		r.net.loss = (u32)(tap_random() % 300);
		r.net.twice = (u32)(tap_random() % 200);
		r.net.jitter = (u32)(tap_random() % 500);
		CHECK(run(&r, bytes, chunk, 2 + (u32)(tap_random() % 300)),
		      "loss %u twice %u jitter %u", r.net.loss, r.net.twice, r.net.jitter);
		doubled += r.p.duplicates;
		again += r.p.again;
	}
	CHECK(doubled && again);
}

TEST(loss_is_found_without_waiting)
{
	static struct run r;
	u64 clean, lossy;

	memset(&r, 0, sizeof(r));
	clean = run(&r, 100 * BLOCK, 1416, 64);
	memset(&r, 0, sizeof(r));
	r.net.loss = 20;
	lossy = run(&r, 100 * BLOCK, 1416, 64);
	printf("# 100 blocks: %" PRIu64 " us, with 2 %% of loss %" PRIu64 " us\n", clean, lossy);
	/* Time-outs of 20 ms for each of its 94 lost chunks would be 1.9 s. */
	CHECK(lossy < 2 * clean + 50000);
}

TEST(damage_on_the_way)
{
	static struct run r;

	memset(&r, 0, sizeof(r));
	r.net.corrupt = 5;
	CHECK(run(&r, 400 * BLOCK, 8936, 64));
	CHECK(r.p.damaged);
}

/* --- packets ------------------------------------------------------------------- */

TEST(offers)
{
	u8 data[ORED_OFFER_BYTES + ORED_AREA_META_MAX + 1] = { 0 };
	struct ored_offer in = {
		.flags = ORED_OFFER_ROLLED, .step = 1ULL << 60 | 3, .bytes = 1ULL << 33,
		.digest = 0xdeadbeef, .area_bytes = 1ULL << 34, .back_to = 77, .nranks = 256,
		.copies = 3, .jump = 8, .placement = 1, .meta_len = 200,
	}, out;
	size_t len;

	ored_offer_build(data, &in);
	for (len = 1; len <= sizeof(data); len++)
		CHECK_EQ(ored_offer_parse(data, len, &out),
			 len == ORED_OFFER_BYTES + 200 ? 0 : -EBADMSG);
	CHECK_EQ(ored_offer_parse(data, ORED_OFFER_BYTES + 200, &out), 0);
	CHECK(out.meta == data + ORED_OFFER_BYTES);
	CHECK(out.flags == in.flags && out.step == in.step && out.bytes == in.bytes &&
	      out.digest == in.digest && out.area_bytes == in.area_bytes &&
	      out.back_to == in.back_to && out.nranks == in.nranks && out.copies == in.copies &&
	      out.jump == in.jump && out.placement == in.placement);
	in.bytes = in.area_bytes + 1;
	ored_offer_build(data, &in);
	CHECK_EQ(ored_offer_parse(data, ORED_OFFER_BYTES + 200, &out), -EBADMSG);
	in.bytes = 0;
	ored_offer_build(data, &in);
	CHECK_EQ(ored_offer_parse(data, ORED_OFFER_BYTES + 200, &out), -EBADMSG);
}

TEST(asks)
{
	u8 data[ORED_ASK_BYTES], again[ORED_ASK_BYTES];
	struct ored_ask in = {
		.word = 0, .chunk = 1416, .block = 0xfffffffe, .key = ~0ULL / 3, .serial = 5,
		.mask = 1ULL << 46 | 1, .step = 9, .digest = 1, .rank = 255,
	}, out;

	ored_ask_build(data, &in);
	CHECK_EQ(ored_ask_parse(data, sizeof(data) - 1, &out), -EBADMSG);
	CHECK_EQ(ored_ask_parse(data, sizeof(data), &out), 0);
	ored_ask_build(again, &out);
	CHECK(!memcmp(data, again, sizeof(data)));
	CHECK(out.key == in.key && out.mask == in.mask && out.rank == in.rank);
	in.mask = 1ULL << 47;	/* a 48th chunk */
	ored_ask_build(data, &in);
	CHECK_EQ(ored_ask_parse(data, sizeof(data), &out), -EBADMSG);
	in.mask = 0;
	ored_ask_build(data, &in);
	CHECK_EQ(ored_ask_parse(data, sizeof(data), &out), -EBADMSG);
	in.mask = 1;
	in.chunk = ORED_PULL_CHUNK_MIN - 1;
	ored_ask_build(data, &in);
	CHECK_EQ(ored_ask_parse(data, sizeof(data), &out), -EBADMSG);
	in.chunk = ORED_PULL_CHUNK_MIN;
	in.word = 255;
	ored_ask_build(data, &in);
	CHECK_EQ(ored_ask_parse(data, sizeof(data), &out), -EBADMSG);
}

TEST(writes_answers_and_refusals)
{
	struct ored_write w = { .index = 46, .block = 1U << 31, .key = 3, .serial = 4, .crc = 5 };
	struct ored_answer a = { .code = ORED_AREA_NEWER, .digest = 1, .step = 2, .blocks = 3 };
	struct ored_refusal r = { .code = ORED_AREA_BUSY, .block = 6, .key = 7 };
	struct ored_write w2;
	struct ored_answer a2;
	struct ored_refusal r2;
	u8 data[64];

	ored_write_build(data, &w);
	CHECK_EQ(ored_write_parse(data, ORED_WRITE_BYTES, &w2), -EBADMSG);	/* no payload */
	CHECK_EQ(ored_write_parse(data, ORED_WRITE_BYTES + 1, &w2), 0);
	CHECK(w.index == w2.index && w.block == w2.block && w.key == w2.key &&
	      w.serial == w2.serial && w.crc == w2.crc);
	CHECK_EQ(ored_answer_parse(data, sizeof(data), &a2), -EBADMSG);
	ored_answer_build(data, &a);
	CHECK_EQ(ored_answer_parse(data, ORED_ANSWER_BYTES - 1, &a2), -EBADMSG);
	CHECK_EQ(ored_answer_parse(data, ORED_ANSWER_BYTES, &a2), 0);
	CHECK(a.code == a2.code && a.digest == a2.digest && a.step == a2.step &&
	      a.blocks == a2.blocks);
	data[1] = ORED_AREA_CODES;
	CHECK_EQ(ored_answer_parse(data, ORED_ANSWER_BYTES, &a2), -EBADMSG);
	ored_refuse_build(data, &r);
	CHECK_EQ(ored_refuse_parse(data, ORED_REFUSE_BYTES - 1, &r2), -EBADMSG);
	CHECK_EQ(ored_refuse_parse(data, ORED_REFUSE_BYTES, &r2), 0);
	CHECK(r.code == r2.code && r.block == r2.block && r.key == r2.key);
}

TEST(queries)
{
	struct ored_query in = {
		.flags = ORED_QUERY_META, .first = 513, .id = 0xfedcba98, .step = ~0ULL / 5,
		.rank = 255,
	}, out;
	u8 data[ORED_QUERY_BYTES];

	ored_query_build(data, &in);
	CHECK_EQ(ored_query_parse(data, sizeof(data) - 1, &out), -EBADMSG);
	CHECK_EQ(ored_query_parse(data, sizeof(data), &out), 0);
	CHECK(in.flags == out.flags && in.first == out.first && in.id == out.id &&
	      in.step == out.step && in.rank == out.rank);
	data[0] = ORED_AREA_TELL;
	CHECK_EQ(ored_query_parse(data, sizeof(data), &out), -EBADMSG);
}

TEST(what_is_told)
{
	static const struct {
		u16 first, total, n, meta_len;
		bool good;
	} tells[] = {
		{ 0, 0, 0, 0, true }, { 0, 1, 1, 256, true }, { 3, 7, 4, 0, true },
		{ 3, 7, 5, 0, false }, { 8, 7, 0, 0, false }, { 3, 7, 0, 0, false },
		{ 7, 7, 0, 0, true }, { 0, 1, 1, 257, false }, { 0, 2, 2, 1, false },
		{ 0, 0, 0, 1, false }, { 65534, 65535, 1, 0, true },
	};
	struct ored_told in = {
		.step = 1ULL << 40, .bytes = ORED_AREA_BYTES_MAX, .digest = 7, .rank = 255,
		.digest_only = true,
	}, out;
	u8 data[1024];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(tells); i++) {
		struct ored_tell a = {
			.first = tells[i].first, .id = 9, .total = tells[i].total,
			.n = tells[i].n, .meta_len = tells[i].meta_len,
		}, b;
		size_t len = ORED_TELL_BYTES + a.n * ORED_TOLD_BYTES + a.meta_len;

		memset(&b, 0, sizeof(b));
		ored_tell_build(data, &a);
		CHECK_EQ(ored_tell_parse(data, len, &b), tells[i].good ? 0 : -EBADMSG);
		CHECK_EQ(ored_tell_parse(data, len + 1, &b), -EBADMSG);
		CHECK_EQ(ored_tell_parse(data, len - 1, &b), -EBADMSG);
		CHECK(!tells[i].good || (a.first == b.first && a.id == b.id && a.total == b.total &&
					 a.n == b.n && a.meta_len == b.meta_len));
	}
	ored_told_build(data, &in);
	CHECK_EQ(ored_told_parse(data, &out), 0);
	CHECK(in.step == out.step && in.bytes == out.bytes && in.digest == out.digest &&
	      in.rank == out.rank && in.digest_only == out.digest_only);
	in.bytes++;
	ored_told_build(data, &in);
	CHECK_EQ(ored_told_parse(data, &out), -EBADMSG);
	in.bytes = 0;
	ored_told_build(data, &in);
	CHECK_EQ(ored_told_parse(data, &out), -EBADMSG);
	in.bytes = 1;
	in.step = ORED_NO_STEP;
	ored_told_build(data, &in);
	CHECK_EQ(ored_told_parse(data, &out), -EBADMSG);
	in.step = 0;
	in.rank = ORED_MAX_RANKS;
	ored_told_build(data, &in);
	CHECK_EQ(ored_told_parse(data, &out), -EBADMSG);
}

TAP_MAIN
