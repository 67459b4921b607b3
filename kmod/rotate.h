/* SPDX-License-Identifier: GPL-2.0 */
/* The Hadamard transform of buckets on their way in and out. */
#ifndef ORED_ROTATE_H
#define ORED_ROTATE_H

#include <linux/types.h>

struct ored_link;
struct ored_member;
struct ored_params;
struct ored_slot;

/**
 * struct ored_rotate_memory - what it needs
 * @in: scratch memory of who sends; under ored_sock.send_mutex
 * @out: likewise, of who receives; under ored_sock.recv_mutex, as what follows
 * @result: a result, back from the transform: the slot's own may still be wanted
 *	by peers as it is
 * @op: whose; ORED_NO_OP: nobody's
 */
struct ored_rotate_memory {
	u32	*in;
	u32	*out;
	u8	*result;
	u64	op;
};

u64 ored_rotate_bytes(const struct ored_member *m);
int ored_rotate_alloc(struct ored_member *m);
void ored_rotate_free(struct ored_member *m);

bool ored_rotate_takes(u8 kind, u8 dtype, u8 reduction);
u16 ored_rotate_choose(struct ored_member *m, u16 word, u32 flags);
bool ored_rotate_settle(struct ored_slot *slot, struct ored_params *params);
void ored_rotate_in(struct ored_slot *slot, struct ored_params *params);
const u8 *ored_rotate_out(struct ored_slot *slot);

void ored_rotate_ended(struct ored_member *m, u32 loss_ppm);
void ored_rotate_heard(struct ored_link *l, u16 word, u64 posted);
void ored_rotate_advertise(struct ored_member *m);

#endif /* ORED_ROTATE_H */
