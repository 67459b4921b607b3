// SPDX-License-Identifier: GPL-2.0
/* oredctl xdp: the BPF programs on interfaces. */

#include "oredctl.h"
#include "xdp.h"

static const char usage[] =
	"Usage: oredctl xdp [status]\n"
	"       oredctl xdp attach IFACE... [mode auto|native|skb] [shield on|off]\n"
	"                           [measure on|off]\n"
	"       oredctl xdp detach IFACE... | all\n"
	"       oredctl xdp latency [group ID] [peer RANK] [graph] [metrics]\n"
	"                           [follow [SECONDS]]\n"
	"       oredctl xdp steer [on|off|auto [SECONDS]]\n"
	"       oredctl xdp sync\n";

static const struct command commands[] = {
	{ "status", do_xdp_status },
	{ "attach", do_xdp_attach },
	{ "detach", do_xdp_detach },
	{ "latency", do_xdp_latency },
	{ "steer", do_xdp_steer },
	{ "sync", do_xdp_sync },
	{}
};

int do_xdp(struct words *words)
{
	xdp_listen();
	return run_command(commands, words, usage);
}
