// SPDX-License-Identifier: GPL-2.0
/*
 * Ranks that fell apart meet again: however far apart they start, whatever has
 * stopped, frozen or cut them off, after a few ops every rank has every other's
 * contributions. What counts is the number of ops from the front's position at
 * the end of the disturbance until every rank loses less than 1 %, and goes on
 * doing so.
 *
 * SIM_FULL=1 runs many more seeds and prints a table.
 */

#include "tap.h"
#include "sim.h"

#define LOSS_PPM	10000	/* more than that is apart; */
#define RANK_PPM	70000	/* where packets are lost anyway: half of what one rank sends */
#define SETTLED		10	/* ops in a row without it */
#define MOST_OPS	60	/* after which it is a failure */
#define STOP		17	/* times Tq that a rank stands still, 5 s of 300 ms */
#define CUT		10	/* that a partition lasts */
#define OPS		6000	/* of a run at most */

enum start {
	RANDOM, HALVES, BEHIND, STOPPED, FROZEN, SPLIT, ALONE, STARTS,
};

static const char * const start_name[] = {
	"random 0-5", "half ahead by 3", "one behind by 10", "process stopped 17 Tq",
	"host frozen 17 Tq", "halves cut 10 Tq", "one cut off 10 Tq",
};

struct run {
	u32 nranks;
	u64 base;		/* the front's position when the disturbance ended */
	bool over;		/* it has */
	u64 clean_from;		/* all ops from it on were, so far */
	u8 reported[OPS];	/* ranks, by op */
	bool apart[OPS];	/* some rank has lost too much */
	u64 whole;		/* all ops below it have been reported by all */
	u64 longest_over;	/* elapsed beyond what was published */
	u32 broken;		/* reliable ops that ended, but not whole */
	u64 cut_after;		/* one rank is cut off when all have ended this op */
	u32 ended;		/* ranks that have */
};

static void split(struct sim *sim, u32 members);

static void done(struct sim *sim, u32 rank, const struct sim_result *r)
{
	const struct sim_conf *conf = sim_conf(sim);
	bool lossy = conf->loss || conf->burst_begin || conf->cross_pause;
	struct run *run = sim_user(sim);

	(void)rank;
	if (!r->reliable && !r->frozen && r->elapsed > r->allowed)
		run->longest_over = max(run->longest_over, r->elapsed - r->allowed);
	run->broken += r->reliable && r->loss && r->limit != ORED_LIMIT_BEHIND;
	if (run->cut_after && r->op == run->cut_after && ++run->ended == run->nranks)
		sim_at(sim, sim_now(sim), split, 1);
	if (r->op >= OPS) {
		sim_stop(sim);
		return;
	}
	run->reported[r->op]++;
	run->apart[r->op] |= r->loss >= (lossy ? RANK_PPM : LOSS_PPM);
	if (!run->over)
		return;
	run->whole = max(run->whole, run->base);
	while (run->whole < OPS && run->reported[run->whole] == run->nranks) {
		if (run->apart[run->whole])
			run->clean_from = run->whole + 1;
		run->whole++;
	}
	if (run->whole >= max(run->clean_from, run->base) + SETTLED ||
	    r->op > run->base + MOST_OPS + SETTLED)
		sim_stop(sim);
}

/* The disturbance is over: from here on ops are counted. */
static void over(struct sim *sim, u32 arg)
{
	struct run *run = sim_user(sim);
	u32 r;

	(void)arg;
	for (r = 0; r < run->nranks; r++)
		run->base = max(run->base, sim_left(sim, r));
	run->clean_from = run->base;
	run->over = true;
}

static void go_on(struct sim *sim, u32 rank)
{
	sim_process(sim, rank, true);
	over(sim, 0);
}

static void stop_process(struct sim *sim, u32 rank)
{
	sim_process(sim, rank, false);
	sim_at(sim, sim_now(sim) + STOP * sim_quiet(sim_conf(sim)), go_on, rank);
}

static void freeze(struct sim *sim, u32 rank)
{
	u64 until = sim_now(sim) + STOP * sim_quiet(sim_conf(sim));

	sim_freeze(sim, rank, until);
	sim_at(sim, until, over, 0);
}

static void heal(struct sim *sim, u32 arg)
{
	sim_partition(sim, 0);
	over(sim, arg);
}

static void split(struct sim *sim, u32 members)
{
	sim_partition(sim, (1ULL << members) - 1);
	sim_at(sim, sim_now(sim) + CUT * sim_quiet(sim_conf(sim)), heal, 0);
}

/* Somewhere in the tenth op or so, at any phase of it */
static u64 moment(const struct sim_conf *conf)
{
	u64 period = sim_quiet(conf) + conf->gap;

	return 10 * period + (u64)tap_below((u32)(period / 1000)) * 1000;
}

static void arrange(struct sim *sim, enum start start)
{
	const struct sim_conf *conf = sim_conf(sim);
	u32 n = conf->nranks, r, who = tap_below(n);

	for (r = 0; start == RANDOM && r < n; r++)
		sim_begin_at(sim, r, tap_below(6));
	for (r = 0; start == HALVES && r < n / 2; r++)
		sim_begin_at(sim, r, 3);
	for (r = 0; start == BEHIND && r < n; r++)
		sim_begin_at(sim, r, r == who ? 0 : 10);
	switch (start) {
	case STOPPED:
		sim_at(sim, moment(conf), stop_process, who);
		break;
	case FROZEN:
		sim_at(sim, moment(conf), freeze, who);
		break;
	case SPLIT:
		sim_at(sim, moment(conf), split, n / 2);
		break;
	case ALONE:
		sim_at(sim, moment(conf), split, 1);
		break;
	default:
		over(sim, 0);
	}
}

