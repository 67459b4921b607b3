// SPDX-License-Identifier: GPL-2.0

#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "err.h"
#include "value.h"

#define ORED_OPTION_MAX	   65536	/* bytes; nothing will ever be that long */

/**
 * ored_value_read() - reads a structure that may be shorter or longer than ours
 * @to: where to; what is absent is zero
 * @size: bytes of our structure
 * @from: the caller's
 * @len: bytes of it
 * @why: receives a sentence if it is refused
 *
 * Return: 0, -EFAULT, or -E2BIG: what we don't know isn't zero
 */
int ored_value_read(void *to, size_t size, sockptr_t from, size_t len, char *why)
{
	int zero;

	memset(to, 0, size);
	if (len > ORED_OPTION_MAX)
		return ored_refuse(why, E2BIG, "no option has %zu bytes", len);
	if (len > size) {
		zero = check_zeroed_sockptr(from, size, len - size);
		if (zero < 0)
			return ored_refuse(why, EFAULT, "the option's value can't be read");
		if (!zero)
			return ored_refuse(why, E2BIG,
					   "beyond byte %zu the option has what this kernel doesn't know",
					   size);
	}
	if (copy_from_sockptr(to, from, min(len, size)))
		return ored_refuse(why, EFAULT, "the option's value can't be read");
	return 0;
}

/**
 * ored_value_write() - writes a structure, cut to the caller's room
 * @to: where to
 * @len: receives the bytes that were written
 * @room: bytes at @to
 * @from: our structure
 * @size: bytes of it
 * @why: receives a sentence if it is refused
 *
 * Return: 0 or -EFAULT
 */
int ored_value_write(char __user *to, int __user *len, int room, const void *from, size_t size,
		     char *why)
{
	int n = min_t(size_t, room, size);

	if (copy_to_user(to, from, n) || put_user(n, len))
		return ored_refuse(why, EFAULT, "the option's value can't be written");
	return 0;
}
