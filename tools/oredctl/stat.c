// SPDX-License-Identifier: GPL-2.0

#include <linux/ored_netlink.h>

#include "list.h"

static const char usage[] =
	"Usage: oredctl stat [show] [GROUP] [epoch EPOCH] [rank RANK]\n"
	"\n"
	"Counters of the namespace and of each rank that runs here; in text only those\n"
	"that have counted something, or with -d all. linux/ored.h explains them.\n";

static int show(struct words *words)
{
	return list(words, ORED_CMD_STAT_GET, show_stat);
}

static const struct command commands[] = {
	{ "show", show },
	{ "list", show },
	{}
};

int do_stat(struct words *words)
{
	return run_command(commands, words, usage);
}
