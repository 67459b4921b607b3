/* SPDX-License-Identifier: GPL-2.0 */
/* Just enough of the Test Anything Protocol. */
#ifndef _TAP_H
#define _TAP_H

#include <stdio.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static int tap_count, tap_failed;

__attribute__((format(printf, 2, 3)))
static inline void ok(int passed, const char *format, ...)
{
	char name[200];
	__builtin_va_list args;

	__builtin_va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	__builtin_va_end(args);
	printf("%sok %d - %s\n", passed ? "" : "not ", ++tap_count, name);
	tap_failed += !passed;
}

static inline int tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? 1 : 0;
}

#endif /* _TAP_H */
