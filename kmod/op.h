/* SPDX-License-Identifier: GPL-2.0 */
/* Ops: from their post to their finish. */
#ifndef ORED_OP_H
#define ORED_OP_H

#include "member.h"

struct ored_result;

bool ored_op_sends(struct ored_slot *slot, u64 op);
int ored_op_post(struct ored_slot *slot, const struct ored_params *params);
bool ored_op_contribution(struct ored_slot *slot, u32 chunk);
void ored_op_chunk_done(struct ored_slot *slot);
void ored_op_finish(struct ored_slot *slot, int error);
void ored_op_fail(struct ored_slot *slot, u64 op, const struct ored_failure *failure);
void ored_op_peer_left(struct ored_member *m, struct ored_link *l);
void ored_op_delivered(struct ored_slot *slot);
void ored_op_result(const struct ored_slot *slot, struct ored_result *result);
void ored_op_tell_failures(struct ored_member *m);

#endif /* ORED_OP_H */
