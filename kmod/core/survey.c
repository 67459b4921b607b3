// SPDX-License-Identifier: GPL-2.0

#include "../../uapi/linux/ored.h"
#include "survey.h"

/**
 * ored_survey_add() - a generation has been found
 * @rank: of whose state
 * @step: which; more than ORED_SURVEY_STEPS push out the oldest
 */
void ored_survey_add(struct ored_survey_rank *rank, u64 step)
{
	u32 at, i;

	for (at = 0; at < rank->n && rank->step[at] > step; at++)
		;
	if (at == ORED_SURVEY_STEPS || (at < rank->n && rank->step[at] == step))
		return;
	rank->n = min(rank->n + 1, ORED_SURVEY_STEPS + 0U);
	for (i = rank->n - 1; i > at; i--)
		rank->step[i] = rank->step[i - 1];
	rank->step[at] = step;
}

static bool has(const struct ored_survey_rank *rank, u64 step)
{
	u32 i;

	for (i = 0; i < rank->n; i++) {
		if (rank->step[i] == step)
			return true;
	}
	return false;
}

/**
 * ored_survey_newest() - the newest step of which there is everybody's state
 * @ranks: what has been found
 * @nranks: of how many ranks, at least 1
 *
 * Return: the step, or ORED_NO_STEP
 */
u64 ored_survey_newest(const struct ored_survey_rank *ranks, u32 nranks)
{
	u32 i, r;

	for (i = 0; i < ranks[0].n; i++) {
		for (r = 1; r < nranks && has(&ranks[r], ranks[0].step[i]); r++)
			;
		if (r == nranks)
			return ranks[0].step[i];
	}
	return ORED_NO_STEP;
}
