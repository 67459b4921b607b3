// SPDX-License-Identifier: GPL-2.0
/*
 * Incast: the order of serving, the two policies, and in the simulation what
 * each of them costs. SIM_FULL=1 prints the whole table.
 */

#include "tap.h"
#include "sim.h"

/* Every peer is served once, in as many rounds as promised, by I senders at once. */
TEST(incast__order)
{
	u32 n, incast, rank, turn, round;

	for (n = 2; n <= 40; n++) {
		for (incast = 1; incast < n; incast++) {
			u32 rounds = ored_incast_rounds(n, incast);
			u32 hears[40][40] = {};

			CHECK_EQ(rounds, (n - 1 + incast - 1) / incast);
			for (rank = 0; rank < n; rank++) {
				for (turn = 0; turn < n - 1; turn++) {
					u32 peer = ored_incast_peer(rank, n, turn);

					CHECK(peer < n && peer != rank);
					CHECK_EQ(ored_incast_turn(rank, n, peer), turn);
					round = ored_incast_round(rank, n, peer, incast);
					CHECK(round < rounds);
					CHECK_EQ(round, turn / incast);
					hears[round][peer]++;
				}
			}
			for (round = 0; round < rounds; round++)
				for (rank = 0; rank < n; rank++)
					CHECK(hears[round][rank] <= incast);
		}
	}
}

TEST(incast__policies)
{
	struct ored_incast_state in;
	u32 i, others[3] = { 0, 5, 3 };

	ored_incast_init(&in, ORED_INCAST_ALL, 8);
	CHECK_EQ(in.own, 7);
	ored_incast_ended(&in, false);
	CHECK_EQ(in.own, 7);
	CHECK_EQ(ored_incast_obeyed(&in, others, 1), 7);
	CHECK_EQ(ored_incast_obeyed(&in, others, 3), 3);
	ored_incast_init(&in, ORED_INCAST_ADAPT, 8);
	CHECK_EQ(in.own, 1);
	for (i = 0; i < 20; i++) {
		CHECK_EQ(in.own, i < 7 ? i + 1 : 7);
		ored_incast_ended(&in, true);
	}
	ored_incast_ended(&in, false);
	CHECK_EQ(in.own, 3);
	ored_incast_ended(&in, false);
	ored_incast_ended(&in, false);
	CHECK_EQ(in.own, 1);
	ored_incast_init(&in, ORED_INCAST_ADAPT, 1);
	CHECK_EQ(in.own, 1);
}

struct watch {
	u64 from, ops, elapsed, loss;
};

static void done(struct sim *sim, u32 rank, const struct sim_result *r)
{
	struct watch *w = sim_user(sim);

	(void)rank;
	if (r->op < w->from)
		return;
	w->ops++;
	w->elapsed += r->elapsed;
	w->loss += r->loss;
}

struct cost {
	double drops, time, loss;	/* percent, Tq, percent */
};

static struct cost run(struct sim_conf conf, u32 ops)
{
	struct watch w = { .from = 5 };
	struct sim *sim = sim_new(&conf, done, &w);
	const struct sim_stats *stats = sim_stats(sim);
	u64 quiet = sim_quiet(&conf);
	struct cost cost;

	sim_run(sim, (ops + 10) * (quiet + conf.gap));
	CHECK(w.ops > conf.nranks);
	cost = (struct cost){
		.drops = 100.0 * stats->dropped / stats->sent,
		.time = (double)w.elapsed / w.ops / quiet,
		.loss = (double)w.loss / w.ops / 10000,
	};
	sim_free(sim);
	return cost;
}

static struct sim_conf base(u32 nranks)
{
	struct sim_conf conf = sim_default(nranks);

	conf.no_learning = true;
	conf.bytes = nranks * 12 * 1432;
	conf.gap_jitter = conf.gap;
	conf.skew = conf.gap;
	return conf;
}

static const struct {
	const char *name;
	u32 fixed;		/* I; 0: by policy */
	u8 policy;
} setting[] = {
	{ "I = 1", 1, ORED_INCAST_ALL },
	{ "I = 2", 2, ORED_INCAST_ALL },
	{ "I = N-1", 0, ORED_INCAST_ALL },
	{ "+1/halve", 0, ORED_INCAST_ADAPT },
};

static struct sim_conf choose(struct sim_conf conf, u32 which)
{
	conf.incast_fixed = setting[which].fixed;
	conf.incast = setting[which].policy;
	return conf;
}

/* Undisturbed it makes no difference. */
TEST(incast__quiet)
{
	u32 n, which;

	for (n = 4; n <= 16; n *= 2) {
		struct sim_conf conf = base(n);

		conf.gap_jitter = 0;
		conf.skew = 0;
		for (which = 0; which < ARRAY_SIZE(setting); which++) {
			struct cost cost = run(choose(conf, which), 15);

			CHECK(cost.loss < 0.01, "N = %u, %s: %.3f %%", n, setting[which].name,
			      cost.loss);
			CHECK(cost.time < 1.25, "N = %u, %s: %.2f Tq", n, setting[which].name,
			      cost.time);
		}
	}
}

static void show(const struct sim_conf *conf, const struct cost *cost, const char *name)
{
	printf("# N = %2u, port %2u KB, train %u, %-8s drops %5.2f %%, %.2f Tq, loss %.3f %%\n",
	       conf->nranks, conf->port / 1024, conf->train, name, cost->drops, cost->time,
	       cost->loss);
}

/* Where ports are shallow and posts apart, the default is not the worst. */
TEST(incast__costs)
{
	const char *env = getenv("SIM_FULL");
	bool full = env && *env == '1';
	u32 n, port, train, which;

	for (n = 8; n <= 32; n *= 2) {
		for (port = 16384; port <= 65536; port *= 4) {
			for (train = 1; train <= 9; train += 8) {
				double worst = 0;
				struct cost cost[ARRAY_SIZE(setting)];

				if (!full && (n != 16 || port != 16384))
					continue;
				for (which = 0; which < ARRAY_SIZE(setting); which++) {
					struct sim_conf conf = choose(base(n), which);

					conf.port = port;
					conf.train = train;
					cost[which] = run(conf, full ? 60 : 20);
					worst = worst > cost[which].loss ? worst : cost[which].loss;
					show(&conf, &cost[which], setting[which].name);
				}
				CHECK(cost[2].loss <= worst);
				CHECK(train > 1 || cost[2].loss < 0.5, "%.3f %%", cost[2].loss);
			}
		}
	}
}

TAP_MAIN
