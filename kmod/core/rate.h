/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much may be in flight to a peer: a window in packets, grown by what is
 * acknowledged and cut by loss, and the round-trip time that tells when
 * silence has lasted too long (RFC 6298's estimator, RFC 9438's factor).
 *
 * A window that only loss stops fills every queue on the way first, and a
 * port where all peers meet overflows. So it shrinks as well while packets
 * wait in queues: as in TCP Vegas, a few of this peer's own, or as long as a
 * busy host may take anyway. And it doesn't grow while the round trip does, as
 * in TIMELY; all counted in packet times of the measured link (core/pace.h).
 */
#ifndef ORED_CORE_RATE_H
#define ORED_CORE_RATE_H

#include "shim.h"

#define ORED_WINDOW_MIN		2
#define ORED_WINDOW_MAX		2048
#define ORED_WINDOW_PACED	6	/* where the pace, not the window, holds back: */
					/* less costs more in ACKs than it saves in queues */
#define ORED_WINDOW_SHARE	64	/* first windows of all peers together */
#define ORED_QUEUE_PACKETS	6	/* that may wait on the way */
#define ORED_QUEUE_US		300	/* or so long; below it, delay is noise */
#define ORED_BASE_SAMPLES	4096	/* until an old minimum is forgotten */
#define ORED_PTO_FIRST_US	20000	/* before a round trip has been measured */
#define ORED_PTO_MAX_US		1000000
#define ORED_PTO_PATIENT	8	/* questions before the time-out doubles */
#define ORED_PTO_SLACK_US	4000	/* a peer's processor may be busy; but no more */
#define ORED_PTO_SLACK_PART	16	/* than this part of an op's bound is given to it, */
#define ORED_PTO_SLACK_LEAST_US	100	/* nor less than this */

/**
 * struct ored_rate - of one peer
 * @window: packets that may be in flight
 * @credit: acknowledged packets not yet turned into window
 * @threshold: up to it the window grows by every acknowledged packet
 * @srtt_us: smoothed round trip, 0: not measured yet
 * @rttvar_us: its mean deviation
 * @base_us: shortest of the last ORED_BASE_SAMPLES, or somewhat more
 * @next_us: shortest since @base_us was renewed
 * @samples: how many since then
 * @last_us: the last sample
 * @gradient_us: by how much samples grow, from one to the next, smoothed
 * @packet_us: what a packet takes on the link; 0: not measured
 * @cut_clock: clock of the last cut: packets sent before it are no new loss
 * @cut: @cut_clock is set
 * @reorder_us: how much later a packet may come than one sent after it
 * @backoff: questions left without an answer
 * @slack_us: time that a peer's processor is given before it is asked
 */
struct ored_rate {
	u32	window;
	u32	credit;
	u32	threshold;
	u32	srtt_us;
	u32	rttvar_us;
	u32	base_us;
	u32	next_us;
	u32	samples;
	u32	last_us;
	s32	gradient_us;
	u32	packet_us;
	u32	cut_clock;
	bool	cut;
	u32	reorder_us;
	u8	backoff;
	u32	slack_us;
};

void ored_rate_init(struct ored_rate *rate, u32 peers);
void ored_rate_rtt(struct ored_rate *rate, u32 sample_us);
void ored_rate_acked(struct ored_rate *rate, u32 packets, bool limited);
bool ored_rate_lost(struct ored_rate *rate, u32 sent_clock, u32 now_clock);
void ored_rate_spurious(struct ored_rate *rate);
u32 ored_rate_pto(const struct ored_rate *rate);
void ored_rate_timeout(struct ored_rate *rate);
void ored_rate_hurry(struct ored_rate *rate, u64 bound_ns);

/*
 * How long it may take until a peer, however busy, has asked about its last packets,
 * in microseconds
 */
static inline u32 ored_rate_asks_within(const struct ored_rate *rate)
{
	return ored_rate_pto(rate) + ORED_PTO_SLACK_US - rate->slack_us;
}

/* How far reordering is forgiven, in microseconds */
static inline u32 ored_rate_reorder(const struct ored_rate *rate)
{
	return max(rate->reorder_us, rate->srtt_us / 4);
}

#endif /* ORED_CORE_RATE_H */
