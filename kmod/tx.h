/* SPDX-License-Identifier: GPL-2.0 */
/* Sending packets, in process context or softirq. */
#ifndef ORED_TX_H
#define ORED_TX_H

#include "member.h"

#define ORED_LINK_HEADER 18	/* of Ethernet, with its check */

struct dst_entry;
struct sk_buff;

#define ORED_HEADROOM (LL_MAX_HEADER + sizeof(struct ipv6hdr) + sizeof(struct udphdr))

/**
 * struct ored_route - how to reach a peer right now
 * @dst: with a reference
 * @v4: our IPv4 address towards it
 * @v6: our IPv6 address towards it
 */
struct ored_route {
	struct dst_entry	*dst;
	union {
		__be32		v4;
		struct in6_addr	v6;
	};
};

/* tx.c: handing packets to IP */
int ored_route_get(struct ored_link *l, struct ored_route *route);
u32 ored_overhead(const struct ored_member *m);
u32 ored_route_payload(const struct ored_member *m, const struct dst_entry *dst);
void ored_route_shrink(struct ored_link *l, u32 mtu);
int ored_transmit(struct ored_link *l, struct ored_route *route, struct sk_buff *skb,
		  u32 packets, u32 size);

/* tx.c: control packets */
void ored_packet_init(struct ored_link *l, struct ored_packet *pkt, u8 type, u8 flags);
int ored_send_packet(struct ored_link *l, struct ored_packet *pkt, const void *content,
		     size_t len, size_t padding);
void ored_send_mark(struct ored_link *l, u8 flags);
void ored_send_poll(struct ored_link *l, u64 op, u32 stage);
void ored_send_ack(struct ored_link *l, struct ored_slot *slot, u64 op, u32 stage,
		   u32 echo, u8 flags, bool all);
void ored_send_failure(struct ored_link *l, u64 op, const struct ored_failure *mm);

/* train.c: gradients */
void ored_pump(struct ored_member *m);
void ored_pump_peer(struct ored_link *l);
bool ored_pump_due(struct ored_member *m, u64 now);

#endif /* ORED_TX_H */
