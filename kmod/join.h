/* SPDX-License-Identifier: GPL-2.0 */
/* Joining a group, and measuring paths. */
#ifndef ORED_JOIN_H
#define ORED_JOIN_H

#include "member.h"

struct sk_buff;

void ored_join_start(struct ored_member *m);
u64 ored_join_tick(struct ored_member *m, u64 now);
enum ored_counter ored_join_rx(struct ored_net *on, const struct ored_packet *pkt,
			       const struct ored_addr *from, const struct ored_hello *hello);
void ored_join_bye(struct ored_link *l);
void ored_join_probe(struct ored_link *l);
int ored_join_why(struct ored_member *m, int err, char *why);

#endif /* ORED_JOIN_H */
