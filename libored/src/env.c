// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/* A group that a launcher has described in the environment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/* Leaves *value alone if the variable isn't set and needn't be */
static int env_number(const struct ored_config *config, const char *name,
		      int required, unsigned long long max,
		      unsigned long long *value)
{
	const char *text = getenv(name);
	char *end;

	if (!text && !required)
		return 0;
	if (!text) {
		ored_explain(config, "%s isn't set", name);
		return -EINVAL;
	}
	errno = 0;
	*value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || *value > max) {
		ored_explain(config, "%s is '%.40s', no number from 0 to %llu",
			     name, text, max);
		return -EINVAL;
	}
	return 0;
}

static int env_numbers(struct ored_config *config, unsigned long long *size)
{
	unsigned long long rank = 0, port = config->port;
	unsigned long long group = config->group, epoch = config->epoch;
	int ret;

	ret = env_number(config, "ORED_RANK", 1, ORED_MAX_RANKS - 1, &rank);
	if (!ret)
		ret = env_number(config, "ORED_SIZE", 0, ORED_MAX_RANKS, size);
	if (!ret)
		ret = env_number(config, "ORED_PORT", 0, 65535, &port);
	if (!ret)
		ret = env_number(config, "ORED_GROUP", 0, UINT32_MAX, &group);
	if (!ret)
		ret = env_number(config, "ORED_EPOCH", 0, UINT64_MAX, &epoch);
	config->rank = rank;
	config->port = port;
	config->group = group;
	config->epoch = epoch;
	return ret;
}

/* Cuts @list at its commas. Returns how many parts, at most @max + 1. */
static unsigned int split(char *list, const char **parts, unsigned int max)
{
	unsigned int n = 0;
	char *part;

	while ((part = strsep(&list, ","))) {
		if (n < max)
			parts[n] = part;
		if (n++ == max)
			break;
	}
	return n;
}

static int open_list(struct ored_config *config, char *list,
		     unsigned long long size)
{
	const char *peers[ORED_MAX_RANKS];
	unsigned int n = split(list, peers, ORED_MAX_RANKS);

	if (size && size != n) {
		ored_explain(config,
			     "ORED_SIZE is %llu but ORED_PEERS names %u peers",
			     size, n);
		return -EINVAL;
	}
	config->peers = peers;
	config->nranks = n;
	return ored_open(config);
}

int ored_open_env(const struct ored_config *config)
{
	struct ored_config own = { 0 };
	const char *list = getenv("ORED_PEERS");
	unsigned long long size = 0;
	char *copy;
	int ret;

	if (config)
		own = *config;
	ret = env_numbers(&own, &size);
	if (ret)
		return ret;
	if (!list) {
		ored_explain(&own, "ORED_PEERS isn't set");
		return -EINVAL;
	}
	copy = strdup(list);
	if (!copy)
		return -ENOMEM;
	ret = open_list(&own, copy, size);
	free(copy);
	return ret;
}
