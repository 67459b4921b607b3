// SPDX-License-Identifier: GPL-2.0
/* Placement of checkpoints: who holds what, and what losses it survives. */

#include "tap.h"
#include "../../uapi/linux/ored.h"
#include "../../kmod/core/placement.h"

#define GROUP	ORED_PLACE_GROUP
#define RING	ORED_PLACE_RING

static u64 room[3 * (ORED_MAX_RANKS + 1)];

/* Every placement of up to so many ranks */
#define for_all(pl, most)						\
	for ((pl).nranks = 1; (pl).nranks <= (most); (pl).nranks++)	\
		for ((pl).copies = 1; (pl).copies <= (pl).nranks; (pl).copies++)	\
			for ((pl).kind = GROUP; (pl).kind <= RING; (pl).kind++)		\
				for ((pl).jump = 1; (pl).jump <= (pl).nranks; (pl).jump++)

TEST(validity)
{
	static const struct ored_placement bad[] = {
		{ 0, 1, GROUP, 1 }, { 4, 0, GROUP, 1 }, { 4, 5, GROUP, 1 },
		{ 4, 2, RING + 1, 1 }, { 4, 2, GROUP, 0 }, { 4, 2, GROUP, 5 },
		{ ORED_MAX_RANKS + 1, 2, GROUP, 1 },
	};
	struct ored_placement pl;
	u64 good, all;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		CHECK(!ored_placement_valid(&bad[i]), "%u", i);
		CHECK_EQ(ored_placement_survives(&bad[i], 1, room, &good, &all), -EINVAL);
	}
	for_all(pl, 9)
		CHECK(ored_placement_valid(&pl));
	pl = (struct ored_placement){ 4, 2, GROUP, 1 };
	CHECK_EQ(ored_placement_survives(&pl, 5, room, &good, &all), -EINVAL);
}

/* The order is one of all ranks, and neighbours in it are a jump apart. */
TEST(order)
{
	struct ored_placement pl;
	u32 at, rank;

	for_all(pl, 17) {
		u32 seen = 0;

		for (at = 0; at < pl.nranks; at++) {
			rank = ored_placement_rank(&pl, at);
			CHECK(rank < pl.nranks);
			CHECK_EQ(ored_placement_at(&pl, rank), at);
			seen |= 1U << rank;
			/* One column of the table after the other */
			if (rank >= pl.jump)
				CHECK_EQ(ored_placement_rank(&pl, at - 1), rank - pl.jump);
		}
		CHECK_EQ(seen, (1U << pl.nranks) - 1);
	}
}

static u32 holders(const struct ored_placement *pl, u32 owner)
{
	u32 set = 1U << owner, i;

	for (i = 0; i + 1 < pl->copies; i++)
		set |= 1U << ored_placement_holder(pl, owner, i);
	return set;
}

/* As many different holders as there shall be, everybody has as many, and both agree. */
TEST(both_sides_agree)
{
	struct ored_placement pl;
	u32 rank, i;

	for_all(pl, 17) {
		for (rank = 0; rank < pl.nranks; rank++) {
			u32 set = holders(&pl, rank), owners = 0;

			CHECK_EQ(__builtin_popcount(set), pl.copies);
			for (i = 0; i + 1 < pl.copies; i++) {
				u32 owner = ored_placement_owner(&pl, rank, i);

				CHECK_EQ(ored_placement_holder(&pl, owner, i), rank);
				owners |= 1U << owner;
			}
			CHECK_EQ(__builtin_popcount(owners), pl.copies - 1);
		}
	}
}

TEST(group_and_mixed)
{
	struct ored_placement pl = { 7, 3, GROUP, 1 };

	CHECK_EQ(holders(&pl, 0), 7);
	CHECK_EQ(holders(&pl, 1), 7);
	CHECK_EQ(holders(&pl, 2), 7);
	/* The last four are a ring. */
	CHECK_EQ(holders(&pl, 3), 1 << 3 | 1 << 4 | 1 << 5);
	CHECK_EQ(holders(&pl, 5), 1 << 5 | 1 << 6 | 1 << 3);
	pl.kind = RING;
	CHECK_EQ(holders(&pl, 0), 1 | 2 | 4);
	CHECK_EQ(holders(&pl, 6), 1 << 6 | 1 << 0 | 1 << 1);
}

