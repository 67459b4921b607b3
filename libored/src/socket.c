// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/* Finding the family and creating its sockets. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "internal.h"

#define FAMILY_PARAMETER "/sys/module/ored/parameters/family"

int ored_family(void)
{
	int fd = open(FAMILY_PARAMETER, O_RDONLY | O_CLOEXEC);
	char text[16];
	ssize_t len;
	int family;

	if (fd < 0)
		return ORED_FAMILY_DEFAULT;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return ORED_FAMILY_DEFAULT;
	text[len] = '\0';
	family = atoi(text);
	return family > 0 ? family : ORED_FAMILY_DEFAULT;
}

int ored_socket(int proto)
{
	int fd = socket(ored_family(), SOCK_SEQPACKET | SOCK_CLOEXEC, proto);

	return fd < 0 ? -errno : fd;
}
