/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The generations of one copy of a checkpoint, and which of its three slots
 * they are in. One slot is open: its owner writes into it, or a holder receives
 * into it. The two others hold the newest generations, or nothing yet.
 *
 * Why three: nobody seals a step before the one he sealed last is complete on
 * all ranks. So while some rank holds s + 1 and s, every rank holds s, and all
 * can go back to it. With two slots the open one would be that of s.
 *
 * The caller serialises; nothing here allocates.
 */
#ifndef ORED_CORE_GENERATION_H
#define ORED_CORE_GENERATION_H

#include "shim.h"

#define ORED_SLOTS	3
#define ORED_NO_SLOT	ORED_SLOTS

/**
 * struct ored_generation_slot - what is in a slot
 * @sealed: a whole generation; what follows belongs to it
 * @step: training step, growing from generation to generation
 * @bytes: from the slot's start on
 * @digest: CRC32C over them
 */
struct ored_generation_slot {
	bool	sealed;
	u64	step;
	u64	bytes;
	u32	digest;
};

/**
 * struct ored_generations - of one copy
 * @slot: the slots
 * @open: the one that isn't sealed and is being filled
 */
struct ored_generations {
	struct ored_generation_slot	slot[ORED_SLOTS];
	u32				open;
};

void ored_generations_init(struct ored_generations *gens);
u32 ored_generations_newest(const struct ored_generations *gens);
u32 ored_generations_previous(const struct ored_generations *gens);
u32 ored_generations_find(const struct ored_generations *gens, u64 step);
int ored_generations_check(const struct ored_generations *gens, u64 step);
u32 ored_generations_seal(struct ored_generations *gens, u64 step, u64 bytes, u32 digest);
u32 ored_generations_roll_back(struct ored_generations *gens, u64 step);

#endif /* ORED_CORE_GENERATION_H */
