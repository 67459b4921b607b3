// SPDX-License-Identifier: GPL-2.0
/*
 * A host of the simulation: what the kernel does with posts, packets and time,
 * around the decisions of the core.
 */

#include "sim_impl.h"

#include <stdlib.h>

#define ACK_EVERY	16	/* packets, if no ACK is asked for sooner */
#define ASK_EVERY	8	/* packets, after which an ACK is asked for */
#define QUESTION_GAP	(20 * SIM_MS)	/* between questions about a reliable op */
#define ANSWER_GAP	(10 * SIM_MS)	/* between unasked answers to a peer */
#define BEAT		(100 * SIM_MS)	/* a peer that isn't heard for so long is asked */

static struct sim_slot *slot_of(struct sim *sim, struct sim_host *h, u64 op)
{
	struct sim_slot *slot = &h->slot[op % sim->nslots];

	return slot->op == op ? slot : NULL;
}

static bool is_reliable(const struct sim *sim, u64 op)
{
	u32 every = sim->conf.reliable_every;

	return every && op % every == every - 1;
}

static u64 bit(u32 rank)
{
	return 1ULL << rank;
}

/* Ranks that it has something for, or something from */
static bool neighbours(const struct sim *sim, u32 a, u32 b)
{
	return a != b && (a / sim->tar.size == b / sim->tar.size ||
			  a % sim->tar.size == b % sim->tar.size);
}

/* Chunks of a rank's shard */
static u32 shard_of(const struct sim *sim, const struct sim_slot *slot, u32 rank)
{
	return ored_map_count(&slot->map, rank % sim->tar.size);
}

/* Chunks that one rank sends another in a stage */
static u32 chunks_to(const struct sim *sim, const struct sim_slot *slot, u32 from, u32 to,
		     u32 stage)
{
	bool crosses = from / sim->tar.size != to / sim->tar.size, across = stage == SIM_ACROSS;

	if (!neighbours(sim, from, to) || crosses != across)
		return 0;
	return shard_of(sim, slot, stage == SIM_SCATTER ? to : from);
}

/* Turns of a stage, one a peer, and how many there are before it */
static u32 turns(const struct sim *sim, u32 stage)
{
	return stage == SIM_ACROSS ? sim->tar.groups - 1 : sim->tar.size - 1;
}

static u32 turns_before(const struct sim *sim, u32 stage)
{
	return (stage > SIM_SCATTER ? sim->tar.size - 1 : 0) +
	       (stage > SIM_ACROSS ? sim->tar.groups - 1 : 0);
}

/* Whom it serves in a turn of a stage: what the core's schedule says */
static u32 peer_of(const struct sim *sim, u32 rank, u32 stage, u32 turn)
{
	struct ored_tar2d_turn t;

	ored_tar2d_turn(&sim->tar, rank, turns_before(sim, stage) + turn, &t);
	return t.to;
}

/*
 * When the stage that takes contributions now takes no more: of the time that
 * there is each stage has as much as it has turns.
 */
static u64 seal_at(const struct sim *sim, const struct sim_slot *slot)
{
	u64 at = ored_term_seal_at(&slot->term);

	if (sim->tar.groups == 1 || at == SIM_NEVER)
		return at;
	return at - slot->term.limits.seal + slot->term.limits.bound *
	       turns_before(sim, slot->stage + 1) / ored_tar2d_rounds(&sim->tar);
}

static u64 published(const struct sim *sim, const struct sim_host *h)
{
	struct ored_limits limits;

	ored_bound_limits(&h->bound, sim->conf.bytes, sim->conf.deadline, sim->conf.wait, &limits);
	return ored_limits_published(&limits);
}

/* --- timer ---------------------------------------------------------------- */

static void arm(struct sim *sim, struct sim_host *h, u64 at)
{
	if (at >= h->timer_at)
		return;
	h->timer_at = max(at, sim->now);
	sim_push(sim, h->timer_at, SIM_TIMER, h->rank, NULL);
}

/* The longest round trip to a peer that is waited for, with its variation */
static u64 round_trip(struct sim *sim, struct sim_host *h)
{
	u32 r, most = 0;

	for (r = 0; r < sim->conf.nranks; r++)
		if (neighbours(sim, h->rank, r) && ored_standing_counts(&h->link[r].standing))
			most = max(most, h->link[r].rate.srtt_us + 4 * h->link[r].rate.rttvar_us);
	return most * 1000ULL;
}

/* What it may take until a peer has asked about a lost packet and sent it again */
static u64 repair_time(struct sim *sim, struct sim_host *h)
{
	u32 r, most = 0;

	for (r = 0; r < sim->conf.nranks; r++)
		if (neighbours(sim, h->rank, r) && ored_standing_counts(&h->link[r].standing) &&
		    h->link[r].rate.srtt_us)
			most = max(most, ored_rate_asks_within(&h->link[r].rate) +
					 2 * h->link[r].rate.srtt_us);
	return most * 1000ULL;
}

/* Has every live sender that isn't complete shown its tail? */
static bool tails_seen(struct sim *sim, struct sim_host *h, struct sim_slot *slot, u32 stage)
{
	u64 span = published(sim, h);
	u32 r;

	for (r = 0; r < sim->conf.nranks; r++) {
		struct ored_chunkmap *map = &slot->flows[r].rx[stage];

		if (r == h->rank || !(slot->need & bit(r)) || slot->tails[stage] & bit(r))
			continue;
		if (map->count && !ored_chunkmap_complete(map) &&
		    ored_standing_live(&h->link[r].standing, sim->now, span))
			return false;
	}
	return true;
}

