// SPDX-License-Identifier: GPL-2.0
/*
 * Joining: single steps, then whole groups over paths of different MTUs with
 * loss, where all ranks must agree on the payload that every path carries.
 */

#include "tap.h"
#include "../../kmod/core/hello.h"

#define OVERHEAD	60	/* header, UDP, IPv4 */

static struct ored_hello hello(u32 session, u32 size, u16 limit, u16 seen)
{
	return (struct ored_hello){
		.session = session, .size = (u16)size, .limit = limit,
		.seen = seen,
	};
}

TEST(payload_round__whole_elements)
{
	u32 i;

	for (i = 0; i < 70000; i++) {
		u16 payload = ored_payload_round(i);

		CHECK_EQ(payload % ORED_PAYLOAD_ALIGN, 0);
		CHECK(payload <= i);
		CHECK(i >= 65535 || i - payload < ORED_PAYLOAD_ALIGN);
	}
	CHECK_EQ(ored_payload_round(~0U), 65528);
}

/* Goes down, in whole elements, to the end, and never stays where it is. */
TEST(path_smaller__always_down)
{
	u32 overhead, payload, next, steps;

	for (overhead = 60; overhead <= 120; overhead += 4) {
		for (payload = 65528; payload; payload -= 8) {
			next = ored_path_smaller((u16)payload, (u16)overhead);
			CHECK(next < payload);
			CHECK_EQ(next % ORED_PAYLOAD_ALIGN, 0);
		}
		for (steps = 0, payload = 65528; payload; steps++)
			payload = ored_path_smaller((u16)payload, (u16)overhead);
		CHECK(steps < 40);
	}
	CHECK_EQ(ored_path_smaller(8936, 60), 8888);
	CHECK_EQ(ored_path_smaller(1500, 60), 1440);
	CHECK_EQ(ored_path_smaller(1440, 60), 1432);
	CHECK_EQ(ored_path_smaller(65535, 65535), 0);
	CHECK_EQ(ored_path_smaller(0, 60), 0);
}

/* Every usual MTU is hit exactly when one comes down to it. */
TEST(path_smaller__usual_mtus)
{
	static const u16 mtu[] = { 9216, 9001, 9000, 1500, 1492, 1460, 1280 };
	u32 i, payload;

	for (i = 0; i < ARRAY_SIZE(mtu); i++) {
		for (payload = 65528; payload > ored_payload_round(mtu[i] - OVERHEAD); )
			payload = ored_path_smaller((u16)payload, OVERHEAD);
		CHECK_EQ(payload, ored_payload_round(mtu[i] - OVERHEAD));
	}
}

TEST(path_limit__only_lowers)
{
	struct ored_path path = { .session = 1, .try = 8936, .ok = 8936, .tries = 2 };

	ored_path_limit(&path, 9000);
	CHECK_EQ(path.try, 8936);
	CHECK_EQ(path.tries, 2);
	ored_path_limit(&path, 1440);
	CHECK_EQ(path.try, 1440);
	CHECK_EQ(path.ok, 1440);
	CHECK_EQ(path.tries, 0);
}

TEST(path_missed__waits_for_an_answer)
{
	struct ored_path path = { .try = 8936 };
	u32 i;

	/* unheard: it may not be there yet, so that's not the size's fault */
	for (i = 0; i < 1000; i++)
		CHECK(ored_path_missed(&path, OVERHEAD, 512));
	CHECK_EQ(path.try, 8936);
}

TEST(path_missed__waits_for_one_that_gets_nothing)
{
	struct ored_path path = { .session = 1, .try = 1440 };
	u32 i;

	/* not even short ones get through: sizes have nothing to do with it */
	for (i = 0; i < 1000; i++)
		CHECK(ored_path_missed(&path, OVERHEAD, 512));
	CHECK_EQ(path.try, 1440);
}

TEST(path_missed__steps_down_and_gives_up)
{
	struct ored_path path = { .session = 1, .try = 1440, .ok = 24 };
	u32 i, last = path.try, same = 0;

	for (i = 0; ored_path_missed(&path, OVERHEAD, 512); i++) {
		CHECK(path.try >= 512);
		CHECK_EQ(path.try % ORED_PAYLOAD_ALIGN, 0);
		if (path.try != last) {
			CHECK_EQ(same, ORED_HELLO_TRIES);
			same = 0;
		}
		same++;
		last = path.try;
		if (i > 1000)
			break;
	}
	CHECK(i < 100);
	CHECK_EQ(path.try, 512);
}

TEST(path_missed__content_when_through)
{
	struct ored_path path = { .session = 1, .try = 1440, .ok = 1440 };
	u32 i;

	for (i = 0; i < 100; i++)
		CHECK(ored_path_missed(&path, OVERHEAD, 512));
	CHECK_EQ(path.try, 1440);
}

