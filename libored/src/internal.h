/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#ifndef _ORED_INTERNAL_H
#define _ORED_INTERNAL_H

#include <ored.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* getsockopt() and setsockopt() at level SOL_ORED; 0 or -errno */
int ored_set(int fd, int option, const void *value, size_t len);
int ored_get(int fd, int option, void *value, socklen_t *len);

/*
 * Like ored_get() for a structure that a newer or older module may know in
 * another length: what the kernel didn't fill is zero.
 */
int ored_get_struct(int fd, int option, void *value, size_t len);

/* Puts a sentence of the library's own in the caller's buffer, if any */
__attribute__((format(printf, 2, 3)))
void ored_explain(const struct ored_config *config, const char *format, ...);

#endif /* _ORED_INTERNAL_H */