static u64 early_at(struct sim *sim, struct sim_host *h, struct sim_slot *slot)
{
	u32 stage = slot->stage;
	u64 last = stage ? max(slot->term.useful, slot->seal_last) : slot->term.useful;

	if (sim->conf.no_early || slot->reliable || !slot->tails[stage] ||
	    !tails_seen(sim, h, slot, stage))
		return SIM_NEVER;
	return ored_early_at(&h->early, ored_bound_quiet(&h->bound, slot->map.bytes), last,
			     round_trip(sim, h), true);
}

/* When a posted op needs its host next */
static u64 slot_at(struct sim *sim, struct sim_host *h, struct sim_slot *slot)
{
	u64 at;

	if (slot->state != SIM_POSTED)
		return SIM_NEVER;
	if (slot->reliable)
		return slot->ask_at;
	if (slot->op != h->left)
		return SIM_NEVER;
	at = min(ored_term_end_at(&slot->term), early_at(sim, h, slot));
	return slot->stage == SIM_GATHER ? at : min(at, seal_at(sim, slot));
}

static void rearm(struct sim *sim, struct sim_host *h)
{
	u32 i;

	for (i = 0; i < sim->nslots; i++)
		arm(sim, h, slot_at(sim, h, &h->slot[i]));
	for (i = 0; i < sim->conf.nranks; i++)
		arm(sim, h, h->link[i].pto_at);
	arm(sim, h, h->ask_at);
}

/* --- ops ------------------------------------------------------------------ */

static void flows_end(struct sim *sim, struct sim_host *h, struct sim_slot *slot, u32 peer)
{
	struct sim_link *l = &h->link[peer];
	u32 stage;

	(void)sim;
	if (slot->state == SIM_OPEN)
		return;
	for (stage = 0; stage < SIM_STAGES; stage++) {
		l->inflight -= ored_flow_stop(&slot->flows[peer].tx[stage]);
		slot->flows[peer].next[stage] = slot->flows[peer].tx[stage].count;
	}
	if (!l->inflight)
		l->pto_at = SIM_NEVER;
}

/* Opens a slot for an op: nothing has come, nothing is sent. */
static void open_slot(struct sim *sim, struct sim_host *h, struct sim_slot *slot, u64 op)
{
	u32 bytes = op & 1 && sim->conf.other_bytes ? sim->conf.other_bytes : sim->conf.bytes;
	u32 r, own, stage;

	if (slot->op != ~0ULL)
		for (r = 0; r < sim->conf.nranks; r++)
			if (r != h->rank)
				flows_end(sim, h, slot, r);
	slot->op = op;
	slot->state = SIM_OPEN;
	slot->reliable = is_reliable(sim, op);
	slot->stage = SIM_SCATTER;
	slot->ready = 0;
	slot->nwhole = 0;
	slot->need = 0;
	memset(slot->tails, 0, sizeof(slot->tails));
	ored_map_init(&slot->map, bytes, sim->conf.payload, sim->tar.size);
	own = shard_of(sim, slot, h->rank);
	memset(slot->in, 0, own * sizeof(*slot->in));
	memset(slot->sum, 0, own * sizeof(*slot->sum));
	memset(slot->across, 0, own * sizeof(*slot->across));
	memset(slot->reduced, 0, own * sizeof(*slot->reduced));
	memset(slot->whole, 0, own * sizeof(*slot->whole));
	for (r = 0; r < sim->conf.nranks; r++) {
		struct sim_flows *f = &slot->flows[r];

		memset(f->next, 0, sizeof(f->next));
		memset(f->got, 0, sizeof(f->got));
		f->counted = 0;
		for (stage = 0; stage < SIM_STAGES; stage++) {
			ored_chunkmap_reset(&f->rx[stage], f->rx[stage].room);
			f->rx[stage].count = chunks_to(sim, slot, r, h->rank, stage);
			ored_flow_start(&f->tx[stage], chunks_to(sim, slot, h->rank, r, stage));
		}
	}
}

/* A chunk of the own shard has the sums of all subgroups, or of those there are. */
static void finish(struct sim_host *h, struct sim_slot *slot, u32 chunk)
{
	slot->whole[chunk] = true;
	slot->gather[slot->nwhole++] = chunk;
	h->more = true;
}

static void added(struct sim *sim, struct sim_host *h, struct sim_slot *slot, u32 chunk)
{
	u64 wanted = (slot->need & sim->same_place << h->rank % sim->tar.size) | bit(h->rank);

	if (!slot->whole[chunk] &&
	    (slot->stage > SIM_ACROSS || (slot->across[chunk] & wanted) == wanted))
		finish(h, slot, chunk);
}

/* A chunk of the own shard has the contributions of the subgroup, as far as they go. */
static void reduce(struct sim *sim, struct sim_host *h, struct sim_slot *slot, u32 chunk)
{
	slot->reduced[chunk] = true;
	slot->order[slot->ready++] = chunk;
	slot->sum[chunk] |= slot->in[chunk];
	slot->across[chunk] |= bit(h->rank);
	h->more = true;
	added(sim, h, slot, chunk);
}

/* A contribution is in: are they all, of those that are waited for? */
static void contributed(struct sim *sim, struct sim_host *h, struct sim_slot *slot, u32 chunk)
{
	u64 wanted = (slot->need & sim->same_group << h->rank / sim->tar.size * sim->tar.size) |
		     bit(h->rank);

	if (slot->state == SIM_POSTED && !slot->reduced[chunk] &&
	    (slot->in[chunk] & wanted) == wanted)
		reduce(sim, h, slot, chunk);
}

/* The stage takes no more: what isn't added yet is, without the missing. */
static void seal(struct sim *sim, struct sim_host *h, struct sim_slot *slot)
{
	u32 chunk, own = shard_of(sim, slot, h->rank);

	slot->stage = sim->tar.groups == 1 ? SIM_GATHER : slot->stage + 1;
	slot->seal_last = sim->now;
	for (chunk = 0; chunk < own; chunk++) {
		if (!slot->reduced[chunk])
			reduce(sim, h, slot, chunk);
		added(sim, h, slot, chunk);
	}
}

