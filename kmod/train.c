// SPDX-License-Identifier: GPL-2.0
/*
 * Sending gradients: which chunks go to which peer next, and the trains of
 * packets that carry them.
 *
 * Peers take turns, a train each, so that their ports fill evenly, at the pace
 * of the link. For one peer the oldest op comes first, in it the scatter before
 * the gather, in those what has to be sent again and what is new in turns. What is
 * chosen is noted under the link's lock; it is copied and sent after that.
 */

#include <linux/bitmap.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/dst.h>
#include <net/xfrm.h>

#include "early.h"
#include "op.h"
#include "timer.h"
#include "tx.h"

#define ORED_PUMP_ROUNDS 64	/* trains to each peer in one call */
#define ORED_TRAIN_MAX	16	/* packets for one peer in a row */
#define ORED_ACK_EVERY	8	/* packets, at the most, until an ACK is asked for */

/**
 * struct ored_train - chunks of one flow that go out together
 * @slot: the op's, entered
 * @op: the op
 * @stage: ORED_SCATTER or ORED_GATHER
 * @first: first chunk of the flow's shard, counted over the bucket
 * @data: bucket that they are read from
 * @clock: when they were chosen
 * @n: how many
 * @ask: its last packet asks for an ACK
 * @reads: it counts as a reader of the contribution
 * @chunk: chunks, counted over the shard; all full but for the last
 * @resent: bit i: chunk[i] has been sent before
 * @tails: bit i: it is among the last of its flow
 * @partial: gather: not all have contributed to them; the contributors' bits
 *	follow each
 */
struct ored_train {
	struct ored_slot	*slot;
	u64			op;
	u32			stage;
	u32			first;
	const u8		*data;
	u32			clock;
	u32			n;
	bool			ask;
	bool			reads;
	u32			chunk[ORED_TRAIN_MAX];
	u32			resent;
	u32			tails;
	bool			partial;
};

/* The next new chunk of a flow, if there is one. */
static bool next_new(struct ored_slot *slot, struct ored_slot_peer *peer, u32 stage,
		     u32 *chunk)
{
	struct ored_flow *flow = &peer->tx[stage];
	u32 at = peer->next[stage];

	if (at >= flow->count || flow->stopped)
		return false;
	if (stage == ORED_GATHER) {
		/* Pairs with the release in reduce(). */
		u32 place = smp_load_acquire(&slot->order[at]);

		if (!place)
			return false;
		at = place - 1;
	}
	*chunk = at;
	return true;
}

/*
 * What was lost and what is new take turns: where the same chunks get lost again
 * and again, the rest of the flow must not wait for them, nor its tail marks.
 */
static bool next_chunk(struct ored_slot *slot, struct ored_slot_peer *peer, u32 stage,
		       u32 *chunk, bool *resent)
{
	*resent = !peer->again[stage] && ored_flow_resend(&peer->tx[stage], chunk);
	if (*resent || next_new(slot, peer, stage, chunk))
		return true;
	*resent = ored_flow_resend(&peer->tx[stage], chunk);
	return *resent;
}

/*
 * Whether the peer shall say at once what has arrived: where a flow ends, twice
 * in a window, after something was sent again, and every few packets. Chunks of
 * the gather come one by one: asking for an ACK of each would cost as many packets
 * again.
 */
static bool ask_now(struct ored_link *l, const struct ored_train *train)
{
	const struct ored_slot_peer *peer = &train->slot->peer[l->rank];
	const struct ored_flow *flow = &peer->tx[train->stage];

	return train->resent || l->unasked >= ORED_ACK_EVERY ||
	       2 * l->unasked >= l->rate.window ||
	       (peer->next[train->stage] >= flow->count && !flow->nlost);
}

/* Are there ranks that haven't contributed to a chunk of the own shard? */
static bool is_partial(const struct ored_slot *slot, u32 stage, u32 chunk)
{
	return stage == ORED_GATHER &&
	       !ored_slot_full(slot, ored_slot_set(slot, slot->counted, chunk));
}

