/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events: what happens to groups, ranks and peers, told to all who listen to the
 * netlink family's multicast group in that namespace. Without listeners an event
 * costs a look.
 */
#ifndef ORED_EVENT_H
#define ORED_EVENT_H

#include <linux/ored_netlink.h>

#include "member.h"
#include "setup.h"

void ored_event_setup(struct ored_net *on, const struct ored_setup *setup, u8 command);
void ored_event_rank(struct ored_member *m, u8 command);
void ored_event_peer(struct ored_link *l, u8 status);
void ored_event_op(const struct ored_slot *slot, u32 loss_ppm, const unsigned long *missing);

void ored_event_begin(void);
void ored_event_end(void);

#endif /* ORED_EVENT_H */
