// SPDX-License-Identifier: GPL-2.0

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "ored-perf.h"

enum {
	GROUP = 256, RANK, EPOCH, PEERS, PORT, MODE, BOUND, WAIT, GAP, TIMEOUT, SEED,
	COLLECTIVE, HELP,
};

static const struct option words[] = {
	{ "minbytes",		1, NULL, 'b' },
	{ "maxbytes",		1, NULL, 'e' },
	{ "stepbytes",		1, NULL, 'i' },
	{ "stepfactor",		1, NULL, 'f' },
	{ "iters",		1, NULL, 'n' },
	{ "warmup_iters",	1, NULL, 'w' },
	{ "check",		1, NULL, 'c' },
	{ "op",			1, NULL, 'o' },
	{ "datatype",		1, NULL, 'd' },
	{ "output_file",	1, NULL, 'J' },
	{ "group",		1, NULL, GROUP },
	{ "rank",		1, NULL, RANK },
	{ "epoch",		1, NULL, EPOCH },
	{ "peers",		1, NULL, PEERS },
	{ "port",		1, NULL, PORT },
	{ "mode",		1, NULL, MODE },
	{ "bound",		1, NULL, BOUND },
	{ "wait",		1, NULL, WAIT },
	{ "gap",		1, NULL, GAP },
	{ "timeout",		1, NULL, TIMEOUT },
	{ "seed",		1, NULL, SEED },
	{ "collective",		1, NULL, COLLECTIVE },
	{ "help",		0, NULL, HELP },
	{ }
};

static void usage(FILE *file)
{
	fputs("usage: ored-perf [-b MIN] [-e MAX] [-i STEP | -f FACTOR] [-n ITERS] [-w WARMUP]\n"
	      "                 [-c 0|1] [-o REDUCTION|all] [-d DTYPE|all] [-J FILE]\n"
	      "                 [--collective all_reduce|reduce_scatter|all_gather|broadcast]\n"
	      "                 [--mode bounded|reliable] [--bound US] [--wait US|none]\n"
	      "                 [--gap US] [--timeout S] [--seed N]\n"
	      "                 [--rank R] [--peers A,B,...] [--port P] [--group ID] [--epoch N]\n"
	      "Started on every host of a group; ored-perf(1) has it all.\n", file);
}

/* A number, in bytes if @scaled, where K, M and G may follow */
static uint64_t number(const char *name, const char *text, uint64_t least, uint64_t most,
		       bool scaled)
{
	static const char suffixes[] = "KMG";
	const char *suffix;
	uint64_t value;
	char *end;
	int shift = 0;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (scaled && *end) {
		suffix = strchr(suffixes, *end);
		if (suffix) {
			shift = 10 * (int)(suffix - suffixes + 1);
			end++;
		}
	}
	if (*text < '0' || *text > '9' || *end || errno || value > most >> shift ||
	    value << shift < least)
		errx(2, "%s is '%s', not %s from %llu to %llu", name, text,
		     scaled ? "bytes" : "a number", (unsigned long long)least,
		     (unsigned long long)most);
	return value << shift;
}

static uint8_t choose_one(const char *name, const char *text, const char *(*name_of)(uint8_t),
			  uint8_t n, const char *more)
{
	uint8_t i;

	for (i = 0; i < n; i++) {
		if (!strcmp(text, name_of(i)))
			return i;
	}
	warnx("%s is '%s', which is none of:", name, text);
	for (i = 0; i < n; i++)
		fprintf(stderr, " %s", name_of(i));
	fprintf(stderr, "%s\n", more);
	exit(2);
}

static uint32_t choose(const char *name, const char *text, const char *(*name_of)(uint8_t),
		       uint8_t n)
{
	if (!strcmp(text, "all"))
		return (1U << n) - 1;
	return 1U << choose_one(name, text, name_of, n, " all");
}

static uint8_t mode(const char *text)
{
	if (!strcmp(text, "bounded"))
		return ORED_MODE_BOUNDED;
	if (!strcmp(text, "reliable"))
		return ORED_MODE_RELIABLE;
	errx(2, "--mode is '%s', neither bounded nor reliable", text);
}