/* What peers had to send and have sent, of those in @of: chunks */
static void tally(struct sim *sim, struct sim_host *h, struct sim_slot *slot, u64 of,
		  u32 *expected, u32 *received)
{
	u32 r, stage;

	*expected = 0;
	*received = 0;
	for (r = 0; r < sim->conf.nranks; r++) {
		struct sim_flows *f = &slot->flows[r];

		if (r == h->rank || !(of & bit(r)))
			continue;
		for (stage = 0; stage < SIM_STAGES; stage++) {
			*expected += f->rx[stage].count;
			*received += f->got[stage];
		}
	}
}

/* Contributions that are in what the rank has in the end, of all that could be: ppm */
static u32 counted(struct sim *sim, struct sim_host *h, struct sim_slot *slot)
{
	u32 r, chunk, own = shard_of(sim, slot, h->rank), missing;
	u64 in = 0;

	for (chunk = 0; chunk < own; chunk++)
		in += hweight64(slot->sum[chunk]);
	for (r = 0; r < sim->conf.nranks; r++) {
		if (!slot->flows[r].rx[SIM_GATHER].count)
			continue;
		/* Where nothing came, the own value stands in. */
		missing = slot->flows[r].rx[SIM_GATHER].count - slot->flows[r].got[SIM_GATHER];
		in += slot->flows[r].counted + missing;
	}
	return (u32)(in * ORED_PPM / ((u64)slot->map.chunks * sim->conf.nranks));
}

static u32 loss_of(struct sim *sim, struct sim_host *h, struct sim_slot *slot, u64 of)
{
	u32 expected, received;

	tally(sim, h, slot, of, &expected, &received);
	return expected ? (u32)((u64)(expected - received) * ORED_PPM / expected) : 0;
}

/* Those that are waited for and have sent something: more time may help them. */
static u64 present(struct sim *sim, struct sim_slot *slot)
{
	u64 ranks = 0;
	u32 r;

	for (r = 0; r < sim->conf.nranks; r++)
		if (slot->need & bit(r) &&
		    slot->flows[r].got[SIM_SCATTER] + slot->flows[r].got[SIM_ACROSS] +
		    slot->flows[r].got[SIM_GATHER])
			ranks |= bit(r);
	return ranks;
}

/* What the bound learns from an op; @of: those who have sent something */
static void steer(struct sim *sim, struct sim_host *h, struct sim_slot *slot,
		  const struct sim_result *result, u64 of)
{
	u32 loss = loss_of(sim, h, slot, of);
	bool complete = result->limit == ORED_LIMIT_COMPLETE && !loss && of == slot->need;

	if (!ored_quorum(hweight64(of) + 1, sim->circle) || sim->conf.no_learning)
		return;
	if (slot->reliable || sim->conf.deadline) {
		if (complete)
			ored_bound_sample(&h->bound, slot->map.bytes, result->took);
	} else if (result->limit == ORED_LIMIT_BEHIND) {
		ored_bound_behind(&h->bound, loss);
	} else {
		ored_bound_ended(&h->bound, slot->map.bytes, result->took, loss, complete);
	}
}

static void learn(struct sim *sim, struct sim_host *h, struct sim_slot *slot,
		  const struct sim_result *result)
{
	u64 of = present(sim, slot), quiet = ored_bound_quiet(&h->bound, slot->map.bytes);
	u32 loss = loss_of(sim, h, slot, of), expected, received, r;
	u64 samples[SIM_RANKS] = {};

	if (result->limit == ORED_LIMIT_COMPLETE)
		h->fastest = h->fastest ? min(h->fastest, result->elapsed) : result->elapsed;
	steer(sim, h, slot, result, of);
	for (r = 0; r < sim->conf.nranks; r++)
		if (slot->op && h->link[r].tc_op == slot->op - 1)
			samples[r] = h->link[r].tc;
	if (slot->op && h->tc_op == slot->op - 1)
		samples[h->rank] = ored_early_unpack(h->tc);
	ored_early_learn(&h->early, samples, sim->conf.nranks, quiet);
	if (result->limit != ORED_LIMIT_BEHIND && of)
		ored_early_adapt(&h->early, loss);
	tally(sim, h, slot, slot->need, &expected, &received);
	h->tc = ored_early_pack(ored_early_sample(result->took, slot->limits.bound,
						  received, expected, result->limit));
	h->tc_op = slot->op;
	ored_incast_ended(&h->incast, !h->disturbed && result->limit == ORED_LIMIT_COMPLETE);
	h->disturbed = false;
}

/* Slots that nobody needs any more are opened for the ops after them. */
static void slide(struct sim *sim, struct sim_host *h)
{
	u64 span = published(sim, h);
	u32 i, r;

	for (i = 0; i < sim->nslots; i++) {
		struct sim_slot *slot = &h->slot[i];
		bool held = false;

		while (slot->op + sim->conf.depth < h->left && !held) {
			for (r = 0; slot->reliable && r < sim->conf.nranks; r++)
				held |= neighbours(sim, h->rank, r) &&
					h->link[r].standing.left <= slot->op &&
					ored_standing_live(&h->link[r].standing, sim->now, span);
			if (!held)
				open_slot(sim, h, slot, slot->op + sim->nslots);
		}
	}
}

static void unblock(struct sim *sim, struct sim_host *h)
{
	if (!h->blocked)
		return;
	h->blocked = false;
	h->ask_at = SIM_NEVER;
	sim_push(sim, sim->now, SIM_POST, h->rank, NULL);
}

static u64 next_gap(struct sim *sim, struct sim_host *h)
{
	return h->gap + (sim->conf.gap_jitter ?
			 sim_below(sim, (u32)(sim->conf.gap_jitter / 1000)) * 1000ULL : 0);
}

