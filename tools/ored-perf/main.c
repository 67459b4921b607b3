// SPDX-License-Identifier: GPL-2.0
/*
 * ored-perf: how long a collective takes in a group, and whether it is right. One
 * process on each host; rank 0 reports.
 *
 * Figures travel as ops of the group too, reliable ones, after each row: no
 * second network is needed, and all ranks are together when the next row begins.
 */

#include <err.h>
#include <ored.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include "ored-perf.h"

/* A rank's part in all of it */
struct run {
	const struct options *options;
	struct ored_group group;
	int fd;
	void *bucket;
	uint64_t op;		/* so many have been posted */
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pause_us(uint32_t us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000L };

	if (us)
		nanosleep(&t, NULL);
}

/* The kernel's sentence, or the library's */
__attribute__((noreturn))
static void give_up(const struct run *run, int ret, const char *what)
{
	char why[ORED_ERROR_MAX];

	if (!ored_error(run->fd, why, sizeof(why)))
		ored_error(ret, why, sizeof(why));
	errx(1, "rank %u: %s: %s", run->group.rank, what, why);
}

/* Takes its name from options; bounds belong to ops that are measured. */
static struct ored_op op_of(const struct options *o, const struct row *row, bool measured)
{
	struct ored_op op = {
		.dtype = row->dtype, .reduction = row->reduction, .mode = o->mode,
	};

	if (!measured)
		return op;
	op.deadline_us = o->bound_us;
	if (o->wait_us == NO_WAIT)
		op.flags |= ORED_OP_NO_WAIT;
	else
		op.wait_us = o->wait_us;
	return op;
}

static int64_t loss_ppm(uint64_t missing, uint64_t expected)
{
	return expected ? (int64_t)(missing * 1000000 / expected) : 0;
}

/* The verdict alone doesn't tell: others may have reduced without somebody. */
static bool is_whole(const struct ored_result *result)
{
	uint64_t missing = 0;
	int i;

	for (i = 0; i < ORED_RANK_WORDS; i++)
		missing |= result->missing[i];
	return !missing && result->verdict == ORED_VERDICT_OK;
}

static void note(const struct run *run, const struct row *row, uint32_t i, int64_t took,
		 const struct ored_result *result)
{
	int64_t *at = row->figures + i;
	uint64_t missing = result->scatter.missing + result->gather.missing;
	uint64_t expected = result->scatter.expected + result->gather.expected;
	bool bounded = result->bound_us && result->bound_us != UINT32_MAX;
	bool whole = is_whole(result);

	at[(size_t)TIME * row->ops] = took;
	at[(size_t)OVER * row->ops] = bounded ?
		(int64_t)result->elapsed_ns - result->bound_us * 1000LL : INT64_MIN;
	at[(size_t)PARTIAL * row->ops] = !whole;
	at[(size_t)WORST * row->ops] = loss_ppm(missing, expected);
	at[(size_t)MISSING * row->ops] = (int64_t)missing;
	at[(size_t)EXPECTED * row->ops] = (int64_t)expected;
	at[(size_t)WRONG * row->ops] = !run->options->check ? 0 :
		(int64_t)data_wrong(run->bucket, row, run->group.rank, run->group.nranks,
				    run->options->seed, run->op, whole);
}

/* In place: what is given, and what is got, lies in the bucket where it belongs. */
static int collective(struct run *run, const struct row *row, const struct ored_op *op,
		      struct ored_result *result)
{
	uint32_t rank = run->group.rank, nranks = run->group.nranks;
	struct part given = given_of(row, rank, nranks), got = got_of(row, rank, nranks);
	size_t size = dtype_size(row->dtype);
	char *in = (char *)run->bucket + given.first * size;
	char *out = (char *)run->bucket + got.first * size;
	ssize_t ret;

	switch (row->kind) {
	case ORED_REDUCE_SCATTER:
		ret = ored_reduce_scatter(run->fd, in, row->bytes, out, got.count * size, op,
					  result);
		return ret < 0 ? (int)ret : 0;
	case ORED_ALL_GATHER:
		return ored_all_gather(run->fd, in, given.count * size, out, row->bytes, op,
				       result);
	case ORED_BROADCAST:
		return ored_broadcast(run->fd, out, row->bytes, 0, op, result);
	default:
		return ored_allreduce(run->fd, out, row->bytes, op, result);
	}
}

