// SPDX-License-Identifier: GPL-2.0
/* Figures and pictures of histograms. */

#include <stdio.h>
#include <string.h>

#include "xdp.h"

#define WIDTH	50	/* columns of the longest bar */

/*
 * The bucket that holds the rank-th shortest; its middle is off by 1.6 % at most. The
 * longest is known exactly, and nothing is longer.
 */
uint64_t xdp_quantile(const struct ored_x_latency *l, double share)
{
	uint64_t rank, below = 0, middle;
	unsigned int b;

	if (!l->timed)
		return 0;
	rank = (uint64_t)(share * (double)l->timed);
	if (rank >= l->timed)
		rank = l->timed - 1;
	for (b = 0; b < ORED_HIST_BUCKETS - 1; b++) {
		below += l->bucket[b];
		if (below > rank)
			break;
	}
	if (b == ORED_HIST_BUCKETS - 1)
		return l->max_ns;
	middle = (ored_hist_from(b) + ored_hist_from(b + 1)) / 2;
	return middle < l->max_ns ? middle : l->max_ns;
}

void xdp_add(struct ored_x_latency *sum, const struct ored_x_latency *more)
{
	unsigned int b;

	sum->packets += more->packets;
	sum->bytes += more->bytes;
	sum->gaps += more->gaps;
	sum->sum_ns += more->sum_ns;
	sum->timed += more->timed;
	if (more->max_ns > sum->max_ns)
		sum->max_ns = more->max_ns;
	for (b = 0; b < ORED_HIST_BUCKETS; b++)
		sum->bucket[b] += more->bucket[b];
}

/* Of what came since, the longest is only known by its bucket. */
void xdp_subtract(struct ored_x_latency *from, const struct ored_x_latency *what)
{
	unsigned int b, last = 0;

	from->packets -= what->packets;
	from->bytes -= what->bytes;
	from->gaps -= what->gaps;
	from->sum_ns -= what->sum_ns;
	from->timed -= what->timed;
	for (b = 0; b < ORED_HIST_BUCKETS; b++) {
		from->bucket[b] -= what->bucket[b];
		if (from->bucket[b])
			last = b;
	}
	if (!from->timed)
		from->max_ns = 0;
	else if (last < ORED_HIST_BUCKETS - 1 && from->max_ns >= ored_hist_from(last + 1))
		from->max_ns = ored_hist_from(last + 1) - 1;
}

void xdp_show_time(uint64_t ns, char text[16])
{
	if (ns < 1000000)
		snprintf(text, 16, "%.1f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(text, 16, "%.2f ms", (double)ns / 1e6);
	else
		snprintf(text, 16, "%.3f s", (double)ns / 1e9);
}

static uint64_t between(const struct ored_x_latency *l, unsigned int from, unsigned int to)
{
	uint64_t sum = 0;

	while (from < to)
		sum += l->bucket[from++];
	return sum;
}

static void bar(uint64_t from_ns, uint64_t n, uint64_t most, uint64_t all)
{
	char from[16];
	unsigned int length = most ? (unsigned int)((n * WIDTH + most - 1) / most) : 0;

	xdp_show_time(from_ns, from);
	printf("  %10s |%-*.*s| %5.1f %%\n", from, WIDTH, (int)length,
	       "##################################################",
	       100.0 * (double)n / (double)all);
}

/* Only where there is something, buckets put together so that it fits. */
void xdp_draw(const struct ored_x_latency *l, unsigned int rows)
{
	unsigned int first = 0, last = ORED_HIST_BUCKETS - 1, step, b;
	uint64_t most = 0;

	if (!l->timed || !rows)
		return;
	while (first < last && !l->bucket[first])
		first++;
	while (last > first && !l->bucket[last])
		last--;
	step = (last - first + rows) / rows;
	for (b = first; b <= last; b += step) {
		uint64_t n = between(l, b, b + step <= last ? b + step : last + 1);

		if (n > most)
			most = n;
	}
	for (b = first; b <= last; b += step)
		bar(ored_hist_from(b), between(l, b, b + step <= last ? b + step : last + 1),
		    most, l->timed);
}
