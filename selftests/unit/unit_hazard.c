// SPDX-License-Identifier: GPL-2.0
/*
 * Hazards of bounded ops, in the simulation: starving gathers, stragglers, wrong
 * numbers, minorities that run away, a bound that learns from a disturbance,
 * and ops that take longer than they may.
 */

#include "tap.h"
#include "sim.h"

struct watch {
	u64 from, ops, loss, worst, longest, longest_over, limits[5];
	u64 only;		/* ranks that are looked at */
};

static void done(struct sim *sim, u32 rank, const struct sim_result *r)
{
	struct watch *w = sim_user(sim);

	if (!r->reliable && !r->frozen && r->elapsed > r->allowed)
		w->longest_over = max(w->longest_over, r->elapsed - r->allowed);
	if (r->op < w->from || !(w->only >> rank & 1))
		return;
	w->ops++;
	w->loss += r->loss;
	w->worst = max_t(u64, w->worst, r->loss);
	w->longest = max(w->longest, r->elapsed);
	w->limits[r->limit]++;
}

static bool full(void)
{
	const char *env = getenv("SIM_FULL");

	return env && *env == '1';
}

static struct sim_conf fixed(u32 nranks)
{
	struct sim_conf conf = sim_default(nranks);

	conf.no_learning = true;
	conf.gap = sim_quiet(&conf) / 15;
	return conf;
}

static void kill(struct sim *sim, u32 rank)
{
	sim_kill(sim, rank);
}

/* One dead rank costs what it would have sent, whatever the bound: 1/7 of what comes. */
TEST(hazard__dead_rank)
{
	u32 ppm;

	for (ppm = 1200000; ppm <= 2000000; ppm += 100000) {
		struct sim_conf conf = fixed(8);
		struct watch w = { .only = ~1ULL };
		struct sim *sim;

		conf.bound_ppm = ppm;
		sim = sim_new(&conf, done, &w);
		sim_at(sim, sim_quiet(&conf) * 7 / 2, kill, 0);
		sim_run(sim, 10 * sim_quiet(&conf));
		/* While it counts, everybody waits for it, and has the rest all the same. */
		CHECK(w.worst < 142857 + 30000, "D = %u ppm: %" PRIu64, ppm, w.worst);
		w = (struct watch){ .only = ~1ULL };
		sim_run(sim, 80 * sim_quiet(&conf));
		CHECK(w.ops > 7 * 40);
		CHECK_EQ(w.worst, 142857);
		/* The first may be one that still waited for it. */
		CHECK(w.limits[ORED_LIMIT_COMPLETE] + 7 >= w.ops);
		CHECK_EQ(w.longest_over, 0);
		sim_free(sim);
	}
}

/* A rank that is always late is waited for by W, and without W it isn't. */
TEST(hazard__straggler)
{
	u64 loss[2];
	u32 with;

	for (with = 0; with < 2; with++) {
		struct sim_conf conf = fixed(8);
		struct watch w = { .from = 10, .only = ~0ULL };
		struct sim *sim;

		conf.wait = with ? ORED_WAIT_POLICY : 0;
		sim = sim_new(&conf, done, &w);
		sim_gap(sim, 5, conf.gap + sim_quiet(&conf) * (with ? 70 : 95) / 100);
		sim_run(sim, 200 * sim_quiet(&conf));
		CHECK(w.ops > 8 * 60);
		CHECK_EQ(w.longest_over, 0);
		loss[with] = w.loss / w.ops;
		sim_free(sim);
	}
	CHECK_EQ(loss[1], 0);
	CHECK(loss[0] > 10000, "%" PRIu64 " ppm", loss[0]);
}

static void cut_one(struct sim *sim, u32 mask)
{
	sim_partition(sim, mask);
}

