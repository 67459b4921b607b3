// SPDX-License-Identifier: GPL-2.0
/* How bounds are found: from complete ops alone, held by loss, never hanging. */

#include "tap.h"
#include "sim.h"

#include <math.h>

#define MS	((u64)1000000)

static struct ored_bound_conf conf_default(void)
{
	struct ored_bound_conf conf = ORED_BOUND_DEFAULT;

	return conf;
}

static void start(struct ored_bound *b)
{
	struct ored_bound_conf conf = conf_default();

	ored_bound_init(b, &conf);
}

/* What an undisturbed op would take: 2 ms and 800 ns a byte */
static u64 quiet_of(u32 bytes)
{
	return 2 * MS + 800ULL * bytes;
}

static u64 bound_of(const struct ored_bound *b, u32 bytes)
{
	struct ored_limits limits;

	ored_bound_limits(b, bytes, 0, ORED_WAIT_POLICY, &limits);
	return limits.bound;
}

static bool near(u64 a, u64 b, u32 percent)
{
	u64 diff = a > b ? a - b : b - a;

	return diff * 100 <= b * percent;
}

/* One op in four is held up, by up to 20 times. */
static u64 disturbed(u32 bytes)
{
	return quiet_of(bytes) * (tap_below(4) ? 100 + tap_below(4) : 100 + tap_below(2000)) / 100;
}

static void warm_up(struct ored_bound *b)
{
	static const u32 bytes[] = { 25000, 400000, 1000000 };
	u32 i;

	for (i = 0; i < b->conf.warmup; i++)
		ored_bound_ended(b, bytes[i % 3], disturbed(bytes[i % 3]), 0, true);
}

TEST(bound__conf)
{
	struct ored_bound_conf conf = conf_default();

	CHECK_EQ(ored_bound_conf_check(&conf), 0);
#define REFUSED(field, value) do {					\
	conf = conf_default();						\
	conf.field = value;						\
	CHECK_EQ(ored_bound_conf_check(&conf), -EINVAL);		\
} while (0)
	REFUSED(policy, 2);
	REFUSED(target_ppm, 0);
	REFUSED(target_ppm, 500001);
	REFUSED(floor_ppm, 4000001);
	REFUSED(ceiling_ppm, 100000001);
	REFUSED(floor_ns, 0);
	REFUSED(ceiling_ns, 1);
	REFUSED(ceiling_ns, 1ULL << 39);
	REFUSED(warmup, 4);
	REFUSED(warmup, 65);
	REFUSED(wait_percent, 51);
}

/* Until something is known the ceiling holds, for any length. */
TEST(bound__warmup)
{
	struct ored_limits limits;
	struct ored_bound b;
	u32 i;

	start(&b);
	for (i = 0; i < b.conf.warmup; i++) {
		CHECK_EQ(ored_bound_quiet(&b, 400000), 0);
		CHECK_EQ(bound_of(&b, 8), b.conf.ceiling_ns + 400);
		CHECK_EQ(bound_of(&b, 1U << 30), b.conf.ceiling_ns + (50ULL << 30));
		ored_bound_limits(&b, 0, 0, ORED_WAIT_POLICY, &limits);
		CHECK(limits.seal < limits.bound && limits.grace && limits.wait);
		ored_bound_ended(&b, 400000, quiet_of(400000), 0, true);
	}
	CHECK_EQ(b.phase, ORED_BOUND_LEARNT);
	CHECK(near(ored_bound_quiet(&b, 400000), quiet_of(400000), 1));
	CHECK(near(bound_of(&b, 400000), quiet_of(400000) * 3 / 2, 1));
}

/* One line for all lengths, in spite of what disturbed the warm-up */
TEST(bound__all_lengths)
{
	u32 seed, bytes;

	for (seed = 0; seed < 200; seed++) {
		struct ored_bound b;

		start(&b);
		warm_up(&b);
		for (bytes = 25000; bytes <= 10000000; bytes += bytes / 2)
			CHECK(near(ored_bound_quiet(&b, bytes), quiet_of(bytes), 15),
			      "%u bytes: %" PRIu64 ", not %" PRIu64, bytes,
			      ored_bound_quiet(&b, bytes), quiet_of(bytes));
		/* Shorter ones than any are given as much as the shortest. */
		CHECK_EQ(ored_bound_quiet(&b, 8), ored_bound_quiet(&b, 25000));
	}
}