/* One op; noted as the @i-th, unless @i is negative. */
static void one(struct run *run, const struct row *row, int64_t i)
{
	const struct options *o = run->options;
	struct ored_op op = op_of(o, row, i >= 0);
	struct ored_result result;
	int64_t begun, took;
	int ret;

	data_fill(run->bucket, row, run->group.rank, o->seed, run->op);
	pause_us(o->gap_us);
	begun = now_ns();
	ret = collective(run, row, &op, &result);
	took = now_ns() - begun;
	if (ret)
		give_up(run, ret, "an op failed");
	if (i >= 0)
		note(run, row, (uint32_t)i, took, &result);
	run->op++;
}

static void exchange(struct run *run, int64_t *values, size_t n, uint8_t reduction)
{
	const struct ored_op op = {
		.dtype = ORED_I64, .reduction = reduction, .mode = ORED_MODE_RELIABLE,
	};
	int ret = ored_allreduce(run->fd, values, n * sizeof(*values), &op, NULL);

	if (ret)
		give_up(run, ret, "figures could not be exchanged");
}

static void measure(struct run *run, struct row *row)
{
	const struct options *o = run->options;
	size_t largest = (size_t)LARGEST * row->ops;
	uint32_t i;

	for (i = 0; i < o->warmup; i++)
		one(run, row, -1);
	for (i = 0; i < row->ops; i++)
		one(run, row, i);
	exchange(run, row->figures, largest, ORED_MAX);
	exchange(run, row->figures + largest, (size_t)FIGURES * row->ops - largest, ORED_SUM);
}

static void measure_size(struct run *run, uint64_t bytes, int64_t *figures)
{
	const struct options *o = run->options;
	struct row row = { .kind = o->kind, .ops = o->iters, .figures = figures };
	/* As nccl-tests: what is smaller than an element is one; or one for each shard. */
	bool shards = o->kind == ORED_REDUCE_SCATTER || o->kind == ORED_ALL_GATHER;
	uint32_t least = shards ? run->group.nranks : 1;
	uint8_t d, r;

	for (d = 0; d < DTYPES; d++) {
		for (r = 0; r < REDUCTIONS; r++) {
			if (!(o->dtypes >> d & 1) || !(o->reductions >> r & 1))
				continue;
			row.dtype = d;
			row.reduction = r;
			row.bytes = bytes / dtype_size(d) * dtype_size(d);
			if (row.bytes < least * dtype_size(d))
				row.bytes = least * dtype_size(d);
			measure(run, &row);
			if (!run->group.rank)
				report_row(&row);
		}
	}
}

static void join(struct run *run)
{
	const struct options *o = run->options;
	uint64_t figures = (uint64_t)FIGURES * o->iters * sizeof(int64_t);
	/* Of an element for each rank */
	uint64_t least = ORED_MAX_RANKS * sizeof(int64_t);
	uint64_t most = o->max > least ? o->max : least;
	char why[ORED_ERROR_MAX] = "";
	struct ored_config config = {
		.bucket_max = ((most > figures ? most : figures) + 7) / 8 * 8,
		.depth = 1, .timeout_ms = o->timeout_s * 1000,
		.error = why, .error_size = sizeof(why),
	};
	struct timeval limit = { .tv_sec = o->timeout_s };
	int ret;

	run->fd = ored_open_env(&config);
	if (run->fd < 0)
		errx(1, "can't join: %s", why);
	/* Nobody waits for ever for a rank that has died. */
	if (setsockopt(run->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		err(1, "SO_RCVTIMEO");
	ret = ored_group(run->fd, &run->group);
	if (ret)
		give_up(run, ret, "can't read the group");
	run->bucket = calloc(1, config.bucket_max);
	if (!run->bucket)
		err(1, "no memory for a bucket");
}

int main(int argc, char **argv)
{
	struct options options;
	struct run run = { .options = &options };
	int64_t *figures;
	uint64_t bytes, wrong = 0;

	options_read(&options, argc, argv);
	join(&run);
	figures = calloc((size_t)FIGURES * options.iters, sizeof(*figures));
	if (!figures)
		err(1, "no memory for figures");
	if (!run.group.rank)
		report_open(&options, &run.group);
	for (bytes = options.min; bytes <= options.max; bytes = options_next(&options, bytes))
		measure_size(&run, bytes, figures);
	if (!run.group.rank)
		wrong = report_close();
	return wrong != 0;
}
