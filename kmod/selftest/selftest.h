/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests of builds with ORED_DEBUG, run inside the kernel before anything is
 * registered: what native unit tests can't see is the kernel's own bit
 * operations, allocators and compiler flags. KASAN watches the buffers' ends.
 */
#ifndef ORED_SELFTEST_H
#define ORED_SELFTEST_H

#ifdef ORED_DEBUG
#include <linux/printk.h>

int ored_selftest_run(void);

bool ored_selftest_lock(void);
bool ored_selftest_wire(void);
bool ored_selftest_chunkmap(void);
bool ored_selftest_reduce(void);
bool ored_selftest_slot(void);

/* Evaluates to @cond; says in the log if it is false */
#define ored_expect(cond) ({						\
	bool _ok = (cond);						\
									\
	if (!_ok)							\
		pr_err("ored: %s:%d: not so: %s\n", __func__, __LINE__, #cond); \
	_ok;								\
})
#else
static inline int ored_selftest_run(void)
{
	return 0;
}
#endif

#endif /* ORED_SELFTEST_H */
