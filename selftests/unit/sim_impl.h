/* SPDX-License-Identifier: GPL-2.0 */
/* What the simulation's own files share: the network's side and the hosts'. */
#ifndef ORED_UNIT_SIM_IMPL_H
#define ORED_UNIT_SIM_IMPL_H

#include "sim.h"

#define SIM_NEVER	(~0ULL)
#define SIM_CONTROL	70	/* bytes of a packet without payload on the wire */

enum { SIM_SCATTER, SIM_ACROSS, SIM_GATHER, SIM_STAGES };

enum sim_kind { SIM_DATA, SIM_ACK, SIM_POLL, SIM_MARK };

struct sim_packet {
	struct sim_packet *free;	/* the next one that isn't used */
	u8	kind, stage, src, dst;
	bool	request, resent, duplicate, tail, gone;
	u32	size;			/* bytes on the wire */
	u32	chunk, clock, base, nbits;
	u64	op, posted, left;
	u16	tc;			/* t_C sample of op tc_op */
	u64	tc_op;
	u32	incast;
	u64	sum;			/* ranks whose contributions it holds */
	u8	bits[ORED_ACK_BITS / 8];
};

enum sim_event_type { SIM_DEPART, SIM_ARRIVE, SIM_TIMER, SIM_POST, SIM_CROSS, SIM_ACT };

struct sim_event {
	u64	at, serial;
	enum sim_event_type type;
	u32	arg;
	union {
		struct sim_packet *packet;
		sim_act *act;
	};
};

struct sim_link {
	struct ored_standing standing;
	struct ored_rate rate;
	u32	inflight, unasked;
	u64	pto_at, answer_at;
	u64	tc, tc_op;
	u32	incast;
	bool	bad;			/* Gilbert-Elliott, towards the peer */
};

struct sim_flows {
	struct ored_chunkmap rx[SIM_STAGES];
	struct ored_flow tx[SIM_STAGES];
	u32	next[SIM_STAGES];
	u32	got[SIM_STAGES];	/* chunks counted */
	u64	counted;		/* contributions in those of the gather */
};

enum sim_slot_state { SIM_OPEN, SIM_POSTED, SIM_ENDED };

struct sim_slot {
	u64	op;
	enum sim_slot_state state;
	bool	reliable;
	u32	stage;			/* that takes chunks now; those before don't */
	struct ored_map map;
	struct ored_term term;
	u64	posted_at, seal_last, need, ask_at;
	struct ored_limits limits;
	u64	promised;		/* when it has ended for certain */
	/* By chunk of the own shard: */
	u64	*in;			/* contributors, of the subgroup */
	u64	*sum;			/* those whose contributions are in */
	u64	*across;		/* ranks of the same place whose sums are in */
	bool	*reduced, *whole;	/* the subgroup's sum is there, that of all is */
	u32	*order, *gather;	/* in which order that was so */
	u32	ready, nwhole;
	u64	tails[SIM_STAGES];
	struct sim_flows *flows;	/* by peer */
};

struct sim_host {
	u32	rank;
	bool	dead, stopped, blocked, post_pending, more;
	u64	frozen_until, thawed_at;
	u32	held;
	u64	gap, last, lie;
	u32	slower;
	u64	posted, left;
	u64	timer_at, promised, left_at;
	u64	ask_at;			/* blocked: when to ask who holds the slot */
	u64	egress_free;
	u32	queued;
	u64	train_op;
	u32	train_stage, train_peer, train_left;
	u32	turn[SIM_STAGES];
	u64	fastest;
	u16	tc;
	u64	tc_op;
	bool	disturbed;		/* loss seen by the receiver in this op */
	struct ored_bound bound;
	struct ored_early early;
	struct ored_incast_state incast;
	struct sim_link *link;
	struct sim_slot *slot;
};

struct sim_port {
	u64	free_at, burst_until;
};

struct sim {
	struct sim_conf conf;
	struct ored_tar2d tar;		/* 1D is one subgroup */
	u32	circle;			/* a rank and those it exchanges packets with */
	u64	same_group, same_place;	/* ranks of the first one, and of place 0 */
	sim_done *done;
	void	*user;
	u64	now, serial, random;
	bool	stop;
	u64	cut;			/* partition */
	u64	hold_tails;
	u64	lose_from;		/* ranks whose tails are lost */
	struct sim_event *heap;
	u32	events, room;
	struct sim_packet *spare;
	struct sim_host *host;
	struct sim_port *port;
	u32	nslots;
	struct sim_stats stats;
};

/* sim_net.c */
void sim_push(struct sim *sim, u64 at, enum sim_event_type type, u32 arg,
	      struct sim_packet *packet);
struct sim_packet *sim_packet(struct sim *sim, struct sim_host *h, u32 dst,
			      enum sim_kind kind);
void sim_send(struct sim *sim, struct sim_host *h, struct sim_packet *p);
u32 sim_below(struct sim *sim, u32 n);
bool sim_chance(struct sim *sim, u32 ppm);
u64 sim_wire_ns(const struct sim_conf *conf, u32 bytes);

/* sim_host.c */
void sim_host_init(struct sim *sim, u32 rank);
void sim_host_free(struct sim *sim, u32 rank);
void sim_host_packet(struct sim *sim, struct sim_host *h, const struct sim_packet *p);
void sim_host_timer(struct sim *sim, struct sim_host *h);
void sim_host_post(struct sim *sim, struct sim_host *h);
void sim_host_pump(struct sim *sim, struct sim_host *h);

#endif /* ORED_UNIT_SIM_IMPL_H */
