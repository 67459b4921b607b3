/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Refusals: an errno for the program and a sentence for the human, which
 * getsockopt(ORED_ERROR) returns.
 */
#ifndef ORED_ERR_H
#define ORED_ERR_H

#include <linux/ored.h>
#include <linux/kernel.h>

/* Puts a sentence into @why, ORED_ERROR_MAX bytes, and evaluates to -@err */
#define ored_refuse(why, err, ...) ({			\
	scnprintf(why, ORED_ERROR_MAX, __VA_ARGS__);	\
	-(err);						\
})

#endif /* ORED_ERR_H */
