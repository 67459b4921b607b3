// SPDX-License-Identifier: GPL-2.0

#include "pace.h"

#define NS_PER_S	1000000000ULL
#define STEADY		3	/* spans without growth, until the rate is known */
#define GROWN_PERCENT	115	/* of the rate: less isn't growth */
#define KNOWN_PERCENT	101	/* of the rate is earned once it is known, */
#define PROBE_PERCENT	125	/* in one span of eight, */
#define START_PERCENT	200	/* and before */
#define TRAIN_NS	250000	/* the longest that one peer's train may take */
#define TRAIN_MAX	16

/**
 * ored_pace_init() - nothing is known
 * @p: what to fill in
 * @packet: bytes of a full packet, on the wire
 */
void ored_pace_init(struct ored_pace *p, u32 packet)
{
	memset(p, 0, sizeof(*p));
	p->packet = packet;
}

static u64 highest(const struct ored_pace *p)
{
	u64 most = 0;
	u32 i;

	for (i = 0; i < min_t(u32, p->nrecent, ORED_PACE_SAMPLES); i++)
		most = max(most, p->recent[i]);
	return most;
}

static void sample(struct ored_pace *p, u64 rate)
{
	/* Who was held back by anything else could have been faster. */
	if (p->rate && !p->held && rate <= p->rate)
		return;
	if (rate * 100 > p->rate * GROWN_PERCENT)
		p->steady = 0;
	else if (p->steady < STEADY)
		p->steady++;
	p->recent[p->nrecent++ % ORED_PACE_SAMPLES] = rate;
	p->rate = highest(p);
}

static void begin_span(struct ored_pace *p, u64 sent, u64 now)
{
	p->span_start = now;
	p->span_bytes = 0;
	p->sent_first = sent;
	p->sent_last = sent;
	p->held = true;
}

/**
 * ored_pace_acked() - packets have arrived
 * @p: the sender's
 * @bytes: of them
 * @sent: when the last of them was sent
 * @now: the time
 */
void ored_pace_acked(struct ored_pace *p, u64 bytes, u64 sent, u64 now)
{
	u64 span = now - p->span_start;

	/* What is acknowledged first was sent before; a long silence is no rate. */
	if (!p->span_start || span > NS_PER_S) {
		begin_span(p, sent, now);
		return;
	}
	p->span_bytes += bytes;
	p->sent_first = min(p->sent_first, sent);
	p->sent_last = max(p->sent_last, sent);
	if (span < ORED_PACE_SPAN_NS || p->span_bytes < (u64)ORED_PACE_SPAN_PACKETS * p->packet)
		return;
	span = max(span, p->sent_last - p->sent_first);
	sample(p, div64_u64(p->span_bytes * NS_PER_S, span));
	begin_span(p, sent, now);
}

/**
 * ored_pace_idle() - something else than the link holds us back
 * @p: the sender's: few peers' windows, or there is nothing to send
 */
void ored_pace_idle(struct ored_pace *p)
{
	p->held = false;
}

static u64 earning(const struct ored_pace *p)
{
	u32 percent = KNOWN_PERCENT;

	if (p->steady < STEADY)
		percent = START_PERCENT;
	else if (p->nrecent % ORED_PACE_SAMPLES == 0)
		percent = PROBE_PERCENT;
	return div_u64(p->rate * percent, 100);
}

static s64 most_tokens(const struct ored_pace *p, u64 rate)
{
	return (s64)max((u64)ORED_PACE_PACKETS * p->packet,
			mul_u64_u64_shr(rate, ((u64)ORED_PACE_NS << 32) / NS_PER_S, 32));
}

static void earn(struct ored_pace *p, u64 rate, u64 now)
{
	u64 span = now - p->earned;
	s64 most = most_tokens(p, rate);

	p->earned = now;
	/* After a second there is as much as may be saved, whatever the rate. */
	if (span >= NS_PER_S) {
		p->tokens = most;
		return;
	}
	p->tokens += (s64)mul_u64_u64_shr(rate, (span << 32) / NS_PER_S, 32);
	p->tokens = min(p->tokens, most);
}

/**
 * ored_pace_take() - how many packets may leave?
 * @p: the sender's
 * @packets: how many there are
 * @now: the time
 * @when: receives when there will be more, if less than @packets may
 *
 * Return: 0 to @packets, for which tokens have been spent
 */
u32 ored_pace_take(struct ored_pace *p, u32 packets, u64 now, u64 *when)
{
	u64 rate = earning(p);
	u32 n;

	if (!rate)
		return packets;
	earn(p, rate, now);
	/* One may leave on credit, so that the pace doesn't depend on the timer. */
	n = p->tokens <= 0 ? 0 : (u32)div64_u64((u64)p->tokens + p->packet - 1, p->packet);
	n = min(n, packets);
	p->tokens -= (s64)n * p->packet;
	if (n < packets)
		*when = now + 1 + div64_u64((u64)max_t(s64, 1 - p->tokens, 1) * NS_PER_S, rate);
	return n;
}

/**
 * ored_pace_return() - packets for which tokens were taken didn't leave
 * @p: the sender's
 * @packets: how many
 */
void ored_pace_return(struct ored_pace *p, u32 packets)
{
	if (p->rate)
		p->tokens += (s64)packets * p->packet;
}

/**
 * ored_pace_train() - packets that one peer may get in a row
 * @p: the sender's
 *
 * As many as leave in a quarter of a millisecond: peers' ports fill evenly.
 *
 * Return: 1 to 16
 */
u32 ored_pace_train(const struct ored_pace *p)
{
	u64 bytes = mul_u64_u64_shr(p->rate, ((u64)TRAIN_NS << 32) / NS_PER_S, 32);

	if (!p->rate)
		return TRAIN_MAX;
	return clamp_t(u64, div_u64(bytes, p->packet), 1, TRAIN_MAX);
}

/**
 * ored_pace_packet_us() - what a packet takes on the link
 * @p: the sender's
 *
 * Return: microseconds, rounded up; 0: not known
 */
u32 ored_pace_packet_us(const struct ored_pace *p)
{
	return p->rate ? (u32)min_t(u64, div64_u64(p->packet * 1000000ULL, p->rate) + 1, 1000000)
		       : 0;
}
