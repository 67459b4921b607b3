// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/* The easy path: a configuration in, a socket that has joined out. */
#include <errno.h>
#include <unistd.h>
#include "internal.h"

static int check(const struct ored_config *config)
{
	uint64_t reserved = 0;
	unsigned int i;

	if (!config->nranks || config->nranks > ORED_MAX_RANKS) {
		ored_explain(config, "nranks is %u; a group has 1 to %u ranks",
			     config->nranks, ORED_MAX_RANKS);
		return -EINVAL;
	}
	if (!config->peers && !config->addrs) {
		ored_explain(config, "neither peers nor addrs is set");
		return -EINVAL;
	}
	for (i = 0; i < ARRAY_SIZE(config->reserved); i++)
		reserved |= config->reserved[i];
	if (reserved) {
		ored_explain(config, "a reserved field isn't zero");
		return -EINVAL;
	}
	return 0;
}

static int get_peer(const struct ored_config *config, unsigned int rank,
		    struct ored_peer *peer)
{
	int ret;

	if (config->peers) {
		ret = ored_peer_parse(config->peers[rank], peer);
		if (ret == -ENODEV)
			ored_explain(config, "peer %u: %.60s: no such interface",
				     rank, config->peers[rank]);
		else if (ret)
			ored_explain(config,
				     "peer %u: '%.60s' is no numeric address with or without a port (link-local ones need %%interface)",
				     rank, config->peers[rank]);
		return ret;
	}
	ret = ored_peer_from_sockaddr(config->addrs[rank], peer);
	if (ret)
		ored_explain(config,
			     "peer %u: neither IPv4 nor IPv6, or link-local without its interface",
			     rank);
	return ret;
}

static int open_joined(const struct ored_config *config,
		       const struct ored_peer *peers)
{
	struct ored_join join = {
		.flags = config->flags,
		.group = config->group,
		.rank = config->rank,
		.nranks = config->nranks,
		.depth = config->depth ? config->depth : ORED_DEPTH_DEFAULT,
		.epoch = config->epoch,
		.bucket_max = config->bucket_max ? config->bucket_max :
						   ORED_BUCKET_DEFAULT,
		.timeout_ms = config->timeout_ms,
		.port = config->port,
	};
	int fd = ored_socket(ORED_PROTO_REDUCE);
	int ret;

	if (fd < 0) {
		if (config->error)
			ored_error(fd, config->error, config->error_size);
		return fd;
	}
	ret = ored_join(fd, &join, peers);
	if (ret) {
		if (config->error)
			ored_error(fd, config->error, config->error_size);
		close(fd);
		return ret;
	}
	return fd;
}

int ored_open(const struct ored_config *config)
{
	struct ored_peer peers[ORED_MAX_RANKS];
	unsigned int i;
	int ret = check(config);

	for (i = 0; !ret && i < config->nranks; i++)
		ret = get_peer(config, i, &peers[i]);
	return ret ? ret : open_joined(config, peers);
}
