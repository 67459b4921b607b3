// SPDX-License-Identifier: GPL-2.0
/* oredctl xdp latency: what the histograms say, for readers, JSON and OpenMetrics. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "oredctl.h"
#include "output.h"
#include "xdp.h"

#define FLOWS_MAX	4096	/* as many as the map holds */
#define ROWS		20	/* of a graph */

/* Which flows are asked for, and how they are shown */
struct wanted {
	bool		any_group;
	bool		any_peer;
	uint32_t	group;
	uint32_t	peer;
	bool		graph;
	bool		metrics;
};

/* A flow and its latencies of all CPUs */
struct flow {
	struct ored_x_flow	key;
	struct ored_x_latency	sum;
};

static const char * const stage_names[] = { "scatter", "gather" };
static const char * const what_names[] = { "network", "host" };
static const struct {
	const char	*name;
	const char	*label;
	double		share;
} shares[] = {
	{ "p50", "0.5", 0.5 }, { "p90", "0.9", 0.9 }, { "p99", "0.99", 0.99 },
	{ "p999", "0.999", 0.999 },
};

static bool sensible(const struct ored_x_flow *key)
{
	return key->stage < 2 && key->what < 2;
}

static int by_key(const void *a, const void *b)
{
	const struct ored_x_flow *x = &((const struct flow *)a)->key;
	const struct ored_x_flow *y = &((const struct flow *)b)->key;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->peer != y->peer)
		return x->peer < y->peer ? -1 : 1;
	if (x->stage != y->stage)
		return x->stage - y->stage;
	return x->what - y->what;
}

static void *room(size_t n, size_t size)
{
	void *memory = calloc(n, size);

	if (!memory)
		fail(STATUS_KERNEL, "out of memory");
	return memory;
}

/* Reads one flow; false: it has gone meanwhile. */
static bool read_flow(int fd, struct ored_x_latency *all, int cpus, struct flow *flow)
{
	int cpu;

	memset(&flow->sum, 0, sizeof(flow->sum));
	if (bpf_map_lookup_elem(fd, &flow->key, all))
		return false;
	for (cpu = 0; cpu < cpus; cpu++)
		xdp_add(&flow->sum, &all[cpu]);
	return true;
}

/* All flows of this namespace, sorted. Return: how many; *@flows is to be freed. */
static size_t read_flows(struct flow **flows)
{
	int fd = xdp_map("ored_latency"), cpus = libbpf_num_possible_cpus();
	struct ored_x_latency *all = room((size_t)cpus, sizeof(*all));
	struct ored_x_flow key, *at = NULL;
	uint32_t netns = xdp_own_netns();
	size_t n = 0, had = 16;

	*flows = room(had, sizeof(**flows));
	while (n < FLOWS_MAX && !bpf_map_get_next_key(fd, at, &key)) {
		at = &(*flows)[n].key;
		*at = key;
		if (key.netns != netns || !sensible(&key) ||
		    !read_flow(fd, all, cpus, &(*flows)[n]))
			continue;
		if (++n < had)
			continue;
		had *= 2;
		*flows = realloc(*flows, had * sizeof(**flows));
		if (!*flows)
			fail(STATUS_KERNEL, "out of memory");
		at = &(*flows)[n - 1].key;
	}
	free(all);
	close(fd);
	qsort(*flows, n, sizeof(**flows), by_key);
	return n;
}

void xdp_latency_total(enum ored_x_what what, struct ored_x_latency *sum)
{
	struct flow *flows;
	size_t n = read_flows(&flows), i;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < n; i++)
		if (flows[i].key.what == what)
			xdp_add(sum, &flows[i].sum);
	free(flows);
}

static bool is_wanted(const struct flow *flow, const struct wanted *wanted)
{
	return (wanted->any_group || flow->key.group == wanted->group) &&
	       (wanted->any_peer || flow->key.peer == wanted->peer);
}

static void show_quantile(const struct flow *flow, size_t i)
{
	uint64_t ns = xdp_quantile(&flow->sum, shares[i].share);
	char key[16], text[16];

	snprintf(key, sizeof(key), "%s_ns", shares[i].name);
	out_u64(key, ns, NULL);
	xdp_show_time(ns, text);
	out_text(" %10s", text);
}

static void show_buckets(const struct ored_x_latency *l)
{
	unsigned int b;

	out_array("buckets");
	for (b = 0; options.json && b < ORED_HIST_BUCKETS; b++) {
		if (!l->bucket[b])
			continue;
		out_open(NULL);
		out_u64("from_ns", ored_hist_from(b), NULL);
		out_u64("count", l->bucket[b], NULL);
		out_close();
	}
	out_array_end();
}

static void show_flow(const struct flow *flow, const struct wanted *wanted)
{
	char text[16];
	size_t i;

	out_item();
	out_u64("group", flow->key.group, NULL);
	out_u64("rank", flow->key.rank, NULL);
	out_u64("peer", flow->key.peer, NULL);
	out_string("stage", stage_names[flow->key.stage], NULL);
	out_string("what", what_names[flow->key.what], NULL);
	out_u64("packets", flow->sum.packets, NULL);
	out_u64("bytes", flow->sum.bytes, NULL);
	out_u64("gaps", flow->sum.gaps, NULL);
	out_u64("timed", flow->sum.timed, NULL);
	out_text("%5u %4u %4u %-7s %-7s %9" PRIu64 " %6" PRIu64, flow->key.group,
		 flow->key.rank, flow->key.peer, stage_names[flow->key.stage],
		 what_names[flow->key.what], (uint64_t)flow->sum.packets, (uint64_t)flow->sum.gaps);
	for (i = 0; i < ARRAY_SIZE(shares); i++)
		show_quantile(flow, i);
	out_u64("max_ns", flow->sum.max_ns, NULL);
	xdp_show_time(flow->sum.max_ns, text);
	out_text(" %10s", text);
	show_buckets(&flow->sum);
	out_item_end();
	if (wanted->graph && !options.json)
		xdp_draw(&flow->sum, ROWS);
}

