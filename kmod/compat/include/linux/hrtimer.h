/* SPDX-License-Identifier: GPL-2.0 */
/* hrtimer_setup(): added in 6.13; hrtimer_init() was removed in 6.15. */
#ifndef ORED_COMPAT_LINUX_HRTIMER_H
#define ORED_COMPAT_LINUX_HRTIMER_H

#include_next <linux/hrtimer.h>

#ifdef ORED_LACKS_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#endif