/* What is known of the peers tells of a posted op. */
static void consider(struct sim *sim, struct sim_host *h, struct sim_slot *slot)
{
	u64 span = published(sim, h);
	bool all = true;
	u32 r;

	if (slot->state != SIM_POSTED || slot->reliable || slot->op != h->left)
		return;
	for (r = 0; r < sim->conf.nranks; r++) {
		const struct ored_standing *s = &h->link[r].standing;

		if (!neighbours(sim, h->rank, r))
			continue;
		if (slot->need & bit(r) && s->posted <= slot->op)
			all = false;
		if (s->left > slot->op && ored_standing_live(s, sim->now, span))
			ored_term_left(&slot->term, s->left - slot->op,
				       s->left > h->posted, sim->now);
	}
	if (all)
		ored_term_posted(&slot->term, sim->now);
	arm(sim, h, slot_at(sim, h, slot));
}

/* Terms come one after another: that of an op begins when those before it have ended. */
static void begin_term(struct sim *sim, struct sim_host *h)
{
	struct sim_slot *slot = slot_of(sim, h, h->left);

	if (!slot || slot->state != SIM_POSTED || slot->reliable)
		return;
	ored_term_begin(&slot->term, &slot->limits, sim->now);
	slot->term.limits.grace = ored_term_grace(&slot->limits, repair_time(sim, h));
	consider(sim, h, slot);
}

/* When an op has ended for certain, if all before it do */
static void promise(struct sim_host *h, struct sim_slot *slot)
{
	if (slot->op == h->left)
		h->promised = slot->posted_at;
	if (slot->reliable || h->promised == SIM_NEVER)
		h->promised = SIM_NEVER;
	else
		h->promised = max(h->promised, slot->posted_at) +
			      ored_limits_published(&slot->limits);
	slot->promised = h->promised;
}

static void judge(struct sim *sim, struct sim_host *h, struct sim_slot *slot);

/* An op has ended: its result is the application's. */
static void end(struct sim *sim, struct sim_host *h, struct sim_slot *slot, u8 limit)
{
	struct sim_result result = {
		.op = slot->op, .posted = slot->posted_at,
		.elapsed = sim->now - slot->posted_at,
		.took = sim->now - max(slot->posted_at, h->left_at),
		.allowed = slot->promised == SIM_NEVER ? SIM_NEVER :
			   slot->promised - slot->posted_at,
		.limit = limit, .reliable = slot->reliable,
		.frozen = h->thawed_at > slot->posted_at,
		.contributors = 1,
	};
	bool dead = limit == ORED_LIMIT_BEHIND && slot->term.overtaken <= sim->now;
	u64 all = 0, gap;
	u32 r;

	while (slot->stage < SIM_GATHER)
		seal(sim, h, slot);
	slot->state = SIM_ENDED;
	for (r = 0; r < sim->conf.nranks; r++) {
		if (!neighbours(sim, h->rank, r))
			continue;
		all |= bit(r);
		result.contributors += slot->flows[r].got[SIM_SCATTER] ==
				       slot->flows[r].rx[SIM_SCATTER].count;
		ored_standing_ended(&h->link[r].standing, slot->op);
	}
	result.loss = loss_of(sim, h, slot, all);
	result.counted = counted(sim, h, slot);
	learn(sim, h, slot, &result);
	while ((slot = slot_of(sim, h, h->left)) && slot->state == SIM_ENDED) {
		h->left++;
		h->left_at = sim->now;
	}
	slide(sim, h);
	/* Ops may be complete before one that is older: its term goes on. */
	if (h->left > result.op)
		begin_term(sim, h);
	if (sim->conf.depth == 1 || h->blocked) {
		h->blocked = false;
		h->ask_at = SIM_NEVER;
		gap = dead && sim->conf.obedient ? 0 : next_gap(sim, h);
		sim_push(sim, sim->now + gap, SIM_POST, h->rank, NULL);
	}
	sim->done(sim, h->rank, &result);
	if (slot)
		judge(sim, h, slot);
}

/* All that is waited for has come, and those who were are enough. */
static bool complete(struct sim *sim, struct sim_host *h, struct sim_slot *slot)
{
	u64 need = slot->need;
	u32 r;

	if (slot->nwhole < shard_of(sim, slot, h->rank))
		return false;
	if (!slot->reliable && !ored_quorum(hweight64(need) + 1, sim->circle))
		return false;
	for (r = 0; r < sim->conf.nranks; r++)
		if (need & bit(r) && slot->flows[r].got[SIM_GATHER] <
		    slot->flows[r].rx[SIM_GATHER].count)
			return false;
	return true;
}

/* A host has learnt something, or time has passed: what has become of an op? */
static void judge(struct sim *sim, struct sim_host *h, struct sim_slot *slot)
{
	u64 early;

	if (slot->state != SIM_POSTED)
		return;
	if (complete(sim, h, slot)) {
		end(sim, h, slot, ORED_LIMIT_COMPLETE);
		return;
	}
	if (slot->reliable || slot->op != h->left)
		return;
	if (sim->now >= ored_term_end_at(&slot->term)) {
		end(sim, h, slot, sim->now >= ored_term_hard_at(&slot->term) ?
		    ORED_LIMIT_HARD : ORED_LIMIT_BEHIND);
		return;
	}
	early = early_at(sim, h, slot);
	if (slot->stage == SIM_GATHER && sim->now >= early) {
		end(sim, h, slot, ORED_LIMIT_EARLY);
		return;
	}
	if (slot->stage < SIM_GATHER && sim->now >= min(early, seal_at(sim, slot))) {
		seal(sim, h, slot);
		judge(sim, h, slot);
	}
}

