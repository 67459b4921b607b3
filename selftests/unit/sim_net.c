// SPDX-License-Identifier: GPL-2.0
/* The network of the simulation: events, links, ports, loss, disturbances. */

#include "sim_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define HELD_MOST	256	/* packets that wait at a host that stands still */
#define CROSS_BYTES	1514
#define CROSS_PERCENT	90

/* xorshift64*, as in tap.h */
static u64 random64(struct sim *sim)
{
	sim->random ^= sim->random >> 12;
	sim->random ^= sim->random << 25;
	sim->random ^= sim->random >> 27;
	return sim->random * 0x2545f4914f6cdd1dULL;
}

u32 sim_below(struct sim *sim, u32 n)
{
	return (u32)((random64(sim) >> 32) * n >> 32);
}

bool sim_chance(struct sim *sim, u32 ppm)
{
	return ppm && sim_below(sim, ORED_PPM) < ppm;
}

static u64 random_ns(struct sim *sim, u64 most)
{
	return most ? random64(sim) % most : 0;
}

/* Above 0, up to 1 */
static double uniform(struct sim *sim)
{
	return ((double)(random64(sim) >> 11) + 1) / 9007199254740992.0;
}

static bool earlier(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->serial < b->serial;
}

static void insert(struct sim *sim, struct sim_event event)
{
	u32 i = sim->events++;

	if (sim->events > sim->room) {
		sim->room = sim->room * 2 + 256;
		sim->heap = realloc(sim->heap, sim->room * sizeof(*sim->heap));
	}
	event.serial = sim->serial++;
	for (; i && earlier(&event, &sim->heap[(i - 1) / 2]); i = (i - 1) / 2)
		sim->heap[i] = sim->heap[(i - 1) / 2];
	sim->heap[i] = event;
}

static struct sim_event pop(struct sim *sim)
{
	struct sim_event first = sim->heap[0], *last = &sim->heap[--sim->events];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < sim->events) {
		if (child + 1 < sim->events &&
		    earlier(&sim->heap[child + 1], &sim->heap[child]))
			child++;
		if (!earlier(&sim->heap[child], last))
			break;
		sim->heap[i] = sim->heap[child];
		i = child;
	}
	sim->heap[i] = *last;
	return first;
}

void sim_push(struct sim *sim, u64 at, enum sim_event_type type, u32 arg,
	      struct sim_packet *packet)
{
	insert(sim, (struct sim_event){ .at = at, .type = type, .arg = arg, .packet = packet });
}

void sim_at(struct sim *sim, u64 at, sim_act *act, u32 arg)
{
	insert(sim, (struct sim_event){ .at = at, .type = SIM_ACT, .arg = arg, .act = act });
}

u64 sim_wire_ns(const struct sim_conf *conf, u32 bytes)
{
	return (u64)bytes * 8 * SIM_S / conf->rate;
}

/* A packet of @h, with what all of them carry */
struct sim_packet *sim_packet(struct sim *sim, struct sim_host *h, u32 dst, enum sim_kind kind)
{
	struct sim_packet *p = sim->spare;

	if (p)
		sim->spare = p->free;
	else
		p = malloc(sizeof(*p));
	memset(p, 0, offsetof(struct sim_packet, bits));
	p->kind = (u8)kind;
	p->src = (u8)h->rank;
	p->dst = (u8)dst;
	p->size = SIM_CONTROL;
	p->clock = (u32)(sim->now / 1000);
	p->posted = h->posted + h->lie;
	p->left = h->left + h->lie;
	p->tc = h->tc;
	p->tc_op = h->tc_op;
	p->incast = h->incast.own;
	return p;
}

static void drop_packet(struct sim *sim, struct sim_packet *p)
{
	p->free = sim->spare;
	sim->spare = p;
}

/* Into the host's queue to its link */
void sim_send(struct sim *sim, struct sim_host *h, struct sim_packet *p)
{
	u64 start = max(h->egress_free, sim->now);

	h->egress_free = start + sim_wire_ns(&sim->conf, p->size) * h->slower;
	if (p->kind == SIM_DATA) {
		h->queued++;
		sim->stats.sent++;
		sim->stats.resent += p->resent;
	} else {
		sim->stats.control++;
	}
	sim_push(sim, h->egress_free, SIM_DEPART, h->rank, p);
}

/* The Gilbert-Elliott model of the link from @h to a peer, a step per packet */
static bool lost_in_burst(struct sim *sim, struct sim_link *l)
{
	if (!sim->conf.burst_begin)
		return false;
	if (sim_chance(sim, l->bad ? sim->conf.burst_end : sim->conf.burst_begin))
		l->bad = !l->bad;
	return l->bad && sim_chance(sim, sim->conf.burst_loss);
}

static bool lost(struct sim *sim, struct sim_host *h, const struct sim_packet *p)
{
	bool cut = (sim->cut >> p->src & 1) != (sim->cut >> p->dst & 1);

	if (sim->lose_from >> p->src & 1 && p->kind == SIM_DATA && p->tail && !p->resent)
		return true;
	if (sim->conf.black_every && p->op % sim->conf.black_every == sim->conf.black_every - 1 &&
	    p->kind == SIM_DATA && !p->chunk)
		return true;
	return h->dead || cut || sim_chance(sim, sim->conf.loss) ||
	       lost_in_burst(sim, &h->link[p->dst]);
}

