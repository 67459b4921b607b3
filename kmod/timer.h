/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The one timer of a membership. It fires when the earliest of these is due:
 *
 *   joining     hello_at   another round of HELLOs; deadline: joining fails
 *   each peer   pto_at     something is in flight to it and nothing was heard
 *			    of it for a while: ask what has arrived
 *               ask_at     ops wait for it to leave others: ask what it left
 *   gradients   pump_at	there are tokens again for what waits to be sent
 *   failed ops  tell_at    tell the peers again
 *   leaving     deadline   stop serving
 */
#ifndef ORED_TIMER_H
#define ORED_TIMER_H

#include "member.h"

#define ORED_BEAT_NS (100 * NSEC_PER_MSEC)	/* silence, until a peer is asked */

void ored_timer_init(struct ored_member *m);
void ored_timer_need(struct ored_member *m, u64 at);
void ored_timer_stop(struct ored_member *m);

#endif /* ORED_TIMER_H */
