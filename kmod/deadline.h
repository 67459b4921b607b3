/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keeping the bounds of ops. Of the ops that are going on in a membership the
 * oldest is in its term (core/term.h). A timer in hard interrupt context fires
 * when its scatter is to be sealed or when it is to end. It only wakes: the
 * group's worker, a kernel thread of real-time priority, which reduces what is
 * there of the own shard and sends it, whether or not anybody waits in recv();
 * and the waiter, who can end the op by himself. Every packet looks at the time
 * too. So neither a late softirq nor a busy processor makes an op longer than
 * it takes to schedule one of them.
 */
#ifndef ORED_DEADLINE_H
#define ORED_DEADLINE_H

#include "member.h"

struct ored_op;

int ored_deadline_init(struct ored_member *m, char *why);
void ored_deadline_stop(struct ored_member *m);
void ored_deadline_free(struct ored_member *m);

void ored_deadline_choose(struct ored_slot *slot, const struct ored_op *op);
void ored_deadline_promise(struct ored_slot *slot);
void ored_deadline_update(struct ored_member *m);
void ored_deadline_check(struct ored_member *m);
void ored_deadline_serve(struct ored_member *m);
void ored_deadline_sweep(struct ored_member *m);

/* Is there anything that ored_deadline_check() would do? Needs no lock. */
static inline bool ored_deadline_due(const struct ored_member *m, u64 now)
{
	return unlikely(READ_ONCE(m->due_at) <= now);
}

#endif /* ORED_DEADLINE_H */
