// SPDX-License-Identifier: GPL-2.0
/*
 * Times the module's arithmetic: numbers. Prints 'NAME VALUE' lines; what is
 * compared with what runs in turns, and the figure is the median of the turns'
 * ratios, so that a busy machine disturbs both alike.
 *
 * Instructions are counted by single-stepping a child through one call.
 */

#define _GNU_SOURCE
#include <fftw3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../unit/units.h"
#include "../../uapi/linux/ored.h"

#define RANKS		8
#define CHUNK		1440		/* bytes: a full packet's payload over Ethernet */
#define JUMBO		8960		/* the same of a jumbo frame */
#define L2_CHUNKS	32		/* 415 kB in all */
#define MEMORY_CHUNKS	12000		/* 156 MB in all */
#define TURNS		41
#define BLOCK_LOG	12
#define BLOCK_LENGTH	4096

static const struct ored_simd *units[MAX_UNITS];
static u32 unit_number;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1000000000;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int n)
{
	qsort(values, n, sizeof(*values), compare);
	return values[n / 2];
}

static void *memory(size_t bytes)
{
	void *p = aligned_alloc(4096, (bytes + 4095) & ~4095UL);

	if (!p)
		abort();
	memset(p, 0x3e, bytes);	/* in F32 0.185..., in BF16 nearly the same */
	return p;
}

/* What a function does is not seen here, so none of it is left out. */
struct work {
	void (*run)(struct work *work);
	u8 *own, *staged, *dst;
	size_t stride;
	u32 chunks;
	u8 dtype;
	const struct ored_simd *unit;
	fftwf_plan plan;
};

static double timed(struct work *work, int rounds)
{
	double start = now();
	int i;

	for (i = 0; i < rounds; i++)
		work->run(work);
	return (now() - start) / rounds;
}

/* The median of b's time over a's, in turns; and the medians of both */
static double ratio(struct work *a, struct work *b, int rounds, double *ta, double *tb)
{
	double as[TURNS], bs[TURNS], ratios[TURNS];
	int i;

	timed(a, rounds);
	timed(b, rounds);
	for (i = 0; i < TURNS; i++) {
		as[i] = timed(a, rounds);
		bs[i] = timed(b, rounds);
		ratios[i] = bs[i] / as[i];
	}
	*ta = median(as, TURNS);
	*tb = median(bs, TURNS);
	return median(ratios, TURNS);
}

/* All of them are read and one is written: as little as there can be to it */
__attribute__((target("avx2"), optimize("O3")))
static void plain_loop(u64 *restrict out, const u64 *const *in, size_t words)
{
	const u64 *a = in[0], *b = in[1], *c = in[2], *d = in[3];
	const u64 *e = in[4], *f = in[5], *g = in[6], *h = in[7];
	size_t i;

	for (i = 0; i < words; i++)
		out[i] = a[i] | b[i] | c[i] | d[i] | e[i] | f[i] | g[i] | h[i];
}

static void run_plain(struct work *work)
{
	const u64 *in[RANKS];
	u32 chunk;
	int r;

	for (chunk = 0; chunk < work->chunks; chunk++) {
		size_t offset = (size_t)chunk * CHUNK;

		in[0] = (const u64 *)(work->own + offset);
		for (r = 1; r < RANKS; r++)
			in[r] = (const u64 *)(work->staged + (r - 1) * work->stride + offset);
		plain_loop((u64 *)(work->dst + offset), in, CHUNK / 8);
	}
}

/* One after the other, for which the processor fetches furthest ahead */
__attribute__((target("avx2"), optimize("O3")))
static void stream_loop(u64 *out, const u64 *in, size_t words, size_t all)
{
	u64 sum = 0;
	size_t i;

	for (i = 0; i < all; i++)
		sum |= in[i];
	for (i = 0; i < words; i++)
		out[i] = sum;
}

static void run_stream(struct work *work)
{
	size_t words = (size_t)work->chunks * CHUNK / 8;

	stream_loop((u64 *)work->dst, (const u64 *)work->staged, words,
		    work->stride / 8 * (RANKS - 1));
	stream_loop((u64 *)work->dst, (const u64 *)work->own, 0, words);
}

