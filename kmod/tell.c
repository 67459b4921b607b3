// SPDX-License-Identifier: GPL-2.0
/*
 * Telling BPF programs, by tracepoints, what they need to know of memberships and
 * packets. Nothing is put together unless somebody listens.
 *
 * Events of memberships are numbered under the namespace's lock, so that a program
 * notices when one has passed it by; it can have all of it told again.
 */

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <linux/udp.h>

#include "core/wire.h"
#include "member.h"
#include "tell.h"
#include "trace.h"

static void fill_member(const struct ored_member *m, u32 event, struct ored_event_member *ev)
{
	memset(ev, 0, sizeof(*ev));
	ev->netns = m->on->net->ns.inum;
	ev->event = event;
	ev->session = m->session;
	ev->group = m->conf.group;
	ev->rank = m->rank;
	ev->nranks = m->nranks;
	ev->epoch = m->conf.epoch;
	ev->posted = READ_ONCE(m->posted);
	ev->retained = READ_ONCE(m->retained);
	ev->family = m->family;
	ev->port = ntohs(m->links[m->rank].addr.port);
}

static void fill_addr(u8 to[16], u16 family, const void *addr)
{
	memset(to, 0, 16);
	memcpy(to, addr, family == AF_INET ? 4 : 16);
}

/* Counted whether anybody listens or not, so that who comes later knows. */
static u32 next_seq(struct ored_net *on)
{
	lockdep_assert_held(&on->lock);
	WRITE_ONCE(on->told, on->told + 1);
	return on->told;
}

/* Tells of a membership and of its ranks. */
static void tell_whole(struct ored_member *m, bool again)
{
	struct ored_event_member ev;
	u32 r;

	lockdep_assert_held(&m->on->lock);
	fill_member(m, ORED_EVENT_MADE, &ev);
	ev.replayed = again;
	ev.seq = again ? m->on->told : next_seq(m->on);
	local_bh_disable();
	trace_ored_member(&ev);
	ev.event = ORED_EVENT_PEER;
	for (r = 0; r < m->nranks; r++) {
		const struct ored_addr *addr = &m->links[r].addr;

		ev.peer = r;
		ev.seq = again ? m->on->told : next_seq(m->on);
		fill_addr(ev.addr, addr->family, &addr->v6);
		trace_ored_member(&ev);
	}
	local_bh_enable();
}

/**
 * ored_tell_made() - a membership can be reached now
 * @m: it; nobody knows its session yet
 */
void ored_tell_made(struct ored_member *m)
{
	if (trace_ored_member_enabled())
		tell_whole(m, false);
	else
		next_seq(m->on);
}

/**
 * ored_tell_gone() - a membership can't be reached any more
 * @m: it; under its namespace's lock
 */
void ored_tell_gone(struct ored_member *m)
{
	struct ored_event_member ev;
	u32 seq;

	lockdep_assert_held(&m->on->lock);
	seq = next_seq(m->on);
	if (!trace_ored_member_enabled())
		return;
	fill_member(m, ORED_EVENT_GONE, &ev);
	ev.seq = seq;
	local_bh_disable();
	trace_ored_member(&ev);
	local_bh_enable();
}

/**
 * ored_tell_window() - more ops are done with
 * @m: it; under its lock
 */
void ored_tell_window(struct ored_member *m)
{
	struct ored_event_member ev;

	lockdep_assert_held(&m->lock);
	if (!trace_ored_member_enabled())
		return;
	fill_member(m, ORED_EVENT_WINDOW, &ev);
	trace_ored_member(&ev);
}

/**
 * ored_tell_again() - tells of all memberships of a namespace, as when they were made
 * @on: the namespace
 *
 * For programs that came later, or that have missed something.
 */
void ored_tell_again(struct ored_net *on)
{
	struct ored_member *m;

	mutex_lock(&on->lock);
	list_for_each_entry(m, &on->members, list) {
		tell_whole(m, true);
		spin_lock_bh(&m->lock);
		ored_tell_window(m);
		spin_unlock_bh(&m->lock);
	}
	mutex_unlock(&on->lock);
}

/**
 * ored_tell_chunk() - a packet of gradients has come
 * @l: from whom; in softirq
 * @pkt: its header
 * @fate: enum ored_fate
 */
void ored_tell_chunk(const struct ored_link *l, const struct ored_packet *pkt, u8 fate)
{
	struct ored_event_chunk ev;

	if (!trace_ored_chunk_enabled())
		return;
	memset(&ev, 0, sizeof(ev));
	ev.netns = l->m->on->net->ns.inum;
	ev.session = l->m->session;
	ev.group = l->m->conf.group;
	ev.rank = l->m->rank;
	ev.peer = l->rank;
	ev.op = ored_extend32(READ_ONCE(l->m->posted), pkt->op);
	ev.chunk = pkt->chunk;
	ev.clock = pkt->clock;
	ev.stage = pkt->type == ORED_T_GATHER ? ORED_GATHER : ORED_SCATTER;
	ev.fate = fate;
	trace_ored_chunk(&ev);
}

/**
 * ored_tell_refused() - nobody wants a packet, nor would he want another like it
 * @on: namespace; in softirq
 * @skb: the packet, from the UDP header on
 * @pkt: its header, or NULL if that can't be read
 * @told: ored_net.told when the packet was looked at
 * @epoch: of a HELLO, else 0
 * @cause: enum ored_counter
 */
void ored_tell_refused(const struct ored_net *on, const struct sk_buff *skb,
		       const struct ored_packet *pkt, u32 told, u64 epoch, u32 cause)
{
	struct ored_event_refused ev;
	bool four;

	if (!trace_ored_refused_enabled())
		return;
	four = ip_hdr(skb)->version == 4;
	memset(&ev, 0, sizeof(ev));
	ev.netns = on->net->ns.inum;
	ev.cause = cause;
	ev.told = told;
	ev.family = four ? AF_INET : AF_INET6;
	ev.port = ntohs(udp_hdr(skb)->dest);
	if (four)
		fill_addr(ev.addr, AF_INET, &ip_hdr(skb)->saddr);
	else
		fill_addr(ev.addr, AF_INET6, &ipv6_hdr(skb)->saddr);
	if (pkt) {
		ev.session = pkt->session;
		ev.group = pkt->group;
		ev.type = pkt->type;
		ev.dst = pkt->dst;
		ev.src = pkt->src;
		ev.epoch = epoch;
	}
	trace_ored_refused(&ev);
}