/* The library reads these from the environment, and checks them. */
static bool environment(int c)
{
	static const char *const names[] = {
		[GROUP - GROUP] = "ORED_GROUP", [RANK - GROUP] = "ORED_RANK",
		[EPOCH - GROUP] = "ORED_EPOCH", [PEERS - GROUP] = "ORED_PEERS",
		[PORT - GROUP] = "ORED_PORT",
	};

	if (c < GROUP || c > PORT)
		return false;
	if (setenv(names[c - GROUP], optarg, 1))
		err(1, "setenv");
	/* Of other peers than these */
	if (c == PEERS)
		unsetenv("ORED_SIZE");
	return true;
}

static void size_option(struct options *o, int c)
{
	if (c == 'b')
		o->min = number("-b", optarg, 1, ORED_MAX_BUCKET, true);
	else if (c == 'e')
		o->max = number("-e", optarg, 1, ORED_MAX_BUCKET, true);
	else if (c == 'i')
		o->step = number("-i", optarg, 1, ORED_MAX_BUCKET, true);
	else
		o->factor = number("-f", optarg, 2, 1024, false);
}

static void option(struct options *o, int c)
{
	switch (c) {
	case 'b': case 'e': case 'i': case 'f':
		size_option(o, c);
		break;
	case 'n':
		o->iters = (uint32_t)number("-n", optarg, 1, 1000000, false);
		break;
	case 'w':
		o->warmup = (uint32_t)number("-w", optarg, 0, 1000000, false);
		break;
	case 'c':
		o->check = number("-c", optarg, 0, 1, false);
		break;
	case 'o':
		/* nccl-tests' word */
		if (!strcmp(optarg, "avg"))
			optarg = (char *)reduction_name(ORED_MEAN);
		o->reductions = choose("-o", optarg, reduction_name, REDUCTIONS);
		break;
	case 'd':
		o->dtypes = choose("-d", optarg, dtype_name, DTYPES);
		break;
	case 'J':
		o->json = optarg;
		break;
	case MODE:
		o->mode = mode(optarg);
		break;
	case BOUND:
		o->bound_us = (uint32_t)number("--bound", optarg, 1, 274000000, false);
		break;
	case WAIT:
		o->wait_us = !strcmp(optarg, "none") ? NO_WAIT :
			(uint32_t)number("--wait", optarg, 1, 274000000, false);
		break;
	case GAP:
		o->gap_us = (uint32_t)number("--gap", optarg, 0, 999999999, false);
		break;
	case TIMEOUT:
		o->timeout_s = (uint32_t)number("--timeout", optarg, 1, 86400, false);
		break;
	case SEED:
		o->seed = (uint32_t)number("--seed", optarg, 0, UINT32_MAX, false);
		break;
	case COLLECTIVE:
		o->kind = choose_one("--collective", optarg, collective_name, COLLECTIVES, "");
		break;
	case HELP:
		usage(stdout);
		exit(0);
	default:
		if (environment(c))
			break;
		usage(stderr);
		exit(2);
	}
}

void options_read(struct options *o, int argc, char **argv)
{
	int c;

	*o = (struct options){
		.min = 4U << 20, .iters = 20, .warmup = 5, .check = true,
		.dtypes = 1U << ORED_F32, .timeout_s = 60,
	};
	while ((c = getopt_long(argc, argv, "b:e:i:f:n:w:c:o:d:J:", words, NULL)) != -1)
		option(o, c);
	if (optind < argc)
		errx(2, "'%s' is no option", argv[optind]);
	if (o->reductions && !reduces(o->kind))
		errx(2, "-o: %s reduces nothing", collective_name(o->kind));
	if (!o->reductions)
		o->reductions = 1U << ORED_SUM;
	if (!o->max)
		o->max = o->min;
	if (o->min > o->max)
		errx(2, "-b is more than -e");
	if (o->step && o->factor)
		errx(2, "-i and -f exclude each other");
	if (!o->step && !o->factor)
		o->factor = 2;
	if (o->mode == ORED_MODE_RELIABLE && (o->bound_us || o->wait_us))
		errx(2, "reliable ops have no bound: --bound and --wait are for bounded ones");
}

uint64_t options_next(const struct options *o, uint64_t bytes)
{
	return o->factor ? bytes * o->factor : bytes + o->step;
}
