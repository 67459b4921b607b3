// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/* Socket options: the only place that knows how errno becomes -errno. */
#include <errno.h>
#include <string.h>
#include "internal.h"

int ored_set(int fd, int option, const void *value, size_t len)
{
	return setsockopt(fd, SOL_ORED, option, value, len) ? -errno : 0;
}

int ored_get(int fd, int option, void *value, socklen_t *len)
{
	return getsockopt(fd, SOL_ORED, option, value, len) ? -errno : 0;
}

int ored_get_struct(int fd, int option, void *value, size_t len)
{
	socklen_t got = len;
	int ret = ored_get(fd, option, value, &got);

	if (!ret && got < len)
		memset((char *)value + got, 0, len - got);
	return ret;
}
