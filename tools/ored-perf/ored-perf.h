/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ORED_PERF_H
#define ORED_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <linux/ored.h>

#define PATTERN		8	/* elements after which data repeats */
#define DTYPES		6
#define REDUCTIONS	4
#define COLLECTIVES	4	/* a barrier moves nothing to measure */

/**
 * struct options - the command line
 * @min: smallest bucket, bytes
 * @max: largest
 * @step: bytes from one to the next, if @factor is 0
 * @factor: from one to the next
 * @iters: ops that are measured, for each row
 * @warmup: ops before them
 * @check: results are checked
 * @kind: enum ored_kind, not ORED_BARRIER
 * @reductions: bit r: enum ored_reduction r is measured
 * @dtypes: bit d: likewise enum ored_dtype
 * @mode: enum ored_mode
 * @bound_us: D of each measured op; 0: the policy's
 * @wait_us: W likewise, NO_WAIT: none
 * @gap_us: from an op's end to the next post
 * @timeout_s: for joining, and for each op
 * @seed: of the data
 * @json: file to write, or NULL
 */
struct options {
	uint64_t	min;
	uint64_t	max;
	uint64_t	step;
	uint64_t	factor;
	uint32_t	iters;
	uint32_t	warmup;
	bool		check;
	uint8_t		kind;
	uint32_t	reductions;
	uint32_t	dtypes;
	uint8_t		mode;
	uint32_t	bound_us;
	uint32_t	wait_us;
	uint32_t	gap_us;
	uint32_t	timeout_s;
	uint32_t	seed;
	const char	*json;
};

#define NO_WAIT UINT32_MAX

/* Leaves the program if something in it is wrong. */
void options_read(struct options *options, int argc, char **argv);
/* The size after @bytes, or more than @options->max */
uint64_t options_next(const struct options *options, uint64_t bytes);

/* One op's figures; the first four become the largest of all ranks', the others the sum. */
enum figure {
	TIME,		/* ns, from before send() to after recv() */
	OVER,		/* ns beyond the published bound, by the kernel's clock; INT64_MIN: none */
	PARTIAL,	/* something was missing */
	WORST,		/* loss at the rank that lost most, ppm */
	LARGEST,	/* how many of these there are */
	MISSING = LARGEST, /* bytes, both stages */
	EXPECTED,	/* bytes */
	WRONG,		/* elements */
	FIGURES,
};

/**
 * struct row - a line of the table
 * @kind: enum ored_kind; whoever broadcasts is rank 0
 * @bytes: of the bucket
 * @dtype: enum ored_dtype
 * @reduction: enum ored_reduction; 0 where nothing is reduced
 * @ops: how many were measured
 * @figures: of each op, by enum figure: figures[f * ops + op]
 */
struct row {
	uint8_t		kind;
	uint64_t	bytes;
	uint8_t		dtype;
	uint8_t		reduction;
	uint32_t	ops;
	int64_t		*figures;
};

const char *dtype_name(uint8_t dtype);
const char *reduction_name(uint8_t reduction);
const char *collective_name(uint8_t kind);
size_t dtype_size(uint8_t dtype);
bool reduces(uint8_t kind);

/**
 * struct part - elements of a bucket
 * @first: where they begin
 * @count: how many
 */
struct part {
	uint64_t	first;
	uint64_t	count;
};

/* All of a row's bucket, and what a rank gives and gets of it: that or its shard */
struct part bucket_of(const struct row *row);
struct part given_of(const struct row *row, uint32_t rank, uint32_t nranks);
struct part got_of(const struct row *row, uint32_t rank, uint32_t nranks);

/* What a rank contributes to an op: PATTERN elements, over and over. */
void data_fill(void *bucket, const struct row *row, uint32_t rank, uint32_t seed, uint64_t op);
/* Elements of a rank's result that can't be right; @whole: nothing is missing of it */
uint64_t data_wrong(const void *bucket, const struct row *row, uint32_t rank, uint32_t nranks,
		    uint32_t seed, uint64_t op, bool whole);

void report_open(const struct options *options, const struct ored_group *group);
void report_row(const struct row *row);
/* Returns the number of wrong elements in all rows. */
uint64_t report_close(void);

#endif /* ORED_PERF_H */
