// SPDX-License-Identifier: GPL-2.0

#include "describe.h"

/**
 * ored_describe_peer() - what is known of a peer
 * @m: the membership, which can't go; no spinlock held
 * @l: one of its links, its own included
 * @state: receives it
 */
void ored_describe_peer(struct ored_member *m, struct ored_link *l,
			struct ored_peer_state *state)
{
	memset(state, 0, sizeof(*state));
	state->rank = l->rank;
	if (l->rank == m->rank) {
		state->status = ORED_PEER_LIVE;
		state->posted = READ_ONCE(m->posted);
		state->finished = READ_ONCE(m->finished);
		return;
	}
	spin_lock_bh(&l->lock);
	state->status = l->status;
	/* Asked again and again, it says nothing. */
	if (l->status == ORED_PEER_LIVE && (l->rate.backoff >= ORED_SILENT_AFTER ||
					    l->asks >= ORED_SILENT_AFTER))
		state->status = ORED_PEER_SILENT;
	else if (l->status == ORED_PEER_LIVE && !ored_standing_counts(&l->standing))
		state->status = ORED_PEER_STALLED;
	state->posted = l->standing.posted;
	state->finished = l->standing.left;
	state->heard_us = ~0ULL;
	if (l->standing.heard)
		state->heard_us = div_u64(ktime_get_ns() - l->standing.heard, NSEC_PER_USEC);
	state->srtt_us = l->rate.srtt_us;
	state->window = l->rate.window;
	state->inflight = l->inflight;
	state->path_payload = min(l->path->ok, m->payload ?: l->path->ok);
	state->sent = l->sent;
	state->resent = l->resent;
	state->received = l->received;
	state->duplicates = l->duplicates;
	state->local_drops = l->local_drops;
	spin_unlock_bh(&l->lock);
}
