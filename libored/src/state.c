// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/* What the kernel knows of ops, groups and peers. */
#include "internal.h"

int ored_result(int fd, uint64_t op, struct ored_result *result)
{
	/* The kernel reads the number from the place it writes to */
	*result = (struct ored_result){ .op = op };
	return ored_get_struct(fd, ORED_RESULT, result, sizeof(*result));
}

int ored_group(int fd, struct ored_group *group)
{
	return ored_get_struct(fd, ORED_GROUP, group, sizeof(*group));
}

static int get_array(int fd, int option, void *array, size_t item,
		     unsigned int n, unsigned int max)
{
	socklen_t len;
	int ret;

	if (n > max)
		n = max;
	len = n * item;
	ret = ored_get(fd, option, array, &len);
	return ret ? ret : (int)(len / item);
}

int ored_peers(int fd, struct ored_peer_state *peers, unsigned int n)
{
	return get_array(fd, ORED_PEERS, peers, sizeof(*peers), n,
			 ORED_MAX_RANKS);
}

int ored_stats(int fd, uint64_t *counters, unsigned int n)
{
	return get_array(fd, ORED_STATS, counters, sizeof(*counters), n,
			 ORED_CNT_MAX);
}