/* The 95th percentile has learnt the disturbances, and stays where it is. */
TEST(bound__p95)
{
	struct ored_bound_conf conf = conf_default();
	struct ored_bound b;
	u64 bound;
	u32 i;

	conf.policy = ORED_DEADLINE_P95;
	ored_bound_init(&b, &conf);
	for (i = 0; i < 20; i++)
		ored_bound_ended(&b, 400000, (100 + i * 10) * MS, 0, true);
	bound = bound_of(&b, 400000);
	CHECK(bound >= 280 * MS && bound <= 290 * MS, "%" PRIu64, bound);
	for (i = 0; i < 1000; i++)
		ored_bound_ended(&b, 400000, 50 * MS, i & 1 ? 500000 : 0, false);
	CHECK_EQ(bound_of(&b, 400000), bound);
}

/* A step of the controller against the formula in floating point */
TEST(bound__step)
{
	u32 i;

	for (i = 0; i < 2000; i++) {
		u32 loss = tap_below(i & 1 ? 10000 : 200000);
		double x = 0.005 * (loss / 3000.0 - 1);
		struct ored_bound b;
		double want;

		start(&b);
		warm_up(&b);
		b.factor = 2000000;
		ored_bound_ended(&b, 400000, 1, loss, false);
		want = 2000000 * fmin(exp(x), 1.15);
		CHECK(fabs(b.factor - want) < 30, "loss %u: %u, not %f", loss, b.factor, want);
	}
}

/* Loss alone moves it, within floor and ceiling; times don't. */
TEST(bound__stays_inside)
{
	struct ored_bound b, c;
	u32 i;

	start(&b);
	warm_up(&b);
	c = b;
	for (i = 0; i < 5000; i++) {
		u32 loss = tap_below(8) ? 0 : tap_below(100000);

		ored_bound_ended(&b, 400000, 1 + tap_below(1000), loss, !loss);
		ored_bound_ended(&c, 400000, tap_random() >> 20, loss, !loss);
		CHECK(b.factor >= 1050000 && b.factor <= 4000000);
		CHECK_EQ(b.factor, c.factor);
	}
	for (i = 0; i < 100; i++)
		ored_bound_ended(&b, 400000, 1, ORED_PPM, false);
	CHECK_EQ(b.factor, 4000000);
	for (i = 0; i < 1000; i++)
		ored_bound_ended(&b, 400000, 1, 0, true);
	CHECK_EQ(b.factor, 1050000);
}

/* Wherever loss falls with D, the controller finds the target. */
TEST(bound__finds_target)
{
	u32 i, n = 4000, seed;

	for (seed = 0; seed < 10; seed++) {
		u64 sum = 0;
		struct ored_bound b;

		start(&b);
		warm_up(&b);
		for (i = 0; i < n; i++) {
			/* About 3000 ppm at 2 Tq, rare and large */
			double p = 0.075 * exp(-1.2 * (b.factor / 1e6 - 2));
			u32 loss = tap_below(ORED_PPM) < p * 1e6 ? tap_below(80000) : 0;

			ored_bound_ended(&b, 400000, 1, loss, !loss);
			if (i >= n / 2)
				sum += loss;
		}
		CHECK(sum / (n / 2) > 1500 && sum / (n / 2) < 5000, "%" PRIu64, sum / (n / 2));
	}
}

/* Warm-up ops that weren't complete are no evidence. */
TEST(bound__some_incomplete)
{
	struct ored_bound b;
	u32 i;

	start(&b);
	for (i = 0; i < 100 && b.phase == ORED_BOUND_WARMUP; i++) {
		bool good = i % 3 == 0;

		ored_bound_ended(&b, 400000, good ? quiet_of(400000) : 1, good ? 0 : 1000, good);
	}
	CHECK_EQ(b.phase, ORED_BOUND_LEARNT);
	CHECK(i <= 30, "%u ops", i);
	CHECK(near(ored_bound_quiet(&b, 400000), quiet_of(400000), 1));
}

/*
 * A rank that is far too slow for ever: no op completes. The bound comes down
 * from the ceiling until that costs something, and stays about there.
 */
