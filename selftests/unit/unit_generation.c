// SPDX-License-Identifier: GPL-2.0
/* Generations in their slots, and the checks of remote access. */

#include "tap.h"
#include "../../kmod/core/generation.h"
#include "../../kmod/core/remote.h"

static bool holds(const struct ored_generations *gens, u64 step)
{
	return ored_generations_find(gens, step) != ORED_NO_SLOT;
}

TEST(nothing_at_first)
{
	struct ored_generations gens;

	ored_generations_init(&gens);
	CHECK_EQ(ored_generations_newest(&gens), ORED_NO_SLOT);
	CHECK_EQ(ored_generations_previous(&gens), ORED_NO_SLOT);
	CHECK(!holds(&gens, 0));
	CHECK_EQ(ored_generations_check(&gens, 0), 0);
	CHECK(gens.open < ORED_SLOTS);
}

TEST(the_newest_two_stay)
{
	struct ored_generations gens;
	u64 step;

	ored_generations_init(&gens);
	for (step = 0; step < 20; step++) {
		u32 was = gens.open, open;

		CHECK_EQ(ored_generations_check(&gens, step), 0);
		open = ored_generations_seal(&gens, step, 100 + step, (u32)step * 7);
		CHECK(open != was && open == gens.open && !gens.slot[open].sealed);
		CHECK_EQ(ored_generations_newest(&gens), was);
		CHECK_EQ(gens.slot[was].bytes, 100 + step);
		CHECK_EQ(gens.slot[was].digest, step * 7);
		CHECK(holds(&gens, step) && (!step || holds(&gens, step - 1)));
		CHECK(step < 2 || !holds(&gens, step - 2));
		CHECK_EQ(ored_generations_check(&gens, step), -EEXIST);
		if (step)
			CHECK_EQ(gens.slot[ored_generations_previous(&gens)].step, step - 1);
	}
}

TEST(rolling_back)
{
	struct ored_generations gens;
	u32 open;

	ored_generations_init(&gens);
	ored_generations_seal(&gens, 10, 1, 0);
	ored_generations_seal(&gens, 20, 1, 0);
	open = gens.open;
	CHECK_EQ(ored_generations_roll_back(&gens, 20), 0);
	CHECK_EQ(ored_generations_roll_back(&gens, 15), 1U << 1);
	CHECK(holds(&gens, 10) && !holds(&gens, 20));
	CHECK_EQ(gens.open, open);
	CHECK_EQ(ored_generations_check(&gens, 15), 0);
	/* What has become free is opened before anything is lost. */
	ored_generations_seal(&gens, 16, 1, 0);
	CHECK(holds(&gens, 10) && holds(&gens, 16));
	CHECK_EQ(__builtin_popcount(ored_generations_roll_back(&gens, 0)), 2);
	CHECK_EQ(ored_generations_newest(&gens), ORED_NO_SLOT);
}

/*
 * The argument for three slots: ranks that don't seal before all have what they
 * sealed last always have a step in common.
 */
TEST(ranks_a_step_apart_have_one_in_common)
{
	u32 run;

	for (run = 0; run < 2000; run++) {
		struct ored_generations rank[2];
		u64 next[2] = {}, i, step;

		ored_generations_init(&rank[0]);
		ored_generations_init(&rank[1]);
		for (i = 0; i < 50; i++) {
			u32 r = tap_below(2), common = 0;

			if (next[r] > next[!r])
				continue;
			ored_generations_seal(&rank[r], next[r], 1, 0);
			next[r]++;
			for (step = 0; step <= next[r]; step++)
				common += holds(&rank[0], step) && holds(&rank[1], step);
			CHECK(common || !next[0] || !next[1], "run %u", run);
		}
	}
}

/* Any order of calls leaves one slot open and the sealed ones different. */
TEST(any_order)
{
	struct ored_generations gens;
	u32 i, a, b;

	ored_generations_init(&gens);
	for (i = 0; i < 100000; i++) {
		u64 step = tap_below(50);

		if (tap_below(5) == 0)
			ored_generations_roll_back(&gens, step);
		else if (!ored_generations_check(&gens, step))
			ored_generations_seal(&gens, step, step, 0);
		CHECK(gens.open < ORED_SLOTS && !gens.slot[gens.open].sealed);
		for (a = 0; a < ORED_SLOTS; a++)
			for (b = 0; b < a; b++)
				CHECK(!gens.slot[a].sealed || !gens.slot[b].sealed ||
				      gens.slot[a].step != gens.slot[b].step);
	}
}

/* Overflow-safe: what a sum of 64 bits would let through */
TEST(spans)
{
	static const u64 edge[] = {
		0, 1, 2, 4095, 4096, 1ULL << 31, 1ULL << 32, (1ULL << 63) - 1, 1ULL << 63,
		~0ULL - 4096, ~0ULL - 1, ~0ULL,
	};
	u32 a, b, c;

	for (a = 0; a < ARRAY_SIZE(edge); a++)
		for (b = 0; b < ARRAY_SIZE(edge); b++)
			for (c = 0; c < ARRAY_SIZE(edge); c++)
				CHECK_EQ(ored_span_inside(edge[a], edge[b], edge[c]),
					 (__uint128_t)edge[b] + edge[c] <= edge[a]);
}

TEST(window)
{
	const struct ored_window window = {
		.key = 0x123456789abcdefULL, .serial = 7, .rank = 3,
		.rights = ORED_REMOTE_WRITE, .bytes = 1000,
	};
	const struct ored_access good = {
		.key = window.key, .serial = 7, .rank = 3,
		.right = ORED_REMOTE_WRITE, .offset = 900, .length = 100,
	};
	struct ored_window none = window;
	struct ored_access bad = good;

	CHECK_EQ(ored_window_check(&window, &good), 0);
	bad.key ^= 1ULL << 40;
	CHECK_EQ(ored_window_check(&window, &bad), -EKEYREJECTED);
	bad = good;
	bad.serial++;
	CHECK_EQ(ored_window_check(&window, &bad), -ESTALE);
	bad = good;
	bad.rank = 2;
	CHECK_EQ(ored_window_check(&window, &bad), -EACCES);
	bad = good;
	bad.right = ORED_REMOTE_READ;
	CHECK_EQ(ored_window_check(&window, &bad), -EACCES);
	bad = good;
	bad.length = 101;
	CHECK_EQ(ored_window_check(&window, &bad), -ERANGE);
	bad.length = 0;
	CHECK_EQ(ored_window_check(&window, &bad), -ERANGE);
	bad.length = ~0ULL - 800;
	CHECK_EQ(ored_window_check(&window, &bad), -ERANGE);
	/* No key is never right. */
	none.key = 0;
	bad = good;
	bad.key = 0;
	CHECK_EQ(ored_window_check(&none, &bad), -EKEYREJECTED);
}

TAP_MAIN