static void run_reduce(struct work *work)
{
	u32 chunk;

	for (chunk = 0; chunk < work->chunks; chunk++) {
		size_t offset = (size_t)chunk * CHUNK;
		struct ored_contribs c = {
			.own = work->own + offset, .staged = work->staged + offset,
			.stride = work->stride, .nranks = RANKS,
		};

		if (work->unit)
			unit_reduce(work->unit, work->dst + offset, &c, CHUNK, work->dtype,
				    ORED_MEAN);
		else
			ored_reduce(work->dst + offset, &c, CHUNK, work->dtype, ORED_MEAN);
	}
}

static const char *lower(const struct ored_simd *unit)
{
	return unit == &ored_simd_avx2 ? "avx2" : "avx512";
}

static void measure_reduce(const char *where, u32 chunks, u8 dtype, const char *name, int rounds)
{
	struct work plain = {
		.run = run_plain, .stride = (size_t)chunks * CHUNK, .chunks = chunks,
	}, stream, reduce;
	double t0, t1, share, other, bytes = (double)chunks * CHUNK * (RANKS + 1);
	u32 u;

	plain.own = memory(plain.stride);
	plain.staged = memory(plain.stride * (RANKS - 1));
	plain.dst = memory(plain.stride);
	stream = plain;
	stream.run = run_stream;
	reduce = plain;
	reduce.run = run_reduce;
	reduce.dtype = dtype;
	for (u = 0; u < unit_number; u++) {
		reduce.unit = units[u];
		share = ratio(&reduce, &plain, rounds, &t1, &t0);
		printf("%s_%s_%s_GBps %.2f\n", name, where, lower(units[u]), bytes / t1 / 1e9);
		printf("plain_%s_%s_%s_GBps %.2f\n", name, where, lower(units[u]),
		       bytes / t0 / 1e9);
		other = ratio(&reduce, &stream, rounds, &t1, &t0);
		printf("stream_%s_%s_%s_GBps %.2f\n", name, where, lower(units[u]),
		       bytes / t0 / 1e9);
		printf("%s_%s_%s_share %.4f\n", name, where, lower(units[u]), share);
		printf("%s_%s_%s_stream_share %.4f\n", name, where, lower(units[u]),
		       other);
	}
	reduce.unit = NULL;
	t1 = timed(&reduce, 1);
	printf("%s_%s_reference_GBps %.2f\n", name, where, bytes / t1 / 1e9);
	free(plain.own);
	free(plain.staged);
	free(plain.dst);
}

static void run_block(struct work *work)
{
	work->unit->hadamard.mix_one((u32 *)work->dst, BLOCK_LOG, 6);
}

static void run_fftw(struct work *work)
{
	fftwf_execute(work->plan);
}

static void run_copy(struct work *work)
{
	memcpy(work->dst, work->own, BLOCK_LENGTH * 4);
	__asm__ volatile("" :: "r"(work->dst) : "memory");
}

static fftwf_plan plan(float *x)
{
	fftwf_r2r_kind kind[BLOCK_LOG];
	fftwf_plan p;
	int n[BLOCK_LOG], i;

	for (i = 0; i < BLOCK_LOG; i++) {
		n[i] = 2;
		kind[i] = FFTW_R2HC;
	}
	p = fftwf_plan_r2r(BLOCK_LOG, n, x, x, kind, FFTW_MEASURE);
	if (!p)
		abort();
	return p;
}

/* Scaled down by 2^6 each time, a transform keeps its input's magnitude. */
static void fill(float *x, int n)
{
	int i;

	for (i = 0; i < n; i++)
		x[i] = (float)(i % 2003 * 79 % 2003) / 1000 - 1;
}

static void measure_transform(void)
{
	struct work fftw = { .run = run_fftw }, copy = { .run = run_copy }, block[MAX_UNITS];
	double t0, t1, share;
	u32 u;

	fftw.dst = memory(BLOCK_LENGTH * 4);
	fftw.plan = plan((float *)fftw.dst);
	copy.own = memory(BLOCK_LENGTH * 4);
	/* Not at the same place within a page, which would be slow for itself */
	copy.dst = (u8 *)memory(BLOCK_LENGTH * 4 + 512) + 512;
	for (u = 0; u < unit_number; u++) {
		block[u] = (struct work){
			.run = run_block, .dst = memory(BLOCK_LENGTH * 4), .unit = units[u],
		};
		fill((float *)block[u].dst, BLOCK_LENGTH);
		/* Unscaled sums of this plan would grow without end. */
		memset(fftw.dst, 0, BLOCK_LENGTH * 4);
		share = ratio(&block[u], &fftw, 300, &t1, &t0);
		printf("transform_%s_us %.3f\ntransform_fftw_us %.3f\n", lower(units[u]),
		       t1 * 1e6, t0 * 1e6);
		printf("transform_%s_speedup %.2f\n", lower(units[u]), share);
	}
	printf("transform_memcpy_us %.3f\n", timed(&copy, 10000) * 1e6);
	if (unit_number == 2)
		printf("transform_avx512_over_avx2 %.3f\n",
		       ratio(&block[1], &block[0], 1000, &t1, &t0));
}