/* Who isn't with the majority waits for the bound; the majority doesn't. */
TEST(hazard__minority)
{
	struct sim_conf conf = fixed(8);
	u64 quiet = sim_quiet(&conf);
	struct watch w;
	struct sim *sim;
	u32 halves;

	for (halves = 0; halves < 2; halves++) {
		u64 left[2];

		w = (struct watch){ .only = 1 };
		sim = sim_new(&conf, done, &w);
		sim_at(sim, 10 * quiet, cut_one, halves ? 0xf : 1);
		sim_run(sim, 20 * quiet);
		w = (struct watch){ .only = 1 };
		left[0] = sim_left(sim, 7);
		sim_run(sim, 120 * quiet);
		CHECK(w.ops > 40);
		CHECK_EQ(w.limits[ORED_LIMIT_COMPLETE], 0);
		CHECK_EQ(w.longest_over, 0);
		left[1] = sim_left(sim, 7);
		/* One alone falls behind those seven; halves keep in step. */
		if (!halves)
			CHECK(left[1] - left[0] > w.ops * 5 / 4);
		else
			CHECK(left[1] - left[0] <= w.ops + 3);
		sim_free(sim);
	}
}

static void lie(struct sim *sim, u32 more)
{
	sim_lie(sim, 3, more);
}

/* Wrong numbers from one rank, for two ops: the others skip 32 ops, and that's it. */
TEST(hazard__wrong_numbers)
{
	struct sim_conf conf = fixed(8);
	u64 quiet = sim_quiet(&conf), honest;
	struct watch w = { .only = ~0ULL };
	struct sim *sim;
	u32 seed;

	for (seed = 0; seed < 10; seed++) {
		conf.seed = seed;
		conf.skew = quiet;
		sim = sim_new(&conf, done, &w);
		sim_at(sim, 20 * quiet, lie, 1000000000);
		sim_at(sim, 22 * quiet, lie, 0);
		sim_run(sim, 60 * quiet);
		honest = 60 * quiet / (quiet + conf.gap);
		CHECK(sim_left(sim, 0) < honest + 60, "%" PRIu64 " ops", sim_left(sim, 0));
		w = (struct watch){ .only = ~0ULL };
		sim_run(sim, 90 * quiet);
		CHECK(w.ops > 8 * 15, "%" PRIu64, w.ops);
		CHECK_EQ(w.worst, 0);
		sim_free(sim);
	}
}

static void go_on(struct sim *sim, u32 rank)
{
	sim_process(sim, rank, true);
}

static void stop_process(struct sim *sim, u32 rank)
{
	sim_process(sim, rank, false);
	sim_at(sim, sim_now(sim) + 17 * sim_quiet(sim_conf(sim)), go_on, rank);
}

static void freeze(struct sim *sim, u32 rank)
{
	sim_freeze(sim, rank, sim_now(sim) + 17 * sim_quiet(sim_conf(sim)));
}

static void heal(struct sim *sim, u32 arg)
{
	(void)arg;
	sim_partition(sim, 0);
}

static void split(struct sim *sim, u32 members)
{
	sim_partition(sim, (1ULL << members) - 1);
	sim_at(sim, sim_now(sim) + 10 * sim_quiet(sim_conf(sim)), heal, 0);
}

/* The bound is learnt, and a disturbance teaches it little. */
TEST(hazard__learning_and_rejoining)
{
	static sim_act * const act[] = { stop_process, freeze, split, split };
	static const u32 arg[] = { 2, 2, 4, 1 };
	u32 i, r, seed;

	for (i = 0; i < ARRAY_SIZE(act); i++) {
		for (seed = 0; seed < (full() ? 20 : 3); seed++) {
			struct sim_conf conf = fixed(8);
			u64 quiet = sim_quiet(&conf);
			struct watch w = { .only = ~0ULL };
			struct sim *sim;

			conf.no_learning = false;
			conf.seed = seed;
			conf.skew = quiet;
			sim = sim_new(&conf, done, &w);
			sim_at(sim, 40 * quiet, act[i], arg[i]);
			sim_run(sim, 85 * quiet);
			CHECK_EQ(w.longest_over, 0);
			w = (struct watch){ .only = ~0ULL };
			sim_run(sim, 120 * quiet);
			CHECK(w.ops > 8 * 15);
			CHECK(w.worst < 10000, "disturbance %u, seed %u: %" PRIu64, i, seed,
			      w.worst);
			for (r = 0; r < conf.nranks; r++) {
				const struct ored_bound *b = sim_bound(sim, r);

				CHECK_EQ(b->phase, ORED_BOUND_LEARNT);
				CHECK(b->factor <= 2500000, "disturbance %u, rank %u: %u", i, r,
				      b->factor);
			}
			sim_free(sim);
		}
	}
}

