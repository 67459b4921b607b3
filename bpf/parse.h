/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Finds ORED's header in a frame. What the module doesn't send is left alone: VLAN
 * tags (they may lead to another namespace), IP options, IPv6 extension headers,
 * fragments, and frames whose headers aren't in one piece.
 */
#ifndef ORED_BPF_PARSE_H
#define ORED_BPF_PARSE_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>

#include "../kmod/core/area_wire.h"
#include "../kmod/core/wire.h"

#define ORED_IP_FRAGMENT	0x3fff	/* offset, or more follow */

/* What a frame turned out to be */
enum ored_found {
	ORED_FOUND_OTHER,	/* none of ours */
	ORED_FOUND_SHORT,	/* a datagram too short for what it claims to be */
	ORED_FOUND_VERSION,	/* a datagram without our magic, version or types */
	ORED_FOUND_PACKET,	/* ours, as far as its form tells */
};

/**
 * struct ored_datagram - where things are in a frame
 * @udp: the UDP header
 * @wire: ORED's header, with ORED_FOUND_PACKET
 * @end: of what can be read
 * @len: bytes of UDP payload, as the UDP header has it
 * @family: AF_INET or AF_INET6
 * @port: destination, host order
 * @addr: source, IPv4 in the first four bytes
 */
struct ored_datagram {
	const struct udphdr	*udp;
	const struct ored_wire	*wire;
	const void		*end;
	u32			len;
	u16			family;
	u16			port;
	u32			addr[4];
};

#define ORED_AF_INET	2
#define ORED_AF_INET6	10

static __always_inline bool ored_parse_ip4(struct ored_datagram *d, const void *at)
{
	const struct iphdr *ip = at;

	if ((const void *)(ip + 1) > d->end || ip->version != 4 || ip->ihl != 5)
		return false;
	if (ip->protocol != IPPROTO_UDP || ip->frag_off & bpf_htons(ORED_IP_FRAGMENT))
		return false;
	d->family = ORED_AF_INET;
	d->addr[0] = ip->saddr;
	d->addr[1] = 0;
	d->addr[2] = 0;
	d->addr[3] = 0;
	d->udp = (const void *)(ip + 1);
	return true;
}

static __always_inline bool ored_parse_ip6(struct ored_datagram *d, const void *at)
{
	const struct ipv6hdr *ip = at;

	if ((const void *)(ip + 1) > d->end || ip->version != 6 || ip->nexthdr != IPPROTO_UDP)
		return false;
	d->family = ORED_AF_INET6;
	d->addr[0] = ip->saddr.in6_u.u6_addr32[0];
	d->addr[1] = ip->saddr.in6_u.u6_addr32[1];
	d->addr[2] = ip->saddr.in6_u.u6_addr32[2];
	d->addr[3] = ip->saddr.in6_u.u6_addr32[3];
	d->udp = (const void *)(ip + 1);
	return true;
}

static __always_inline u32 ored_wire_type(const struct ored_wire *wire)
{
	return wire->type_flags >> 4;
}

/* The shortest content of a packet type; ored_wire_parse() has the same. */
static __always_inline u32 ored_content_min(u32 type)
{
	switch (type) {
	case ORED_T_HELLO:
		return ORED_HELLO_BYTES;
	case ORED_T_SCATTER:
	case ORED_T_GATHER:
		return 1;
	case ORED_T_ACK:
		return ORED_ACK_BYTES;
	case ORED_T_FAILURE:
		return ORED_FAILURE_BYTES;
	case ORED_T_AREA:
		return ORED_AREA_LEAST;
	default:
		return 0;
	}
}

/* Judges the form of a UDP payload, in the order of ored_wire_parse(). */
static __always_inline enum ored_found ored_parse_payload(struct ored_datagram *d)
{
	const struct ored_wire *wire = (const void *)(d->udp + 1);
	u32 type;

	if (d->len < ORED_WIRE_HEADER)
		return ORED_FOUND_SHORT;
	if ((const void *)(wire + 1) > d->end)
		return ORED_FOUND_OTHER;
	if (wire->magic != ORED_WIRE_MAGIC)
		return ORED_FOUND_VERSION;
	type = ored_wire_type(wire);
	if (type < ORED_T_HELLO || type > ORED_T_AREA)
		return ORED_FOUND_VERSION;
	if (d->len < ORED_WIRE_HEADER + ored_content_min(type))
		return ORED_FOUND_SHORT;
	d->wire = wire;
	return ORED_FOUND_PACKET;
}

/**
 * ored_parse() - takes a frame apart
 * @data: its begin
 * @end: end of its first piece
 * @d: receives where things are, but with ORED_FOUND_OTHER
 *
 * Return: what it is
 */
static __always_inline enum ored_found ored_parse(const void *data, const void *end,
						  struct ored_datagram *d)
{
	const struct ethhdr *eth = data;
	u16 proto;

	d->end = end;
	if ((const void *)(eth + 1) > end)
		return ORED_FOUND_OTHER;
	proto = eth->h_proto;
	if (proto == bpf_htons(ETH_P_IP)) {
		if (!ored_parse_ip4(d, eth + 1))
			return ORED_FOUND_OTHER;
	} else if (proto == bpf_htons(ETH_P_IPV6)) {
		if (!ored_parse_ip6(d, eth + 1))
			return ORED_FOUND_OTHER;
	} else {
		return ORED_FOUND_OTHER;
	}
	if ((const void *)(d->udp + 1) > end)
		return ORED_FOUND_OTHER;
	d->port = bpf_ntohs(d->udp->dest);
	d->len = bpf_ntohs(d->udp->len) - (u32)sizeof(*d->udp);
	/* A length that UDP itself refuses is UDP's to count. */
	if (bpf_ntohs(d->udp->len) < sizeof(*d->udp))
		return ORED_FOUND_OTHER;
	return ored_parse_payload(d);
}

#endif /* ORED_BPF_PARSE_H */
