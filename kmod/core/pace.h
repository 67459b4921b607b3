/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pacing: gradients leave at the rate that the link was measured to carry, all
 * peers together, so that they queue here, where they are chosen peer by peer and
 * scatter before gather, and not in the host's own egress queue, where they
 * would delay each other's acknowledgements.
 *
 * Tokens, in bytes, are earned at the measured rate and spent by packets; as many
 * as ORED_PACE_PACKETS packets need, or as are earned in ORED_PACE_NS, may be
 * saved. The rate is the most that was acknowledged in any of the last
 * ORED_PACE_SAMPLES spans in which the link held us back: there were no tokens, or
 * most peers' windows were full; or more if any other span has shown more. While
 * it grows, tokens are earned at twice the rate; afterwards at just more than it
 * and, in one span of eight, at a quarter more, so that a link that gets faster is
 * noticed. Rather too fast than too slow: then windows hold back what the pace
 * doesn't, while a rank that is too slow has all others wait for it.
 *
 * A span's rate is its bytes by the time in which they were acknowledged or, if
 * that is longer, sent: queues at several receivers that empty at the same time
 * are not a faster link.
 *
 * The caller serialises all calls. All times are ns, all amounts bytes as they
 * are on the wire, with all headers.
 */
#ifndef ORED_CORE_PACE_H
#define ORED_CORE_PACE_H

#include "shim.h"

#define ORED_PACE_PACKETS	4	/* that may leave at once */
#define ORED_PACE_NS		1000000	/* or so much time's worth of them */
#define ORED_PACE_SAMPLES	8
#define ORED_PACE_SPAN_NS	2000000	/* a span is at least as long, */
#define ORED_PACE_SPAN_PACKETS	96	/* and has at least so many packets */

/**
 * struct ored_pace - a sender's
 * @packet: bytes of a full packet
 * @rate: bytes per second, 0: not known, and nothing is held back
 * @recent: what the last busy spans have shown
 * @nrecent: how many of them there were
 * @steady: spans in a row in which the rate has not grown
 * @tokens: bytes that may leave now; below zero: they have left already
 * @earned: until when tokens are earned
 * @span_start: when the span began; 0: there is none
 * @span_bytes: what was acknowledged in it
 * @sent_first: when the first of that was sent
 * @sent_last: and the last
 * @held: the link has held us back in all of it
 */
struct ored_pace {
	u32	packet;
	u64	rate;
	u64	recent[ORED_PACE_SAMPLES];
	u32	nrecent;
	u32	steady;
	s64	tokens;
	u64	earned;
	u64	span_start;
	u64	span_bytes;
	u64	sent_first;
	u64	sent_last;
	bool	held;
};

void ored_pace_init(struct ored_pace *p, u32 packet);
void ored_pace_acked(struct ored_pace *p, u64 bytes, u64 sent, u64 now);
void ored_pace_idle(struct ored_pace *p);
u32 ored_pace_take(struct ored_pace *p, u32 packets, u64 now, u64 *when);
void ored_pace_return(struct ored_pace *p, u32 packets);
u32 ored_pace_train(const struct ored_pace *p);
u32 ored_pace_packet_us(const struct ored_pace *p);

#endif /* ORED_CORE_PACE_H */
