// SPDX-License-Identifier: GPL-2.0
/* Namespaces as `ip netns` makes them. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "oredctl.h"

#define NETNS_FOLDER "/run/netns"

void enter_netns(const char *name)
{
	char path[sizeof(NETNS_FOLDER) + 256];
	int fd;

	if (!*name || strchr(name, '/') || strlen(name) > 255)
		fail(STATUS_USAGE, "'%s' is no name of a namespace", name);
	snprintf(path, sizeof(path), NETNS_FOLDER "/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail(STATUS_USAGE, "there is no namespace '%s': %s", name, strerror(errno));
	if (setns(fd, CLONE_NEWNET))
		fail(STATUS_KERNEL, "can't enter the namespace '%s': %s", name, strerror(errno));
	close(fd);
}
