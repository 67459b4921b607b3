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
 *
 * What they cost in the simulation (unit_incast.c with SIM_FULL=1: 12 packets a
 * shard, 20 Mbit/s, posts up to 20 ms apart, a bound of 1.5 times the quiet time):
 * packets dropped at the switch, mean time of an op by the quiet one, and what was
 * missing after repair, sent packet by packet and in trains of 9.
 *
 *	  N  port   train  all: drops  time  missing   +1/halve: drops  time  missing
 *	  8  16 KB      1      0.00 %  1.08  0.000 %            1.55 %  1.58  0.605 %
 *	  8  16 KB      9      4.97 %  1.31  0.306 %            1.43 %  1.54  0.352 %
 *	 16  16 KB      1      0.00 %  1.07  0.000 %            1.76 %  1.66  1.233 %
 *	 16  16 KB      9      9.51 %  1.23  0.008 %            1.92 %  1.66  0.627 %
 *	 32  16 KB      1      0.02 %  1.07  0.000 %            1.92 %  1.71  0.450 %
 *	 32  16 KB      9     12.52 %  1.28  0.000 %            1.67 %  1.66  0.213 %
 *	  8  64 KB      1      0.00 %  1.08  0.000 %            0.00 %  1.08  0.000 %
 *	  8  64 KB      9      0.00 %  1.09  0.000 %            0.00 %  1.09  0.000 %
 *	 16  64 KB      1      0.00 %  1.07  0.000 %            0.00 %  1.06  0.000 %
 *	 16  64 KB      9      0.04 %  1.07  0.001 %            0.00 %  1.07  0.000 %
 *	 32  64 KB      1      0.00 %  1.07  0.000 %            0.07 %  1.08  0.000 %
 *	 32  64 KB      9      1.46 %  1.15  0.001 %            0.19 %  1.15  0.000 %
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
