// SPDX-License-Identifier: GPL-2.0

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/resource.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>

#include "charge.h"
#include "err.h"

/**
 * ored_charge() - charges the caller's user for memory, unless he has CAP_IPC_LOCK
 * @charge: receives what ored_uncharge() takes
 * @bytes: how much
 * @what: what needs it, for the sentence
 * @why: receives a sentence if it is refused
 *
 * As AF_XDP's memory, it counts over all processes of the user, since it may
 * outlive the one that asked.
 *
 * Return: 0 or -ENOMEM
 */
int ored_charge(struct ored_charge *charge, u64 bytes, const char *what, char *why)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long pages = bytes >> PAGE_SHIFT, before, after;
	struct user_struct *user;

	charge->user = NULL;
	if (capable(CAP_IPC_LOCK))
		return 0;
	user = get_uid(current_user());
	before = atomic_long_read(&user->locked_vm);
	do {
		after = before + pages;
		if (after > limit || after < before) {
			free_uid(user);
			return ored_refuse(why, ENOMEM,
					   "%s needs %llu bytes, but RLIMIT_MEMLOCK leaves this user %llu of %llu",
					   what, bytes,
					   (u64)(limit - min(limit, before)) << PAGE_SHIFT,
					   (u64)limit << PAGE_SHIFT);
		}
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &before, after));
	charge->user = user;
	charge->pages = pages;
	return 0;
}

/**
 * ored_uncharge() - the memory has been given back
 * @charge: from ored_charge(), or all zero
 */
void ored_uncharge(struct ored_charge *charge)
{
	if (!charge->user)
		return;
	atomic_long_sub(charge->pages, &charge->user->locked_vm);
	free_uid(charge->user);
	charge->user = NULL;
}
