/* SPDX-License-Identifier: GPL-2.0 */
/* Receiving packets, in softirq. */
#ifndef ORED_RX_H
#define ORED_RX_H

struct ored_net;
struct sk_buff;
struct sock;

void ored_rx_packet(struct ored_net *on, struct sk_buff *skb);
int ored_rx(struct sock *sk, struct sk_buff *skb);

#endif /* ORED_RX_H */