/* Runs one start, or a cut; returns ops until all are together, MOST_OPS: never. */
static u32 ops_until(struct sim_conf *conf, enum start start, u64 cut_after)
{
	struct run run = { .nranks = conf->nranks, .cut_after = cut_after };
	struct sim *sim;
	u32 ops;

	conf->seed = tap_random();
	conf->skew = sim_quiet(conf) + conf->gap;
	sim = sim_new(conf, done, &run);
	if (!cut_after)
		arrange(sim, start);
	sim_run(sim, 3000 * (sim_quiet(conf) + conf->gap));
	ops = run.over && run.whole >= run.clean_from + SETTLED ?
	      (u32)(run.clean_from - run.base) : MOST_OPS;
	/* Timers are exact here: nothing may end late. */
	CHECK_EQ(run.longest_over, 0);
	CHECK_EQ(run.broken, 0);
	sim_free(sim);
	return ops;
}

static bool full(void)
{
	const char *env = getenv("SIM_FULL");

	return env && *env == '1';
}

/*
 * All starts in turn. From a start without an end of ops the most that may pass
 * is @most.
 */
static void check_starts(struct sim_conf conf, const char *what, u32 seeds, u32 most)
{
	enum start start;
	u32 i;

	if (full())
		seeds = 50;
	for (start = 0; start < STARTS; start++) {
		u32 sum = 0, worst = 0, failed = 0;

		for (i = 0; i < seeds; i++) {
			u32 ops = ops_until(&conf, start, 0);

			sum += ops;
			worst = max(worst, ops);
			failed += ops >= MOST_OPS;
		}
		CHECK(worst <= most, "N = %u, %s, %s: %u ops", conf.nranks, what,
		      start_name[start], worst);
		if (full() || worst > most)
			printf("# N = %2u  %-24s %-20s mean %5.1f  max %2u  failed %u of %u\n",
			       conf.nranks, what, start_name[start], (double)sum / seeds,
			       worst, failed, seeds);
	}
}

static struct sim_conf fixed(u32 nranks)
{
	struct sim_conf conf = sim_default(nranks);

	conf.no_learning = true;
	conf.gap = sim_quiet(&conf) / 15;
	return conf;
}

TEST(converge__2_ranks)
{
	check_starts(fixed(2), "quiet", 6, 7);
}

TEST(converge__3_ranks)
{
	check_starts(fixed(3), "quiet", 6, 7);
}

TEST(converge__8_ranks)
{
	check_starts(fixed(8), "quiet", 4, 7);
}

TEST(converge__16_ranks)
{
	check_starts(fixed(16), "quiet", 1, 7);
}

TEST(converge__32_ranks)
{
	check_starts(fixed(32), "quiet", 1, 7);
}

TEST(converge__several_in_flight)
{
	u32 depth;

	for (depth = 2; depth <= 4; depth += 2) {
		struct sim_conf conf = fixed(8);

		conf.depth = depth;
		/* Ranks that are up to depth apart have time until the bound. */
		check_starts(conf, depth == 2 ? "depth 2" : "depth 4", 2, 10 * depth);
	}
}

TEST(converge__reliable_in_between)
{
	struct sim_conf conf = fixed(8);

	conf.reliable_every = 5;
	check_starts(conf, "every 5th reliable", 2, 20);
	conf.depth = 3;
	check_starts(conf, "same, depth 3", 2, 40);
	conf.depth = 1;
	conf.loss = 10000;
	check_starts(conf, "same, 1 % lost", 2, 20);
}

/*
 * Nobody hears that one rank, cut off in that moment, has left the reliable op:
 * its slot is held for that rank, but not once it counts as dead.
 */
TEST(converge__cut_at_the_end_of_a_reliable_op)
{
	struct sim_conf conf = fixed(8);
	u32 i;

	conf.reliable_every = 5;
	for (i = 0; i < 4; i++) {
		conf.depth = 1 + i;
		CHECK(ops_until(&conf, ALONE, 9) <= 10 * conf.depth, "depth %u", conf.depth);
	}
}

TEST(converge__reordering)
{
	struct sim_conf conf = fixed(8);

	conf.reorder = 100000;
	conf.reorder_ns = sim_quiet(&conf) / 20;
	check_starts(conf, "10 % reordered", 2, 20);
	conf.loss = 10000;
	check_starts(conf, "same, 1 % lost", 1, 30);
}

TEST(converge__bursty_loss)
{
	struct sim_conf conf = fixed(8);

	conf.bound_ppm = 2500000;
	conf.burst_begin = 2000;
	conf.burst_end = 200000;
	conf.burst_loss = 500000;
	check_starts(conf, "Gilbert-Elliott, D 2.5", 2, 30);
}

/* The caller computes longer than an op takes, but not for ops that are past. */
TEST(converge__long_computing)
{
	struct sim_conf conf = fixed(8);

	conf.gap = 3 * sim_quiet(&conf);
	conf.obedient = true;
	check_starts(conf, "gap 3 Tq, obedient", 3, 20);
}

TAP_MAIN