/* Fills a train from one flow; under the link's lock. */
static void fill(struct ored_link *l, struct ored_train *train, u32 stage, u32 most)
	__must_hold(&l->lock)
{
	struct ored_slot *slot = train->slot;
	struct ored_slot_peer *peer = &slot->peer[l->rank];
	struct ored_flow *flow = &peer->tx[stage];
	bool resent;
	u32 chunk;

	lockdep_assert_held(&l->lock);
	train->stage = stage;
	train->first = ored_map_first(&slot->map,
				      stage == ORED_SCATTER ? l->rank : l->m->rank);
	train->data = stage == ORED_SCATTER ? READ_ONCE(slot->from) : slot->made;
	while (train->n < most && next_chunk(slot, peer, stage, &chunk, &resent)) {
		bool partial = is_partial(slot, stage, chunk);

		/* All packets of a train have the same length. */
		if (train->n && partial != train->partial)
			break;
		train->partial = partial;
		if (!resent)
			peer->next[stage]++;
		peer->again[stage] = resent;
		if (ored_tail(peer->next[stage] - 1, flow->count))
			train->tails |= 1U << train->n;
		ored_flow_sent(flow, chunk, train->clock);
		train->resent |= (u32)resent << train->n;
		train->chunk[train->n++] = chunk;
		/* Only the last packet of a train may be short. */
		if (ored_map_length(&slot->map, train->first + chunk) < slot->map.payload)
			break;
	}
}

/* How many packets the pace allows; if it is fewer, the timer will go on. */
static u32 take_tokens(struct ored_member *m, u32 packets)
{
	u64 now = ktime_get_ns(), when = U64_MAX;
	u32 n;

	spin_lock(&m->pace_lock);
	packets = min(packets, ored_pace_train(&m->pace));
	n = ored_pace_take(&m->pace, packets, now, &when);
	if (!n)
		WRITE_ONCE(m->pump_at, min(m->pump_at, when));
	spin_unlock(&m->pace_lock);
	return n;
}

static void return_tokens(struct ored_member *m, u32 packets)
{
	if (!packets)
		return;
	spin_lock(&m->pace_lock);
	ored_pace_return(&m->pace, packets);
	spin_unlock(&m->pace_lock);
}

static void has_read(const struct ored_train *train)
{
	/* Whoever sees us gone sees that we have read. */
	smp_mb__before_atomic();
	atomic_dec(&train->slot->readers);
}

/* Chooses from one op, which has been entered; under the link's lock. */
static bool choose_from(struct ored_link *l, struct ored_train *train, u32 most)
	__must_hold(&l->lock)
{
	u32 stage;

	lockdep_assert_held(&l->lock);
	/* Once it has failed, its flows are stopped; pairs with ored_slot_stop(). */
	if (READ_ONCE(train->slot->error))
		return false;
	if (l->inflight >= l->rate.window || !ored_link_needs(l, train->op))
		return false;
	most = take_tokens(l->m, min(most, l->rate.window - l->inflight));
	/* Whoever takes a mapped slot away waits until nobody reads from it. */
	atomic_inc(&train->slot->readers);
	/* Pairs with the one in ored_mapped_detach(). */
	smp_mb__after_atomic();
	for (stage = 0; stage < ORED_STAGES && !train->n; stage++) {
		if (ored_early_serves(train->slot, stage, l->rank))
			fill(l, train, stage, most);
	}
	train->reads = train->n && train->stage == ORED_SCATTER;
	if (!train->reads)
		has_read(train);
	return_tokens(l->m, most - train->n);
	if (!train->n)
		return false;
	l->inflight += train->n;
	l->sent += train->n;
	l->resent += hweight32(train->resent);
	l->unasked += train->n;
	train->ask = ask_now(l, train);
	if (train->ask)
		l->unasked = 0;
	if (l->pto_at == U64_MAX)
		l->pto_at = ktime_get_ns() + (u64)ored_rate_pto(&l->rate) * NSEC_PER_USEC;
	return true;
}

/* Chooses the next train for a peer, and enters its slot. */
static bool choose(struct ored_link *l, struct ored_train *train, u32 most)
{
	struct ored_member *m = l->m;
	u64 posted = READ_ONCE(m->posted);
	u64 left = READ_ONCE(l->standing.left);
	bool chosen;

	train->n = 0;
	train->resent = 0;
	train->tails = 0;
	train->partial = false;
	train->clock = ored_clock(m);
	train->op = max(READ_ONCE(m->retained), left);
	for (; train->op < min(posted, left + ored_slots_open(m)); train->op++) {
		train->slot = ored_slot_of(m, train->op);
		if (!ored_op_sends(train->slot, train->op))
			continue;
		spin_lock(&l->lock);
		chosen = choose_from(l, train, most);
		spin_unlock(&l->lock);
		if (chosen)
			return true;
		ored_slot_leave(train->slot);
	}
	return false;
}

static u32 train_size(const struct ored_train *train, u32 i)
{
	return ored_map_length(&train->slot->map, train->first + train->chunk[i]);
}