static void show_table(const struct flow *flows, size_t n, const struct wanted *wanted)
{
	size_t i;

	out_begin();
	out_text("group rank peer stage   what      packets   gaps        p50        p90        p99      p99.9        max\n");
	for (i = 0; i < n; i++)
		if (is_wanted(&flows[i], wanted))
			show_flow(&flows[i], wanted);
	out_end();
}

static void metric_labels(const struct ored_x_flow *key)
{
	printf("{group=\"%u\",rank=\"%u\",peer=\"%u\",stage=\"%s\",what=\"%s\"", key->group,
	       key->rank, key->peer, stage_names[key->stage], what_names[key->what]);
}

static void show_summary(const struct flow *flow)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(shares); i++) {
		printf("ored_latency_seconds");
		metric_labels(&flow->key);
		printf(",quantile=\"%s\"} %.9f\n", shares[i].label,
		       (double)xdp_quantile(&flow->sum, shares[i].share) / 1e9);
	}
	printf("ored_latency_seconds_sum");
	metric_labels(&flow->key);
	printf("} %.9f\nored_latency_seconds_count", (double)flow->sum.sum_ns / 1e9);
	metric_labels(&flow->key);
	printf("} %" PRIu64 "\n", (uint64_t)flow->sum.timed);
}

static void show_counter(const char *name, const struct flow *flow, uint64_t value)
{
	printf("%s_total", name);
	metric_labels(&flow->key);
	printf("} %" PRIu64 "\n", value);
}

/* Each metric's lines have to stand together. */
static void show_metrics(const struct flow *flows, size_t n, const struct wanted *wanted)
{
	static const char * const counters[][2] = {
		{ "ored_packets", "Packets of gradients of a peer." },
		{ "ored_bytes", "Bytes of their UDP payload." },
		{ "ored_gaps", "Chunks that were passed over." },
	};
	size_t i, c;

	puts("# TYPE ored_latency_seconds summary");
	puts("# UNIT ored_latency_seconds seconds");
	puts("# HELP ored_latency_seconds From the sender's clock to here, or from here to reduction.");
	for (i = 0; i < n; i++)
		if (is_wanted(&flows[i], wanted))
			show_summary(&flows[i]);
	for (c = 0; c < 3; c++) {
		printf("# TYPE %s counter\n# HELP %s %s\n", counters[c][0], counters[c][0],
		       counters[c][1]);
		for (i = 0; i < n; i++)
			if (is_wanted(&flows[i], wanted) && flows[i].key.what == ORED_X_NETWORK)
				show_counter(counters[c][0], &flows[i],
					     c == 0 ? flows[i].sum.packets :
					     c == 1 ? flows[i].sum.bytes : flows[i].sum.gaps);
	}
	puts("# EOF");
}

static const struct flow *find(const struct flow *flows, size_t n, const struct flow *like)
{
	return bsearch(like, flows, n, sizeof(*flows), by_key);
}

/* What has come since @before was read */
static void since(struct flow *flows, size_t n, const struct flow *before, size_t nbefore)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const struct flow *then = find(before, nbefore, &flows[i]);

		if (then)
			xdp_subtract(&flows[i].sum, &then->sum);
	}
}

/* Each turn shows what came in it. */
static void __attribute__((noreturn)) follow(const struct wanted *wanted, uint64_t seconds)
{
	struct flow *before, *now, *shown;
	size_t nbefore = read_flows(&before), n;

	for (;;) {
		sleep((unsigned int)seconds);
		n = read_flows(&now);
		shown = room(n + 1, sizeof(*shown));
		memcpy(shown, now, n * sizeof(*shown));
		since(shown, n, before, nbefore);
		/* The screen only where there is one */
		if (!options.json && isatty(STDOUT_FILENO))
			fputs("\033[H\033[2J", stdout);
		show_table(shown, n, wanted);
		if (fflush(stdout) || ferror(stdout))
			fail(STATUS_KERNEL, "the output can't be written");
		free(shown);
		free(before);
		before = now;
		nbefore = n;
	}
}

int do_xdp_latency(struct words *words)
{
	struct wanted wanted = { .any_group = true, .any_peer = true };
	uint64_t every = 0;
	struct flow *flows;
	size_t n;

	while (peek(words)) {
		if (take_if(words, "group")) {
			wanted.group = (uint32_t)take_number(words, "group", 0, UINT32_MAX);
			wanted.any_group = false;
		} else if (take_if(words, "peer")) {
			wanted.peer = (uint32_t)take_number(words, "peer", 0, ORED_X_RANKS - 1);
			wanted.any_peer = false;
		} else if (take_if(words, "graph")) {
			wanted.graph = true;
		} else if (take_if(words, "metrics")) {
			wanted.metrics = true;
		} else if (take_if(words, "follow")) {
			every = peek(words) ? take_number(words, "follow", 1, 86400) : 1;
		} else {
			take_end(words);
		}
	}
	if (wanted.metrics && (every || options.json))
		fail(STATUS_USAGE, "metrics is a format of its own: neither -j nor follow goes with it");
	if (every)
		follow(&wanted, every);
	n = read_flows(&flows);
	if (wanted.metrics)
		show_metrics(flows, n, &wanted);
	else
		show_table(flows, n, &wanted);
	free(flows);
	return STATUS_OK;
}
