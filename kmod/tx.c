// SPDX-License-Identifier: GPL-2.0
/*
 * Handing packets to IP. Tunnels' helpers throw away what ip_local_out() says;
 * we count it, since every drop has a cause.
 */

#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/dst_metadata.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/ipv6_stubs.h>
#include <net/route.h>
#include <net/udp.h>

#include "tx.h"

static struct sock *outer(const struct ored_link *l)
{
	return l->m->udp->sock->sk;
}

static const struct ored_addr *own(const struct ored_link *l)
{
	return &l->m->links[l->m->rank].addr;
}

static int route4(struct ored_link *l, struct ored_route *route)
{
	struct flowi4 fl = {
		.flowi4_oif = l->m->ifindex,
		.flowi4_proto = IPPROTO_UDP,
		.saddr = own(l)->v4,
		.daddr = l->addr.v4,
		.fl4_sport = own(l)->port,
		.fl4_dport = l->addr.port,
	};
	struct rtable *rt;

	rt = dst_cache_get_ip4(&l->dst, &route->v4);
	if (!rt) {
		security_sk_classify_flow(outer(l), flowi4_to_flowi_common(&fl));
		rt = ip_route_output_flow(l->m->on->net, &fl, outer(l));
		if (IS_ERR(rt))
			return PTR_ERR(rt);
		route->v4 = fl.saddr;
		dst_cache_set_ip4(&l->dst, &rt->dst, fl.saddr);
	}
	route->dst = &rt->dst;
	return 0;
}

static int route6(struct ored_link *l, struct ored_route *route)
{
	struct flowi6 fl = {
		.flowi6_oif = l->m->ifindex ?: l->addr.scope_id,
		.flowi6_proto = IPPROTO_UDP,
		.saddr = own(l)->v6,
		.daddr = l->addr.v6,
		.fl6_sport = own(l)->port,
		.fl6_dport = l->addr.port,
	};
	struct dst_entry *dst;

	dst = dst_cache_get_ip6(&l->dst, &route->v6);
	if (!dst) {
		security_sk_classify_flow(outer(l), flowi6_to_flowi_common(&fl));
		dst = ipv6_stub->ipv6_dst_lookup_flow(l->m->on->net, outer(l), &fl, NULL);
		if (IS_ERR(dst))
			return PTR_ERR(dst);
		route->v6 = fl.saddr;
		dst_cache_set_ip6(&l->dst, dst, &fl.saddr);
	}
	route->dst = dst;
	return 0;
}

/**
 * ored_route_get() - finds the way to a peer, from a cache if it is valid
 * @l: the peer; BH off
 * @route: receives it; ored_transmit() consumes the reference, or dst_release()
 *
 * Return: 0 or what routing said
 */
int ored_route_get(struct ored_link *l, struct ored_route *route)
{
	return l->addr.family == AF_INET ? route4(l, route) : route6(l, route);
}

/**
 * ored_overhead() - bytes of all headers of a packet, IP's included
 * @m: the membership
 */
u32 ored_overhead(const struct ored_member *m)
{
	return ORED_WIRE_HEADER + sizeof(struct udphdr) +
	       (m->family == AF_INET ? sizeof(struct iphdr) : sizeof(struct ipv6hdr));
}

/**
 * ored_route_payload() - payload that a route's MTU leaves
 * @m: the membership
 * @dst: the route
 *
 * Return: bytes, whole elements; 0 if the MTU is absurd
 */
u32 ored_route_payload(const struct ored_member *m, const struct dst_entry *dst)
{
	u32 mtu = min(dst_mtu(dst), 65535U), overhead = ored_overhead(m);

	return mtu > overhead ? ored_payload_round(mtu - overhead) : 0;
}

/**
 * ored_route_shrink() - a path carries less than its route says
 * @l: the peer; no lock held
 * @mtu: bytes that it carries
 *
 * Tells the routing, as an ICMP error would have; larger packets to this peer
 * will be fragmented from now on.
 */