/* Thousands of ops under everything at once: none takes longer than it may. */
TEST(hazard__bound_is_kept)
{
	struct sim_conf conf = fixed(4);
	struct watch w = { .only = ~0ULL };
	u64 target = full() ? 40000 : 6000;
	struct sim *sim;

	conf.no_learning = false;
	conf.bytes = 4 * 3 * 1432;
	conf.loss = 10000;
	conf.reorder = 50000;
	conf.reorder_ns = sim_quiet(&conf) / 10;
	conf.gap_jitter = sim_quiet(&conf);
	conf.reliable_every = 50;
	sim = sim_new(&conf, done, &w);
	while (w.ops < target && sim_now(sim) < 1000000 * sim_quiet(&conf)) {
		sim_run(sim, sim_now(sim) + 100 * sim_quiet(&conf));
		if (tap_below(4) == 0)
			stop_process(sim, tap_below(4));
	}
	CHECK(w.ops >= target, "%" PRIu64, w.ops);
	CHECK_EQ(w.longest_over, 0);
	printf("# %" PRIu64 " ops, longest over the bound %" PRIu64 " ns, loss %" PRIu64 " ppm\n",
	       w.ops, w.longest_over, w.loss / w.ops);
	sim_free(sim);
}

/*
 * Buckets of a packet for each rank, over in a few round trips: what is lost of
 * them can be asked for and sent again within a bound that is as short.
 */
TEST(hazard__small_buckets)
{
	struct sim_conf conf = fixed(3);
	struct watch w = { .from = 200, .only = ~0ULL };
	struct sim *sim;
	u64 loss;

	conf.no_learning = false;
	conf.bytes = 3 * 1000;
	conf.rate = 100000000;
	conf.loss = 10000;
	conf.gap = SIM_MS;
	sim = sim_new(&conf, done, &w);
	while (w.ops < (full() ? 60000 : 9000))
		sim_run(sim, sim_now(sim) + 1000 * SIM_MS);
	loss = w.loss / w.ops;
	printf("# Tq %" PRIu64 " ns, loss %" PRIu64 " ppm, longest %" PRIu64 " ns\n",
	       ored_bound_quiet(sim_bound(sim, 0), conf.bytes), loss, w.longest);
	/* The target is 3000, as far as four times Tq are time enough for repair. */
	CHECK(loss < 6500, "%" PRIu64 " ppm", loss);
	CHECK_EQ(w.longest_over, 0);
	sim_free(sim);
}

/*
 * Ranks that post apart by more than an op takes, as on a shared processor: the
 * default policy finds a bound that loses what it aims at, and few whole ops.
 */
TEST(hazard__shared_processor)
{
	struct sim_conf conf = fixed(4);
	struct watch w = { .from = 100, .only = ~0ULL };
	struct sim *sim;
	u64 loss;

	conf.no_learning = false;
	conf.bytes = 60000;
	conf.rate = 100000000;
	conf.gap = 10 * SIM_MS;
	conf.gap_jitter = 10 * SIM_MS;
	sim = sim_new(&conf, done, &w);
	while (w.ops < (full() ? 40000 : 8000))
		sim_run(sim, sim_now(sim) + 1000 * SIM_MS);
	loss = w.loss / w.ops;
	printf("# Tq %" PRIu64 " ns, loss %" PRIu64 " ppm, longest %" PRIu64 " ns\n",
	       ored_bound_quiet(sim_bound(sim, 0), conf.bytes), loss, w.longest);
	CHECK(loss < 4000, "%" PRIu64 " ppm", loss);
	CHECK_EQ(w.longest_over, 0);
	sim_free(sim);
}

TAP_MAIN
