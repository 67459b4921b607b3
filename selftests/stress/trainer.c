// SPDX-License-Identifier: GPL-2.0
/*
 * trainer OPTION...: a rank that trains, and costs next to nothing.
 *
 * Where all ranks share one processor, what a trainer does by itself is part of
 * what its peers' calls take; an interpreter's would be most of it. This one joins,
 * waits for a line that tells when to begin, in ns of the monotonic clock, and then
 * computes and reduces, op after op. It measures what send() and recv() take in all,
 * and says so only when its input ends: ranks that are done don't disturb the others.
 *
 *   --rank N --address A    once for each rank, in order; --rank is its own
 *   --epoch N
 *   --ops N --gap US        and what it computes before each
 *   --spin                  by keeping its processor busy; else it sleeps
 *   --count N               floats
 *   --deadline US           of each op; 0: as by policy
 *   --no-wait               for late posters
 *   --fifo                  runs at real-time priority while it reduces
 *   --alone                 joins nothing, and sleeps for --deadline in place of
 *                           reducing: what waking up takes by itself
 *
 * Prints "ready" when it has joined, "done" after the last op, and then for each op
 * what it took and the bound in microseconds (0: none), its limit, verdict, loss in
 * ppm, and what it took as the kernel says, in nanoseconds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

#define RANKS	64

struct plan {
	uint32_t rank, nranks, count, deadline;
	uint64_t epoch, ops, gap;
	bool spin, no_wait, fifo, alone;
	struct ored_peer peers[RANKS];
};

struct step {
	uint64_t took;
	struct ored_result result;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void sleep_until(uint64_t at)
{
	struct timespec ts = { at / 1000000000, at % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static void set_scheduler(int policy, int priority)
{
	struct sched_param param = { .sched_priority = priority };

	if (sched_setscheduler(0, policy, &param))
		die("sched_setscheduler");
}

static void compute(const struct plan *plan)
{
	uint64_t end = now_ns() + plan->gap * 1000;

	if (!plan->spin)
		sleep_until(end);
	while (now_ns() < end)
		;
}

static int join(const struct plan *plan)
{
	struct {
		struct ored_join join;
		struct ored_peer peers[RANKS];
	} value = {
		.join = {
			.size = sizeof(value.join), .group = 1, .rank = plan->rank,
			.nranks = plan->nranks, .depth = 1, .epoch = plan->epoch,
			.bucket_max = (plan->count + 1) / 2 * 8, .timeout_ms = 30000,
			.peer_size = sizeof(value.peers[0]),
		},
	};
	struct ored_op op = {
		.reduction = ORED_MEAN, .mode = ORED_MODE_BOUNDED,
		.deadline_us = plan->deadline,
		/* Its time is the caller's, and no part of the bound. */
		.flags = ORED_OP_HADAMARD_OFF | (plan->no_wait ? ORED_OP_NO_WAIT : 0),
	};
	int fd = ored_socket();

	if (fd < 0)
		die("can't make a socket");
	memcpy(value.peers, plan->peers, sizeof(value.peers));
	if (setsockopt(fd, SOL_ORED, ORED_JOIN, &value,
		       sizeof(value.join) + plan->nranks * sizeof(value.peers[0])))
		die("rank %u can't join", plan->rank);
	if (setsockopt(fd, SOL_ORED, ORED_OP, &op, sizeof(op)))
		die("ORED_OP");
	return fd;
}

static void one_op(int fd, const struct plan *plan, float *bucket, struct step *step)
{
	ssize_t bytes = plan->count * sizeof(*bucket);
	socklen_t len = sizeof(step->result);
	uint64_t begin = now_ns();

	if (send(fd, bucket, bytes, 0) != bytes)
		die("rank %u can't send", plan->rank);
	if (recv(fd, bucket, bytes, 0) != bytes)
		die("rank %u can't receive", plan->rank);
	step->took = now_ns() - begin;
	if (getsockopt(fd, SOL_ORED, ORED_RESULT, &step->result, &len))
		die("ORED_RESULT");
}

static void sleep_instead(const struct plan *plan, struct step *step)
{
	uint64_t begin = now_ns();

	sleep_until(begin + plan->deadline * 1000ULL);
	step->took = now_ns() - begin;
	step->result.bound_us = plan->deadline;
}

