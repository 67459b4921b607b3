// SPDX-License-Identifier: GPL-2.0
/*
 * 2D TAR in the simulation, beside 1D: that it works, and what each costs.
 * SIM_FULL=1 prints the whole table.
 */

#include "tap.h"
#include "sim.h"

#include <math.h>

#define CHUNK	1432	/* bytes */

static bool full(void)
{
	const char *env = getenv("SIM_FULL");

	return env && *env == '1';
}

struct watch {
	u64 from, ops, elapsed, loss, counted, over, limits[5];
	u64 only;		/* ranks that are looked at */
};

static void done(struct sim *sim, u32 rank, const struct sim_result *r)
{
	struct watch *w = sim_user(sim);

	if (!r->reliable && r->elapsed > r->allowed)
		w->over = max(w->over, r->elapsed - r->allowed);
	if (r->op < w->from || !(w->only >> rank & 1))
		return;
	w->ops++;
	w->elapsed += r->elapsed;
	w->loss += r->loss;
	w->counted += r->counted;
	w->limits[r->limit]++;
}

/* What an op costs, on average */
struct cost {
	double packets;		/* of data, a rank */
	double us;
	double loss;		/* of chunks, percent */
	double uncounted;	/* of contributions, percent */
	u64 ops, complete, over;
};

static struct cost average(const struct watch *w, u64 sent)
{
	return (struct cost){
		.packets = (double)sent / w->ops,
		.us = (double)w->elapsed / w->ops / 1000,
		.loss = (double)w->loss / w->ops / 10000,
		.uncounted = 100 - (double)w->counted / w->ops / 10000,
		.ops = w->ops, .complete = w->limits[ORED_LIMIT_COMPLETE], .over = w->over,
	};
}

static struct cost run(const struct sim_conf *conf, u32 ops)
{
	struct watch w = { .only = ~0ULL };
	struct sim *sim = sim_new(conf, done, &w);
	struct cost cost;

	sim_run(sim, ops * (sim_quiet(conf) + conf->gap));
	CHECK(w.ops > conf->nranks);
	cost = average(&w, sim_stats(sim)->sent);
	sim_free(sim);
	return cost;
}

/* A group with buckets of so many bytes, and time for a repair in each op */
static struct sim_conf group_of(u32 nranks, u32 groups, u32 bytes)
{
	struct sim_conf conf = sim_default(nranks);

	conf.groups = groups;
	conf.bytes = bytes;
	conf.rate = 100000000;
	conf.no_learning = true;
	conf.bound_ppm = 1500000 + (u32)(4 * conf.delay * 1000000 / sim_quiet(&conf));
	conf.gap = SIM_MS;
	return conf;
}

static const struct {
	u32 nranks, groups;
} shape[] = { { 16, 1 }, { 16, 4 }, { 32, 1 }, { 32, 4 }, { 64, 1 }, { 64, 8 } };

/* Undisturbed each op is whole, in the time of the wire, with all contributions. */
TEST(across__quiet)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(shape); i++) {
		struct sim_conf conf = group_of(shape[i].nranks, shape[i].groups,
						shape[i].nranks * 2 * CHUNK);
		u32 size = conf.nranks / conf.groups;
		struct cost cost = run(&conf, 8);

		CHECK_EQ(cost.complete, cost.ops);
		CHECK(cost.uncounted == 0, "%u in %u: %f %%", conf.nranks, conf.groups,
		      cost.uncounted);
		CHECK(cost.us * 1000 < 1.25 * sim_quiet(&conf), "%u in %u: %.0f us", conf.nranks,
		      conf.groups, cost.us);
		/* The last ops aren't over yet. */
		CHECK(cost.packets >= 2 * conf.groups * (2 * (size - 1) + conf.groups - 1));
	}
}

/* Shards that differ by a chunk, shards without any, and subgroups of one */
TEST(across__uneven)
{
	static const u32 groups[] = { 1, 2, 3, 4, 6, 12 };
	u32 i, bytes;

	for (i = 0; i < ARRAY_SIZE(groups); i++) {
		for (bytes = 8; bytes < 20 * CHUNK; bytes += 1429) {
			struct sim_conf conf = group_of(12, groups[i], bytes);
			struct cost cost = run(&conf, 5);

			CHECK_EQ(cost.complete, cost.ops);
			CHECK(cost.uncounted == 0, "%u bytes in %u: %f %%", bytes, groups[i],
			      cost.uncounted);
		}
	}
}