/* Something is sent to a peer at once: what it is tells that the op is posted. */
static bool has_flow(const struct sim_slot *slot, u32 peer)
{
	return slot->flows[peer].tx[SIM_SCATTER].count;
}

static void mark(struct sim *sim, struct sim_host *h, u32 peer)
{
	sim_send(sim, h, sim_packet(sim, h, peer, SIM_MARK));
}

void sim_host_post(struct sim *sim, struct sim_host *h)
{
	struct sim_slot *slot = slot_of(sim, h, h->posted);
	u32 r, chunk;

	if (h->posted >= h->last)
		return;
	if (h->stopped) {
		h->post_pending = true;
		return;
	}
	if (!slot || h->posted >= h->left + sim->conf.depth) {
		h->blocked = true;
		h->ask_at = sim->now + QUESTION_GAP;
		arm(sim, h, h->ask_at);
		return;
	}
	h->posted++;
	slot->state = SIM_POSTED;
	slot->posted_at = sim->now;
	slot->ask_at = sim->now + QUESTION_GAP;
	ored_bound_limits(&h->bound, slot->map.bytes, sim->conf.deadline, sim->conf.wait,
			  &slot->limits);
	promise(h, slot);
	for (r = 0; r < sim->conf.nranks; r++) {
		const struct ored_standing *s = &h->link[r].standing;

		if (!neighbours(sim, h->rank, r))
			continue;
		ored_rate_hurry(&h->link[r].rate, slot->reliable ? 0 : slot->limits.bound);
		if (slot->reliable ? !s->gone : ored_standing_counts(s))
			slot->need |= bit(r);
		if (!ored_standing_accepts(s, slot->op, sim->conf.depth) || !s->heard ||
		    !has_flow(slot, r))
			mark(sim, h, r);
	}
	for (chunk = 0; chunk < shard_of(sim, slot, h->rank); chunk++) {
		slot->in[chunk] |= bit(h->rank);
		contributed(sim, h, slot, chunk);
	}
	h->more = true;
	if (slot->op == h->left)
		begin_term(sim, h);
	arm(sim, h, slot_at(sim, h, slot));
	judge(sim, h, slot);
	if (sim->conf.depth > 1)
		sim_push(sim, sim->now + next_gap(sim, h), SIM_POST, h->rank, NULL);
	sim_host_pump(sim, h);
}

/* --- sending -------------------------------------------------------------- */

static bool has_new(const struct sim_slot *slot, u32 peer, u32 stage)
{
	const struct sim_flows *f = &slot->flows[peer];

	if (!f->tx[stage].count)
		return false;
	return f->next[stage] < (stage == SIM_SCATTER ? f->tx[stage].count :
				 stage == SIM_ACROSS ? slot->ready : slot->nwhole);
}

/* Up to which round peers are served now: the first that isn't through. */
static u32 round_now(struct sim *sim, struct sim_host *h, struct sim_slot *slot, u32 stage,
		     u32 incast)
{
	u32 n = turns(sim, stage), turn, peer;

	if (incast >= n)
		return 0;
	for (turn = 0; turn < n; turn++) {
		peer = peer_of(sim, h->rank, stage, turn);
		if (slot->need & bit(peer) &&
		    ored_standing_accepts(&h->link[peer].standing, slot->op, sim->conf.depth) &&
		    (has_new(slot, peer, stage) || slot->flows[peer].tx[stage].nlost))
			return turn / incast;
	}
	return ored_incast_rounds(n + 1, incast);
}

static u32 obeyed(struct sim *sim, struct sim_host *h)
{
	u32 advertised[SIM_RANKS], r;

	if (sim->conf.incast_fixed)
		return sim->conf.incast_fixed;
	for (r = 0; r < sim->conf.nranks; r++)
		advertised[r] = ored_standing_counts(&h->link[r].standing) ?
				h->link[r].incast : 0;
	return ored_incast_obeyed(&h->incast, advertised, sim->conf.nranks);
}

static bool sendable(struct sim *sim, struct sim_host *h, struct sim_slot *slot, u32 peer,
		     u32 stage)
{
	struct sim_link *l = &h->link[peer];

	if (l->inflight >= l->rate.window ||
	    !ored_standing_accepts(&l->standing, slot->op, sim->conf.depth))
		return false;
	return slot->flows[peer].tx[stage].nlost || has_new(slot, peer, stage);
}

/* The peer whose turn it is in a stage of an op */
static bool choose_peer(struct sim *sim, struct sim_host *h, struct sim_slot *slot, u32 stage,
			u32 *peer)
{
	u32 n = turns(sim, stage), i, turn, incast, now;

	if (h->train_left && h->train_op == slot->op && h->train_stage == stage &&
	    sendable(sim, h, slot, h->train_peer, stage)) {
		*peer = h->train_peer;
		return true;
	}
	incast = obeyed(sim, h);
	now = round_now(sim, h, slot, stage, incast);
	for (i = 0; i < n; i++) {
		turn = (h->turn[stage] + i) % n;
		*peer = peer_of(sim, h->rank, stage, turn);
		if (turn / incast > now || !sendable(sim, h, slot, *peer, stage))
			continue;
		h->turn[stage] = (turn + 1) % n;
		h->train_op = slot->op;
		h->train_stage = stage;
		h->train_peer = *peer;
		h->train_left = sim->conf.train;
		return true;
	}
	return false;
}

static void ask_soon(struct sim *sim, struct sim_host *h, u32 peer)
{
	struct sim_link *l = &h->link[peer];

	l->pto_at = sim->now + ored_rate_pto(&l->rate) * 1000ULL;
	arm(sim, h, l->pto_at);
}

