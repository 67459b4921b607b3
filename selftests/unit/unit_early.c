// SPDX-License-Identifier: GPL-2.0
/* The early timeout: its parts, that it fires, and that it doesn't when it mustn't. */

#include "tap.h"
#include "sim.h"

#define MS	((u64)1000000)

/* The last 1 %, three at least, whatever the length: one integer division away from never. */
TEST(early__tail_marks)
{
	u32 count, place;

	for (count = 1; count < 3000; count++) {
		u32 marked = 0, want = (count + 99) / 100;

		for (place = 0; place < count; place++) {
			bool tail = ored_tail(place, count);

			marked += tail;
			CHECK(!tail || ored_tail(count - 1, count));
			CHECK(place == count - 1 || !tail || ored_tail(place + 1, count));
		}
		want = want < 3 ? 3 : want;
		CHECK_EQ(marked, want < count ? want : count);
	}
}

TEST(early__sample)
{
	CHECK_EQ(ored_early_sample(7 * MS, 9 * MS, 10, 10, ORED_LIMIT_COMPLETE), 7 * MS);
	CHECK_EQ(ored_early_sample(7 * MS, 9 * MS, 5, 10, ORED_LIMIT_HARD), 9 * MS);
	CHECK_EQ(ored_early_sample(4 * MS, 9 * MS, 5, 10, ORED_LIMIT_EARLY), 8 * MS);
	CHECK_EQ(ored_early_sample(7 * MS, 9 * MS, 5, 10, ORED_LIMIT_EARLY), 9 * MS);
	CHECK_EQ(ored_early_sample(7 * MS, 9 * MS, 0, 10, ORED_LIMIT_EARLY), 0);
	CHECK_EQ(ored_early_sample(7 * MS, 9 * MS, 5, 10, ORED_LIMIT_BEHIND), 0);
	CHECK_EQ(ored_early_sample(7 * MS, 9 * MS, 5, 10, ORED_LIMIT_NONE), 0);
	/* The largest bucket, in the longest op */
	CHECK_EQ(ored_early_sample(270000 * MS, 300000 * MS, 0xffffffffULL, 0xffffffffULL * 2,
				   ORED_LIMIT_EARLY), 300000 * MS);
}

/* The median counts, the average moves by a twentieth, lengths don't matter. */
TEST(early__learn)
{
	u64 samples[5] = { 0, 300 * MS, 100 * MS, 9000 * MS, 110 * MS };
	struct ored_early e;
	u32 i;

	ored_early_init(&e);
	ored_early_learn(&e, samples, 5, 0);
	CHECK_EQ(e.tc_ppm, 0);
	ored_early_learn(&e, samples, 5, 100 * MS);
	CHECK_EQ(e.tc_ppm, 1100000);
	for (i = 0; i < 5; i++)
		samples[i] = 210 * MS;
	ored_early_learn(&e, samples, 5, 100 * MS);
	CHECK_EQ(e.tc_ppm, (95 * 1100000 + 5 * 2100000) / 100);
	for (i = 0; i < 500; i++) {
		u64 quiet = (1 + tap_below(1000)) * MS, one[1] = { 2 * quiet };

		ored_early_learn(&e, one, 1, quiet);
	}
	CHECK(e.tc_ppm > 1990000 && e.tc_ppm <= 2000001, "%u", e.tc_ppm);
	memset(samples, 0, sizeof(samples));
	ored_early_learn(&e, samples, 5, 100 * MS);
	CHECK(e.tc_ppm > 1990000);
}

/* Against sorting */
TEST(early__median)
{
	u32 i, k, n, round;

	for (round = 0; round < 3000; round++) {
		u64 samples[32], sorted[32];
		struct ored_early e;

		n = 1 + tap_below(32);
		for (i = 0; i < n; i++)
			samples[i] = (1 + tap_below(round & 1 ? 4 : 1000)) * MS;
		memcpy(sorted, samples, sizeof(sorted));
		for (i = 1; i < n; i++)
			for (k = i; k && sorted[k - 1] > sorted[k]; k--) {
				u64 t = sorted[k];

				sorted[k] = sorted[k - 1];
				sorted[k - 1] = t;
			}
		ored_early_init(&e);
		ored_early_learn(&e, samples, n, MS);
		CHECK_EQ(e.tc_ppm, sorted[(n - 1) / 2]);
	}
}

TEST(early__adapt)
{
	struct ored_early e;
	u32 i;

	ored_early_init(&e);
	CHECK_EQ(e.x_percent, 10);
	ored_early_adapt(&e, 1001);
	CHECK_EQ(e.x_percent, 20);
	ored_early_adapt(&e, 1000);
	ored_early_adapt(&e, 100);
	CHECK_EQ(e.x_percent, 20);
	ored_early_adapt(&e, 99);
	CHECK_EQ(e.x_percent, 19);
	for (i = 0; i < 5; i++)
		ored_early_adapt(&e, 5000);
	CHECK_EQ(e.x_percent, 50);
	for (i = 0; i < 100; i++)
		ored_early_adapt(&e, 0);
	CHECK_EQ(e.x_percent, 1);
}

TEST(early__at)
{
	struct ored_early e = { .tc_ppm = 1200000, .x_percent = 10 };

	CHECK_EQ(ored_early_at(&e, 100 * MS, 5, MS, true), 5 + 12 * MS);
	CHECK_EQ(ored_early_at(&e, 100 * MS, 5, 9 * MS, true), 5 + 18 * MS);
	CHECK_EQ(ored_early_at(&e, 100 * MS, 5, MS, false), ORED_NEVER);
	CHECK_EQ(ored_early_at(&e, 0, 5, MS, true), ORED_NEVER);
	e.tc_ppm = 0;
	CHECK_EQ(ored_early_at(&e, 100 * MS, 5, MS, true), ORED_NEVER);
}