/* Do two of the ranks that have a rank's state share a domain of @pl->jump ranks? */
static bool shares_domain(const struct ored_placement *pl, u32 rank)
{
	u32 domains = 1U << rank / pl->jump, i, domain;

	for (i = 0; i + 1 < pl->copies; i++) {
		domain = 1U << ored_placement_holder(pl, rank, i) / pl->jump;
		if (domains & domain)
			return true;
		domains |= domain;
	}
	return false;
}

/*
 * With domains of J ranks and a jump of J, no two copies share a domain, if there
 * are enough domains for the largest cluster of neighbours.
 */
TEST(jump_leaves_the_domain)
{
	struct ored_placement pl;
	u32 rank;

	for_all(pl, 32) {
		u32 domains = pl.nranks / pl.jump;

		if (pl.nranks % pl.jump || pl.kind != GROUP || domains < pl.copies)
			continue;
		if (pl.nranks % pl.copies && domains < 2 * pl.copies - 1)
			continue;
		for (rank = 0; rank < pl.nranks; rank++)
			CHECK(!shares_domain(&pl, rank), "%u of %u ranks, jump %u, copies %u",
			      rank, pl.nranks, pl.jump, pl.copies);
	}
}

/* What enumerating all ways gives is the truth. */
TEST(exact_by_enumeration)
{
	struct ored_placement pl;

	for_all(pl, 10) {
		u64 good[11] = {}, all[11] = {}, g, a;
		u32 lost, rank, k;

		if (pl.jump > 2)
			continue;
		for (lost = 0; lost < 1U << pl.nranks; lost++) {
			bool survives = true;

			for (rank = 0; rank < pl.nranks; rank++)
				survives &= (holders(&pl, rank) & lost) != holders(&pl, rank);
			k = __builtin_popcount(lost);
			all[k]++;
			good[k] += survives;
		}
		for (k = 0; k <= pl.nranks; k++) {
			CHECK_EQ(ored_placement_survives(&pl, k, room, &g, &a), 0);
			CHECK_EQ(a, all[k]);
			CHECK_EQ(g, good[k]);
		}
	}
}

static void vector(u32 nranks, u32 copies, u32 kind, u32 lost, double percent)
{
	struct ored_placement pl = { nranks, copies, kind, 1 };
	u64 good = 0, all = 1;
	double got;

	CHECK_EQ(ored_placement_survives(&pl, lost, room, &good, &all), 0);
	got = 100.0 * (double)good / (double)all;
	CHECK(got > percent - 0.05 && got < percent + 0.05,
	      "%u ranks, %u copies, %u lost: %.3f %%, not %.3f %%",
	      nranks, copies, lost, got, percent);
}

/* GEMINI's figures, and those of inclusion and exclusion by hand */
TEST(known_probabilities)
{
	vector(16, 2, GROUP, 1, 100);
	vector(16, 2, GROUP, 2, 93.3);
	vector(16, 2, GROUP, 3, 80.0);
	vector(16, 2, GROUP, 4, 61.54);
	vector(16, 2, GROUP, 5, 41.03);
	vector(16, 2, RING, 2, 86.7);
	vector(16, 2, RING, 3, 62.86);
	vector(5, 2, GROUP, 2, 60);
	vector(7, 3, GROUP, 3, 85.7);
	vector(8, 3, GROUP, 3, 89.3);
}

/* Groups are at least as good as a ring, where both are exact. */
TEST(groups_beat_rings)
{
	struct ored_placement pl;

	for_all(pl, 20) {
		u64 group, ring, all;
		u32 lost;

		if (pl.kind != GROUP || pl.jump > 1)
			continue;
		for (lost = 0; lost <= pl.nranks; lost++) {
			pl.kind = RING;
			CHECK_EQ(ored_placement_survives(&pl, lost, room, &ring, &all), 0);
			pl.kind = GROUP;
			CHECK_EQ(ored_placement_survives(&pl, lost, room, &group, &all), 0);
			CHECK(group >= ring, "%u %u %u", pl.nranks, pl.copies, lost);
		}
	}
}

/* Too large a number is said, never a wrong one. */
TEST(overflow)
{
	struct ored_placement pl = { 256, 2, GROUP, 1 };
	u64 good, all;

	CHECK_EQ(ored_placement_survives(&pl, 4, room, &good, &all), 0);
	CHECK_EQ(all, 174792640);
	CHECK_EQ(good, 174792640 - 128 * (254 * 253 / 2) + 128 * 127 / 2);
	CHECK_EQ(ored_placement_survives(&pl, 128, room, &good, &all), -ERANGE);
	pl.kind = RING;
	CHECK_EQ(ored_placement_survives(&pl, 60, room, &good, &all), -ERANGE);
}

TAP_MAIN