TEST(path_heard__what_is_news)
{
	struct ored_path path = { .try = 1440 };
	struct ored_hello h = hello(5, 60, 1440, 0);

	CHECK(ored_path_heard(&path, &h, false));
	CHECK(!ored_path_heard(&path, &h, false));
	CHECK_EQ(path.session, 5);
	CHECK_EQ(path.limit, 1440);
	CHECK_EQ(path.ok, 0);
	h.seen = 32 + 1440;
	CHECK(ored_path_heard(&path, &h, false));
	CHECK_EQ(path.ok, 1440);
	h.size = 1472;
	CHECK(ored_path_heard(&path, &h, false));
	CHECK_EQ(path.got, 1472);
	CHECK(ored_path_heard(&path, &h, true));
	CHECK(!ored_path_heard(&path, &h, true));
	CHECK(path.final);
}

/* A peer that has been started again has seen nothing of ours yet. */
TEST(path_heard__new_session)
{
	struct ored_path path = { .try = 1440 };
	struct ored_hello h = hello(5, 60, 1440, 32 + 1440);

	ored_path_heard(&path, &h, true);
	CHECK_EQ(path.ok, 1440);
	h = hello(6, 60, 1440, 0);
	CHECK(ored_path_heard(&path, &h, false));
	CHECK_EQ(path.session, 6);
	CHECK_EQ(path.ok, 0);
	CHECK(!path.final);
	/* nor does it stand by what it said before, if it says nothing new */
	h = hello(6, 60, 1440, 0);
	ored_path_heard(&path, &h, true);
	CHECK(path.final);
	h = hello(7, 60, 0, 0);
	ored_path_heard(&path, &h, false);
	CHECK(!path.final);
}

/* Sizes that were never sent, limits that nobody could mean */
TEST(path_heard__absurd)
{
	u32 i;

	for (i = 0; i < 20000; i++) {
		struct ored_path path = { .try = 1440 };
		struct ored_hello h = hello((u32)tap_random() | 1,
					    (u32)tap_random(), (u16)tap_random(),
					    (u16)tap_random());

		if (i & 1)
			h.limit = (u16)tap_below(600);
		ored_path_heard(&path, &h, i & 2);
		CHECK(path.try >= ORED_PAYLOAD_MIN && path.try <= 1440);
		CHECK_EQ(path.try % ORED_PAYLOAD_ALIGN, 0);
		CHECK_EQ(path.limit % ORED_PAYLOAD_ALIGN, 0);
		CHECK(path.ok <= path.try);
		CHECK(h.limit >= ORED_PAYLOAD_MIN || !path.final);
	}
}

/* --- whole groups --- */

#define MAX_RANKS	9
#define ROUNDS		400

struct group {
	u32 nranks;
	u16 mtu[MAX_RANKS][MAX_RANKS];	/* by sender and receiver */
	u16 interface[MAX_RANKS];
	u32 loss;			/* in thousandths */
	struct ored_path path[MAX_RANKS][MAX_RANKS];
	struct ored_joining joining[MAX_RANKS];
	bool failed[MAX_RANKS], done[MAX_RANKS];
	u16 payload[MAX_RANKS];
};

static void group_init(struct group *g, u32 nranks, u16 floor)
{
	u32 i, j;

	g->nranks = nranks;
	for (i = 0; i < nranks; i++) {
		g->joining[i] = (struct ored_joining){
			.path = g->path[i], .nranks = nranks, .rank = i,
			.floor = floor,
		};
		for (j = 0; j < nranks; j++)
			g->path[i][j] = (struct ored_path){
				.try = ored_payload_round(g->interface[i] - OVERHEAD),
			};
	}
}

/* Sends a HELLO of @size bytes of UDP payload; what is too big vanishes. */
static void group_send(struct group *g, u32 from, u32 to, u32 size)
{
	struct ored_hello h = hello(from + 1, size, 0, g->path[from][to].got);
	bool final = ored_joining_limit(&g->joining[from], &h.limit);

	if (size + OVERHEAD - ORED_WIRE_HEADER > g->mtu[from][to] ||
	    tap_below(1000) < g->loss)
		return;
	ored_path_heard(&g->path[to][from], &h, final);
}

static void group_round(struct group *g)
{
	u32 i, j;

	for (i = 0; i < g->nranks; i++) {
		for (j = 0; j < g->nranks; j++) {
			struct ored_path *path = &g->path[i][j];

			if (i == j)
				continue;
			if (!ored_path_missed(path, OVERHEAD, g->joining[i].floor))
				g->failed[i] = true;
			group_send(g, i, j, ORED_WIRE_HEADER + ORED_HELLO_BYTES);
			if (path->ok < path->try)
				group_send(g, i, j, ORED_WIRE_HEADER + path->try);
		}
	}
	for (i = 0; i < g->nranks; i++) {
		u16 payload;

		if (!ored_joining_done(&g->joining[i], &payload))
			continue;
		/* Once agreed, it may not change any more. */
		CHECK(!g->done[i] || g->payload[i] == payload);
		g->done[i] = true;
		g->payload[i] = payload;
	}
}

static bool group_run(struct group *g)
{
	u32 round, i, done = 0;

	for (round = 0; round < ROUNDS && done < g->nranks; round++) {
		group_round(g);
		for (i = done = 0; i < g->nranks; i++)
			done += g->done[i];
	}
	/* and some more, in which nothing may change */
	for (round = 0; round < 5; round++)
		group_round(g);
	return done == g->nranks;
}

