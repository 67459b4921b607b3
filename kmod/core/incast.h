/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Incast I: how many peers may send to one rank at once, and whom a rank
 * serves when.
 *
 * Every receiver advertises what it takes; the smallest number of the group is
 * obeyed, so that all ranks go through the same rounds. Round r of a stage:
 * rank i sends to i + rI + 1 ... i + rI + I (mod N), I peers at once, packet
 * by packet in turn, and hears from as many.
 *
 * By default I = N - 1, one round, and loss doesn't lower it: with senders paced
 * at the rate of their links I is no more than the grain of interleaving, and
 * the finest is the best. The paper's rule (one more after a clean op, half
 * after loss) is there for comparison.
 */
#ifndef ORED_CORE_INCAST_H
#define ORED_CORE_INCAST_H

#include "shim.h"

/**
 * struct ored_incast_state - what a rank advertises
 * @policy: enum ored_incast
 * @peers: N - 1
 * @own: what it takes, 1 to @peers
 */
struct ored_incast_state {
	u8	policy;
	u32	peers;
	u32	own;
};

void ored_incast_init(struct ored_incast_state *in, u8 policy, u32 nranks);
void ored_incast_ended(struct ored_incast_state *in, bool clean);
u32 ored_incast_obeyed(const struct ored_incast_state *in, const u32 *advertised, u32 n);

/* The @turn-th peer, from 0, that @rank serves */
static inline u32 ored_incast_peer(u32 rank, u32 nranks, u32 turn)
{
	return (rank + 1 + turn) % nranks;
}

/* In which turn @rank serves @peer */
static inline u32 ored_incast_turn(u32 rank, u32 nranks, u32 peer)
{
	return (peer + nranks - rank - 1) % nranks;
}

/* In which round it does, if @incast are served at once */
static inline u32 ored_incast_round(u32 rank, u32 nranks, u32 peer, u32 incast)
{
	return ored_incast_turn(rank, nranks, peer) / incast;
}

/* Rounds of a stage */
static inline u32 ored_incast_rounds(u32 nranks, u32 incast)
{
	return DIV_ROUND_UP(nranks - 1, incast);
}

#endif /* ORED_CORE_INCAST_H */
