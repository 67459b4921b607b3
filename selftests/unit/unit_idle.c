// SPDX-License-Identifier: GPL-2.0
/* Idle spans: what is learnt of them, and what is put into them. */

#include "tap.h"
#include "../../kmod/core/idle.h"

#define MS	1000000ULL
#define US	1000ULL
#define MU	700000U

/* One iteration: an op of 2 ms after each of these spans */
static u64 iterate(struct ored_idle *idle, u64 now, const u64 *spans, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		now += spans[i];
		ored_idle_busy(idle, now);
		now += 2 * MS;
		ored_idle_free(idle, now);
	}
	return now;
}

static const u64 usual[] = { 5 * MS, 8 * MS, 6 * MS, 40 * MS };

static u64 train(struct ored_idle *idle, u32 iterations)
{
	u64 now = 7 * MS;

	ored_idle_init(idle);
	while (iterations--)
		now = iterate(idle, now, usual, ARRAY_SIZE(usual));
	return now;
}

TEST(without_training_forever)
{
	struct ored_idle idle;

	ored_idle_init(&idle);
	CHECK_EQ(ored_idle_left(&idle, 0, MU), ORED_IDLE_FOREVER);
	CHECK_EQ(ored_idle_left(&idle, 1ULL << 50, MU), ORED_IDLE_FOREVER);
}

TEST(nothing_before_spans_are_known)
{
	struct ored_idle idle;
	u64 now = train(&idle, ORED_IDLE_ROUNDS - 1);

	CHECK_EQ(ored_idle_left(&idle, now, MU), 0);
	/* But when nothing comes any more, all is ours. */
	CHECK_EQ(ored_idle_left(&idle, now + ORED_IDLE_QUIET_NS, MU), ORED_IDLE_FOREVER);
}

TEST(spans_are_known_in_their_order)
{
	struct ored_idle idle;
	u64 now = train(&idle, 20), i;

	CHECK_EQ(idle.known, ARRAY_SIZE(usual));
	CHECK(idle.spread < 100000, "%u", idle.spread);
	for (i = 0; i < ARRAY_SIZE(usual); i++) {
		u64 use = usual[i] / 10 * 7;

		CHECK_EQ(ored_idle_left(&idle, now, MU), use);
		CHECK_EQ(ored_idle_left(&idle, now + use - 1, MU), 1);
		CHECK_EQ(ored_idle_left(&idle, now + use, MU), 0);
		CHECK_EQ(ored_idle_left(&idle, now + usual[i], MU), 0);
		now += usual[i];
		ored_idle_busy(&idle, now);
		CHECK_EQ(ored_idle_left(&idle, now, MU), 0);
		CHECK_EQ(ored_idle_left(&idle, now + 1000 * ORED_IDLE_QUIET_NS, MU), 0);
		now += 2 * MS;
		ored_idle_free(&idle, now);
	}
}

/* A span that was shorter once halves the error at once. */
TEST(shorter_spans_count_at_once)
{
	static const u64 shorter[] = { 5 * MS, 4 * MS, 6 * MS, 40 * MS };
	struct ored_idle idle;
	u64 now = train(&idle, 20), before;
	u32 i;

	for (i = 0; i < 4; i++) {
		before = idle.span[1];
		now = iterate(&idle, now, shorter, ARRAY_SIZE(shorter));
		CHECK_EQ(idle.span[1] - shorter[1], (before - shorter[1]) / 2);
	}
	before = idle.span[1];
	now = iterate(&idle, now, usual, ARRAY_SIZE(usual));
	CHECK_EQ(idle.span[1] - before, (usual[1] - before) / 8);
}

/* Another number of buckets, as when a model is frozen in part */
TEST(another_iteration_is_learnt)
{
	static const u64 other[] = { 3 * MS, 30 * MS };
	struct ored_idle idle;
	u64 now = train(&idle, 20);
	u32 i;

	for (i = 0; i < 60; i++)
		now = iterate(&idle, now, other, ARRAY_SIZE(other));
	CHECK_EQ(idle.known, 2);
	CHECK_EQ(ored_idle_left(&idle, now, MU) / US, other[0] / 10 * 7 / US);
}

TEST(any_order_of_events)
{
	struct ored_idle idle;
	u64 now = 0;
	u32 i;

	ored_idle_init(&idle);
	for (i = 0; i < 200000; i++) {
		u64 left;

		now += tap_below(3) ? tap_below(20 * MS) : (u64)tap_below(4) * ORED_IDLE_QUIET_NS;
		if (tap_below(2))
			ored_idle_busy(&idle, now);
		else
			ored_idle_free(&idle, now - tap_below(2) * tap_below(1000));
		left = ored_idle_left(&idle, now, tap_below(2000000));
		CHECK(!idle.busy || !left);
		CHECK(left == ORED_IDLE_FOREVER || left < ORED_IDLE_QUIET_NS);
		CHECK(idle.at < ORED_IDLE_SPANS && idle.known <= ORED_IDLE_SPANS);
		CHECK(idle.spread <= 1000000);
	}
}