TEST(bound__search)
{
	u64 sum = 0, need = 400 * MS;
	u32 i, over = 0;
	struct ored_bound b;

	start(&b);
	for (i = 0; i < 400; i++) {
		u64 bound = bound_of(&b, 400000);
		u32 loss = 140000 + tap_below(1000);

		if (bound < need)
			loss += (u32)((need - bound) * 700000 / need);
		if (i >= 100)
			sum += bound;
		over += i >= 100 && loss > 145000;
		ored_bound_ended(&b, 400000, bound, loss, false);
		CHECK(bound <= b.conf.ceiling_ns + 400000ULL * 50);
		CHECK_EQ(ored_bound_quiet(&b, 400000), 0);
	}
	CHECK_EQ(b.phase, ORED_BOUND_SEARCH);
	CHECK(sum / 300 < 2 * need, "mean bound %" PRIu64 " ms", sum / 300 / MS);
	CHECK(over < 100, "%u", over);
	/* The slow rank is replaced: what completes is learnt from. */
	for (i = 0; i < ORED_BOUND_MIN; i++)
		ored_bound_ended(&b, 400000, quiet_of(400000), 0, true);
	CHECK_EQ(b.phase, ORED_BOUND_LEARNT);
	CHECK(near(bound_of(&b, 400000), quiet_of(400000) * 3 / 2, 1));
}

/* Any limits that come out make sense, whatever went in. */
TEST(bound__limits)
{
	u32 i;

	for (i = 0; i < 20000; i++) {
		u64 deadline = tap_below(3) ? 1 + (tap_random() >> (24 + tap_below(40))) : 0;
		u32 bytes = tap_below(1U << 30) >> tap_below(30);
		struct ored_limits limits;
		struct ored_bound b;
		u64 quiet;

		start(&b);
		if (i & 1)
			warm_up(&b);
		quiet = ored_bound_quiet(&b, bytes);
		ored_bound_limits(&b, bytes, deadline, i & 2 ? 7 : ORED_WAIT_POLICY, &limits);
		CHECK(!deadline || limits.bound == deadline);
		CHECK(limits.seal <= limits.bound * 3 / 4 + 1);
		CHECK(limits.bound < 10 || limits.seal >= limits.bound * 2 / 5);
		CHECK(i & 2 ? limits.wait == 7 : limits.wait <= limits.bound / 4);
		/* Both stages have what they need where there is time for both. */
		if (quiet && limits.bound >= quiet * 11 / 10) {
			CHECK(limits.bound - limits.seal + 2 >= min(quiet * 55 / 100,
								    limits.bound / 4));
			CHECK(limits.seal + 2 >= quiet * 54 / 100);
		}
	}
}

/* --- in the simulation ----------------------------------------------------- */

struct watch {
	u64 ops, loss, longest_over, elapsed, from;
	u32 incomplete;
};

static void watch_done(struct sim *sim, u32 rank, const struct sim_result *r)
{
	struct watch *w = sim_user(sim);

	(void)rank;
	if (r->elapsed > r->allowed)
		w->longest_over = max(w->longest_over, r->elapsed - r->allowed);
	if (r->op < w->from)
		return;
	w->ops++;
	w->loss += r->loss;
	w->elapsed += r->elapsed;
	w->incomplete += r->limit != ORED_LIMIT_COMPLETE;
}

static struct sim_conf bursts(u64 pause, u64 seed)
{
	struct sim_conf conf = sim_default(4);

	conf.bytes = 4 * 40 * 1432;
	conf.cross_pause = pause;
	conf.seed = seed;
	conf.bound.ceiling_ns = 10 * SIM_S;
	return conf;
}

/* Cross traffic, little and much: the loss is held about the target. */
TEST(bound__holds_loss)
{
	u32 level, seed, seeds = getenv("SIM_FULL") ? 10 : 2;

	for (level = 0; level < 2; level++) {
		u64 loss = 0, ops = 0, elapsed = 0, bound = 0, quiet = 0;

		for (seed = 0; seed < seeds; seed++) {
			struct sim_conf conf = bursts((level ? 1500 : 8000) * SIM_MS, seed);
			struct watch w = { .from = 100 };
			struct sim *sim = sim_new(&conf, watch_done, &w);

			quiet = sim_quiet(&conf);
			sim_run(sim, 700 * quiet);
			CHECK_EQ(w.longest_over, 0);
			loss += w.loss;
			ops += w.ops;
			elapsed += w.elapsed;
			bound += bound_of(sim_bound(sim, 0), conf.bytes);
			sim_free(sim);
		}
		CHECK(ops > 1000);
		CHECK(loss / ops < 15000, "%" PRIu64 " ppm", loss / ops);
		printf("# %s bursts: loss %" PRIu64 " ppm, mean %.2f Tq, D at the end %.2f Tq\n",
		       level ? "many" : "few", loss / ops, (double)elapsed / ops / quiet,
		       (double)bound / seeds / quiet);
	}
}

