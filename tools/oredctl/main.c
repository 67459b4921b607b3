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
	"  help       this text\n"
	"OPTIONS:\n"
	"  -j, --json           output in JSON\n"
	"  -p, --pretty         indented JSON, for readers\n"
	"  -n, --netns NAME     in the network namespace NAME, as of `ip netns`\n"
	"  -V, --version        the version of this program\n"
	"  -h, --help           this text\n"
	"Objects and commands may be abbreviated.\n";

static int do_help(struct words *words)
{
	take_end(words);
	fputs(usage, stdout);
	return STATUS_OK;
}

/* The first that an abbreviation fits is meant: mind the order. */
static const struct command objects[] = {
	{ "help", do_help },
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
		{ "netns", required_argument, NULL, 'n' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	int option;

	/* As ip(8), it takes long options with one dash too. */
	while ((option = getopt_long_only(argc, argv, "+jpn:Vh", longs, NULL)) != -1) {
		switch (option) {
		case 'j':
			options.json = true;
			break;
		case 'p':
			options.pretty = true;
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
