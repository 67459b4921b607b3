/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The sender's side of a flow: the chunks of one shard, for one peer, in one
 * stage of one op. Knows what was sent and when, what has arrived, and what
 * has to be sent again: selective repeat, with loss told from reordering by
 * time as in RACK (RFC 8985): a chunk is lost when an ACK shows it missing
 * that was caused by a packet sent sufficiently later.
 *
 * The caller serialises all calls for a flow.
 */
#ifndef ORED_CORE_REPAIR_H
#define ORED_CORE_REPAIR_H

#include "shim.h"
#include "wire.h"

/**
 * struct ored_flow - one flow's sender
 * @sent: clock of each chunk's last transmission
 * @done: chunks that have arrived
 * @out: chunks that have been sent, arrived or not
 * @lost: chunks to be sent again
 * @count: chunks in all
 * @arrived: how many bits of @done are set
 * @nlost: how many bits of @lost are set
 * @inflight: sent, and neither known arrived nor lost
 * @low: all chunks below it have arrived
 * @top: no chunk from it on has been sent
 * @rescan: no chunk below it is lost
 * @stopped: the peer takes no more of it, and no chunk may be sent
 */
struct ored_flow {
	u32		*sent;
	unsigned long	*done;
	unsigned long	*out;
	unsigned long	*lost;
	u32		count;
	u32		arrived;
	u32		nlost;
	u32		inflight;
	u32		low;
	u32		top;
	u32		rescan;
	bool		stopped;
};

/**
 * struct ored_news - what an ACK has told
 * @arrived: chunks newly known to have arrived
 * @lost: chunks newly known to be lost
 * @oldest: clock of the latest-sent of the lost ones
 */
struct ored_news {
	u32	arrived;
	u32	lost;
	u32	oldest;
};

void ored_flow_start(struct ored_flow *flow, u32 count);
void ored_flow_sent(struct ored_flow *flow, u32 chunk, u32 clock);
void ored_flow_unsent(struct ored_flow *flow, u32 chunk);
bool ored_flow_resend(struct ored_flow *flow, u32 *chunk);
void ored_flow_acked(struct ored_flow *flow, const struct ored_ack *ack,
		     u32 reorder, struct ored_news *news);
u32 ored_flow_stop(struct ored_flow *flow);

static inline bool ored_flow_complete(const struct ored_flow *flow)
{
	return flow->arrived == flow->count;
}

#endif /* ORED_CORE_REPAIR_H */
