/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The early timeout (core/early.h) and incast (core/incast.h) of a membership:
 * what peers advertise in their control packets, what is learnt when an op ends,
 * and when what is still missing of a stage is given up.
 */
#ifndef ORED_EARLY_H
#define ORED_EARLY_H

#include "member.h"

void ored_early_incast_init(struct ored_member *m);
int ored_early_alloc(struct ored_member *m);
void ored_early_free(struct ored_member *m);
void ored_early_end(struct ored_slot *slot, u64 took, u32 loss_ppm);
void ored_early_heard(struct ored_link *l, u32 advert);
u64 ored_early_stage_at(const struct ored_slot *slot, u32 stage, u64 now);
bool ored_early_mark(struct ored_slot *slot, u32 stage, u32 rank);
u32 ored_early_takes(const struct ored_link *l);
u32 ored_early_incast(struct ored_member *m);
bool ored_early_serves(const struct ored_slot *slot, u32 stage, u32 rank);

#endif /* ORED_EARLY_H */