void ored_route_shrink(struct ored_link *l, u32 mtu)
{
	struct net *net = l->m->on->net;
	struct sk_buff *skb = alloc_skb(sizeof(struct ipv6hdr), GFP_ATOMIC | __GFP_NOWARN);

	if (!skb) {
		ored_count(l->m->stats, ORED_CNT_NOMEM);
		return;
	}
	if (l->addr.family == AF_INET) {
		struct iphdr *ip = skb_put_zero(skb, sizeof(*ip));

		ip->saddr = own(l)->v4;
		ip->daddr = l->addr.v4;
		ipv4_update_pmtu(skb, net, mtu, l->m->ifindex, IPPROTO_UDP);
	} else {
		struct ipv6hdr *ip = skb_put_zero(skb, sizeof(*ip));

		ip->saddr = own(l)->v6;
		ip->daddr = l->addr.v6;
		ip6_update_pmtu(skb, net, htonl(mtu), l->m->ifindex ?: l->addr.scope_id, 0,
				sock_net_uid(net, NULL));
	}
	kfree_skb(skb);
}

static void put_ip4(struct ored_link *l, const struct ored_route *route,
		    struct sk_buff *skb, u32 packets, bool fragment)
{
	struct iphdr *ip;

	udp_set_csum(false, skb, route->v4, l->addr.v4, skb->len);
	ip = skb_push(skb, sizeof(*ip));
	skb_reset_network_header(skb);
	memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
	skb->protocol = htons(ETH_P_IP);
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tos = 0;
	ip->frag_off = fragment ? 0 : htons(IP_DF);
	ip->ttl = ip4_dst_hoplimit(route->dst);
	ip->protocol = IPPROTO_UDP;
	ip->saddr = route->v4;
	ip->daddr = l->addr.v4;
	__ip_select_ident(l->m->on->net, ip, packets);
}

static void put_ip6(struct ored_link *l, const struct ored_route *route,
		    struct sk_buff *skb)
{
	struct ipv6hdr *ip;

	udp6_set_csum(false, skb, &route->v6, &l->addr.v6, skb->len);
	ip = skb_push(skb, sizeof(*ip));
	skb_reset_network_header(skb);
	memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
	skb->protocol = htons(ETH_P_IPV6);
	ip6_flow_hdr(ip, 0, 0);
	ip->payload_len = htons(skb->len - sizeof(*ip));
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = ip6_dst_hoplimit(route->dst);
	ip->saddr = route->v6;
	ip->daddr = l->addr.v6;
}

static void put_udp(struct ored_link *l, struct sk_buff *skb)
{
	struct udphdr *udp = skb_push(skb, sizeof(*udp));

	skb_reset_transport_header(skb);
	udp->source = own(l)->port;
	udp->dest = l->addr.port;
	udp->len = htons(skb->len);
	udp->check = 0;
	if (!skb_is_gso(skb))
		return;
	/* For GSO, udp_set_csum() leaves these to us. */
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct udphdr, check);
}

/* The routing has learnt, by ICMP or from us, that a path carries less now. */
static void note_narrow(struct ored_link *l, const struct dst_entry *dst)
{
	u16 payload = ored_route_payload(l->m, dst);
	bool news;

	if (READ_ONCE(l->path->ok) <= payload)
		return;
	spin_lock(&l->m->lock);
	spin_lock(&l->lock);
	news = l->path->ok > payload;
	if (news)
		WRITE_ONCE(l->path->ok, payload);
	spin_unlock(&l->lock);
	spin_unlock(&l->m->lock);
	if (news)
		ored_count(l->m->stats, ORED_CNT_PATH_SHRUNK);
}

/**
 * ored_transmit() - hands packets to IP
 * @l: for whom; BH off, no lock held
 * @route: from ored_route_get(); consumed
 * @skb: our headers and payload, one or several packets of it; consumed
 * @packets: how many
 * @size: bytes of each packet, but for the last
 *
 * A packet that the path no longer carries whole is left to IP's
 * fragmentation: slower, but not lost.
 *
 * Return: 0, or the error with which this host dropped it
 */
