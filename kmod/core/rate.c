// SPDX-License-Identifier: GPL-2.0

#include "rate.h"

/**
 * ored_rate_init() - a peer that nothing is known of
 * @rate: what to fill in
 * @peers: how many peers there are: all of them send to one port at once, so
 *	they share what a first burst may be
 */
void ored_rate_init(struct ored_rate *rate, u32 peers)
{
	memset(rate, 0, sizeof(*rate));
	rate->window = clamp_t(u32, ORED_WINDOW_SHARE / max(peers, 1U),
			       ORED_WINDOW_MIN, 10);
	rate->threshold = ORED_WINDOW_MAX;
	rate->slack_us = ORED_PTO_SLACK_US;
}

/* The shortest round trip is the path without queues; paths change, though. */
static void note_base(struct ored_rate *rate, u32 sample_us)
{
	if (!rate->samples++ || sample_us < rate->next_us)
		rate->next_us = sample_us;
	if (!rate->base_us || sample_us < rate->base_us)
		rate->base_us = sample_us;
	if (rate->samples < ORED_BASE_SAMPLES)
		return;
	rate->base_us = rate->next_us;
	rate->samples = 0;
}

static u32 waits(const struct ored_rate *rate)
{
	return rate->srtt_us - min(rate->srtt_us, rate->base_us);
}

/* Do too many packets wait in queues on the way to this peer? */
static bool queues(const struct ored_rate *rate)
{
	u32 packet = rate->packet_us ?: rate->srtt_us / rate->window;

	return waits(rate) > max(ORED_QUEUE_PACKETS * packet, ORED_QUEUE_US + 0U);
}

/* Some wait, and every round trip takes longer than the one before. */
static bool fills(const struct ored_rate *rate)
{
	u32 packet = rate->packet_us ?: rate->srtt_us / rate->window;

	return rate->gradient_us > (s32)min_t(u32, packet / 4, S32_MAX) &&
	       waits(rate) > max(ORED_QUEUE_PACKETS / 2 * packet, ORED_QUEUE_US + 0U);
}

/* How samples grow, smoothed as the mean is */
static void note_gradient(struct ored_rate *rate, u32 sample_us)
{
	s32 growth = (s32)sample_us - (s32)(rate->last_us ?: sample_us);

	rate->last_us = sample_us;
	rate->gradient_us = (7 * rate->gradient_us + growth) / 8;
}

/**
 * ored_rate_rtt() - a round trip was measured (RFC 6298, section 2)
 * @rate: the peer's
 * @sample_us: microseconds
 */
void ored_rate_rtt(struct ored_rate *rate, u32 sample_us)
{
	u32 delta;

	sample_us = clamp_t(u32, sample_us, 1, ORED_PTO_MAX_US);
	rate->backoff = 0;
	note_base(rate, sample_us);
	note_gradient(rate, sample_us);
	if (!rate->srtt_us) {
		rate->srtt_us = sample_us;
		rate->rttvar_us = sample_us / 2;
		return;
	}
	delta = sample_us > rate->srtt_us ? sample_us - rate->srtt_us :
					    rate->srtt_us - sample_us;
	rate->rttvar_us = (3 * rate->rttvar_us + delta) / 4;
	rate->srtt_us = max(1U, (7 * rate->srtt_us + sample_us) / 8);
}

/* By an eighth in each round trip. */
static void shrink(struct ored_rate *rate, u32 packets)
{
	u32 least = rate->packet_us ? ORED_WINDOW_PACED : ORED_WINDOW_MIN;

	if (rate->window <= least)
		return;
	rate->credit += packets;
	if (rate->credit < rate->window)
		return;
	rate->credit = 0;
	rate->window = max_t(u32, rate->window - max(rate->window / 8, 1U), least);
	rate->threshold = rate->window;
}

/**
 * ored_rate_acked() - packets have arrived
 * @rate: the peer's
 * @packets: how many
 * @limited: the window was what held the sender back; one that isn't used
 *	must not grow
 */
void ored_rate_acked(struct ored_rate *rate, u32 packets, bool limited)
{
	if (!limited)
		return;
	if (queues(rate)) {
		shrink(rate, packets);
		return;
	}
	if (fills(rate))
		return;
	if (rate->window < rate->threshold) {
		rate->window = min_t(u32, rate->window + packets, rate->threshold);
		return;
	}
	rate->credit += packets;
	if (rate->credit >= rate->window) {
		rate->credit -= rate->window;
		rate->window = min_t(u32, rate->window + 1, ORED_WINDOW_MAX);
	}
}

/**
 * ored_rate_lost() - a packet is lost
 * @rate: the peer's
 * @sent_clock: when it was sent
 * @now_clock: now
 *
 * Cuts the window to 0.7 of it, once for all that was sent before the cut.
 *
 * Return: whether it was cut
 */
bool ored_rate_lost(struct ored_rate *rate, u32 sent_clock, u32 now_clock)
{
	if (rate->cut && (s32)(sent_clock - rate->cut_clock) < 0)
		return false;
	rate->cut = true;
	rate->cut_clock = now_clock;
	rate->window = max_t(u32, rate->window * 7 / 10, ORED_WINDOW_MIN);
	rate->threshold = rate->window;
	rate->credit = 0;
	return true;
}

/**
 * ored_rate_spurious() - something was sent again that had not been lost
 * @rate: the peer's
 *
 * So packets overtake each other by more than was forgiven.
 */
void ored_rate_spurious(struct ored_rate *rate)
{
	u32 next = 2 * ored_rate_reorder(rate);

	rate->reorder_us = min(max(next, 1U), max(2 * rate->srtt_us, 1U));
}

/**
 * ored_rate_pto() - how long silence may last before the peer is asked
 * @rate: the peer's
 *
 * Return: microseconds. With every question left without an answer it grows,
 * first evenly: where half of them get lost, runs of eight are common, and a
 * doubled time-out would last a second. Then it doubles, up to ORED_PTO_MAX_US.
 */
u32 ored_rate_pto(const struct ored_rate *rate)
{
	u64 pto = ORED_PTO_FIRST_US;

	if (rate->srtt_us)
		pto = rate->srtt_us + max(4 * rate->rttvar_us, rate->srtt_us) +
		      rate->slack_us;
	if (rate->backoff < ORED_PTO_PATIENT)
		pto *= 1 + rate->backoff;
	else
		pto *= (u64)ORED_PTO_PATIENT << (rate->backoff - ORED_PTO_PATIENT + 1);
	return (u32)min_t(u64, pto, ORED_PTO_MAX_US);
}

/**
 * ored_rate_timeout() - a question was left without an answer
 * @rate: the peer's
 */
void ored_rate_timeout(struct ored_rate *rate)
{
	if (rate->backoff < 2 * ORED_PTO_PATIENT)
		rate->backoff++;
}

/**
 * ored_rate_hurry() - an op begins
 * @rate: of the peer
 * @bound_ns: its bound D; 0: it has none
 *
 * That the last packets of a flow are lost is found out by asking. Where the op
 * would be over before a busy peer must have answered, asking in vain, which costs
 * a small packet, is better than not in time.
 */
void ored_rate_hurry(struct ored_rate *rate, u64 bound_ns)
{
	u64 part = bound_ns ? div_u64(bound_ns, 1000 * ORED_PTO_SLACK_PART) : ORED_PTO_SLACK_US;

	rate->slack_us = clamp_t(u64, part, ORED_PTO_SLACK_LEAST_US, ORED_PTO_SLACK_US);
}