/* Whole buckets, there and back, as a send and a recv would */
static void measure_buckets(void)
{
	const u64 count = 1 << 22;
	float *bucket = memory(count * 4);
	u32 *x = memory(ORED_HADAMARD_SCRATCH * 4), u;

	fill(bucket, (int)count);
	for (u = 0; u < unit_number; u++) {
		const struct ored_hadamard_unit unit = { .ops = &units[u]->hadamard };
		struct ored_hadamard h = {
			.seed = 1, .count = count, .log = ored_hadamard_log(count),
		};
		double times[9];
		int i;
		u64 tile;

		for (i = 0; i < 9; i++) {
			double start = now();

			h.inverse = i & 1;
			for (tile = 0; tile < ored_hadamard_tiles(&h); tile++)
				ored_hadamard_tile(&h, &unit, bucket, x, tile);
			times[i] = now() - start;
		}
		printf("bucket_%s_GBps %.2f\n", lower(units[u]),
		       (double)count * 4 / median(times, 9) / 1e9);
	}
	free(bucket);
	free(x);
}

static double section_start, section_longest;

static bool section_begin(void)
{
	section_start = now();
	return true;
}

static void section_end(void)
{
	double took = now() - section_start;

	section_longest = took > section_longest ? took : section_longest;
}

/*
 * The longest section in means of jumbo frames, of which every 64th element is NaN, or
 * all are: the worst of all dtypes, by median of turns.
 */
static double special_section(const struct ored_simd *unit)
{
	struct ored_reduce_unit by = {
		.reduce = unit->reduce, .begin = section_begin, .end = section_end,
	};
	u8 *staged = memory(JUMBO * RANKS), *dst = memory(JUMBO), dtype;
	struct ored_contribs c = {
		.own = staged + JUMBO * (RANKS - 1), .staged = staged, .stride = JUMBO,
		.nranks = RANKS,
	};
	double longest[TURNS], worst = 0;
	u32 every, i;
	int turn;

	for (dtype = ORED_F32; dtype <= ORED_BF16; dtype++) {
		u32 size = ored_dtype_size(dtype);

		for (every = 1; every <= 64; every += 63) {
			memset(staged, 0, JUMBO * RANKS);
			for (i = 0; i < JUMBO / size; i += every)
				memset(staged + i * size, 0xff, size);
			for (turn = 0; turn < TURNS; turn++) {
				section_longest = 0;
				ored_reduce_by(&by, dst, &c, JUMBO, dtype, ORED_MEAN);
				longest[turn] = section_longest;
			}
			worst = max(worst, median(longest, TURNS));
		}
	}
	free(staged);
	free(dst);
	return worst;
}

/*
 * The longest sections with the FPU held: parts of a tile, a block alone, and a
 * piece of a reduction of as many ranks as there can be, in memory.
 */
