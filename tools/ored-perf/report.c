// SPDX-License-Identifier: GPL-2.0
/*
 * The table and the JSON: nccl-tests' columns, then what those don't have. All
 * times are those of the rank that took longest.
 */

#include <err.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include "ored-perf.h"

static struct json_object *document, *rows;
static const char *path;
static uint32_t nranks;
static uint64_t all_wrong;
/* The table moves to stderr where the JSON takes stdout. */
static FILE *table;

static void add(struct json_object *object, const char *name, struct json_object *value)
{
	if (!value || json_object_object_add(object, name, value))
		errx(1, "no memory for the JSON");
}

static void add_number(struct json_object *object, const char *name, double value)
{
	add(object, name, json_object_new_double(value));
}

static void add_count(struct json_object *object, const char *name, int64_t value)
{
	add(object, name, json_object_new_int64(value));
}

static void add_text(struct json_object *object, const char *name, const char *value)
{
	add(object, name, json_object_new_string(value));
}

static const char *mode_name(uint8_t mode)
{
	return mode == ORED_MODE_RELIABLE ? "reliable" :
	       mode == ORED_MODE_BOUNDED ? "bounded" : "default";
}

static void describe(const struct options *o, const struct ored_group *group)
{
	struct json_object *config;

	document = json_object_new_object();
	rows = json_object_new_array();
	config = json_object_new_object();
	if (!document || !rows || !config)
		errx(1, "no memory for the JSON");
	add_count(config, "nranks", nranks);
	add_count(config, "group", group->group);
	add_count(config, "epoch", (int64_t)group->epoch);
	add_count(config, "payload", group->payload);
	add_count(config, "header", group->header);
	add_count(config, "iters", o->iters);
	add_count(config, "warmup", o->warmup);
	add(config, "check", json_object_new_boolean(o->check));
	add_text(config, "collective", collective_name(o->kind));
	add_text(config, "mode", mode_name(o->mode));
	add_count(config, "bound_us", o->bound_us);
	add_text(config, "wait_us", o->wait_us == NO_WAIT ? "none" : o->wait_us ? "given" :
		 "policy");
	add_count(config, "gap_us", o->gap_us);
	add(document, "config", config);
	add(document, "rows", rows);
}

void report_open(const struct options *o, const struct ored_group *group)
{
	nranks = group->nranks;
	path = o->json;
	table = path && !strcmp(path, "-") ? stderr : stdout;
	if (path)
		describe(o, group);
	fprintf(table, "# %s: %u ranks, %u bytes in a chunk, %s ops", collective_name(o->kind),
		nranks, group->payload, mode_name(o->mode));
	if (o->bound_us)
		fprintf(table, ", bound %u us", o->bound_us);
	fprintf(table, ", %u measured after %u\n", o->iters, o->warmup);
	fprintf(table, "#%11s %11s %9s %6s %10s %7s %7s %7s %10s %10s %10s %10s %8s %8s\n",
		"size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong", "p50",
		"p99", "p99.9", "max", "lost", "partial");
	fprintf(table, "#%11s %11s %9s %6s %10s %7s %7s %7s %10s %10s %10s %10s %8s %8s\n",
		"(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(us)",
		"(us)", "(us)", "(%)", "(ops)");
	fflush(table);
}

static int64_t figure(const struct row *row, enum figure f, uint32_t op)
{
	return row->figures[(size_t)f * row->ops + op];
}

static int64_t total(const struct row *row, enum figure f)
{
	int64_t sum = 0;
	uint32_t op;

	for (op = 0; op < row->ops; op++)
		sum += figure(row, f, op);
	return sum;
}