/* Whose contributions a chunk has */
static void write_mask(const struct ored_slot *slot, u32 chunk, struct sk_buff *skb, u32 at)
{
	__le64 words[ORED_RANK_WORDS];
	u32 i, n = slot->m->mask / sizeof(*words);

	for (i = 0; i < n; i++) {
		u64 word = 0;

		bitmap_to_arr64(&word, ored_slot_set(slot, slot->counted, chunk) +
				i * (64 / BITS_PER_LONG),
				min_t(u32, 64, slot->m->nranks - i * 64));
		words[i] = cpu_to_le64(word);
	}
	skb_store_bits(skb, at, words, slot->m->mask);
}

/* Bytes of a train's packet, its last one shorter than the others, if at all */
static u32 packet_size(const struct ored_train *train, u32 chunk_size)
{
	return ORED_WIRE_HEADER + chunk_size + (train->partial ? train->slot->m->mask : 0);
}

static void write_packet(struct ored_link *l, const struct ored_train *train, u32 i,
			 struct sk_buff *skb, u32 at)
{
	const struct ored_map *map = &train->slot->map;
	u8 header[ORED_WIRE_HEADER];
	struct ored_packet pkt;
	u8 flags = 0;

	if (i == train->n - 1 && train->ask)
		flags |= ORED_F_REQUEST;
	if (train->resent >> i & 1)
		flags |= ORED_F_RESENT;
	if (train->tails >> i & 1)
		flags |= ORED_F_TAIL;
	if (train->partial)
		flags |= ORED_F_PARTIAL;
	ored_packet_init(l, &pkt, train->stage == ORED_SCATTER ? ORED_T_SCATTER : ORED_T_GATHER,
			 flags);
	pkt.op = (u32)train->op;
	pkt.params = train->slot->params;
	pkt.chunk = train->chunk[i];
	pkt.clock = train->clock;
	ored_wire_build(header, &pkt);
	skb_store_bits(skb, at, header, sizeof(header));
	skb_store_bits(skb, at + ORED_WIRE_HEADER,
		       train->data + ored_map_offset(map, train->first + train->chunk[i]),
		       train_size(train, i));
	if (train->partial)
		write_mask(train->slot, train->chunk[i], skb,
			   at + ORED_WIRE_HEADER + train_size(train, i));
}

static struct sk_buff *build(struct ored_link *l, const struct ored_train *train)
{
	u32 full = packet_size(train, train->slot->map.payload);
	u32 size = (train->n - 1) * full + packet_size(train, train_size(train, train->n - 1));
	u32 linear = train->n == 1 && size <= SKB_MAX_ORDER(ORED_HEADROOM, 0) ? size : 0;
	struct sk_buff *skb;
	u32 i;
	int err;

