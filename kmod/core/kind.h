/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kinds: what of the two stages of TAR each collective uses, and what it moves.
 *
 *   kind            scatter to an owner     gather from an owner
 *   allreduce       everybody's shard       its sum, to everybody
 *   reduce-scatter  everybody's shard       nothing
 *   all-gather      nothing                 what it gave, to everybody
 *   broadcast       the root's shard        it, to everybody but the root
 *   barrier         nothing                 8 bytes, to everybody
 *
 * So whoever owns a shard of a broadcast passes it on, and the root's link carries
 * the bucket once, however many ranks there are.
 */
#ifndef ORED_CORE_KIND_H
#define ORED_CORE_KIND_H

#include "shim.h"
#include "tar.h"
#include "wire.h"

#define ORED_BARRIER_BYTES	8	/* of each rank; its result is the op's number */

bool ored_kind_fits(const struct ored_params *params, u32 nranks, u64 bucket_max);
void ored_kind_map(struct ored_map *map, const struct ored_params *params, u32 payload,
		   u32 nranks);
bool ored_kind_adds(u16 word);
bool ored_kind_relays(u16 word);
bool ored_kind_gives(u16 word, u32 owner, u32 rank);
u32 ored_kind_scatters(const struct ored_map *map, u16 word, u32 from, u32 to);
u32 ored_kind_gathers(const struct ored_map *map, u16 word, u32 from, u32 to);
u32 ored_kind_cost(const struct ored_params *params);

#endif /* ORED_CORE_KIND_H */
