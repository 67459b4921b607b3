/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long packets of gradients take from their sender's clock to here. The two
 * clocks are compared as NTP does: an ACK echoes our clock and brings its sender's,
 * and half the round trip is taken for one way. The comparison with the shortest
 * round trip counts; it is worth less the older it is, as clocks drift apart.
 * Where the ways there and back differ, so do the latencies, by half of that.
 */
#ifndef ORED_BPF_MEASURE_H
#define ORED_BPF_MEASURE_H

#include "common.h"
#include "parse.h"

/* An ACK has come: compares the clocks. */
static __always_inline void ored_measure_ack(const struct ored_datagram *d,
					     struct ored_x_peer *peer, u64 now)
{
	const __be32 *echo = (const void *)(d->wire + 1);
	u32 rtt, worst;

	if ((const void *)(echo + 1) > d->end)
		return;
	rtt = (u32)(now / 1000) - bpf_ntohl(*echo);
	if (rtt > ORED_X_SYNC_MAX_US)
		return;
	worst = peer->rtt_us + (u32)min((now - peer->synced_ns) / 1000 >> ORED_X_DRIFT_SHIFT,
					(u64)ORED_X_SYNC_MAX_US);
	if (peer->synced_ns && rtt > worst)
		return;
	peer->offset_us = bpf_ntohl(d->wire->clock) - (bpf_ntohl(*echo) + rtt / 2);
	peer->rtt_us = rtt;
	peer->synced_ns = now;
}

/* Counts chunks that this one has passed over. */
static __always_inline void ored_measure_gap(struct ored_x_latency *l, u32 op, u32 chunk,
					     bool resent)
{
	if (resent)
		return;
	if (l->op != op) {
		l->op = op;
		l->next = 0;
	}
	if (chunk > l->next)
		l->gaps += chunk - l->next;
	if (chunk >= l->next)
		l->next = chunk + 1;
}

/* For the program that sees its chunk taken. */
static __always_inline void ored_measure_arrival(u64 tag, u64 now)
{
	u32 index = ored_x_arrival_index(tag);
	struct ored_x_arrival *arrival = bpf_map_lookup_elem(&ored_arrivals, &index);

	if (!arrival)
		return;
	arrival->at_ns = now;
	arrival->tag = tag;
}

static __always_inline void ored_measure_latency(const struct ored_datagram *d,
						 const struct ored_x_peer *peer,
						 struct ored_x_latency *l, u64 now)
{
	s32 us;

	if (!peer->synced_ns) {
		ored_x_count(ORED_X_UNSYNCED, 1);
		return;
	}
	us = (s32)((u32)(now / 1000) - (bpf_ntohl(d->wire->clock) - peer->offset_us));
	ored_x_record(l, us > 0 ? (u64)us * 1000 : 0);
	ored_x_count(ORED_X_TIMED, 1);
}

/**
 * ored_measure() - a packet has come from where it says that it comes from
 * @d: it
 * @session: its key
 * @m: the membership
 * @now: ns
 */
static __always_inline void ored_measure(const struct ored_datagram *d,
					 const struct ored_x_session *session,
					 struct ored_x_member *m, u64 now)
{
	u32 type = ored_wire_type(d->wire), chunk, op, stage;
	struct ored_x_peer *peer = &m->peer[d->wire->src];
	struct ored_x_latency *l;
	struct ored_x_flow flow;

	if (type == ORED_T_ACK) {
		ored_measure_ack(d, peer, now);
		return;
	}
	if (type != ORED_T_SCATTER && type != ORED_T_GATHER)
		return;
	stage = type == ORED_T_GATHER;
	chunk = bpf_ntohl(d->wire->params_chunk) & ((1U << ORED_CHUNK_BITS) - 1);
	op = bpf_ntohl(d->wire->op);
	flow.netns = session->netns;
	flow.group = m->group;
	flow.rank = (u8)m->rank;
	flow.peer = d->wire->src;
	flow.stage = (u8)stage;
	flow.what = ORED_X_NETWORK;
	l = ored_x_latency_of(&flow);
	if (!l)
		return;
	l->packets++;
	l->bytes += d->len;
	ored_measure_gap(l, op, chunk, d->wire->type_flags & ORED_F_RESENT);
	ored_measure_latency(d, peer, l, now);
	ored_measure_arrival(ored_x_tag(session->session, op, d->wire->src, stage, chunk), now);
}

#endif /* ORED_BPF_MEASURE_H */
