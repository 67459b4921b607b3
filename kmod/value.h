/* SPDX-License-Identifier: GPL-2.0 */
/* Values of options, on their way in and out. */
#ifndef ORED_VALUE_H
#define ORED_VALUE_H

#include <linux/sockptr.h>
#include <linux/types.h>

int ored_value_read(void *to, size_t size, sockptr_t from, size_t len, char *why);
int ored_value_write(char __user *to, int __user *len, int room, const void *from, size_t size,
		     char *why);

#endif /* ORED_VALUE_H */