static void send_chunk(struct sim *sim, struct sim_host *h, struct sim_slot *slot, u32 peer,
		       u32 stage)
{
	struct sim_packet *p = sim_packet(sim, h, peer, SIM_DATA);
	struct sim_flows *f = &slot->flows[peer];
	struct sim_link *l = &h->link[peer];
	struct ored_flow *flow = &f->tx[stage];

	p->resent = ored_flow_resend(flow, &p->chunk);
	if (!p->resent) {
		p->chunk = stage == SIM_SCATTER ? f->next[stage] :
			   stage == SIM_ACROSS ? slot->order[f->next[stage]] :
			   slot->gather[f->next[stage]];
		f->next[stage]++;
	}
	p->sum = stage == SIM_SCATTER ? bit(h->rank) : slot->sum[p->chunk];
	p->tail = ored_tail(f->next[stage] - 1, flow->count);
	ored_flow_sent(flow, p->chunk, p->clock);
	p->op = slot->op;
	p->stage = (u8)stage;
	p->size = sim->conf.payload + sim->conf.overhead;
	h->train_left -= h->train_left > 0;
	l->inflight++;
	l->unasked++;
	p->request = l->unasked >= ASK_EVERY || l->inflight >= l->rate.window ||
		     !sendable(sim, h, slot, peer, stage);
	if (p->request)
		l->unasked = 0;
	if (l->pto_at == SIM_NEVER)
		ask_soon(sim, h, peer);
	sim_send(sim, h, p);
}

/* The next packet of gradients: older ops first, scatter before gather. */
static bool send_next(struct sim *sim, struct sim_host *h)
{
	u64 op = h->left - min_t(u64, h->left, sim->conf.depth);
	u32 stage, peer;

	for (; op < h->posted; op++) {
		struct sim_slot *slot = slot_of(sim, h, op);

		if (!slot || slot->state == SIM_OPEN)
			continue;
		for (stage = 0; stage < SIM_STAGES; stage++) {
			if (!choose_peer(sim, h, slot, stage, &peer))
				continue;
			send_chunk(sim, h, slot, peer, stage);
			return true;
		}
	}
	return false;
}

void sim_host_pump(struct sim *sim, struct sim_host *h)
{
	while (h->more && h->queued < sim->conf.egress)
		h->more = send_next(sim, h);
}

/* --- packets -------------------------------------------------------------- */

static void send_ack(struct sim *sim, struct sim_host *h, u32 peer, const struct sim_packet *of,
		     struct sim_slot *slot, bool duplicate)
{
	struct sim_packet *p = sim_packet(sim, h, peer, SIM_ACK);

	p->op = of->op;
	p->stage = of->stage;
	p->clock = of->clock;
	p->duplicate = duplicate;
	if (slot) {
		struct ored_chunkmap *map = &slot->flows[peer].rx[of->stage];

		p->nbits = ored_chunkmap_ack(map, &p->chunk, p->bits);
		p->base = map->base;
		ored_chunkmap_acked(map);
	}
	p->size += p->nbits / 8;
	sim_send(sim, h, p);
}

/* Not for us: the sender had better know how far we are. */
static void refuse(struct sim *sim, struct sim_host *h, const struct sim_packet *p)
{
	struct sim_link *l = &h->link[p->src];
	struct sim_packet *answer;

	sim->stats.refused += p->kind == SIM_DATA;
	if (sim->now < l->answer_at)
		return;
	l->answer_at = sim->now + ANSWER_GAP;
	if (p->op >= h->left) {
		send_ack(sim, h, p->src, p, NULL, false);
		return;
	}
	answer = sim_packet(sim, h, p->src, SIM_MARK);
	answer->op = p->op;
	answer->gone = true;
	sim_send(sim, h, answer);
}

/* A peer serves nothing more of an op: nor can it become whole. */
static void on_mark(struct sim *sim, struct sim_host *h, const struct sim_packet *p)
{
	struct sim_slot *slot = slot_of(sim, h, p->op);

	if (p->gone && slot && slot->state == SIM_POSTED && slot->reliable)
		end(sim, h, slot, ORED_LIMIT_BEHIND);
}

/* Places a chunk that has not come before, if the op still takes it. */
static void place(struct sim *sim, struct sim_host *h, struct sim_slot *slot,
		  const struct sim_packet *p)
{
	struct sim_flows *f = &slot->flows[p->src];

	if (slot->state == SIM_ENDED ||
	    (p->stage == SIM_SCATTER && (slot->stage > SIM_SCATTER || slot->reduced[p->chunk])) ||
	    (p->stage == SIM_ACROSS && (slot->stage > SIM_ACROSS || slot->whole[p->chunk]))) {
		sim->stats.late++;
		return;
	}
	f->got[p->stage]++;
	ored_term_used(&slot->term, sim->now);
	if (p->stage == SIM_GATHER) {
		f->counted += hweight64(p->sum);
	} else if (p->stage == SIM_ACROSS) {
		slot->sum[p->chunk] |= p->sum;
		slot->across[p->chunk] |= bit(p->src);
		if (slot->state == SIM_POSTED && slot->reduced[p->chunk])
			added(sim, h, slot, p->chunk);
	} else {
		slot->in[p->chunk] |= bit(p->src);
		contributed(sim, h, slot, p->chunk);
	}
}

static void on_data(struct sim *sim, struct sim_host *h, const struct sim_packet *p)
{
	struct sim_slot *slot = slot_of(sim, h, p->op);
	struct ored_chunkmap *map;
	bool fresh;

	if (!slot || !ored_standing_window(h->left, p->op, sim->conf.depth)) {
		refuse(sim, h, p);
		return;
	}
	map = &slot->flows[p->src].rx[p->stage];
	fresh = ored_chunkmap_claim(map, p->chunk);
	ored_chunkmap_arrived(map, p->chunk);
	if (fresh)
		place(sim, h, slot, p);
	else
		sim->stats.duplicates++;
	h->disturbed |= p->resent;
	if (p->request || !fresh || map->unacked >= ACK_EVERY || ored_chunkmap_complete(map))
		send_ack(sim, h, p->src, p, slot, !fresh);
	if (p->tail && !(slot->tails[p->stage] & bit(p->src))) {
		slot->tails[p->stage] |= bit(p->src);
		arm(sim, h, slot_at(sim, h, slot));
	}
	judge(sim, h, slot);
}

