// SPDX-License-Identifier: GPL-2.0
/*
 * Prints how fast QEMU's time stamp counter runs without KVM and virtual time, in
 * kHz: it is this machine's own. A guest would measure it by a timer, and on a
 * machine that is busy in those milliseconds find a fraction of it: its clock would
 * run as many times too fast.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define TRIES	100
#define WAIT_NS	50000000

#ifdef __x86_64__
#include <x86intrin.h>

static uint64_t ticks(void)
{
	return __rdtsc();
}
#else
/* There QEMU counts nanoseconds. */
static uint64_t ticks(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}
#endif

struct moment {
	uint64_t ticks;
	uint64_t ns;
};

/* Of several the one that took least: nobody came in between. */
static struct moment now(void)
{
	struct moment best = { 0 };
	uint64_t least = UINT64_MAX;
	int i;

	for (i = 0; i < TRIES; i++) {
		uint64_t before = ticks(), took;
		struct timespec ts;

		clock_gettime(CLOCK_MONOTONIC, &ts);
		took = ticks() - before;
		if (took >= least)
			continue;
		least = took;
		best.ticks = before;
		best.ns = ts.tv_sec * 1000000000ULL + ts.tv_nsec;
	}
	return best;
}

int main(void)
{
	struct timespec wait = { .tv_nsec = WAIT_NS };
	struct moment a, b;

	a = now();
	nanosleep(&wait, NULL);
	b = now();
	printf("%.0f\n", (b.ticks - a.ticks) * 1e6 / (b.ns - a.ns));
	return 0;
}
