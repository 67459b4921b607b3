// SPDX-License-Identifier: GPL-2.0

#include "generation.h"

/**
 * ored_generations_init() - nothing but an open slot
 * @gens: what to set
 */
void ored_generations_init(struct ored_generations *gens)
{
	memset(gens, 0, sizeof(*gens));
}

/* The newest generation below a step's, or not below any */
static u32 newest_below(const struct ored_generations *gens, const u64 *below)
{
	u32 best = ORED_NO_SLOT, i;

	for (i = 0; i < ORED_SLOTS; i++) {
		if (!gens->slot[i].sealed || (below && gens->slot[i].step >= *below))
			continue;
		if (best == ORED_NO_SLOT || gens->slot[i].step > gens->slot[best].step)
			best = i;
	}
	return best;
}

/**
 * ored_generations_newest() - the newest generation
 * @gens: of a copy
 *
 * Return: its slot, or ORED_NO_SLOT
 */
u32 ored_generations_newest(const struct ored_generations *gens)
{
	return newest_below(gens, NULL);
}

/**
 * ored_generations_previous() - the one before the newest
 * @gens: of a copy
 *
 * Return: its slot, or ORED_NO_SLOT
 */
u32 ored_generations_previous(const struct ored_generations *gens)
{
	u32 newest = ored_generations_newest(gens);

	return newest == ORED_NO_SLOT ? newest :
	       newest_below(gens, &gens->slot[newest].step);
}

/**
 * ored_generations_find() - where is a step?
 * @gens: of a copy
 * @step: the step
 *
 * Return: its slot, or ORED_NO_SLOT
 */
u32 ored_generations_find(const struct ored_generations *gens, u64 step)
{
	u32 i;

	for (i = 0; i < ORED_SLOTS; i++) {
		if (gens->slot[i].sealed && gens->slot[i].step == step)
			return i;
	}
	return ORED_NO_SLOT;
}

/**
 * ored_generations_check() - may the open slot become this step?
 * @gens: of a copy
 * @step: the step
 *
 * Return: 0; -EEXIST if it, or a newer one, is there
 */
int ored_generations_check(const struct ored_generations *gens, u64 step)
{
	u32 newest = ored_generations_newest(gens);

	return newest != ORED_NO_SLOT && gens->slot[newest].step >= step ? -EEXIST : 0;
}

/**
 * ored_generations_seal() - the open slot is whole
 * @gens: of a copy; ored_generations_check() has allowed @step
 * @step: what it is
 * @bytes: how long
 * @digest: CRC32C
 *
 * The slot that opens is one that holds nothing, or the oldest generation, which
 * is gone with that.
 *
 * Return: the slot that is open now
 */
u32 ored_generations_seal(struct ored_generations *gens, u64 step, u64 bytes, u32 digest)
{
	u32 i, open = ORED_NO_SLOT;

	gens->slot[gens->open] = (struct ored_generation_slot) {
		.sealed = true,
		.step = step,
		.bytes = bytes,
		.digest = digest,
	};
	for (i = 0; i < ORED_SLOTS; i++) {
		if (!gens->slot[i].sealed) {
			open = i;
			break;
		}
		if (open == ORED_NO_SLOT || gens->slot[i].step < gens->slot[open].step)
			open = i;
	}
	gens->slot[open].sealed = false;
	gens->open = open;
	return open;
}

/**
 * ored_generations_roll_back() - forgets all that is newer than a step
 * @gens: of a copy
 * @step: what training goes on from
 *
 * Return: a set of the slots that were forgotten, bit i for slot i
 */
u32 ored_generations_roll_back(struct ored_generations *gens, u64 step)
{
	u32 i, gone = 0;

	for (i = 0; i < ORED_SLOTS; i++) {
		if (gens->slot[i].sealed && gens->slot[i].step > step) {
			gens->slot[i].sealed = false;
			gone |= 1U << i;
		}
	}
	return gone;
}