static void on_ack(struct sim *sim, struct sim_host *h, const struct sim_packet *p)
{
	struct sim_slot *slot = slot_of(sim, h, p->op);
	struct sim_link *l = &h->link[p->src];
	bool limited = 2 * l->inflight >= l->rate.window;
	u32 now = (u32)(sim->now / 1000), before;
	struct ored_news news;
	struct ored_ack ack = {
		.echo = p->clock, .base = p->base, .first = p->chunk,
		.nbits = p->nbits, .bits = p->bits,
	};
	struct ored_flow *flow;

	if (!slot || slot->state == SIM_OPEN)
		return;
	flow = &slot->flows[p->src].tx[p->stage];
	before = flow->inflight;
	ored_rate_rtt(&l->rate, now - ack.echo);
	ored_flow_acked(flow, &ack, ored_rate_reorder(&l->rate), &news);
	l->inflight -= before - flow->inflight;
	ored_rate_acked(&l->rate, news.arrived, limited);
	if (news.lost)
		ored_rate_lost(&l->rate, news.oldest, now);
	if (p->duplicate)
		ored_rate_spurious(&l->rate);
	l->pto_at = SIM_NEVER;
	if (l->inflight)
		ask_soon(sim, h, p->src);
	h->more = true;
}

static void on_poll(struct sim *sim, struct sim_host *h, const struct sim_packet *p)
{
	struct sim_slot *slot = slot_of(sim, h, p->op);

	if (slot && ored_standing_window(h->left, p->op, sim->conf.depth))
		send_ack(sim, h, p->src, p, slot, false);
	else
		refuse(sim, h, p);
}

/* What every packet says of its sender */
static void hear(struct sim *sim, struct sim_host *h, const struct sim_packet *p)
{
	struct sim_link *l = &h->link[p->src];
	u32 i, news;

	news = ored_standing_heard(&l->standing, p->posted, p->left, h->posted,
				   sim->now, h->fastest / sim->conf.depth);
	l->incast = p->incast;
	l->tc = ored_early_unpack(p->tc);
	l->tc_op = p->tc_op;
	if (!news)
		return;
	for (i = 0; i < sim->nslots; i++) {
		struct sim_slot *slot = &h->slot[i];

		if (news & ORED_NEWS_LEFT && slot->op < l->standing.left)
			flows_end(sim, h, slot, p->src);
		consider(sim, h, slot);
	}
	h->more = true;
	if (news & ORED_NEWS_LEFT) {
		slide(sim, h);
		unblock(sim, h);
	}
	for (i = 0; i < sim->nslots; i++)
		judge(sim, h, &h->slot[i]);
}

void sim_host_packet(struct sim *sim, struct sim_host *h, const struct sim_packet *p)
{
	hear(sim, h, p);
	switch (p->kind) {
	case SIM_DATA:
		on_data(sim, h, p);
		break;
	case SIM_ACK:
		on_ack(sim, h, p);
		break;
	case SIM_POLL:
		on_poll(sim, h, p);
		break;
	case SIM_MARK:
		on_mark(sim, h, p);
		break;
	}
	sim_host_pump(sim, h);
}

/* Nothing has been heard of what is in flight: asks about one flow of each op. */
static void poll_peer(struct sim *sim, struct sim_host *h, u32 peer)
{
	u32 i, stage;

	ored_rate_timeout(&h->link[peer].rate);
	ask_soon(sim, h, peer);
	for (i = 0; i < sim->nslots; i++) {
		struct sim_slot *slot = &h->slot[i];

		for (stage = 0; stage < SIM_STAGES; stage++) {
			struct sim_packet *p;

			if (slot->state == SIM_OPEN || !slot->flows[peer].tx[stage].inflight)
				continue;
			p = sim_packet(sim, h, peer, SIM_POLL);
			p->op = slot->op;
			p->stage = (u8)stage;
			sim_send(sim, h, p);
		}
	}
}

static void question(struct sim *sim, struct sim_host *h, u64 op, u32 peer)
{
	struct sim_packet *p = sim_packet(sim, h, peer, SIM_POLL);

	p->op = op;
	sim_send(sim, h, p);
}

/*
 * Peers that have left a reliable op, and owe us something of it: do they have
 * it still? And those that haven't been heard: where are they? Nothing else might
 * be said, if both ends know too little of each other to send any data.
 */
static void ask(struct sim *sim, struct sim_host *h, struct sim_slot *slot)
{
	u32 r;

	slot->ask_at = sim->now + QUESTION_GAP;
	for (r = 0; r < sim->conf.nranks; r++)
		if (slot->need & bit(r) &&
		    (h->link[r].standing.left > slot->op ||
		     h->link[r].standing.heard + BEAT <= sim->now))
			question(sim, h, slot->op, r);
}

/*
 * The next slot is held, as far as is known here by peers that haven't left its
 * op: have they, or are they dead by now?
 */
static void ask_for_slot(struct sim *sim, struct sim_host *h)
{
	const struct sim_slot *slot = &h->slot[h->posted % sim->nslots];
	u32 r;

	h->ask_at = sim->now + QUESTION_GAP;
	slide(sim, h);
	if (slot->op == h->posted) {
		unblock(sim, h);
		return;
	}
	for (r = 0; r < sim->conf.nranks; r++)
		if (neighbours(sim, h->rank, r) && h->link[r].standing.left <= slot->op)
			question(sim, h, slot->op, r);
}

