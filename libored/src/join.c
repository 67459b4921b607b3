// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/* The options that carry a group: joining, setting up, tearing down. */
#include <errno.h>
#include <string.h>
#include "internal.h"

/* What the options take: the group and, right behind it, its peers */
struct request {
	struct ored_join join;
	struct ored_peer peers[ORED_MAX_RANKS];
};

static int set_group(int fd, int option, const struct ored_join *join,
		     const struct ored_peer *peers)
{
	size_t len = join->nranks * sizeof(*peers);
	struct request request;

	/* More doesn't fit here; the kernel would refuse it anyway */
	if (join->nranks > ORED_MAX_RANKS)
		return -EINVAL;
	request.join = *join;
	request.join.size = sizeof(request.join);
	request.join.peer_size = sizeof(*peers);
	memcpy(request.peers, peers, len);
	return ored_set(fd, option, &request, sizeof(request.join) + len);
}

int ored_join(int fd, const struct ored_join *join,
	      const struct ored_peer *peers)
{
	return set_group(fd, ORED_JOIN, join, peers);
}

int ored_setup(int fd, const struct ored_join *join,
	       const struct ored_peer *peers)
{
	return set_group(fd, ORED_SETUP, join, peers);
}

int ored_teardown(int fd, uint32_t group, uint64_t epoch)
{
	struct ored_join join = {
		.size = sizeof(join),
		.group = group,
		.epoch = epoch,
	};

	return ored_set(fd, ORED_TEARDOWN, &join, sizeof(join));
}
