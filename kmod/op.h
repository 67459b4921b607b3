/* SPDX-License-Identifier: GPL-2.0 */
/* Ops: from their post to their finish, and what became of them. */
#ifndef ORED_OP_H
#define ORED_OP_H

#include "member.h"

struct ored_op;
struct ored_result;

/* op.c */
bool ored_op_sends(struct ored_slot *slot, u64 op);
int ored_op_post(struct ored_slot *slot, const struct ored_params *params,
		 const struct ored_op *op);
void ored_op_reduce(struct ored_slot *slot, u32 whole, const unsigned long *present);
bool ored_op_reduce_chunk(struct ored_slot *slot, u32 chunk);
u8 *ored_op_place(struct ored_slot *slot, const struct ored_params *params);
const u8 *ored_op_result_at(const struct ored_slot *slot, size_t *len);
void ored_op_present(struct ored_slot *slot, u32 rank, u32 chunk);
bool ored_op_contribution(struct ored_slot *slot, u32 chunk);
void ored_op_acked(struct ored_slot *slot);
void ored_op_acked_all(struct ored_member *m);
void ored_op_gathered(struct ored_slot *slot, u32 owner, u32 chunk, const unsigned long *counted);
void ored_op_serve(struct ored_member *m);
void ored_op_sweep(struct ored_slot *slot);
void ored_op_end_locked(struct ored_slot *slot, int error, u8 limit);
void ored_op_end(struct ored_slot *slot, int error, u8 limit);
void ored_op_fail(struct ored_slot *slot, u64 op, const struct ored_failure *failure);
void ored_op_peer_left(struct ored_member *m, struct ored_link *l);
void ored_op_delivered(struct ored_slot *slot);

/* failure.c */
void ored_op_tell_failures(struct ored_member *m);

/* result.c */
bool ored_op_is_whole(const struct ored_slot *slot);
void ored_op_settle(struct ored_slot *slot);
u32 ored_op_loss(const struct ored_slot *slot, u32 *given);
void ored_op_result(struct ored_slot *slot, struct ored_result *result);
void ored_op_report(const struct ored_slot *slot);
void ored_op_uncounted(const struct ored_slot *slot, u64 *bits);

#endif /* ORED_OP_H */