int ored_transmit(struct ored_link *l, struct ored_route *route, struct sk_buff *skb,
		  u32 packets, u32 size)
{
	struct net *net = l->m->on->net;
	struct sock *sk = outer(l);
	bool fragment;
	int err;

	/* On the loopback IP hands the packet to ourselves. */
	lockdep_assert_not_held(&l->m->lock);
	lockdep_assert_not_held(&l->lock);
	fragment = size + ored_overhead(l->m) - ORED_WIRE_HEADER > dst_mtu(route->dst);
	if (unlikely(fragment))
		note_narrow(l, route->dst);
	if (packets > 1) {
		skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
		skb_shinfo(skb)->gso_size = size;
		skb_shinfo(skb)->gso_segs = packets;
	}
	put_udp(l, skb);
	skb_set_owner_w(skb, sk);
	skb_dst_set(skb, route->dst);
	if (l->addr.family == AF_INET) {
		put_ip4(l, route, skb, packets, fragment);
		skb->ignore_df = fragment;
		err = ip_local_out(net, sk, skb);
	} else {
		put_ip6(l, route, skb);
		skb->ignore_df = fragment;
		err = ip6_local_out(net, sk, skb);
	}
	err = net_xmit_eval(err);
	ored_count_add(l->m->stats, ORED_CNT_TX_PACKETS, packets);
	ored_count(l->m->stats, ORED_CNT_TX_TRAINS);
	if (unlikely(err)) {
		ored_count_add(l->m->stats, ORED_CNT_TX_DROPPED, packets);
		spin_lock(&l->lock);
		l->local_drops += packets;
		spin_unlock(&l->lock);
	}
	return err;
}

/**
 * ored_packet_init() - what all packets to a peer have in common
 * @l: the peer
 * @pkt: what to fill in
 * @type: enum ored_type
 * @flags: ORED_F_*
 */
void ored_packet_init(struct ored_link *l, struct ored_packet *pkt, u8 type, u8 flags)
{
	struct ored_member *m = l->m;

	memset(pkt, 0, sizeof(*pkt));
	pkt->type = type;
	pkt->flags = flags;
	pkt->src = m->rank;
	pkt->dst = l->rank;
	pkt->group = m->conf.group;
	pkt->session = READ_ONCE(l->path->session);
	/* Control packets have no op's parameters; those of gradients come later. */
	pkt->params.word = READ_ONCE(m->rotation_word);
	/* Pairs with the one in ored_rotate_advertise(). */
	smp_rmb();
	pkt->posted = (u16)READ_ONCE(m->posted);
	pkt->left = (u16)READ_ONCE(m->finished);
	/* Nor a bucket */
	pkt->params.bytes = READ_ONCE(m->advert);
	pkt->clock = ored_clock(m);
}

/**
 * ored_send_packet() - sends a control packet
 * @l: to whom; no lock held
 * @pkt: its header
 * @content: what follows
 * @len: bytes of it
 * @padding: zeros behind it
 *
 * Return: 0 or the error with which this host dropped it
 */
int ored_send_packet(struct ored_link *l, struct ored_packet *pkt, const void *content,
		     size_t len, size_t padding)
{
	size_t size = ORED_WIRE_HEADER + len + padding;
	struct ored_route route;
	struct sk_buff *skb;
	int err;

	local_bh_disable();
	err = ored_route_get(l, &route);
	if (err)
		goto out;
	skb = alloc_skb(ORED_HEADROOM + size, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb) {
		ored_count(l->m->stats, ORED_CNT_NOMEM);
		dst_release(route.dst);
		err = -ENOMEM;
		goto out;
	}
	skb_reserve(skb, ORED_HEADROOM);
	ored_wire_build(skb_put(skb, ORED_WIRE_HEADER), pkt);
	skb_put_data(skb, content, len);
	skb_put_zero(skb, padding);
	err = ored_transmit(l, &route, skb, 1, size);
out:
	local_bh_enable();
	return err;
}

