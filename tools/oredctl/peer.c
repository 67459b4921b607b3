// SPDX-License-Identifier: GPL-2.0

#include <linux/ored_netlink.h>

#include "list.h"

static const char usage[] =
	"Usage: oredctl peer [show] [GROUP] [epoch EPOCH] [rank RANK]\n"
	"\n"
	"The peers of each rank that runs here, and the ranks of groups that are set up.\n";

static int show(struct words *words)
{
	return list(words, ORED_CMD_PEER_GET, show_peer);
}

static const struct command commands[] = {
	{ "show", show },
	{ "list", show },
	{}
};

int do_peer(struct words *words)
{
	return run_command(commands, words, usage);
}