/* A reliable op has everything, however much is lost on the way. */
TEST(across__reliable)
{
	struct sim_conf conf = group_of(16, 4, 32 * CHUNK);
	struct cost cost;

	conf.reliable_every = 1;
	conf.loss = 20000;
	cost = run(&conf, 60);
	CHECK_EQ(cost.complete, cost.ops);
	CHECK(cost.uncounted == 0, "%f %%", cost.uncounted);
}

/* A bounded one ends by its bound, and repairs most of what is lost till then. */
TEST(across__bounded)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(shape); i++) {
		struct sim_conf conf = group_of(shape[i].nranks, shape[i].groups,
						shape[i].nranks * 2 * CHUNK);
		struct cost cost;

		conf.loss = 10000;
		cost = run(&conf, 20);
		CHECK_EQ(cost.over, 0);
		CHECK(cost.loss < 1, "%u in %u: %.3f %%", conf.nranks, conf.groups, cost.loss);
	}
}

static void kill(struct sim *sim, u32 rank)
{
	sim_kill(sim, rank);
}

/* What isn't counted by those who live on when a rank is dead, in the long run */
static double uncounted_by(u32 groups, u64 only)
{
	struct sim_conf conf = group_of(16, groups, 32 * CHUNK);
	struct watch w = { .only = only };
	struct sim *sim = sim_new(&conf, done, &w);
	double missing;

	sim_at(sim, 3 * sim_quiet(&conf), kill, 0);
	sim_run(sim, 12 * sim_quiet(&conf));
	w = (struct watch){ .only = only };
	sim_run(sim, 60 * sim_quiet(&conf));
	CHECK(w.ops > 50);
	CHECK_EQ(w.over, 0);
	missing = 100 - (double)w.counted / w.ops / 10000;
	sim_free(sim);
	return missing;
}

/*
 * 1D: of the 15 shards that are left one contribution in 16 is missing, and of the
 * dead rank's there is the own one alone. 2D: a quarter of the bucket is its shard;
 * nobody adds up what its own subgroup has of that, and nobody gathers it there.
 */
TEST(across__dead_rank)
{
	double flat = uncounted_by(1, 0xfffe);
	double own = uncounted_by(4, 0xe), others = uncounted_by(4, 0xfff0);

	printf("# one rank of 16 is dead, uncounted: 1D %.2f %%, 2D %.2f %% and elsewhere %.2f %%\n",
	       flat, own, others);
	CHECK(fabs(flat - 100.0 * (15 + 15) / 256) < 0.05, "%.3f", flat);
	CHECK(fabs(own - 100.0 * (3 + 15) / 64) < 0.05, "%.3f", own);
	CHECK(fabs(others - 100.0 * (3 + 4) / 64) < 0.05, "%.3f", others);
}

static void show(const struct sim_conf *conf, const struct cost *cost)
{
	printf("# N = %2u, G = %u, %7u bytes, loss %.0f %%: ", conf->nranks, conf->groups,
	       conf->bytes, (double)conf->loss / 10000);
	printf("%6.1f packets, %6.0f us, lost %.3f %%, uncounted %.3f %%\n", cost->packets,
	       cost->us, cost->loss, cost->uncounted);
}

/*
 * Of large buckets 2D sends more, by what crosses between subgroups. Small ones take
 * less time, since a rank hears fewer peers before it is done.
 */
TEST(across__costs)
{
	static const u32 loss[] = { 0, 10000 };
	static const u32 bytes[] = { 4096, 65536, 1048576 };
	u32 i, c, l;

	for (i = 0; i < ARRAY_SIZE(shape); i += 2) {
		for (c = 0; c < ARRAY_SIZE(bytes); c++) {
			for (l = 0; l < ARRAY_SIZE(loss); l++) {
				struct cost cost[2];
				u32 two;

				if (!full() && (i || c == 2 || l))
					continue;
				for (two = 0; two < 2; two++) {
					struct sim_conf conf = group_of(shape[i + two].nranks,
									shape[i + two].groups,
									bytes[c]);

					conf.loss = loss[l];
					cost[two] = run(&conf, full() ? 30 : 10);
					show(&conf, &cost[two]);
				}
				CHECK(bytes[c] > 4096 || cost[1].us < cost[0].us);
				CHECK(bytes[c] < 65536 || cost[1].packets > cost[0].packets);
			}
		}
	}
}

TAP_MAIN