static void kill_some(struct sim *sim, u32 ranks)
{
	u32 r;

	for (r = 0; r < ranks; r++)
		sim_kill(sim, r);
}

/* A rank is dead from the start: the others learn among themselves. */
TEST(bound__dead_from_the_start)
{
	struct sim_conf conf = sim_default(8);
	struct watch w = { .from = 30 };
	struct sim *sim = sim_new(&conf, watch_done, &w);

	sim_at(sim, 0, kill_some, 1);
	sim_run(sim, 30 * SIM_S);
	CHECK_EQ(sim_bound(sim, 1)->phase, ORED_BOUND_LEARNT);
	CHECK(near(ored_bound_quiet(sim_bound(sim, 1), conf.bytes), sim_quiet(&conf), 15),
	      "%" PRIu64, ored_bound_quiet(sim_bound(sim, 1), conf.bytes));
	CHECK_EQ(w.longest_over, 0);
	CHECK(w.ops > 1000);
	CHECK(w.elapsed / w.ops < 2 * sim_quiet(&conf));
	sim_free(sim);
}

/* Most are: nobody may end an op without them, so all take the ceiling. */
TEST(bound__most_dead)
{
	struct sim_conf conf = sim_default(8);
	struct watch w = {};
	struct sim *sim;

	conf.bound.ceiling_ns = 200 * SIM_MS;
	sim = sim_new(&conf, watch_done, &w);
	sim_at(sim, 0, kill_some, 5);
	sim_run(sim, 60 * SIM_S);
	CHECK_EQ(w.longest_over, 0);
	CHECK(w.ops > 3 * 200, "%" PRIu64, w.ops);
	CHECK(!ored_bound_quiet(sim_bound(sim, 7), conf.bytes));
	sim_free(sim);
}

static void slow(struct sim *sim, u32 times)
{
	sim_slow(sim, 0, times);
}

/* One link is 100 times slower than the others. */
TEST(bound__one_slow)
{
	struct sim_conf conf = sim_default(8);
	struct watch w = { .from = 100 };
	struct sim *sim;

	conf.bound.ceiling_ns = 20 * sim_quiet(&conf);
	sim = sim_new(&conf, watch_done, &w);
	sim_at(sim, 0, slow, 100);
	sim_run(sim, 800 * sim_quiet(&conf));
	CHECK_EQ(w.longest_over, 0);
	CHECK(w.ops > 8 * 20, "%" PRIu64, w.ops);
	w.ops = max_t(u64, w.ops, 1);
	/* It loses all, an eighth of the total; the others lose a seventh, it. */
	CHECK(w.loss / w.ops < 260000, "%" PRIu64 " ppm", w.loss / w.ops);
	printf("# one 100x slower: mean %.2f Tq, loss %" PRIu64 " ppm, phase %u, D %.2f Tq\n",
	       (double)w.elapsed / w.ops / sim_quiet(&conf), w.loss / w.ops,
	       sim_bound(sim, 1)->phase,
	       (double)bound_of(sim_bound(sim, 1), conf.bytes) / sim_quiet(&conf));
	sim_free(sim);
}

/*
 * Ops that lose nothing or a quarter: the mean loss is the target, not the part of
 * ops that lose. One large loss raises the bound by a few steps, and no more.
 */
TEST(bound__rare_large_losses)
{
	struct ored_bound_conf conf = ORED_BOUND_DEFAULT;
	u64 loss = 0, rises = 0;
	struct ored_bound b;
	u32 i, before;

	conf.ceiling_ppm = 100000000;
	ored_bound_init(&b, &conf);
	for (i = 0; i < conf.warmup; i++)
		ored_bound_sample(&b, 3000, 10000000);
	/* A bound of twice Tq is enough for all, any other for one in ten less. */
	for (i = 0; i < 100000; i++) {
		bool lost = b.factor < 2000000 && tap_below(10) == 0;

		ored_bound_ended(&b, 3000, 10000000, lost ? 250000 : 0, !lost);
		loss += lost ? 250000 : 0;
	}
	CHECK(loss / i < 3300, "%" PRIu64 " ppm", loss / i);
	before = b.factor;
	ored_bound_ended(&b, 3000, 10000000, 1000000, false);
	for (i = 0; i < 20; i++) {
		u32 was = b.factor;

		ored_bound_ended(&b, 3000, 10000000, 0, true);
		rises += b.factor > was;
	}
	CHECK(rises >= 3 && rises <= 5, "%" PRIu64, rises);
	CHECK(b.factor < 2.1 * before, "%u from %u", b.factor, before);
}

TAP_MAIN
