// SPDX-License-Identifier: GPL-2.0

#include <linux/ored_netlink.h>

#include "show.h"

static const char usage[] =
	"Usage: oredctl monitor\n"
	"\n"
	"Prints events until it is ended, one a line: groups that are set up (group-new) or\n"
	"forgotten (group-del), ranks that join and leave (rank-joined, rank-left), changed\n"
	"policies (policy), peers that become stalled, silent or left, or live again (peer),\n"
	"and ops of whose result something is missing (op).\n";

static int all(struct words *words)
{
	struct genl genl = {};

	take_end(words);
	genl_open(&genl, ORED_FAMILY_NAME);
	genl_listen(&genl, show_event, NULL);
}

static const struct command commands[] = {
	{ "all", all },
	{}
};

int do_monitor(struct words *words)
{
	return run_command(commands, words, usage);
}