static void measure_sections(void)
{
	const u64 count = 1 << 22;
	u8 *bucket = memory(count * 4);
	u32 *x = memory(ORED_HADAMARD_SCRATCH * 4), u;
	struct ored_hadamard h = { .count = count, .log = BLOCK_LOG };
	double load[TURNS], mix[TURNS], store[TURNS], one[TURNS], reduce[TURNS];
	u8 *many = memory((size_t)ORED_MAX_RANKS * 65536);
	int i;

	for (u = 0; u < unit_number; u++) {
		const struct ored_hadamard_ops *ops = &units[u]->hadamard;

		for (i = 0; i < TURNS; i++) {
			struct ored_contribs c = {
				.own = bucket, .staged = many, .stride = 65536,
				.nranks = ORED_MAX_RANKS,
			};
			u32 piece = ored_reduce_piece(c.nranks), step;
			double start, longest = 0;

			memset(x, 0, ORED_HADAMARD_SCRATCH * 4);
			start = now();
			ops->load(&h, x, bucket, 16 * (i + 1), 16, 0, 512);
			load[i] = now() - start;
			for (step = 0; step < ored_hadamard_steps(BLOCK_LOG); step++) {
				start = now();
				ops->mix(x, BLOCK_LOG, step);
				longest = now() - start > longest ? now() - start : longest;
			}
			mix[i] = longest;
			start = now();
			ops->store(&h, bucket, x, 16 * (i + 1), 16, 0, 512);
			store[i] = now() - start;
			start = now();
			ops->mix_one(x, BLOCK_LOG, 6);
			one[i] = now() - start;
			c.staged = many + i * piece;
			start = now();
			units[u]->reduce(bucket + i * piece, &c, piece, ORED_F32, ORED_MEAN);
			reduce[i] = now() - start;
		}
		printf("section_%s_load_us %.2f\n", lower(units[u]), median(load, TURNS) * 1e6);
		printf("section_%s_mix_us %.2f\n", lower(units[u]), median(mix, TURNS) * 1e6);
		printf("section_%s_store_us %.2f\n", lower(units[u]), median(store, TURNS) * 1e6);
		printf("section_%s_one_us %.2f\n", lower(units[u]), median(one, TURNS) * 1e6);
		printf("section_%s_reduce_us %.2f\n", lower(units[u]), median(reduce, TURNS) * 1e6);
		printf("section_%s_special_us %.2f\n", lower(units[u]),
		       special_section(units[u]) * 1e6);
	}
	free(many);
	free(bucket);
	free(x);
}

/* Instructions of one run, less those of none */
static long steps(struct work *work)
{
	int status;
	long count = 0;
	pid_t child = fork();

	if (child < 0)
		abort();
	if (!child) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(2);
		raise(SIGSTOP);
		if (work)
			work->run(work);
		_exit(0);
	}
	waitpid(child, &status, 0);
	while (WIFSTOPPED(status)) {
		if (ptrace(PTRACE_SINGLESTEP, child, 0, 0))
			abort();
		waitpid(child, &status, 0);
		count++;
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		abort();
	return count;
}

static void count_instructions(void)
{
	struct work reduce = { .run = run_reduce, .stride = CHUNK, .chunks = 1 };
	struct work block = { .run = run_block };
	long none = steps(NULL);
	u32 u;

	reduce.own = memory(CHUNK);
	reduce.staged = memory(CHUNK * (RANKS - 1));
	reduce.dst = memory(CHUNK);
	block.dst = memory(BLOCK_LENGTH * 4);
	for (u = 0; u < unit_number; u++) {
		reduce.unit = units[u];
		block.unit = units[u];
		reduce.dtype = ORED_F32;
		printf("f32_%s_insn_per_byte %.3f\n", lower(units[u]),
		       (double)(steps(&reduce) - none) / (CHUNK * RANKS));
		reduce.dtype = ORED_BF16;
		printf("bf16_%s_insn_per_byte %.3f\n", lower(units[u]),
		       (double)(steps(&reduce) - none) / (CHUNK * RANKS));
		printf("transform_%s_insn_per_byte %.3f\n", lower(units[u]),
		       (double)(steps(&block) - none) / (BLOCK_LENGTH * 4));
	}
	reduce.unit = NULL;
	reduce.dtype = ORED_F32;
	printf("f32_reference_insn_per_byte %.3f\n",
	       (double)(steps(&reduce) - none) / (CHUNK * RANKS));
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	unit_number = unit_count(units);
	if (!unit_number) {
		fprintf(stderr, "numbers: this processor has no AVX2\n");
		return 2;
	}
	measure_transform();
	measure_reduce("l2", L2_CHUNKS, ORED_F32, "f32", 100);
	measure_reduce("l2", L2_CHUNKS, ORED_BF16, "bf16", 100);
	measure_reduce("memory", MEMORY_CHUNKS, ORED_F32, "f32", 1);
	measure_reduce("memory", MEMORY_CHUNKS, ORED_BF16, "bf16", 1);
	measure_buckets();
	measure_sections();
	count_instructions();
	return 0;
}
