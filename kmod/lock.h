/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names for lockdep, so that its reports speak of the locks that "Locking" in
 * member.h tells about. Debug builds teach it their order before anything else
 * takes them (selftest/lock.c).
 */
#ifndef ORED_LOCK_H
#define ORED_LOCK_H

#include <linux/lockdep.h>

/* From the outside in; those from ORED_LOCK_KNOW on are leaves. */
enum ored_lock {
	ORED_LOCK_SEND,
	ORED_LOCK_RECV,
	ORED_LOCK_CONF,
	ORED_LOCK_NET,
	ORED_LOCK_AREA,
	ORED_LOCK_MEMBER,
	ORED_LOCK_LINK,
	ORED_LOCK_KNOW,
	ORED_LOCK_TIMER,
	ORED_LOCK_PACE,
	ORED_LOCK_STATE,
	ORED_LOCK_TAKE,
	ORED_LOCK_SAY,
	ORED_LOCKS,
};

#ifdef CONFIG_LOCKDEP
extern struct lock_class_key ored_lock_key[ORED_LOCKS];
extern const char *const ored_lock_name[ORED_LOCKS];

/* @lock is initialised, and one of kind @which. */
#define ored_lock_class(lock, which)					\
	lockdep_set_class_and_name(lock, &ored_lock_key[which], ored_lock_name[which])
#else
#define ored_lock_class(lock, which) do { } while (0)
#endif

#endif /* ORED_LOCK_H */