void sim_host_timer(struct sim *sim, struct sim_host *h)
{
	u32 i;

	h->timer_at = SIM_NEVER;
	for (i = 0; i < sim->nslots; i++) {
		struct sim_slot *slot = &h->slot[i];

		judge(sim, h, slot);
		if (slot->state == SIM_POSTED && slot->reliable && slot->ask_at <= sim->now)
			ask(sim, h, slot);
	}
	if (h->blocked && h->ask_at <= sim->now)
		ask_for_slot(sim, h);
	for (i = 0; i < sim->conf.nranks; i++)
		if (i != h->rank && h->link[i].pto_at <= sim->now)
			poll_peer(sim, h, i);
	sim_host_pump(sim, h);
	rearm(sim, h);
}

/* --- life ----------------------------------------------------------------- */

static void learn_beforehand(struct sim *sim, struct sim_host *h)
{
	struct ored_bound_conf conf = sim->conf.bound;
	u64 quiet = sim_quiet(&sim->conf);
	u32 i;

	if (sim->conf.no_learning) {
		conf.floor_ppm = sim->conf.bound_ppm;
		conf.ceiling_ppm = sim->conf.bound_ppm;
	}
	ored_bound_init(&h->bound, &conf);
	for (i = 0; sim->conf.no_learning && i < conf.warmup; i++)
		ored_bound_sample(&h->bound, max(sim->conf.bytes, sim->conf.other_bytes), quiet);
}

static void init_slot(struct sim *sim, struct sim_host *h, u32 i)
{
	u32 bytes = max(sim->conf.bytes, sim->conf.other_bytes);
	u32 chunks = DIV_ROUND_UP(DIV_ROUND_UP(bytes, sim->conf.payload), sim->tar.size);
	u32 longs = BITS_TO_LONGS(chunks) + 1, r, stage;
	struct sim_slot *slot = &h->slot[i];

	slot->in = calloc(chunks, sizeof(*slot->in));
	slot->sum = calloc(chunks, sizeof(*slot->sum));
	slot->across = calloc(chunks, sizeof(*slot->across));
	slot->reduced = calloc(chunks, sizeof(*slot->reduced));
	slot->whole = calloc(chunks, sizeof(*slot->whole));
	slot->order = calloc(chunks, sizeof(*slot->order));
	slot->gather = calloc(chunks, sizeof(*slot->gather));
	slot->flows = calloc(sim->conf.nranks, sizeof(*slot->flows));
	for (r = 0; r < sim->conf.nranks; r++) {
		for (stage = 0; stage < SIM_STAGES; stage++) {
			struct ored_flow *flow = &slot->flows[r].tx[stage];

			slot->flows[r].rx[stage].bits = calloc(longs, sizeof(long));
			slot->flows[r].rx[stage].room = chunks;
			flow->sent = calloc(chunks, sizeof(*flow->sent));
			flow->done = calloc(longs, sizeof(long));
			flow->out = calloc(longs, sizeof(long));
			flow->lost = calloc(longs, sizeof(long));
		}
	}
	slot->op = ~0ULL;
	open_slot(sim, h, slot, i);
}

void sim_host_init(struct sim *sim, u32 rank)
{
	struct sim_host *h = &sim->host[rank];
	u32 i;

	h->rank = rank;
	h->gap = sim->conf.gap;
	h->last = SIM_NEVER;
	h->slower = 1;
	h->timer_at = SIM_NEVER;
	h->ask_at = SIM_NEVER;
	learn_beforehand(sim, h);
	ored_early_init(&h->early);
	ored_incast_init(&h->incast, sim->conf.incast, sim->circle);
	h->link = calloc(sim->conf.nranks, sizeof(*h->link));
	h->slot = calloc(sim->nslots, sizeof(*h->slot));
	for (i = 0; i < sim->conf.nranks; i++) {
		ored_standing_init(&h->link[i].standing, 0);
		ored_rate_init(&h->link[i].rate, sim->circle - 1);
		h->link[i].pto_at = SIM_NEVER;
	}
	for (i = 0; i < sim->nslots; i++)
		init_slot(sim, h, i);
}

void sim_host_free(struct sim *sim, u32 rank)
{
	struct sim_host *h = &sim->host[rank];
	u32 i, r, stage;

	for (i = 0; i < sim->nslots; i++) {
		struct sim_slot *slot = &h->slot[i];

		for (r = 0; r < sim->conf.nranks; r++) {
			for (stage = 0; stage < SIM_STAGES; stage++) {
				struct ored_flow *flow = &slot->flows[r].tx[stage];

				free(slot->flows[r].rx[stage].bits);
				free(flow->sent);
				free(flow->done);
				free(flow->out);
				free(flow->lost);
			}
		}
		free(slot->in);
		free(slot->sum);
		free(slot->across);
		free(slot->reduced);
		free(slot->whole);
		free(slot->order);
		free(slot->gather);
		free(slot->flows);
	}
	free(h->slot);
	free(h->link);
}

void sim_begin_at(struct sim *sim, u32 rank, u64 ops)
{
	struct sim_host *h = &sim->host[rank];

	h->posted = ops;
	h->left = ops;
	slide(sim, h);
}

u64 sim_left(const struct sim *sim, u32 rank)
{
	return sim->host[rank].left;
}

bool sim_counts(const struct sim *sim, u32 rank, u32 peer)
{
	return ored_standing_counts(&sim->host[rank].link[peer].standing);
}

void sim_limits(const struct sim *sim, u32 rank, struct ored_limits *limits)
{
	ored_bound_limits(&sim->host[rank].bound, sim->conf.bytes, sim->conf.deadline,
			  sim->conf.wait, limits);
}

const struct ored_bound *sim_bound(const struct sim *sim, u32 rank)
{
	return &sim->host[rank].bound;
}

const struct ored_early *sim_early(const struct sim *sim, u32 rank)
{
	return &sim->host[rank].early;
}
