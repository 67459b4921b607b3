// SPDX-License-Identifier: GPL-2.0
/* The step that all ranks can go back to. */

#include "tap.h"
#include "../../uapi/linux/ored.h"
#include "../../kmod/core/survey.h"

#define RANKS 5

static struct ored_survey_rank ranks[RANKS];

static void forget(void)
{
	memset(ranks, 0, sizeof(ranks));
}

static void all_have(u64 step)
{
	u32 r;

	for (r = 0; r < RANKS; r++)
		ored_survey_add(&ranks[r], step);
}

TEST(none_without_all)
{
	u32 r;

	forget();
	CHECK_EQ(ored_survey_newest(ranks, RANKS), ORED_NO_STEP);
	for (r = 0; r < RANKS; r++) {
		CHECK_EQ(ored_survey_newest(ranks, RANKS), ORED_NO_STEP);
		ored_survey_add(&ranks[r], 0);
	}
	CHECK_EQ(ored_survey_newest(ranks, RANKS), 0);
	CHECK_EQ(ored_survey_newest(ranks, 1), 0);
}

TEST(newest_of_mixed)
{
	forget();
	all_have(10);
	ored_survey_add(&ranks[2], 12);
	ored_survey_add(&ranks[0], 11);
	CHECK_EQ(ored_survey_newest(ranks, RANKS), 10);
	all_have(11);
	CHECK_EQ(ored_survey_newest(ranks, RANKS), 11);
	all_have(9);
	CHECK_EQ(ored_survey_newest(ranks, RANKS), 11);
}

TEST(kept_in_order_and_once)
{
	static const u64 steps[] = { 5, 9, 1, 9, 5, 7 }, sorted[] = { 9, 7, 5, 1 };
	u32 i;

	forget();
	for (i = 0; i < ARRAY_SIZE(steps); i++)
		ored_survey_add(&ranks[0], steps[i]);
	CHECK_EQ(ranks[0].n, ARRAY_SIZE(sorted));
	for (i = 0; i < ARRAY_SIZE(sorted); i++)
		CHECK_EQ(ranks[0].step[i], sorted[i]);
}

TEST(the_oldest_go)
{
	u64 step;

	forget();
	for (step = 0; step < 3 * ORED_SURVEY_STEPS; step++)
		ored_survey_add(&ranks[0], step);
	CHECK_EQ(ranks[0].n, ORED_SURVEY_STEPS);
	CHECK_EQ(ranks[0].step[0], 3 * ORED_SURVEY_STEPS - 1);
	ored_survey_add(&ranks[0], 2);
	CHECK_EQ(ranks[0].step[ORED_SURVEY_STEPS - 1], 2 * ORED_SURVEY_STEPS);
	CHECK_EQ(ranks[0].n, ORED_SURVEY_STEPS);
}

TAP_MAIN
