/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Dropping what nobody wants before an skb exists. Only on positive evidence, which
 * no map that lags behind can forge:
 *
 *  - The module itself has refused a packet like it from the same source within the
 *    last ORED_X_LEASE_NS, at a time when all of its memberships were known here, and
 *    none has been made since (ored_refused).
 *  - The packet carries the session of a membership that we know. Sessions are drawn
 *    at random and never used again, and a membership's group, ranks and addresses
 *    never change: what contradicts them is of no use to anybody, nor is what names
 *    the session of a membership that is gone. Ops that are done with stay so.
 *
 * What is merely unknown passes.
 */
#ifndef ORED_BPF_SHIELD_H
#define ORED_BPF_SHIELD_H

#include "common.h"
#include "parse.h"

/* The epoch that a HELLO is about; false: it isn't in the first piece */
static __always_inline bool ored_shield_epoch(const struct ored_datagram *d, __u64 *epoch)
{
	const __be32 *content = (const void *)(d->wire + 1);

	if ((const void *)(content + 2) > d->end)
		return false;
	*epoch = (__u64)bpf_ntohl(content[0]) << 32 | bpf_ntohl(content[1]);
	return true;
}

/* Has the module just refused a packet like this one? Counts the drop if so. */
static __always_inline bool ored_shield_refused(const struct ored_datagram *d, u32 netns,
						bool readable)
{
	struct ored_x_state *state = bpf_map_lookup_elem(&ored_state, &ored_zero);
	struct ored_x_refused_key key = { .netns = netns, .port = d->port };
	struct ored_x_refused *refused;
	u64 now;

	/* Nearly always, and then it costs nothing. */
	if (!state || !state->refused_until_ns)
		return false;
	now = bpf_ktime_get_ns();
	if (now > state->refused_until_ns)
		return false;
	if (readable) {
		key.group = bpf_ntohl(d->wire->group);
		key.session = bpf_ntohl(d->wire->session);
		key.type = (u8)ored_wire_type(d->wire);
		key.dst = d->wire->dst;
		key.src = d->wire->src;
		if (key.type == ORED_T_HELLO && !ored_shield_epoch(d, &key.epoch))
			return false;
	}
	__builtin_memcpy(key.addr, d->addr, sizeof(key.addr));
	refused = bpf_map_lookup_elem(&ored_refused, &key);
	if (!refused || now > refused->until_ns || refused->generation != state->generation)
		return false;
	if (refused->counter >= ORED_X_COUNTERS)
		return false;
	ored_x_count(refused->counter, 1);
	return true;
}

/* Is this peer's address what the datagram comes from? */
static __always_inline bool ored_shield_from(const struct ored_datagram *d,
					     const struct ored_x_peer *peer)
{
	const u32 *addr = (const u32 *)peer->addr;

	return addr[0] == d->addr[0] && addr[1] == d->addr[1] && addr[2] == d->addr[2] &&
	       addr[3] == d->addr[3];
}

/* What is wrong with a packet that has this membership's session: 0: nothing */
static __always_inline u32 ored_shield_member(const struct ored_datagram *d,
					      const struct ored_x_member *m)
{
	const struct ored_x_peer *peer = &m->peer[d->wire->src];

	if (m->gone)
		return ORED_X_DROP_EPOCH;
	if (bpf_ntohl(d->wire->group) != m->group || d->wire->dst != m->rank ||
	    d->wire->src >= m->nranks || d->wire->src == m->rank || d->family != m->family)
		return ORED_X_DROP_MEMBER;
	if (peer->known && !ored_shield_from(d, peer))
		return ORED_X_DROP_MEMBER;
	return 0;
}

/*
 * Gradients of an op that is done with are no use, but the module tells their
 * sender how far it is, once in a while. These have to get there.
 */
static __always_inline bool ored_shield_sealed(const struct ored_datagram *d,
					       struct ored_x_member *m, u64 now)
{
	struct ored_x_peer *peer = &m->peer[d->wire->src];
	s32 ahead = (s32)(bpf_ntohl(d->wire->op) - (u32)m->retained);
	u32 type = ored_wire_type(d->wire);

	if (type != ORED_T_SCATTER && type != ORED_T_GATHER)
		return false;
	if (ahead >= 0)
		return false;
	if (now - peer->passed_ns >= ORED_X_ANSWER_NS) {
		peer->passed_ns = now;
		ored_x_count(ORED_X_ANSWERED, 1);
		return false;
	}
	return true;
}

#endif /* ORED_BPF_SHIELD_H */
