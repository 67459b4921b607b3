/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which step can all ranks go back to? The newest of which every rank's generation
 * is whole somewhere. Holders may have different steps, some may not answer, and it
 * doesn't matter on which host a generation is.
 *
 * The caller serialises; nothing here allocates.
 */
#ifndef ORED_CORE_SURVEY_H
#define ORED_CORE_SURVEY_H

#include "shim.h"

/* Steps of a rank that are remembered, the newest. Areas have two, which may differ. */
#define ORED_SURVEY_STEPS	8

/**
 * struct ored_survey_rank - what there is of a rank's state
 * @step: steps, the newest first
 * @n: how many
 */
struct ored_survey_rank {
	u64	step[ORED_SURVEY_STEPS];
	u32	n;
};

void ored_survey_add(struct ored_survey_rank *rank, u64 step);
u64 ored_survey_newest(const struct ored_survey_rank *ranks, u32 nranks);

#endif /* ORED_CORE_SURVEY_H */
