/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who keeps whose checkpoints, as in GEMINI: @copies of each rank's state, its
 * own included.
 *
 * Group placement cuts the ranks into groups of @copies neighbours, in which
 * everybody keeps everybody's. Ranks that are left over join the last group,
 * which then is a ring ("mixed"). Ring placement is one ring of all: everybody
 * sends to the next @copies - 1. Groups survive more losses, never fewer.
 *
 * Neighbours are those of an order in which successive ranks are @jump apart,
 * so that they aren't lost together: with 8 ranks a host, or 8 hosts a rack, a
 * jump of 8 lets no copy stay in the failure domain of its owner.
 */
#ifndef ORED_CORE_PLACEMENT_H
#define ORED_CORE_PLACEMENT_H

#include "shim.h"

/**
 * struct ored_placement - a placement; ored_placement_valid() must hold
 * @nranks: ranks, 1 to ORED_MAX_RANKS
 * @copies: of each state, 1 to @nranks
 * @kind: enum ored_place
 * @jump: distance of neighbours, 1 to @nranks
 */
struct ored_placement {
	u32	nranks;
	u32	copies;
	u32	kind;
	u32	jump;
};

bool ored_placement_valid(const struct ored_placement *pl);
u32 ored_placement_at(const struct ored_placement *pl, u32 rank);
u32 ored_placement_rank(const struct ored_placement *pl, u32 at);
u32 ored_placement_holder(const struct ored_placement *pl, u32 owner, u32 i);
u32 ored_placement_owner(const struct ored_placement *pl, u32 holder, u32 i);
int ored_placement_survives(const struct ored_placement *pl, u32 lost, u64 *room,
			    u64 *good, u64 *all);

/* 64-bit words that ored_placement_survives() works in */
static inline u32 ored_placement_room(u32 lost)
{
	return 3 * (lost + 1);
}

#endif /* ORED_CORE_PLACEMENT_H */