	skb = alloc_skb_with_frags(ORED_HEADROOM + linear, size - linear,
				   PAGE_ALLOC_COSTLY_ORDER, &err,
				   GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return NULL;
	skb_reserve(skb, ORED_HEADROOM);
	skb_put(skb, linear);
	skb->data_len = size - linear;
	skb->len = size;
	for (i = 0; i < train->n; i++)
		write_packet(l, train, i, skb, i * full);
	return skb;
}

/* What could not be sent is lost already; the timer tries again. */
static void give_back(struct ored_link *l, const struct ored_train *train)
{
	struct ored_flow *flow = &train->slot->peer[l->rank].tx[train->stage];
	u32 i;

	ored_count_add(l->m->stats, ORED_CNT_NOMEM, train->n);
	spin_lock_bh(&l->lock);
	for (i = 0; i < train->n; i++) {
		u32 before = flow->inflight;

		ored_flow_unsent(flow, train->chunk[i]);
		l->inflight -= before - flow->inflight;
	}
	l->starved = true;
	l->pto_at = ktime_get_ns() + NSEC_PER_MSEC;
	spin_unlock_bh(&l->lock);
}

/* How many packets of a train may go to IP as one. */
static u32 train_limit(struct ored_link *l, const struct dst_entry *dst)
{
	u32 packet = l->m->payload + l->m->mask + ored_overhead(l->m);

	if (!(dst->dev->features & NETIF_F_GSO) || dst_xfrm(dst) || dst_mtu(dst) < packet)
		return 1;
	return clamp_t(u32, (GSO_LEGACY_MAX_SIZE - ORED_HEADROOM) / packet, 1, ORED_TRAIN_MAX);
}

static void account(struct ored_link *l, const struct ored_train *train)
{
	u32 resent = hweight32(train->resent);

	if (!resent)
		return;
	atomic64_add(resent, &train->slot->resent);
	ored_count_add(l->m->stats, ORED_CNT_RESENT, resent);
}

/* Without a route nothing can be sent; the timer tries again. */
static void no_route(struct ored_link *l)
{
	spin_lock(&l->lock);
	l->starved = true;
	l->pto_at = ktime_get_ns() + 100 * NSEC_PER_MSEC;
	spin_unlock(&l->lock);
	ored_timer_need(l->m, READ_ONCE(l->pto_at));
}

/* Sends one train to a peer. Return: whether there was anything to send. */
static bool send_train(struct ored_link *l)
{
	struct ored_train train;
	struct ored_route route;
	struct sk_buff *skb;

	if (ored_route_get(l, &route)) {
		no_route(l);
		return false;
	}
	if (!choose(l, &train, train_limit(l, route.dst))) {
		dst_release(route.dst);
		return false;
	}
	ored_timer_need(l->m, READ_ONCE(l->pto_at));
	account(l, &train);
	skb = build(l, &train);
	if (train.reads)
		has_read(&train);
	if (!skb) {
		dst_release(route.dst);
		give_back(l, &train);
		ored_timer_need(l->m, READ_ONCE(l->pto_at));
		ored_slot_leave(train.slot);
		return false;
	}
	ored_transmit(l, &route, skb, train.n,
		      packet_size(&train, train.n > 1 ? train.slot->map.payload :
							train_size(&train, 0)));
	ored_slot_leave(train.slot);
	return true;
}

static bool pump_link(struct ored_link *l)
{
	bool sent;

	local_bh_disable();
	sent = send_train(l);
	local_bh_enable();
	return sent;
}

static void pump_later(struct ored_member *m)
{
	WRITE_ONCE(m->pump_again, true);
	ored_timer_need(m, ktime_get_ns());
}

/* Is something waiting for tokens? Then the timer goes on when there are some. */
static bool out_of_tokens(struct ored_member *m)
{
	u64 at = READ_ONCE(m->pump_at);

	if (at == U64_MAX)
		return false;
	ored_timer_need(m, at);
	return true;
}

/*
 * All has been sent that windows allow, and there are tokens left. Where most
 * windows are full, it is our own link that is slower than was thought.
 */
static void all_sent(struct ored_member *m)
{
	struct ored_link *l;
	u32 full = 0;

	if (!READ_ONCE(m->pace.held))
		return;
	ored_for_each_link(m, l)
		full += READ_ONCE(l->inflight) >= READ_ONCE(l->rate.window);
	if (2 * full >= m->nranks)
		return;
	spin_lock_bh(&m->pace_lock);
	ored_pace_idle(&m->pace);
	spin_unlock_bh(&m->pace_lock);
}

/**
 * ored_pump_peer() - sends a peer what its window allows, as ored_pump()
 * @l: the peer; no lock held
 */
void ored_pump_peer(struct ored_link *l)
{
	struct ored_member *m = l->m;
	u32 round;

	/* Others are waiting for tokens: it has to wait for its turn. */
	if (out_of_tokens(m))
		return;
	for (round = 0; round < ORED_PUMP_ROUNDS; round++) {
		if (pump_link(l))
			continue;
		if (!out_of_tokens(m))
			all_sent(m);
		return;
	}
	pump_later(m);
}

/* The next peer in turn */
static struct ored_link *next_turn(struct ored_member *m)
{
	u32 rank = READ_ONCE(m->turn) % m->nranks;

	if (rank == m->rank)
		rank = (rank + 1) % m->nranks;
	/* Two may serve the same peer at the same time: no harm. */
	WRITE_ONCE(m->turn, rank + 1);
	return &m->links[rank];
}

/**
 * ored_pump() - sends all that the windows and the pace allow, as far as one call
 * may
 * @m: the membership; no lock held
 *
 * ACKs that come in on other processors can open windows for ever, and this may
 * be softirq: the timer goes on with what is left.
 */
void ored_pump(struct ored_member *m)
{
	u32 left = ORED_PUMP_ROUNDS * m->nranks, idle = 0;

	if (m->nranks < 2)
		return;
	/* Until all peers in a row have nothing to be sent. */
	while (idle < m->nranks - 1) {
		if (out_of_tokens(m))
			return;
		if (!left--) {
			pump_later(m);
			return;
		}
		idle = pump_link(next_turn(m)) ? 0 : idle + 1;
	}
	if (!out_of_tokens(m))
		all_sent(m);
}

/**
 * ored_pump_due() - has the time come for what waits for tokens?
 * @m: the membership; no lock held
 * @now: the time
 *
 * Return: true if ored_pump() shall be called
 */
bool ored_pump_due(struct ored_member *m, u64 now)
{
	bool due;

	spin_lock_bh(&m->pace_lock);
	due = m->pump_at <= now;
	if (due)
		WRITE_ONCE(m->pump_at, U64_MAX);
	spin_unlock_bh(&m->pace_lock);
	return due;
}
