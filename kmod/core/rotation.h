/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whether a group transforms its buckets (hadamard.h): ORED_HADAMARD_AUTO.
 *
 * Sums need one domain, so all ranks must decide alike about an op, and each
 * sees another loss. There is no leader, since any rank may die. Instead the
 * decision switches to and fro, and each switch is agreed on long before it is
 * in force:
 *
 * - Switches are counted: an odd count is on. Ops are counted in windows of 32,
 *   more than any rank can be ahead of another. A switch is in force from the
 *   beginning of a window.
 * - A rank that has lost more than 2 % lately asks for a switch on. One that has
 *   lost less than 0.5 % for 64 ops, and hears from nobody who loses more, asks
 *   for one off. To ask is to count on by one, in force from the window after
 *   the next: 33 ops from now at least.
 * - All control packets carry the sender's latest switch. Who hears a later one
 *   adopts it; of two with the same count the one in force later is later. Each op
 *   brings several such packets from each peer, so all know of a switch before it
 *   is in force, whoever asked, if they hear anything at all.
 *
 * A rank that heard nothing for so long, or was away, may post an op in the other
 * domain. It takes over what it knows of that op from others' packets, if there
 * are any by then. Else the others go without its contribution and it without
 * theirs, as if they had been lost: nothing is mixed, and nothing fails, since
 * only bounded ops are subject to this.
 *
 * The caller serialises all calls for an ored_rotation.
 */
#ifndef ORED_CORE_ROTATION_H
#define ORED_CORE_ROTATION_H

#include "shim.h"

#define ORED_ROTATION_WINDOW	32	/* ops */
#define ORED_ROTATION_ON_PPM	20000
#define ORED_ROTATION_OFF_PPM	5000
#define ORED_ROTATION_CALM	64	/* ops */
#define ORED_ROTATION_SMOOTH	8	/* ops that the loss is smoothed over */

/**
 * struct ored_rotation - what a rank knows of its group's decision
 * @loss_ppm: what it has lost lately, smoothed, parts per million
 * @calm: bounded ops since it or a peer has lost much
 * @switches: count, modulo 256
 * @from: window from which the last of them is in force
 */
struct ored_rotation {
	u32	loss_ppm;
	u32	calm;
	u8	switches;
	u64	from;
};

void ored_rotation_init(struct ored_rotation *r);
bool ored_rotation_ended(struct ored_rotation *r, u64 posted, u32 loss_ppm, bool others);
bool ored_rotation_on(const struct ored_rotation *r, u64 op);

u16 ored_rotation_pack(const struct ored_rotation *r, u64 posted);
bool ored_rotation_heard(struct ored_rotation *r, u16 packed, u64 posted);
bool ored_rotation_loses(u16 packed);

#endif /* ORED_CORE_ROTATION_H */
