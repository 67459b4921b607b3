/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A simulated network of hosts that run ops, in virtual time.
 *
 * N hosts hang on one switch whose ports have drop-tail queues; packets take
 * time on the wire and on the way, and can be lost, singly or in bursts,
 * reordered, held up by cross traffic or cut off by a partition. Each host runs
 * the core's code (terms, bounds, early timeout, incast, standing of peers,
 * chunk maps, repair, rate) the way the kernel does, and an application that
 * posts the next op some time after the last result. Processors cost nothing.
 *
 * Everything that is random comes from the seed.
 */
#ifndef ORED_UNIT_SIM_H
#define ORED_UNIT_SIM_H

#include "../../kmod/core/bound.h"
#include "../../kmod/core/chunkmap.h"
#include "../../kmod/core/early.h"
#include "../../kmod/core/incast.h"
#include "../../kmod/core/rate.h"
#include "../../kmod/core/repair.h"
#include "../../kmod/core/standing.h"
#include "../../kmod/core/tar.h"
#include "../../kmod/core/term.h"
#include "../../kmod/core/wire.h"
#include "../../uapi/linux/ored.h"

#define SIM_RANKS	64	/* at most: ranks are bits of a word */
#define SIM_MS		1000000ULL
#define SIM_S		1000000000ULL

/* Times in ns, probabilities in parts per million */
struct sim_conf {
	u32	nranks;
	u32	groups;		/* subgroups of 2D TAR; 1: there is but one, that is 1D */
	u32	depth;		/* ops in flight */
	u32	bytes;		/* of every bucket, or of every second one if */
	u32	other_bytes;	/* this isn't 0: then of the others */
	u32	payload;
	u32	overhead;	/* bytes of a packet around its payload */
	u64	rate;		/* of all links, bit/s */
	u64	delay;		/* from a host to another */
	u32	port;		/* bytes that a port's queue holds */
	u32	train;		/* packets to a peer before the next one's turn */
	u32	egress;		/* own data packets that wait in the host's queue */
	u32	loss;		/* of any packet */
	u32	burst_begin;	/* Gilbert-Elliott: a link becomes bad, with a packet */
	u32	burst_end;	/* and good again */
	u32	burst_loss;	/* while it is bad */
	u32	black_every;	/* every such op the first chunk of any flow never arrives */
	u32	reorder;	/* packets that are held up */
	u64	reorder_ns;	/* by up to */
	u64	cross_pause;	/* cross traffic to each port: mean pause; 0: none */
	u64	cross_burst;	/* mean burst, Pareto, at 90 % of the rate */
	u64	gap;		/* from a result to the next post */
	u64	gap_jitter;	/* and up to this more */
	bool	obedient;	/* no gap after an op that is two or more behind */
	u64	skew;		/* first posts are apart by up to this */
	u64	deadline;	/* of every op; 0: by policy */
	u64	wait;		/* W; ORED_WAIT_POLICY: by policy */
	u32	reliable_every;	/* every such op is reliable; 0: none */
	u8	incast;		/* enum ored_incast, */
	u32	incast_fixed;	/* or this many; 0: by policy */
	bool	no_early;
	bool	no_learning;	/* Tq is known from the start, D stays */
	u32	bound_ppm;	/* then D / Tq */
	struct ored_bound_conf bound;
	u64	seed;
};

/* What has become of an op at one rank */
struct sim_result {
	u64	op;
	u64	posted;
	u64	elapsed;
	u64	took;		/* of it, since the op before it has ended */
	u64	allowed;	/* elapsed at the most, as known when it was posted */
	u8	limit;		/* enum ored_limit */
	bool	reliable;
	bool	frozen;		/* the host stood still meanwhile */
	u32	loss;		/* of all that peers had to send, ppm */
	u32	contributors;	/* ranks whose contribution to our shard is whole */
	u32	counted;	/* contributions in what we have, of N to each chunk, ppm */
};

struct sim;
struct sim_host;

/* What happened to packets of gradients, in all */
struct sim_stats {
	u64	sent, resent, dropped, late, refused, duplicates, control;
};

typedef void sim_done(struct sim *sim, u32 rank, const struct sim_result *result);
typedef void sim_act(struct sim *sim, u32 arg);

struct sim_conf sim_default(u32 nranks);
u64 sim_quiet(const struct sim_conf *conf);

struct sim *sim_new(const struct sim_conf *conf, sim_done *done, void *user);
void sim_free(struct sim *sim);
void *sim_user(struct sim *sim);
u64 sim_now(const struct sim *sim);
const struct sim_stats *sim_stats(const struct sim *sim);
const struct sim_conf *sim_conf(const struct sim *sim);

/* Before it runs: @rank has left @ops ops already. */
void sim_begin_at(struct sim *sim, u32 rank, u64 ops);
/* Runs until the given time, or until sim_stop(). */
void sim_run(struct sim *sim, u64 until);
void sim_stop(struct sim *sim);
/* Calls @act(sim, @arg) at a time. */
void sim_at(struct sim *sim, u64 at, sim_act *act, u32 arg);

/* A process stops, or goes on: its kernel answers all the same. */
void sim_process(struct sim *sim, u32 rank, bool runs);
/* A whole host stands still until a time; what comes meanwhile waits, some of it. */
void sim_freeze(struct sim *sim, u32 rank, u64 until);
void sim_kill(struct sim *sim, u32 rank);
/* Ranks of one mask and those of none hear only each other; 0: no partition. */
void sim_partition(struct sim *sim, u64 mask);
/* What one rank takes from a result to its next post. */
void sim_gap(struct sim *sim, u32 rank, u64 gap);
/* One host's link is so many times slower. */
void sim_slow(struct sim *sim, u32 rank, u32 times);
/* From now on a rank's packets say that it has posted and left @more ops more. */
void sim_lie(struct sim *sim, u32 rank, u64 more);
/* A rank posts nothing from op @op on, and stays. */
void sim_last(struct sim *sim, u32 rank, u64 op);
/* All packets of a tail are held up. */
void sim_reorder_tails(struct sim *sim, u64 by);
/* All packets of a rank that carry the tail mark are lost on their first way. */
void sim_lose_tails(struct sim *sim, u32 rank);

u64 sim_left(const struct sim *sim, u32 rank);
bool sim_counts(const struct sim *sim, u32 rank, u32 peer);
void sim_limits(const struct sim *sim, u32 rank, struct ored_limits *limits);
const struct ored_bound *sim_bound(const struct sim *sim, u32 rank);
const struct ored_early *sim_early(const struct sim *sim, u32 rank);

#endif /* ORED_UNIT_SIM_H */
