// SPDX-License-Identifier: GPL-2.0

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oredctl.h"

#define VERSION "0.1"

struct options options;

static const char usage[] =
	"Usage: oredctl [OPTIONS] OBJECT [COMMAND | help]\n"
	"\n"
	"OBJECT:\n"
	"  group      groups: those set up here, and the ranks that run here\n"
	"  peer       peers: whether they live, how fast and how well they are reached\n"
	"  stat       counters, by cause\n"
	"  monitor    what happens, as it happens\n"
	"  xdp        BPF programs on interfaces: attach, latency, steer, ...\n"
	"  doctor     what is missing on this host, and what to type\n"
	"OPTIONS:\n"
	"  -j, --json           output in JSON\n"
	"  -p, --pretty         indented JSON, for readers\n"
	"  -d, --details        all there is to tell, in text too\n"
	"  -n, --netns NAME     in the network namespace NAME, as of `ip netns`\n"
	"  -V, --version        the version of this program\n"
	"  -h, --help           this text\n"
	"Objects and commands may be abbreviated.\n";

/* The first that an abbreviation fits is meant: mind the order. */
static const struct command objects[] = {
	{ "group", do_group },
	{ "peer", do_peer },
	{ "stat", do_stat },
	{ "monitor", do_monitor },
	{ "xdp", do_xdp },
	{ "doctor", do_doctor },
	{}
};

void fail(enum status status, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("oredctl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(status);
}

static void read_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "pretty", no_argument, NULL, 'p' },
		{ "details", no_argument, NULL, 'd' },
		{ "netns", required_argument, NULL, 'n' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	int option;

	/* As ip(8), it takes long options with one dash too. */
	while ((option = getopt_long_only(argc, argv, "+jpdn:Vh", longs, NULL)) != -1) {
		switch (option) {
		case 'j':
			options.json = true;
			break;
		case 'p':
			options.pretty = true;
			break;
		case 'd':
			options.details = true;
			break;
		case 'n':
			options.netns = optarg;
			break;
		case 'V':
			puts("oredctl " VERSION);
			exit(STATUS_OK);
		case 'h':
			fputs(usage, stdout);
			exit(STATUS_OK);
		default:
			exit(STATUS_USAGE);
		}
	}
}

int main(int argc, char **argv)
{
	struct words words;
	int status;

	read_options(argc, argv);
	words.at = argv + optind;
	if (!peek(&words)) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	if (options.netns)
		enter_netns(options.netns);
	status = run_command(objects, &words, usage);
	/* A full disk or a closed pipe must not pass for success. */
	if (fflush(stdout) || ferror(stdout))
		fail(STATUS_KERNEL, "the output can't be written");
	return status;
}
