// SPDX-License-Identifier: GPL-2.0

#include "repair.h"

/**
 * ored_flow_start() - nothing has been sent
 * @flow: with all pointers set, each with room for @count chunks
 * @count: chunks, may be 0
 */
void ored_flow_start(struct ored_flow *flow, u32 count)
{
	size_t bytes = BITS_TO_LONGS(count) * sizeof(long);

	memset(flow->done, 0, bytes);
	memset(flow->out, 0, bytes);
	memset(flow->lost, 0, bytes);
	flow->count = count;
	flow->arrived = 0;
	flow->nlost = 0;
	flow->inflight = 0;
	flow->low = 0;
	flow->top = 0;
	flow->rescan = 0;
	flow->stopped = false;
}

static void forget_loss(struct ored_flow *flow, u32 chunk)
{
	__clear_bit(chunk, flow->lost);
	flow->nlost--;
}

static void note_loss(struct ored_flow *flow, u32 chunk)
{
	__set_bit(chunk, flow->lost);
	flow->nlost++;
	flow->inflight--;
	flow->rescan = min(flow->rescan, chunk);
}

/**
 * ored_flow_sent() - a chunk goes out
 * @flow: its flow
 * @chunk: below @count, either new or what ored_flow_resend() gave
 * @clock: now, as in the packet
 */
void ored_flow_sent(struct ored_flow *flow, u32 chunk, u32 clock)
{
	if (test_bit(chunk, flow->lost))
		forget_loss(flow, chunk);
	__set_bit(chunk, flow->out);
	flow->sent[chunk] = clock;
	flow->top = max(flow->top, chunk + 1);
	flow->inflight++;
}

/**
 * ored_flow_unsent() - a chunk that was to go out could not
 * @flow: its flow
 * @chunk: passed to ored_flow_sent() before
 */
void ored_flow_unsent(struct ored_flow *flow, u32 chunk)
{
	if (!flow->stopped && !test_bit(chunk, flow->done) && !test_bit(chunk, flow->lost))
		note_loss(flow, chunk);
}

/**
 * ored_flow_resend() - the next chunk to be sent again
 * @flow: the flow
 * @chunk: receives it
 *
 * Return: false if there is none
 */
bool ored_flow_resend(struct ored_flow *flow, u32 *chunk)
{
	u32 words = BITS_TO_LONGS(flow->count);
	u32 i;

	if (!flow->nlost)
		return false;
	for (i = flow->rescan / BITS_PER_LONG; i < words; i++) {
		if (!flow->lost[i])
			continue;
		*chunk = i * BITS_PER_LONG + (u32)__ffs(flow->lost[i]);
		flow->rescan = *chunk;
		return true;
	}
	return false;
}

/* Of the chunks of map word @w, a bit for each from @from on */
static unsigned long bits_from(u32 w, u32 from)
{
	u32 start = w * BITS_PER_LONG;

	if (from <= start)
		return ~0UL;
	return from - start < BITS_PER_LONG ? ~0UL << (from - start) : 0;
}

/* Bits of an ACK, from the @i-th on, as many as a map word has */
static unsigned long ack_word(const struct ored_ack *ack, u32 i)
{
	const u8 *at = ack->bits + i / 8;
	unsigned long word = get_unaligned_le32(at);

	if (BITS_PER_LONG > 32)
		word |= (unsigned long)get_unaligned_le32(at + 4) << (BITS_PER_LONG - 32);
	return word;
}

/*
 * Chunks of map word @w have arrived. A receiver can say what it likes: only
 * what was sent can have.
 */
static void arrived(struct ored_flow *flow, u32 w, unsigned long bits,
		    struct ored_news *news)
{
	u32 n, relieved;

	bits &= flow->out[w] & ~flow->done[w];
	if (!bits)
		return;
	n = (u32)hweight_long(bits);
	relieved = (u32)hweight_long(bits & flow->lost[w]);
	flow->lost[w] &= ~bits;
	flow->done[w] |= bits;
	flow->nlost -= relieved;
	if (!flow->stopped)
		flow->inflight -= n - relieved;
	flow->arrived += n;
	news->arrived += n;
}

/* Chunks of map word @w hadn't arrived when the packet of clock @echo had. */
static void missing(struct ored_flow *flow, u32 w, unsigned long bits, u32 echo,
		    u32 reorder, struct ored_news *news)
{
	if (flow->stopped)
		return;
	bits &= flow->out[w] & ~flow->done[w] & ~flow->lost[w];
	for (; bits; bits &= bits - 1) {
		u32 chunk = w * BITS_PER_LONG + (u32)__ffs(bits);
		u32 sent = flow->sent[chunk];

		if ((s32)(echo - sent) <= (s32)min_t(u32, reorder, S32_MAX))
			continue;
		note_loss(flow, chunk);
		if (!news->lost++ || (s32)(sent - news->oldest) > 0)
			news->oldest = sent;
	}
}

/**
 * ored_flow_acked() - takes in an ACK
 * @flow: the flow it is about
 * @ack: parsed, otherwise unchecked
 * @reorder: how much later, by the sender's clock, a packet may arrive than
 *	one that was sent after it, without being lost
 * @news: receives what it told
 *
 * Where an ACK's bits end before they must, nothing further has arrived: that
 * is how the loss of a flow's last packets shows.
 */
void ored_flow_acked(struct ored_flow *flow, const struct ored_ack *ack,
		     u32 reorder, struct ored_news *news)
{
	u32 base = min(ack->base, flow->count);
	u32 end = max(ack->first + ack->nbits, base);
	u32 i, w;

	memset(news, 0, sizeof(*news));
	for (w = flow->low / BITS_PER_LONG; w * BITS_PER_LONG < base; w++)
		arrived(flow, w, ~bits_from(w, base), news);
	for (i = 0; i < ack->nbits && ack->first + i < flow->count; i += BITS_PER_LONG) {
		unsigned long word = ack_word(ack, i);

		w = (ack->first + i) / BITS_PER_LONG;
		arrived(flow, w, word, news);
		missing(flow, w, ~word, ack->echo, reorder, news);
	}
	if (ack->nbits < ORED_ACK_BITS) {
		for (w = end / BITS_PER_LONG; w * BITS_PER_LONG < flow->top; w++)
			missing(flow, w, bits_from(w, end), ack->echo, reorder, news);
	}
	while (flow->low < flow->count && test_bit(flow->low, flow->done))
		flow->low++;
}

/**
 * ored_flow_stop() - the peer takes no more of the flow
 * @flow: the flow; what has arrived of it remains known
 *
 * Return: chunks that were in flight
 */
u32 ored_flow_stop(struct ored_flow *flow)
{
	u32 inflight = flow->inflight;

	flow->stopped = true;
	flow->inflight = 0;
	flow->nlost = 0;
	memset(flow->lost, 0, BITS_TO_LONGS(flow->count) * sizeof(long));
	return inflight;
}
