/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What netlink messages say: structures as attributes, and back. All that put
 * return 0, or -EMSGSIZE where there is no room left.
 */
#ifndef ORED_ATTR_H
#define ORED_ATTR_H

#include <net/netlink.h>
#include <linux/ored_netlink.h>

#include "member.h"
#include "setup.h"

int ored_put_setup(struct sk_buff *skb, const struct ored_setup *setup);
int ored_put_member(struct sk_buff *skb, struct ored_member *m);
int ored_put_session(struct sk_buff *skb, const struct ored_member *m);
int ored_put_rank(struct sk_buff *skb, const struct ored_member *m);
int ored_put_peer(struct sk_buff *skb, struct ored_member *m, struct ored_link *l);
int ored_put_peer_status(struct sk_buff *skb, const struct ored_link *l, u8 status);
int ored_put_setup_peer(struct sk_buff *skb, const struct ored_setup *setup, u32 rank);
int ored_put_stats(struct sk_buff *skb, struct ored_stats __percpu *stats, u32 from, u32 end);

extern const struct nla_policy ored_policy_attrs[ORED_A_POLICY_MAX + 1];

void ored_read_policy(struct nlattr *const attrs[], struct ored_policy *policy);

#endif /* ORED_ATTR_H */