/**
 * ored_send_mark() - tells a peer what has been posted and left here
 * @l: the peer
 * @flags: ORED_F_REQUEST: it shall tell the same
 */
void ored_send_mark(struct ored_link *l, u8 flags)
{
	struct ored_packet pkt;

	ored_packet_init(l, &pkt, ORED_T_MARK, flags);
	ored_send_packet(l, &pkt, NULL, 0, 0);
}

/**
 * ored_send_poll() - asks a peer what has arrived of a flow
 * @l: the peer
 * @op: the op
 * @stage: ORED_SCATTER or ORED_GATHER
 */
void ored_send_poll(struct ored_link *l, u64 op, u32 stage)
{
	struct ored_packet pkt;

	ored_packet_init(l, &pkt, ORED_T_POLL, stage == ORED_GATHER ? ORED_F_GATHER : 0);
	pkt.op = (u32)op;
	ored_send_packet(l, &pkt, NULL, 0, 0);
}

#define ORED_ACKS_MOST 8	/* packets for one POLL; it will ask again */

struct ored_ack_content {
	u8	fixed[ORED_ACK_BYTES];
	u8	bits[ORED_ACK_BITS / 8];
};

/* Fills in one ACK; under the link's lock. */
static u32 make_ack(struct ored_chunkmap *map, struct ored_ack_content *content,
		    u32 *first, u32 echo, bool all)
{
	u32 nbits;

	if (all)
		nbits = ored_chunkmap_ack_from(map, *first, content->bits);
	else
		nbits = ored_chunkmap_ack(map, first, content->bits);
	ored_ack_build(content->fixed, echo, map->base);
	return nbits;
}

/**
 * ored_send_ack() - tells a peer what has arrived of its flow
 * @l: the peer
 * @slot: the op's, entered
 * @op: the op
 * @stage: ORED_SCATTER or ORED_GATHER
 * @echo: clock of the packet that this answers
 * @flags: ORED_F_DUPLICATE
 * @all: tell everything, in several packets if need be; else the latest
 */
void ored_send_ack(struct ored_link *l, struct ored_slot *slot, u64 op, u32 stage,
		   u32 echo, u8 flags, bool all)
{
	struct ored_chunkmap *map = &slot->peer[l->rank].rx[stage];
	struct ored_ack_content content;
	struct ored_packet pkt;
	u32 first, nbits, most = ORED_ACKS_MOST;

	spin_lock_bh(&l->lock);
	ored_chunkmap_complete(map);
	first = map->base / 64 * 64;
	spin_unlock_bh(&l->lock);

	do {
		spin_lock_bh(&l->lock);
		nbits = make_ack(map, &content, &first, echo, all);
		ored_chunkmap_acked(map);
		spin_unlock_bh(&l->lock);

		ored_packet_init(l, &pkt, ORED_T_ACK,
				 flags | (stage == ORED_GATHER ? ORED_F_GATHER : 0));
		if (test_bit(stage, &slot->sealed))
			pkt.flags |= ORED_F_SEALED;
		pkt.op = (u32)op;
		pkt.chunk = first;
		ored_send_packet(l, &pkt, &content, ORED_ACK_BYTES + nbits / 8, 0);
		first += nbits;
	} while (all && nbits == ORED_ACK_BITS && --most);
}

/**
 * ored_send_failure() - tells a peer that two ranks disagree about an op
 * @l: the peer
 * @op: the op
 * @mm: who and about what
 */
void ored_send_failure(struct ored_link *l, u64 op, const struct ored_failure *mm)
{
	u8 content[ORED_FAILURE_BYTES];
	struct ored_packet pkt;

	ored_packet_init(l, &pkt, ORED_T_FAILURE, 0);
	pkt.op = (u32)op;
	ored_failure_build(content, mm);
	ored_send_packet(l, &pkt, content, sizeof(content), 0);
}