static int64_t largest(const struct row *row, enum figure f)
{
	int64_t most = INT64_MIN;
	uint32_t op;

	for (op = 0; op < row->ops; op++)
		most = figure(row, f, op) > most ? figure(row, f, op) : most;
	return most;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The least value that so many per mille are not above */
static double percentile_us(const int64_t *sorted, uint32_t n, uint32_t per_mille)
{
	uint64_t place = ((uint64_t)n * per_mille + 999) / 1000;

	return (double)sorted[place - 1] / 1000;
}

static void add_ops(struct json_object *object, const char *name, const struct row *row,
		    double (*value)(const struct row *row, uint32_t op))
{
	struct json_object *array = json_object_new_array();
	uint32_t op;

	for (op = 0; array && op < row->ops; op++) {
		struct json_object *number = json_object_new_double(value(row, op));

		if (!number || json_object_array_add(array, number))
			errx(1, "no memory for the JSON");
	}
	add(object, name, array);
}

static double op_time(const struct row *row, uint32_t op)
{
	return (double)figure(row, TIME, op) / 1000;
}

static double percent(int64_t part, int64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static double op_lost(const struct row *row, uint32_t op)
{
	return percent(figure(row, MISSING, op), figure(row, EXPECTED, op));
}

static double op_worst(const struct row *row, uint32_t op)
{
	return (double)figure(row, WORST, op) / 10000;
}

/* What each host sends and receives at least, by the size of the bucket */
static double bus_factor(uint8_t kind)
{
	if (kind == ORED_BROADCAST)
		return 1;
	return (kind == ORED_ALLREDUCE ? 2.0 : 1.0) * (nranks - 1) / nranks;
}

static const char *redop(const struct row *row)
{
	return reduces(row->kind) ? reduction_name(row->reduction) : "none";
}

struct summary {
	double time, algbw, busbw, p50, p99, p999, max, lost;
	int64_t wrong, partial;
};

static struct summary summarise(const struct row *row)
{
	int64_t *sorted = malloc(row->ops * sizeof(*sorted));
	struct summary s;

	if (!sorted)
		err(1, "no memory");
	memcpy(sorted, row->figures + (size_t)TIME * row->ops, row->ops * sizeof(*sorted));
	qsort(sorted, row->ops, sizeof(*sorted), compare);
	s.time = (double)total(row, TIME) / row->ops / 1000;
	s.algbw = (double)row->bytes / s.time / 1000;
	s.busbw = s.algbw * bus_factor(row->kind);
	s.p50 = percentile_us(sorted, row->ops, 500);
	s.p99 = percentile_us(sorted, row->ops, 990);
	s.p999 = percentile_us(sorted, row->ops, 999);
	s.max = percentile_us(sorted, row->ops, 1000);
	s.lost = percent(total(row, MISSING), total(row, EXPECTED));
	s.wrong = total(row, WRONG);
	s.partial = total(row, PARTIAL);
	free(sorted);
	return s;
}

static void row_to_json(const struct row *row, const struct summary *s)
{
	struct json_object *object = json_object_new_object();

	if (!object || json_object_array_add(rows, object))
		errx(1, "no memory for the JSON");
	add_count(object, "size", (int64_t)row->bytes);
	add_count(object, "count", (int64_t)(row->bytes / dtype_size(row->dtype)));
	add_text(object, "type", dtype_name(row->dtype));
	add_text(object, "redop", redop(row));
	add_number(object, "time_us", s->time);
	add_number(object, "algbw_gbps", s->algbw);
	add_number(object, "busbw_gbps", s->busbw);
	add_count(object, "wrong", s->wrong);
	add_number(object, "p50_us", s->p50);
	add_number(object, "p99_us", s->p99);
	add_number(object, "p999_us", s->p999);
	add_number(object, "max_us", s->max);
	add_number(object, "lost_percent", s->lost);
	add_count(object, "partial", s->partial);
	if (largest(row, OVER) != INT64_MIN)
		add_number(object, "over_us", (double)largest(row, OVER) / 1000);
	add_ops(object, "op_us", row, op_time);
	add_ops(object, "op_lost_percent", row, op_lost);
	add_ops(object, "op_worst_percent", row, op_worst);
}

void report_row(const struct row *row)
{
	struct summary s = summarise(row);

	all_wrong += (uint64_t)s.wrong;
	fprintf(table, "%12llu %11llu %9s %6s %10.1f %7.4f %7.4f %7lld %10.1f %10.1f %10.1f %10.1f %8.4f %8lld\n",
		(unsigned long long)row->bytes,
		(unsigned long long)(row->bytes / dtype_size(row->dtype)),
		dtype_name(row->dtype), redop(row), s.time, s.algbw,
		s.busbw, (long long)s.wrong, s.p50, s.p99, s.p999, s.max, s.lost,
		(long long)s.partial);
	fflush(table);
	if (path)
		row_to_json(row, &s);
}

uint64_t report_close(void)
{
	const int style = JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED;
	int fail = 0;

	fprintf(table, "# wrong elements: %llu\n", (unsigned long long)all_wrong);
	if (path && !strcmp(path, "-")) {
		fail = puts(json_object_to_json_string_ext(document, style)) < 0 ||
		       fflush(stdout);
	} else if (path) {
		fail = json_object_to_file_ext(path, document, style);
	}
	if (fail)
		errx(1, "can't write %s", path);
	json_object_put(document);
	return all_wrong;
}