/* Does a packet fit into the queue of a port? Then it is in it. */
static bool enqueue(struct sim *sim, u32 dst, u32 size)
{
	struct sim_port *port = &sim->port[dst];
	u64 backlog = port->free_at > sim->now ? port->free_at - sim->now : 0;
	u64 wire = sim_wire_ns(&sim->conf, size) * sim->host[dst].slower;

	if (backlog + wire > sim_wire_ns(&sim->conf, sim->conf.port) * sim->host[dst].slower)
		return false;
	port->free_at = sim->now + backlog + wire;
	return true;
}

/*
 * A packet has left its host. It reaches the switch after half of the way, but
 * all do that, so that it may as well be looked at now.
 */
static void depart(struct sim *sim, u32 rank, struct sim_packet *p)
{
	struct sim_host *h = &sim->host[rank];
	u64 at;

	if (p->kind == SIM_DATA)
		h->queued--;
	if (lost(sim, h, p) || !enqueue(sim, p->dst, p->size)) {
		sim->stats.dropped += p->kind == SIM_DATA;
		drop_packet(sim, p);
	} else {
		at = sim->port[p->dst].free_at + sim->conf.delay;
		if (sim_chance(sim, sim->conf.reorder))
			at += random_ns(sim, sim->conf.reorder_ns);
		if (p->tail && p->kind == SIM_DATA)
			at += random_ns(sim, sim->hold_tails);
		sim_push(sim, at, SIM_ARRIVE, p->dst, p);
	}
	if (!h->frozen_until && !h->dead)
		sim_host_pump(sim, h);
}

static void arrive(struct sim *sim, u32 rank, struct sim_packet *p)
{
	struct sim_host *h = &sim->host[rank];

	if (h->frozen_until && h->held < HELD_MOST) {
		h->held++;
		sim_push(sim, h->frozen_until, SIM_ARRIVE, rank, p);
		return;
	}
	if (!h->dead && !h->frozen_until)
		sim_host_packet(sim, h, p);
	drop_packet(sim, p);
}

/* Cross traffic to a port: packets at 90 % of its rate during bursts */
static void cross(struct sim *sim, u32 dst)
{
	struct sim_port *port = &sim->port[dst];
	u64 wire = sim_wire_ns(&sim->conf, CROSS_BYTES);
	double pause, burst;

	if (sim->now < port->burst_until) {
		enqueue(sim, dst, CROSS_BYTES);
		sim_push(sim, sim->now + wire * 100 / CROSS_PERCENT, SIM_CROSS, dst, NULL);
		return;
	}
	pause = -log(uniform(sim)) * (double)sim->conf.cross_pause;
	/* Pareto of shape 1.5: the mean is three times the least. */
	burst = (double)sim->conf.cross_burst / 3 * pow(uniform(sim), -2.0 / 3);
	port->burst_until = sim->now + (u64)pause + (u64)fmin(burst, 60.0 * SIM_S);
	sim_push(sim, sim->now + (u64)pause, SIM_CROSS, dst, NULL);
}

static void happen(struct sim *sim, const struct sim_event *e)
{
	struct sim_host *h = e->type == SIM_ACT ? NULL : &sim->host[e->arg];

	switch (e->type) {
	case SIM_DEPART:
		depart(sim, e->arg, e->packet);
		break;
	case SIM_ARRIVE:
		arrive(sim, e->arg, e->packet);
		break;
	case SIM_CROSS:
		cross(sim, e->arg);
		break;
	case SIM_ACT:
		e->act(sim, e->arg);
		break;
	case SIM_TIMER:
		if (h->frozen_until)
			sim_push(sim, h->frozen_until, SIM_TIMER, e->arg, NULL);
		else if (!h->dead && h->timer_at <= sim->now)
			sim_host_timer(sim, h);
		break;
	case SIM_POST:
		if (h->frozen_until)
			sim_push(sim, h->frozen_until, SIM_POST, e->arg, NULL);
		else if (!h->dead)
			sim_host_post(sim, h);
		break;
	}
}

void sim_run(struct sim *sim, u64 until)
{
	struct sim_event e;

	sim->stop = false;
	while (!sim->stop && sim->events && sim->heap[0].at <= until) {
		e = pop(sim);
		sim->now = e.at;
		happen(sim, &e);
	}
	if (!sim->stop)
		sim->now = max(sim->now, until);
}

void sim_stop(struct sim *sim)
{
	sim->stop = true;
}

/* An op's time when nothing is in its way: the wire's, all stages */
u64 sim_quiet(const struct sim_conf *conf)
{
	u32 bytes = max(conf->bytes, conf->other_bytes), size = conf->nranks / conf->groups;
	u32 chunks = DIV_ROUND_UP(DIV_ROUND_UP(bytes, conf->payload), size);
	u64 packets = (u64)chunks * (2 * (size - 1) + conf->groups - 1);

	return packets * sim_wire_ns(conf, conf->payload + conf->overhead) +
	       (conf->groups > 1 ? 3 : 2) * conf->delay;
}