TEST(rate)
{
	/* 10 Gbit/s is 1.25 bytes a ns. */
	CHECK_EQ(ored_idle_rate(1250000000), 5ULL << 30);
	CHECK_EQ(ored_idle_rate(0), 1);
	CHECK(ored_idle_rate(~0ULL) > 1ULL << 40);
}

/* What every plan must be, checked by adding up */
static void check_plan(const struct ored_idle_job *job)
{
	u64 sent[4] = {}, used[8] = {}, last = job->nspans - 1;
	double rate = (double)job->rate / 4294967296.0;
	struct ored_idle_cursor cursor;
	struct ored_idle_piece piece;
	u32 i, pieces = 0, span = 0;

	ored_idle_plan(&cursor, job);
	while (ored_idle_next(&cursor, &piece)) {
		CHECK(piece.span >= span && piece.span <= last);
		span = piece.span;
		CHECK(piece.target < job->targets);
		CHECK_EQ(piece.offset, sent[piece.target]);
		CHECK(piece.bytes && piece.bytes <= job->part);
		sent[piece.target] += piece.bytes;
		CHECK(piece.bytes % job->grain == 0 || sent[piece.target] == job->bytes);
		used[piece.span] += job->startup + (u64)((double)piece.bytes / rate);
		if (++pieces > 1000000)
			break;
	}
	CHECK(pieces <= 1000000, "it never ends");
	for (i = 0; i < job->targets; i++)
		CHECK_EQ(sent[i], job->bytes);
	for (i = 0; i < last; i++)
		CHECK(used[i] <= (u64)((double)job->spans[i] * job->mu_ppm / 1e6),
		      "span %u: %" PRIu64 " of %" PRIu64, i, used[i], job->spans[i]);
}

/* By hand: 1 byte a ns, so ns are bytes. */
TEST(plan_by_hand)
{
	static const u64 spans[] = { 1000 * US, 50, 500 * US, 1 };
	static const struct ored_idle_piece expected[] = {
		{ 0, 0, 0, 300000 }, { 0, 0, 300000, 190000 },
		{ 2, 0, 490000, 240000 }, { 3, 0, 730000, 270000 },
		{ 3, 1, 0, 300000 }, { 3, 1, 300000, 300000 }, { 3, 1, 600000, 300000 },
		{ 3, 1, 900000, 100000 },
	};
	const struct ored_idle_job job = {
		.spans = spans, .nspans = 4, .bytes = 1000000, .targets = 2,
		.part = 300000, .grain = 10000, .rate = 1ULL << 32, .startup = 100,
		.mu_ppm = 500000,
	};
	struct ored_idle_cursor cursor;
	struct ored_idle_piece piece;
	u32 n = 0;

	ored_idle_plan(&cursor, &job);
	while (ored_idle_next(&cursor, &piece) && n < ARRAY_SIZE(expected)) {
		CHECK_EQ(piece.span, expected[n].span);
		CHECK_EQ(piece.target, expected[n].target);
		CHECK_EQ(piece.offset, expected[n].offset);
		CHECK_EQ(piece.bytes, expected[n].bytes);
		n++;
	}
	CHECK_EQ(n, ARRAY_SIZE(expected));
	CHECK(!ored_idle_next(&cursor, &piece));
	check_plan(&job);
}

/* With 1000 us * 0.5 and 500 us * 0.5 at a byte a ns 750 kB fit: 2 MB need three. */
TEST(how_often)
{
	static const u64 spans[] = { 1000 * US, 50, 500 * US }, none[] = { 10, 20 };
	struct ored_idle_job job = {
		.spans = spans, .nspans = 3, .bytes = 1000000, .targets = 2, .part = 1 << 20,
		.grain = 1, .rate = 1ULL << 32, .startup = 100, .mu_ppm = 500000,
	};

	CHECK_EQ(ored_idle_iterations(&job), 3);
	job.bytes = 300000;
	CHECK_EQ(ored_idle_iterations(&job), 1);
	job.spans = none;
	job.nspans = 2;
	CHECK_EQ(ored_idle_iterations(&job), ORED_IDLE_FOREVER);
}

TEST(random_plans)
{
	u32 i, run;

	for (run = 0; run < 3000; run++) {
		u64 spans[8];
		struct ored_idle_job job = {
			.spans = spans,
			.nspans = 1 + tap_below(8),
			.bytes = tap_below(1 << tap_below(24)),
			.targets = tap_below(5),
			.part = 1 + tap_below(1 << tap_below(20)),
			.rate = ored_idle_rate(1000000 + (u64)tap_below(1 << 30) * tap_below(100)),
			.startup = tap_below(100000),
			.mu_ppm = tap_below(1000001),
		};

		job.grain = 1 + tap_below(min(job.part, 9000U));
		job.part = max(job.part, (u32)(job.bytes / 1000 + job.grain));
		/* Spans of nothing and such that equal what starting costs are in. */
		for (i = 0; i < 8; i++)
			spans[i] = tap_below(4) ? tap_below(20000000) : tap_below(2) * job.startup;
		check_plan(&job);
	}
}

TAP_MAIN