/* The largest payload that a rank tries on the way down and @mtu carries */
static u16 found(u16 interface, u16 mtu)
{
	u16 payload = ored_payload_round(interface - OVERHEAD);

	while (payload + OVERHEAD > mtu)
		payload = ored_path_smaller(payload, OVERHEAD);
	return payload;
}

static void random_paths(struct group *g)
{
	static const u16 mtu[] = { 1500, 9000, 9001, 8896, 1460, 1400, 65535, 1333 };
	u32 i, j;

	for (i = 0; i < g->nranks; i++)
		g->interface[i] = mtu[tap_below(tap_below(4) ? 3 : 8)];
	for (i = 0; i < g->nranks; i++) {
		for (j = 0; j < g->nranks; j++) {
			g->mtu[i][j] = min(g->interface[i], g->interface[j]);
			/* sometimes something between them carries less */
			if (!tap_below(8))
				g->mtu[i][j] = min(g->mtu[i][j], mtu[tap_below(8)]);
		}
	}
}

TEST(joining__one_rank)
{
	struct ored_path path = { 0 };
	struct ored_joining joining = { .path = &path, .nranks = 1, .floor = 512 };
	u16 payload = 0;

	CHECK(ored_joining_done(&joining, &payload));
	CHECK_EQ(payload % ORED_PAYLOAD_ALIGN, 0);
	CHECK(payload >= ORED_PAYLOAD_MIN);
}

TEST(joining__waits_for_everybody)
{
	struct group *g = calloc(1, sizeof(*g));
	u32 i, j, round;

	for (i = 0; i < 3; i++) {
		g->interface[i] = 1500;
		for (j = 0; j < 3; j++)
			g->mtu[i][j] = i == 2 || j == 2 ? 0 : 1500;
	}
	group_init(g, 3, 512);
	for (round = 0; round < 100; round++)
		group_round(g);
	for (i = 0; i < 3; i++) {
		CHECK(!g->done[i]);
		CHECK(!g->failed[i]);
	}
	/* it comes at last */
	for (i = 0; i < 3; i++) {
		g->mtu[i][2] = 1500;
		g->mtu[2][i] = 1500;
	}
	CHECK(group_run(g));
	for (i = 0; i < 3; i++)
		CHECK_EQ(g->payload[i], 1440);
	free(g);
}

/* Without loss, exactly what the smallest path carries */
TEST(joining__finds_the_smallest_path)
{
	struct group *g = malloc(sizeof(*g));
	u32 seed, i, j;

	for (seed = 0; seed < 2000; seed++) {
		u16 want = 65528;

		memset(g, 0, sizeof(*g));
		g->nranks = 2 + tap_below(MAX_RANKS - 1);
		random_paths(g);
		group_init(g, g->nranks, 512);
		CHECK(group_run(g));
		for (i = 0; i < g->nranks; i++) {
			for (j = 0; j < g->nranks; j++) {
				if (i != j)
					want = min(want, found(g->interface[i],
							       g->mtu[i][j]));
			}
		}
		for (i = 0; i < g->nranks; i++) {
			CHECK(!g->failed[i]);
			CHECK_EQ(g->payload[i], g->payload[0]);
			/* Others' limits spare it some steps, never cost any. */
			CHECK(g->payload[i] >= want && g->payload[i] <= want + 200,
			      "%u, not %u", g->payload[i], want);
		}
	}
	free(g);
}

/* With loss it may come out smaller, but all agree and all paths carry it. */
TEST(joining__agrees_in_spite_of_loss)
{
	struct group *g = malloc(sizeof(*g));
	u32 seed, i, j;

	for (seed = 0; seed < 2000; seed++) {
		memset(g, 0, sizeof(*g));
		g->nranks = 2 + tap_below(MAX_RANKS - 1);
		g->loss = tap_below(300);
		random_paths(g);
		group_init(g, g->nranks, 512);
		CHECK(group_run(g));
		for (i = 0; i < g->nranks; i++) {
			CHECK_EQ(g->payload[i], g->payload[0]);
			CHECK(g->payload[i] >= 512);
			for (j = 0; j < g->nranks; j++)
				CHECK(i == j || g->payload[i] + OVERHEAD <= g->mtu[i][j]);
		}
	}
	free(g);
}

/* A path that carries less than the floor is found out, not waited for. */
TEST(joining__path_too_small)
{
	struct group *g = calloc(1, sizeof(*g));
	u32 i, j;

	for (i = 0; i < 4; i++) {
		g->interface[i] = 9000;
		for (j = 0; j < 4; j++)
			g->mtu[i][j] = 9000;
	}
	g->mtu[1][3] = 560;
	group_init(g, 4, 512);
	for (i = 0; i < 300 && !g->failed[1]; i++)
		group_round(g);
	CHECK(g->failed[1]);
	CHECK(!g->done[0] && !g->done[1] && !g->done[2] && !g->done[3]);
	free(g);
}

TAP_MAIN
