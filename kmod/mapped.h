/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mapped slots: memory of a membership that its socket's mmap() shows, so that a
 * bucket is filled in, sent from, reduced into and used at one place.
 *
 * They are allocated with the group (ORED_JOIN_SLOTS) and freed with it. A mapping
 * holds the socket's file, as a descriptor does: the group isn't left before it is
 * gone too. Pages are ordinary ones with a struct page, so that direct I/O,
 * process_vm_readv() and pins work on them; whoever pins one keeps it beyond the
 * group's end, as plain memory that nothing writes to any more.
 *
 * Who may write when: between recv() and send() a slot is its user's. While an op
 * has it, nothing keeps the user from writing: protecting pages would cost more
 * than copying them, and forbid pins. What he writes then may or may not be in
 * the contribution that peers get, may overwrite parts of his own copy of the
 * result, and does nothing else: what this rank reduces for all is reduced from
 * its memory once, into the kernel's, from which peers are served.
 *
 * After recv() the kernel doesn't look at it any more. What peers may still want of
 * the contribution is either copied by then or known to be of no use.
 */
#ifndef ORED_MAPPED_H
#define ORED_MAPPED_H

#include <linux/types.h>

struct file;
struct ored_member;
struct ored_params;
struct ored_slot;
struct socket;
struct vm_area_struct;

/**
 * struct ored_mapped - a membership's
 * @count: slots; 0: the group was joined without
 * @stride: from one to the next, whole pages
 * @base: the first
 * @op: by slot, the op that has it, or ORED_NO_OP; set by send(), cleared by recv()
 */
struct ored_mapped {
	u32	count;
	size_t	stride;
	u8	*base;
	u64	*op;
};

void ored_mapped_plan(struct ored_member *m);
int ored_mapped_alloc(struct ored_member *m);
void ored_mapped_free(struct ored_member *m);
int ored_mapped_mmap(struct file *file, struct socket *sock, struct vm_area_struct *vma);
void ored_mapped_take(struct ored_slot *slot, u32 index, struct ored_params *params);
void ored_mapped_detach(struct ored_slot *slot);
void ored_mapped_result(struct ored_slot *slot, const u8 *result, size_t len);
void ored_mapped_return(struct ored_slot *slot);

/* Bytes of all of them */
static inline u64 ored_mapped_bytes(const struct ored_mapped *mapped)
{
	return (u64)mapped->count * mapped->stride;
}

#endif /* ORED_MAPPED_H */
