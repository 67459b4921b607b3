// SPDX-License-Identifier: GPL-2.0
/*
 * A flow's two sides against a peer that follows no rule: the input is a
 * script of sends, arrivals, true ACKs and made-up ones. Counts must remain
 * those of the bits, and nothing that wasn't sent may count as arrived.
 */

#include "fuzz.h"
#include "../../kmod/core/chunkmap.h"
#include "../../kmod/core/rate.h"
#include "../../kmod/core/repair.h"

#define STEPS	400

struct both {
	struct ored_flow flow;
	struct ored_chunkmap map;
	struct ored_rate rate;
	u32 next, clock;
};

static void setup(struct both *b, u32 count)
{
	u32 longs = BITS_TO_LONGS(count);

	memset(b, 0, sizeof(*b));
	/* Each block is as long as its use, so that any excess is seen. */
	b->flow.sent = malloc(count * sizeof(u32));
	b->flow.done = malloc(longs * sizeof(long));
	b->flow.out = malloc(longs * sizeof(long));
	b->flow.lost = malloc(longs * sizeof(long));
	b->map.bits = malloc(longs * sizeof(long));
	ored_flow_start(&b->flow, count);
	b->map.room = count;
	ored_chunkmap_reset(&b->map, count);
	b->map.count = count;
	ored_rate_init(&b->rate, 3);
}

static void teardown(struct both *b)
{
	free(b->flow.sent);
	free(b->flow.done);
	free(b->flow.out);
	free(b->flow.lost);
	free(b->map.bits);
}

static void check(const struct both *b)
{
	const struct ored_flow *f = &b->flow;
	u32 i, done = 0, lost = 0, inflight = 0;

	for (i = 0; i < BITS_TO_LONGS(f->count); i++) {
		MUST(!(f->done[i] & f->lost[i]));
		MUST(!((f->done[i] | f->lost[i]) & ~f->out[i]));
		done += (u32)hweight_long(f->done[i]);
		lost += (u32)hweight_long(f->lost[i]);
		inflight += (u32)hweight_long(f->out[i] & ~f->done[i] & ~f->lost[i]);
	}
	MUST(f->arrived == done);
	MUST(f->nlost == lost);
	MUST(f->inflight == inflight);
	MUST(f->low <= f->count);
	MUST(b->map.base <= b->map.top && b->map.top <= f->count);
	MUST(b->rate.window >= ORED_WINDOW_MIN);
	MUST(b->rate.window <= ORED_WINDOW_MAX);
	MUST(ored_rate_pto(&b->rate) <= ORED_PTO_MAX_US);
}

static void take(struct both *b, const void *content, size_t len, u32 first)
{
	struct ored_news news;
	struct ored_ack ack;
	u32 before = b->flow.arrived;

	if (ored_ack_parse(content, len, first, &ack))
		return;
	ored_rate_rtt(&b->rate, b->clock - ack.echo);
	ored_flow_acked(&b->flow, &ack, ored_rate_reorder(&b->rate), &news);
	MUST(b->flow.arrived == before + news.arrived);
	ored_rate_acked(&b->rate, news.arrived, true);
	if (news.lost)
		ored_rate_lost(&b->rate, news.oldest, b->clock);
}

/* An ACK of what is known to have arrived, in a block of its exact length */
static void true_ack(struct both *b, struct fuzz_input *in, bool from)
{
	u8 bits[ORED_ACK_BITS / 8], *content;
	u32 first = fuzz_u8(in) * 64, n;

	if (from)
		n = ored_chunkmap_ack_from(&b->map, first, bits);
	else
		n = ored_chunkmap_ack(&b->map, &first, bits);
	MUST(n % 64 == 0 && n <= ORED_ACK_BITS && first % 64 == 0);
	content = malloc(ORED_ACK_BYTES + n / 8);
	ored_ack_build(content, b->clock - fuzz_u8(in), b->map.base);
	memcpy(content + ORED_ACK_BYTES, bits, n / 8);
	take(b, content, ORED_ACK_BYTES + n / 8, first);
	ored_chunkmap_acked(&b->map);
	free(content);
}

static void false_ack(struct both *b, struct fuzz_input *in)
{
	u32 len = ORED_ACK_BYTES + fuzz_u8(in) % 18 * 8, i;
	u8 *content = malloc(len);
	u32 first = fuzz_u16(in) * 64;

	for (i = 0; i < len; i++)
		content[i] = (u8)fuzz_u8(in);
	take(b, content, len, first);
	free(content);
}

static void step(struct both *b, struct fuzz_input *in)
{
	u32 what = fuzz_u8(in), n = what >> 3, chunk = 0;
	u32 count = b->flow.count;

	b->clock += fuzz_u8(in);
	switch (what & 7) {
	case 0:
		for (; n && b->next < count; n--)
			ored_flow_sent(&b->flow, b->next++, b->clock);
		break;
	case 1:
		for (; n && ored_flow_resend(&b->flow, &chunk); n--)
			ored_flow_sent(&b->flow, chunk, b->clock);
		break;
	case 2:
		for (; n && b->next; n--) {
			chunk = fuzz_u16(in) % b->next;
			ored_chunkmap_claim(&b->map, chunk);
			ored_chunkmap_arrived(&b->map, chunk);
		}
		break;
	case 3:
		true_ack(b, in, n & 1);
		break;
	case 4:
		false_ack(b, in);
		break;
	case 5:
		if (b->next)
			ored_flow_unsent(&b->flow, fuzz_u16(in) % b->next);
		break;
	case 6:
		ored_rate_timeout(&b->rate);
		break;
	case 7:
		ored_rate_spurious(&b->rate);
		break;
	}
	check(b);
}

/* From wherever the peer has brought it, an honest one brings it to its end. */
static void finish(struct both *b)
{
	u32 chunk;

	while (b->next < b->flow.count)
		ored_flow_sent(&b->flow, b->next++, b->clock);
	while (ored_flow_resend(&b->flow, &chunk))
		ored_flow_sent(&b->flow, chunk, b->clock);
	for (chunk = 0; chunk < b->flow.count; chunk++) {
		ored_chunkmap_claim(&b->map, chunk);
		ored_chunkmap_arrived(&b->map, chunk);
	}
	MUST(ored_chunkmap_complete(&b->map));
	true_ack(b, &(struct fuzz_input){ 0 }, false);
	check(b);
	MUST(ored_flow_complete(&b->flow));
	MUST(!b->flow.inflight && !b->flow.nlost);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct fuzz_input in = { data, len };
	struct both b;
	u32 i;

	setup(&b, 1 + fuzz_u16(&in) % 4000);
	b.clock = fuzz_u32(&in);
	for (i = 0; i < STEPS && in.left; i++)
		step(&b, &in);
	finish(&b);
	teardown(&b);
	return 0;
}