/* Reads byte by byte: what follows the line isn't its business. */
static uint64_t read_line(void)
{
	char line[32] = "";
	size_t n = 0;

	while (n < sizeof(line) - 1 && read(0, &line[n], 1) == 1 && line[n] != '\n')
		n++;
	line[n] = '\0';
	return number("the line", line);
}

static void train(int fd, const struct plan *plan, struct step *steps)
{
	float *bucket = calloc(plan->count, sizeof(*bucket));
	uint64_t i;

	if (!bucket)
		die("no memory");
	sleep_until(read_line());
	for (i = 0; i < plan->ops; i++) {
		compute(plan);
		steps[i].result.op = i;
		if (plan->fifo)
			set_scheduler(SCHED_FIFO, 1);
		if (plan->alone)
			sleep_instead(plan, &steps[i]);
		else
			one_op(fd, plan, bucket, &steps[i]);
		if (plan->fifo)
			set_scheduler(SCHED_OTHER, 0);
	}
	free(bucket);
}

static void tell(const struct plan *plan, const struct step *steps)
{
	uint64_t i;

	for (i = 0; i < plan->ops; i++) {
		const struct ored_result *r = &steps[i].result;
		uint64_t expected = r->scatter.expected + r->gather.expected;
		uint64_t missing = r->scatter.missing + r->gather.missing;

		printf("%.3f %u %u %u %llu %llu\n", steps[i].took / 1e3, r->bound_us, r->limit,
		       r->verdict,
		       (unsigned long long)(expected ? missing * 1000000 / expected : 0),
		       (unsigned long long)r->elapsed_ns);
	}
}

static void add_peer(struct plan *plan, const char *address)
{
	struct ored_peer *peer = &plan->peers[plan->nranks];

	if (plan->nranks == RANKS)
		fail("more than %u ranks", RANKS);
	peer->family = AF_INET;
	if (inet_pton(AF_INET, address, peer->addr) != 1)
		fail("%s is no IPv4 address", address);
	plan->nranks++;
}

static void parse(int argc, char **argv, struct plan *plan)
{
	static const struct option options[] = {
		{ "rank", required_argument, NULL, 'r' },
		{ "address", required_argument, NULL, 'a' },
		{ "epoch", required_argument, NULL, 'e' },
		{ "ops", required_argument, NULL, 'n' },
		{ "gap", required_argument, NULL, 'g' },
		{ "spin", no_argument, NULL, 's' },
		{ "count", required_argument, NULL, 'c' },
		{ "deadline", required_argument, NULL, 'd' },
		{ "no-wait", no_argument, NULL, 'w' },
		{ "fifo", no_argument, NULL, 'f' },
		{ "alone", no_argument, NULL, 'l' },
		{}
	};
	int which, index;

	*plan = (struct plan) { .ops = 100, .gap = 1000, .count = 1000, .epoch = 1 };
	while ((which = getopt_long(argc, argv, "", options, &index)) != -1) {
		const char *name = which == '?' ? "?" : options[index].name;

		switch (which) {
		case 'r':
			plan->rank = number(name, optarg);
			break;
		case 'a':
			add_peer(plan, optarg);
			break;
		case 'e':
			plan->epoch = number(name, optarg);
			break;
		case 'n':
			plan->ops = number(name, optarg);
			break;
		case 'g':
			plan->gap = number(name, optarg);
			break;
		case 's':
			plan->spin = true;
			break;
		case 'c':
			plan->count = number(name, optarg);
			break;
		case 'd':
			plan->deadline = number(name, optarg);
			break;
		case 'w':
			plan->no_wait = true;
			break;
		case 'f':
			plan->fifo = true;
			break;
		case 'l':
			plan->alone = true;
			break;
		default:
			exit(2);
		}
	}
	if (plan->rank >= plan->nranks || !plan->ops || !plan->count)
		fail("ranks, ops or floats are wrong");
}

int main(int argc, char **argv)
{
	struct step *steps;
	struct plan plan;
	char byte;
	int fd;

	parse(argc, argv, &plan);
	steps = calloc(plan.ops, sizeof(*steps));
	if (!steps)
		die("no memory");
	fd = plan.alone ? -1 : join(&plan);
	puts("ready");
	fflush(stdout);
	train(fd, &plan, steps);
	puts("done");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	tell(&plan, steps);
	if (fd >= 0)
		close(fd);
	return 0;
}
