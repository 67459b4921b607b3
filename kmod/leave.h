/* SPDX-License-Identifier: GPL-2.0 */
/* Leaving a group. */
#ifndef ORED_LEAVE_H
#define ORED_LEAVE_H

#include "member.h"

void ored_leave(struct ored_member *m);
void ored_leave_orphan(struct ored_member *m);
void ored_leave_ask(struct ored_link *l);
u64 ored_leave_tick(struct ored_member *m, u64 now);
void ored_leave_final(struct ored_member *m);
void ored_leave_heard(struct ored_link *l, const struct ored_packet *pkt);

#endif /* ORED_LEAVE_H */