/* Times travel in 16 bits, right within 0.05 %. */
TEST(early__packed)
{
	u64 ns;
	u32 i;

	CHECK_EQ(ored_early_pack(0), 0);
	CHECK_EQ(ored_early_unpack(0), 0);
	for (i = 0; i < 200000; i++) {
		u64 back, diff;

		ns = tap_random() >> (16 + tap_below(46));
		back = ored_early_unpack(ored_early_pack(ns));
		diff = back > ns ? back - ns : ns - back;
		CHECK(diff <= 512 + ns / 2000, "%" PRIu64 " became %" PRIu64, ns, back);
	}
	for (i = 1; i < 65536; i++)
		CHECK(ored_early_unpack((u16)i) > 0 || !(i & 2047));
	CHECK_EQ(ored_early_pack(~0ULL), 0xffff);
}

/* --- in the simulation ----------------------------------------------------- */

struct watch {
	u64 from, ops, early, complete, elapsed, longest, loss;
	u32 skip;		/* rank that isn't looked at */
};

static void done(struct sim *sim, u32 rank, const struct sim_result *r)
{
	struct watch *w = sim_user(sim);

	if (r->op < w->from || rank == w->skip)
		return;
	w->ops++;
	w->early += r->limit == ORED_LIMIT_EARLY;
	w->complete += r->limit == ORED_LIMIT_COMPLETE;
	w->elapsed += r->elapsed;
	w->longest = max(w->longest, r->elapsed);
	w->loss += r->loss;
}

static struct sim_conf wide(void)
{
	struct sim_conf conf = sim_default(8);

	conf.no_learning = true;
	conf.bound_ppm = 2000000;
	return conf;
}

/*
 * In some ops every rank misses something that never comes: nobody waits for the
 * bound because of it. (If only some missed it, the others would leave, and so
 * end it.)
 */
TEST(early__fires)
{
	struct sim_conf conf = wide();
	u64 quiet = sim_quiet(&conf);
	struct watch w[2] = { { .from = 5, .skip = ~0U }, { .from = 5, .skip = ~0U } };
	u32 off;

	conf.bound_ppm = 4000000;
	conf.black_every = 10;
	for (off = 0; off < 2; off++) {
		struct sim *sim;

		conf.no_early = off;
		sim = sim_new(&conf, done, &w[off]);
		sim_run(sim, 400 * quiet);
		sim_free(sim);
	}
	CHECK(w[0].early * 12 > w[0].ops, "%" PRIu64 " of %" PRIu64, w[0].early, w[0].ops);
	CHECK_EQ(w[1].early, 0);
	CHECK(w[0].elapsed / w[0].ops < w[1].elapsed / w[1].ops);
	printf("# %" PRIu64 " of %" PRIu64 " ops ended early, mean %.2f Tq; without it %.2f Tq\n",
	       w[0].early, w[0].ops, (double)w[0].elapsed / w[0].ops / quiet,
	       (double)w[1].elapsed / w[1].ops / quiet);
}

/* Tails that are only late and out of order lose nothing. */
TEST(early__not_by_reordering)
{
	u32 seed;

	for (seed = 0; seed < 10; seed++) {
		struct sim_conf conf = wide();
		struct watch w = { .skip = ~0U };
		struct sim *sim;

		conf.seed = seed;
		conf.reorder = 200000;
		conf.reorder_ns = sim_quiet(&conf) / 20;
		sim = sim_new(&conf, done, &w);
		sim_reorder_tails(sim, sim_quiet(&conf) / 20);
		sim_run(sim, 60 * sim_quiet(&conf));
		CHECK(w.ops > 200);
		CHECK_EQ(w.early, 0);
		CHECK_EQ(w.complete, w.ops);
		sim_free(sim);
	}
}

/* Lost tails are repaired before anybody gives up. */
TEST(early__repair_first)
{
	struct sim_conf conf = wide();
	struct watch w = { .skip = ~0U };
	struct sim *sim;

	conf.bound_ppm = 4000000;
	sim = sim_new(&conf, done, &w);
	sim_lose_tails(sim, 2);
	sim_run(sim, 60 * sim_quiet(&conf));
	CHECK(w.ops > 200);
	/* But for a few, whose peers had no patience left */
	CHECK(w.complete * 100 > w.ops * 97, "%" PRIu64 " of %" PRIu64, w.complete, w.ops);
	CHECK_EQ(w.early, 0);
	CHECK(sim_stats(sim)->resent > 0);
	sim_free(sim);
}

/* Random loss: hardly any op is given up, and the network's own loss is repaired. */
TEST(early__random_loss)
{
	struct sim_conf conf = wide();
	struct watch w = { .skip = ~0U };
	struct sim *sim;

	conf.loss = 10000;
	sim = sim_new(&conf, done, &w);
	sim_run(sim, 400 * sim_quiet(&conf));
	CHECK(w.ops > 1600);
	CHECK(w.loss / w.ops < 500, "%" PRIu64 " ppm", w.loss / w.ops);
	CHECK(w.early * 50 < w.ops, "%" PRIu64 " of %" PRIu64, w.early, w.ops);
	sim_free(sim);
}

TAP_MAIN