struct sim_conf sim_default(u32 nranks)
{
	return (struct sim_conf){
		.nranks = nranks,
		.groups = 1,
		.depth = 1,
		.bytes = nranks * 6 * 1432,
		.payload = 1432,
		.overhead = 98,
		.rate = 20000000,
		.delay = 100000,
		.port = 65536,
		.train = 1,
		.egress = 4,
		.gap = 20 * SIM_MS,
		.cross_burst = 80 * SIM_MS,
		.wait = ORED_WAIT_POLICY,
		.bound = ORED_BOUND_DEFAULT,
		.bound_ppm = 1500000,
		.seed = 1,
	};
}

static void start_cross(struct sim *sim)
{
	u32 i;

	if (!sim->conf.cross_pause)
		return;
	for (i = 0; i < sim->conf.nranks; i++)
		sim_push(sim, random_ns(sim, sim->conf.cross_pause), SIM_CROSS, i, NULL);
}

struct sim *sim_new(const struct sim_conf *conf, sim_done *done, void *user)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	u32 i;

	if (conf->nranks < 2 || conf->nranks > SIM_RANKS || conf->depth > ORED_MAX_DEPTH ||
	    ored_tar2d_init(&sim->tar, conf->nranks, conf->groups)) {
		fprintf(stderr, "sim: %u ranks in %u subgroups, depth %u?\n", conf->nranks,
			conf->groups, conf->depth);
		abort();
	}
	sim->conf = *conf;
	sim->circle = sim->tar.size + sim->tar.groups - 1;
	for (i = 0; i < sim->tar.size; i++)
		sim->same_group |= 1ULL << i;
	for (i = 0; i < sim->tar.groups; i++)
		sim->same_place |= 1ULL << i * sim->tar.size;
	sim->done = done;
	sim->user = user;
	sim->random = (conf->seed + 1) * 0x9e3779b97f4a7c15ULL | 1;
	sim->nslots = 2 * conf->depth + 1;
	sim->port = calloc(conf->nranks, sizeof(*sim->port));
	sim->host = calloc(conf->nranks, sizeof(*sim->host));
	for (i = 0; i < conf->nranks; i++) {
		sim_host_init(sim, i);
		sim_push(sim, 1 + random_ns(sim, conf->skew), SIM_POST, i, NULL);
	}
	start_cross(sim);
	return sim;
}

void sim_free(struct sim *sim)
{
	struct sim_packet *p;
	u32 i;

	for (i = 0; i < sim->events; i++)
		if (sim->heap[i].type == SIM_DEPART || sim->heap[i].type == SIM_ARRIVE)
			drop_packet(sim, sim->heap[i].packet);
	while ((p = sim->spare)) {
		sim->spare = p->free;
		free(p);
	}
	for (i = 0; i < sim->conf.nranks; i++)
		sim_host_free(sim, i);
	free(sim->heap);
	free(sim->port);
	free(sim->host);
	free(sim);
}

void *sim_user(struct sim *sim)
{
	return sim->user;
}

u64 sim_now(const struct sim *sim)
{
	return sim->now;
}

const struct sim_stats *sim_stats(const struct sim *sim)
{
	return &sim->stats;
}

const struct sim_conf *sim_conf(const struct sim *sim)
{
	return &sim->conf;
}

void sim_process(struct sim *sim, u32 rank, bool runs)
{
	struct sim_host *h = &sim->host[rank];

	h->stopped = !runs;
	if (runs && h->post_pending)
		sim_push(sim, sim->now, SIM_POST, rank, NULL);
	h->post_pending = false;
}

static void thaw(struct sim *sim, u32 rank)
{
	sim->host[rank].frozen_until = 0;
	sim->host[rank].thawed_at = sim->now;
	sim->host[rank].held = 0;
	sim_push(sim, sim->now, SIM_TIMER, rank, NULL);
}

void sim_freeze(struct sim *sim, u32 rank, u64 until)
{
	sim->host[rank].frozen_until = until;
	sim_at(sim, until, thaw, rank);
}

void sim_kill(struct sim *sim, u32 rank)
{
	sim->host[rank].dead = true;
}

void sim_partition(struct sim *sim, u64 mask)
{
	sim->cut = mask;
}

void sim_gap(struct sim *sim, u32 rank, u64 gap)
{
	sim->host[rank].gap = gap;
}

void sim_slow(struct sim *sim, u32 rank, u32 times)
{
	sim->host[rank].slower = times;
}

void sim_lie(struct sim *sim, u32 rank, u64 more)
{
	sim->host[rank].lie = more;
}

void sim_last(struct sim *sim, u32 rank, u64 op)
{
	sim->host[rank].last = op;
}

void sim_reorder_tails(struct sim *sim, u64 by)
{
	sim->hold_tails = by;
}

void sim_lose_tails(struct sim *sim, u32 rank)
{
	sim->lose_from |= 1ULL << rank;
}
