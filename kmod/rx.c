// SPDX-License-Identifier: GPL-2.0
/*
 * Receiving packets, in softirq, under RCU. Nothing in a packet is believed
 * before it has been checked: the header's form, that its session is one of
 * ours, that it comes from the address of the rank it names, and then
 * whatever it says about an op.
 */

#include <linux/bitmap.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/sock.h>

#include "area_share.h"
#include "deadline.h"
#include "early.h"
#include "event.h"
#include "inject.h"
#include "join.h"
#include "leave.h"
#include "op.h"
#include "rx.h"
#include "tell.h"
#include "timer.h"
#include "trace.h"
#include "tx.h"

#define ORED_CONTENT_MAX 256	/* bytes of a control packet that matter */
#define ORED_ACK_AFTER	 16	/* packets, without being asked */
#define ORED_STUCK	 3	/* rounds of resending in vain until a path is probed */

/* A packet on its way through this file */
struct ored_rx {
	struct sk_buff		*skb;
	struct ored_net		*on;
	struct ored_member	*m;
	struct ored_link	*l;
	struct ored_packet	pkt;
	u32			told;	/* before any membership was looked for */
	u32			offset;	/* of what follows our header, in @skb */
	u32			len;	/* bytes of it */
	u32			whole;	/* data: its chunk, counted over the bucket */
	u32			size;	/* and that chunk's length */
	bool			dropped;
	bool			pump;	/* something can be sent to this peer */
	bool			pump_all;	/* or to all */
	bool			moved;		/* the peer has posted or left more ops */
	bool			look;	/* it may change when an op ends */
};

/* What has become of a packet of gradients */
static void fate(const struct ored_rx *rx, u8 fate)
{
	if (rx->l && (rx->pkt.type == ORED_T_SCATTER || rx->pkt.type == ORED_T_GATHER))
		ored_tell_chunk(rx->l, &rx->pkt, fate);
}

static u8 fate_of(enum ored_counter cause)
{
	switch (cause) {
	case ORED_CNT_DUPLICATE:
		return ORED_FATE_DUPLICATE;
	case ORED_CNT_LATE:
		return ORED_FATE_LATE;
	case ORED_CNT_AHEAD:
		return ORED_FATE_AHEAD;
	case ORED_CNT_MISMATCH:
		return ORED_FATE_MISMATCH;
	default:
		return ORED_FATE_BAD;
	}
}

static void count(const struct ored_rx *rx, enum ored_counter what)
{
	ored_count(rx->m->stats, what);
}

static void drop(struct ored_rx *rx, enum ored_counter cause)
{
	rx->dropped = true;
	count(rx, cause);
	fate(rx, fate_of(cause));
}

/* One that can't be laid to any membership */
static void drop_ns(struct ored_rx *rx, enum ored_counter cause)
{
	rx->dropped = true;
	ored_count(rx->on->stats, cause);
}

/* Another like it would be dropped too: BPF programs may do it earlier. */
static void refused(const struct ored_rx *rx, u64 epoch, enum ored_counter cause)
{
	ored_tell_refused(rx->on, rx->skb, &rx->pkt, rx->told, epoch, cause);
}

static void source(const struct sk_buff *skb, u16 family, struct ored_addr *from)
{
	memset(from, 0, sizeof(*from));
	from->family = family;
	if (family == AF_INET)
		from->v4 = ip_hdr(skb)->saddr;
	else
		from->v6 = ipv6_hdr(skb)->saddr;
	if (family == AF_INET6 && ipv6_addr_type(&from->v6) & IPV6_ADDR_LINKLOCAL)
		from->scope_id = skb->skb_iif;
}

/* A peer has left ops: nothing of them is in flight to it any more. */
static void write_off(struct ored_link *l, u64 from)
	__must_hold(&l->m->lock) __must_hold(&l->lock)
{
	struct ored_member *m = l->m;
	u64 op;

	lockdep_assert_held(&m->lock);
	lockdep_assert_held(&l->lock);
	for (op = max(from, m->retained); op < min(l->standing.left, m->posted); op++) {
		struct ored_slot *slot = ored_slot_of(m, op);

		if (slot->op == op)
			ored_slot_stop_flows(slot, l);
	}
	if (!l->inflight)
		l->pto_at = U64_MAX;
}

static bool is_control(const struct ored_rx *rx)
{
	return rx->pkt.type != ORED_T_SCATTER && rx->pkt.type != ORED_T_GATHER;
}

/* Takes in how far a peer is; under its lock. Return: ORED_NEWS_* */
static u32 stands(struct ored_rx *rx, u64 now)
	__must_hold(&rx->l->lock)
{
	struct ored_link *l = rx->l;
	u64 posted = ored_extend16(l->standing.posted, rx->pkt.posted);
	u64 left = ored_extend16(l->standing.left, rx->pkt.left);

	lockdep_assert_held(&l->lock);
	l->asks = 0;
	if (l->told == ORED_PEER_SILENT)
		ored_event_peer(l, ored_standing_counts(&l->standing) ? ORED_PEER_LIVE :
									ORED_PEER_STALLED);
	if (is_control(rx))
		ored_early_heard(l, rx->pkt.params.bytes);
	return ored_standing_heard(&l->standing, posted, left, READ_ONCE(rx->m->posted), now,
				   div_u64(READ_ONCE(rx->m->fastest), rx->m->conf.depth));
}

/* It moves on: a slot that it lacked may be open now. Return: whether to try */
static bool try_again(struct ored_link *l, u64 now)
{
	if (!l->rate.backoff || !l->inflight)
		return false;
	l->rate.backoff = 0;
	l->pto_at = now;
	return true;
}

/* A peer has posted or left an op, or says so. */
static void heard_news(struct ored_rx *rx, u64 now)
{
	struct ored_member *m = rx->m;
	struct ored_link *l = rx->l;
	bool retry = false;
	u64 from;
	u32 news;

	spin_lock(&m->lock);
	spin_lock(&l->lock);
	from = l->standing.left;
	news = stands(rx, now);
	if (news & ORED_NEWS_COUNTS)
		ored_event_peer(l, ORED_PEER_LIVE);
	if (news & ORED_NEWS_POSTED)
		retry = try_again(l, now);
	if (news & ORED_NEWS_LEFT)
		write_off(l, from);
	spin_unlock(&l->lock);
	if (is_control(rx))
		ored_rotate_heard(l, rx->pkt.params.word,
				  ored_extend16(READ_ONCE(l->standing.posted), rx->pkt.posted));
	if (news & ORED_NEWS_LEFT) {
		ored_slot_release_past(m);
		rx->pump = true;
	}
	rx->moved |= news & (ORED_NEWS_POSTED | ORED_NEWS_LEFT);
	if (news)
		ored_deadline_update(m);
	spin_unlock(&m->lock);
	if (retry)
		ored_timer_need(m, now);
}

/* Takes in what every packet says: that its sender is alive, and how far. */
static void heard(struct ored_rx *rx)
{
	struct ored_link *l = rx->l;
	u64 now = ktime_get_ns();

	if ((u16)READ_ONCE(l->standing.posted) != rx->pkt.posted ||
	    (u16)READ_ONCE(l->standing.left) != rx->pkt.left ||
	    (is_control(rx) && READ_ONCE(l->rotation_word) != rx->pkt.params.word)) {
		heard_news(rx, now);
		return;
	}
	spin_lock(&l->lock);
	/* Somebody may have been quicker; then this packet is older. */
	if ((u16)l->standing.posted == rx->pkt.posted &&
	    (u16)l->standing.left == rx->pkt.left)
		stands(rx, now);
	spin_unlock(&l->lock);
	if (ored_deadline_due(rx->m, now))
		ored_deadline_check(rx->m);
}

/* At most one unsolicited answer to a peer in a millisecond. */
static bool may_answer(struct ored_link *l)
{
	u64 now = ktime_get_ns();
	bool may;

	spin_lock(&l->lock);
	may = now >= l->answer_at;
	if (may)
		l->answer_at = now + NSEC_PER_MSEC;
	spin_unlock(&l->lock);
	return may;
}

static void answer(struct ored_link *l)
{
	if (may_answer(l))
		ored_send_mark(l, 0);
}

/* Who is in a reliable op that we have given up waits for ever unless he is told. */
static void answer_gone(struct ored_rx *rx, u64 op)
{
	struct ored_failure gone = { .field = ORED_FAILURE_GONE, .rank = { rx->m->rank } };

	if (may_answer(rx->l))
		ored_send_failure(rx->l, op, &gone);
}

/*
 * Finds an op's slot and enters it. A packet for an op that has ended here, or
 * has no slot yet, touches nothing; its sender is told how far we are.
 */
static struct ored_slot *enter(struct ored_rx *rx, u64 *op)
{
	struct ored_slot *slot;

	*op = ored_extend32(READ_ONCE(rx->m->posted), rx->pkt.op);
	slot = ored_slot_of(rx->m, *op);
	if (ored_slot_enter(slot, *op))
		return slot;
	drop(rx, *op < READ_ONCE(rx->m->finished) ? ORED_CNT_LATE : ORED_CNT_AHEAD);
	if (*op < READ_ONCE(rx->m->retained) && READ_ONCE(rx->l->standing.left) <= *op)
		answer_gone(rx, *op);
	else
		answer(rx->l);
	return NULL;
}

/* Sees to it that a packet's parameters are the op's. */
static bool agrees(struct ored_rx *rx, struct ored_slot *slot, u64 op)
{
	struct ored_failure mm = {};
	u32 by;

	if (!ored_kind_fits(&rx->pkt.params, rx->m->nranks, rx->m->conf.bucket_max)) {
		drop(rx, ORED_CNT_BAD_CHUNK);
		return false;
	}
	by = ored_slot_know(slot, &rx->pkt.params, rx->l->rank);
	if (ored_params_equal(&slot->params, &rx->pkt.params))
		return true;
	drop(rx, ORED_CNT_MISMATCH);
	mm.field = ored_params_differ(&slot->params, &rx->pkt.params, mm.value);
	if (!mm.field) {
		/* It is in the other domain. One of us has missed that; both learn of it. */
		answer(rx->l);
		return false;
	}
	mm.rank[0] = by;
	mm.rank[1] = rx->l->rank;
	ored_op_fail(slot, op, &mm);
	return false;
}

/* Where a chunk of gradients belongs, if everything about it is right. */
static u8 *place(struct ored_rx *rx, struct ored_slot *slot, u32 stage)
{
	struct ored_member *m = rx->m;
	u32 owner = stage == ORED_SCATTER ? m->rank : rx->l->rank;
	bool partial = stage == ORED_GATHER && rx->pkt.flags & ORED_F_PARTIAL;
	bool bounded = ored_params_mode(slot->params.word) == ORED_MODE_BOUNDED;
	u32 sender = rx->l->rank;
	u32 count = stage == ORED_SCATTER ?
		    ored_kind_scatters(&slot->map, slot->params.word, sender, m->rank) :
		    ored_kind_gathers(&slot->map, slot->params.word, sender, m->rank);

	if (rx->pkt.chunk >= count)
		return NULL;
	rx->whole = ored_map_first(&slot->map, owner) + rx->pkt.chunk;
	rx->size = ored_map_length(&slot->map, rx->whole);
	if (rx->len != rx->size + (partial ? m->mask : 0) || (partial && !(bounded && slot->adds)))
		return NULL;
	if (stage == ORED_SCATTER)
		return slot->staged + (sender - (sender > m->rank)) * slot->stride +
		       (size_t)rx->pkt.chunk * slot->map.payload;
	/*
	 * Nobody can have reduced a whole chunk of what isn't posted here; but we
	 * may be late for a bounded op, or for what needs nothing of us. Pairs with
	 * publish().
	 */
	if (!bounded && slot->adds && smp_load_acquire(&slot->state) == ORED_SLOT_OPEN)
		return NULL;
	return slot->to + ored_map_offset(&slot->map, rx->whole);
}

/* Whose contributions a gather chunk has; false: it doesn't say so. */
static bool read_mask(struct ored_rx *rx, unsigned long *counted)
{
	__le64 words[ORED_RANK_WORDS];
	u32 i, n = rx->m->mask / sizeof(*words);

	if (skb_copy_bits(rx->skb, rx->offset + rx->size, words, rx->m->mask))
		return false;
	for (i = 0; i < n; i++) {
		u64 word = le64_to_cpu(words[i]);

		bitmap_from_arr64(counted + i * (64 / BITS_PER_LONG), &word, 64);
	}
	return true;
}

static void note_arrival(struct ored_rx *rx, struct ored_slot *slot, u32 stage, bool fresh,
			 bool *ack)
{
	struct ored_chunkmap *map = &slot->peer[rx->l->rank].rx[stage];
	struct ored_link *l = rx->l;

	spin_lock(&l->lock);
	ored_chunkmap_arrived(map, rx->pkt.chunk);
	*ack = !fresh || rx->pkt.flags & ORED_F_REQUEST || map->unacked >= ORED_ACK_AFTER ||
	       (map->count && ored_chunkmap_complete(map));
	if (fresh)
		l->received++;
	else
		l->duplicates++;
	spin_unlock(&l->lock);
}

static void take_chunk(struct ored_rx *rx, struct ored_slot *slot, u32 stage, u8 *to)
{
	if (WARN_ON_ONCE(skb_copy_bits(rx->skb, rx->offset, to, rx->size)))
		return;
	atomic64_add(rx->size, &slot->received[stage]);
	if (rx->pkt.flags & ORED_F_RESENT)
		atomic64_add(rx->size, &slot->repaired[stage]);
	count(rx, ORED_CNT_RX_DATA);
	fate(rx, rx->pkt.flags & ORED_F_RESENT ? ORED_FATE_REPAIRED : ORED_FATE_TAKEN);
}

/* Takes a chunk to where it belongs, unless it is there. Return: whether it wasn't */
static bool claim(struct ored_rx *rx, struct ored_slot *slot, u32 stage, u8 *to)
{
	bool fresh = ored_chunkmap_claim(&slot->peer[rx->l->rank].rx[stage], rx->pkt.chunk);

	if (rx->pkt.flags & ORED_F_TAIL && ored_early_mark(slot, stage, rx->l->rank))
		rx->look = true;
	if (fresh) {
		take_chunk(rx, slot, stage, to);
		WRITE_ONCE(slot->term.useful, READ_ONCE(rx->l->standing.heard));
	} else {
		atomic64_inc(&slot->duplicates);
		drop(rx, ORED_CNT_DUPLICATE);
	}
	return fresh;
}

/* A stage that is sealed takes nothing; its sender needs to send no more of it. */
static void too_late(struct ored_rx *rx, struct ored_slot *slot, u64 op, u32 stage)
{
	drop(rx, ORED_CNT_LATE);
	if (rx->pkt.flags & ORED_F_REQUEST)
		ored_send_ack(rx->l, slot, op, stage, rx->pkt.clock, 0, false);
}

static void ack_data(struct ored_rx *rx, struct ored_slot *slot, u64 op, u32 stage, bool fresh)
{
	ored_send_ack(rx->l, slot, op, stage, rx->pkt.clock, fresh ? 0 : ORED_F_DUPLICATE, false);
}

/*
 * Has a chunk been reduced without this contribution? Then it isn't acknowledged:
 * its sender takes what is acknowledged for counted.
 */
static bool reduced_without(const struct ored_rx *rx, const struct ored_slot *slot)
{
	return test_bit(rx->pkt.chunk, slot->reduced) &&
	       !test_bit(rx->pkt.chunk, slot->peer[rx->l->rank].rx[ORED_SCATTER].bits);
}

static void scatter_in(struct ored_rx *rx, struct ored_slot *slot, u64 op, u8 *to)
{
	bool fresh, ack;

	if (test_bit(ORED_SCATTER, &slot->sealed) || reduced_without(rx, slot) ||
	    !ored_slot_write(slot)) {
		too_late(rx, slot, op, ORED_SCATTER);
		return;
	}
	fresh = claim(rx, slot, ORED_SCATTER, to);
	/* Who takes the result of a reduce-scatter counts what is acknowledged. */
	if (fresh)
		ored_op_present(slot, rx->l->rank, rx->pkt.chunk);
	ored_slot_written(slot);
	note_arrival(rx, slot, ORED_SCATTER, fresh, &ack);
	/* Before the ACK, so that it can say that the op is left. */
	if (fresh)
		rx->pump_all |= ored_op_contribution(slot, rx->pkt.chunk);
	if (ack)
		ack_data(rx, slot, op, ORED_SCATTER, fresh);
}

static void gather_in(struct ored_rx *rx, struct ored_slot *slot, u64 op, u8 *to)
{
	DECLARE_BITMAP(counted, ORED_MAX_RANKS);
	bool fresh, ack, partial = rx->pkt.flags & ORED_F_PARTIAL;

	if (partial && !read_mask(rx, counted)) {
		drop(rx, ORED_CNT_BAD_CHUNK);
		return;
	}
	if (!ored_slot_write(slot)) {
		too_late(rx, slot, op, ORED_GATHER);
		return;
	}
	/* A post from a mapped slot may have moved it meanwhile. */
	to = READ_ONCE(slot->to) + ored_map_offset(&slot->map, rx->whole);
	fresh = claim(rx, slot, ORED_GATHER, to);
	ored_slot_written(slot);
	note_arrival(rx, slot, ORED_GATHER, fresh, &ack);
	if (fresh)
		ored_op_gathered(slot, rx->l->rank, rx->whole, partial ? counted : NULL);
	if (ack)
		ack_data(rx, slot, op, ORED_GATHER, fresh);
}

static void data_in(struct ored_rx *rx, struct ored_slot *slot, u64 op, u32 stage)
{
	u8 *to = place(rx, slot, stage);

	if (!to)
		drop(rx, ORED_CNT_BAD_CHUNK);
	else if (stage == ORED_SCATTER)
		scatter_in(rx, slot, op, to);
	else
		gather_in(rx, slot, op, to);
}

static void rx_data(struct ored_rx *rx, u32 stage)
{
	struct ored_slot *slot;
	u64 op;

	slot = enter(rx, &op);
	if (!slot)
		return;
	if (agrees(rx, slot, op))
		data_in(rx, slot, op, stage);
	ored_slot_leave(slot);
}

/* What an ACK means for the window; under the link's lock. */
static void adjust(struct ored_link *l, const struct ored_news *news, bool limited, bool oldest)
	__must_hold(&l->lock)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&l->lock);
	if (news->arrived)
		ored_rate_acked(&l->rate, news->arrived, limited);
	if (news->lost)
		ored_rate_lost(&l->rate, news->oldest, ored_clock(l->m));
	if (news->arrived) {
		l->stuck = 0;
		l->probes = 0;
	} else if (news->lost) {
		l->stuck++;
	}
	if (!l->inflight && !news->lost)
		l->pto_at = U64_MAX;
	else if (oldest || l->pto_at == U64_MAX)
		l->pto_at = now + (u64)ored_rate_pto(&l->rate) * NSEC_PER_USEC;
}

/* What an ACK tells of the link, and the link of this peer's path */
static void pace(struct ored_rx *rx, u32 packets, u32 sample_us)
	__must_hold(&rx->l->lock)
{
	struct ored_member *m = rx->m;
	u64 now = ktime_get_ns();

	lockdep_assert_held(&rx->l->lock);
	if (!packets || sample_us >= ORED_PTO_MAX_US)
		return;
	spin_lock(&m->pace_lock);
	ored_pace_acked(&m->pace, (u64)packets * m->pace.packet,
			now - (u64)sample_us * NSEC_PER_USEC, now);
	rx->l->rate.packet_us = ored_pace_packet_us(&m->pace);
	spin_unlock(&m->pace_lock);
}

static bool take_ack(struct ored_rx *rx, struct ored_slot *slot, u64 op, u32 stage,
		     const struct ored_ack *ack)
{
	struct ored_member *m = rx->m;
	struct ored_link *l = rx->l;
	struct ored_flow *flow = &slot->peer[l->rank].tx[stage];
	struct ored_news news;
	bool limited, oldest, probe;
	u32 window = l->rate.window;
	u32 before, sample = ored_clock(m) - ack->echo;

	spin_lock(&l->lock);
	/* First, since it tells how much reordering is forgiven. */
	if (sample < ORED_PTO_MAX_US)
		ored_rate_rtt(&l->rate, sample);
	/* A duplicate of what was sent once is the network's doing. */
	if (rx->pkt.flags & ORED_F_DUPLICATE && atomic64_read(&slot->resent))
		ored_rate_spurious(&l->rate);
	/* Not idle: half the window was in use when this was caused. */
	limited = 2 * l->inflight >= l->rate.window;
	before = flow->inflight;
	ored_flow_acked(flow, ack, ored_rate_reorder(&l->rate), &news);
	pace(rx, news.arrived, sample);
	if (rx->pkt.flags & ORED_F_SEALED)
		ored_flow_stop(flow);
	l->inflight -= before - flow->inflight;
	/* News of younger ops must not put off the question about this one. */
	oldest = op <= max(READ_ONCE(m->retained), l->standing.left);
	adjust(l, &news, limited, oldest);
	probe = news.lost && l->stuck >= ORED_STUCK;
	if (l->rate.window != window)
		trace_ored_rate(l, READ_ONCE(rx->m->pace.rate));
	spin_unlock(&l->lock);
	ored_timer_need(rx->m, READ_ONCE(l->pto_at));
	return probe;
}

/* Copies a control packet's content out of the skb. */
static const void *content(struct ored_rx *rx, void *buffer)
{
	if (rx->len > ORED_CONTENT_MAX)
		return NULL;
	return skb_header_pointer(rx->skb, rx->offset, rx->len, buffer);
}

static void rx_ack(struct ored_rx *rx)
{
	u32 stage = rx->pkt.flags & ORED_F_GATHER ? ORED_GATHER : ORED_SCATTER;
	u8 buffer[ORED_CONTENT_MAX];
	struct ored_slot *slot;
	struct ored_ack ack;
	const void *data;
	bool probe = false;
	u64 op;

	data = content(rx, buffer);
	if (!data || ored_ack_parse(data, rx->len, rx->pkt.chunk, &ack)) {
		drop(rx, ORED_CNT_BAD_CONTROL);
		return;
	}
	op = ored_extend32(READ_ONCE(rx->m->posted), rx->pkt.op);
	slot = ored_slot_of(rx->m, op);
	/* Of an op that has been released, nothing is in flight any more. */
	if (ored_slot_enter(slot, op)) {
		/* Pairs with the release in publish(): the flows are started. */
		if (smp_load_acquire(&slot->state) != ORED_SLOT_OPEN) {
			probe = take_ack(rx, slot, op, stage, &ack);
			ored_op_acked(slot);
		}
		ored_slot_leave(slot);
	}
	if (probe)
		ored_join_probe(rx->l);
	/* With incast it may be another peer's turn now. */
	if (READ_ONCE(rx->m->policy.incast) != ORED_INCAST_ALL)
		rx->pump_all = true;
	rx->pump = true;
}

static void rx_poll(struct ored_rx *rx)
{
	u32 stage = rx->pkt.flags & ORED_F_GATHER ? ORED_GATHER : ORED_SCATTER;
	struct ored_slot *slot;
	u64 op;

	slot = enter(rx, &op);
	if (!slot)
		return;
	ored_send_ack(rx->l, slot, op, stage, rx->pkt.clock, 0, true);
	ored_slot_leave(slot);
}

static void rx_mark(struct ored_rx *rx)
{
	struct ored_link *l = rx->l;

	spin_lock(&l->lock);
	if (rx->pkt.flags & ORED_F_FINAL)
		l->bye_known = true;
	l->asks = 0;
	spin_unlock(&l->lock);
	if (rx->pkt.flags & ORED_F_REQUEST)
		ored_send_mark(l, 0);
	if (READ_ONCE(rx->m->state) == ORED_STATE_LEFT)
		ored_timer_need(rx->m, ktime_get_ns());
}

static void rx_failure(struct ored_rx *rx)
{
	u8 buffer[ORED_CONTENT_MAX];
	struct ored_failure mm;
	struct ored_slot *slot;
	const void *data;
	u64 op;

	data = content(rx, buffer);
	if (!data || ored_failure_parse(data, rx->len, &mm) ||
	    mm.rank[0] >= rx->m->nranks || mm.rank[1] >= rx->m->nranks) {
		drop(rx, ORED_CNT_BAD_CONTROL);
		return;
	}
	slot = enter(rx, &op);
	if (!slot)
		return;
	ored_op_fail(slot, op, &mm);
	ored_slot_leave(slot);
	answer(rx->l);
}

static void rx_area(struct ored_rx *rx)
{
	const struct ored_area_rx area = {
		.l = rx->l, .pkt = &rx->pkt, .skb = rx->skb, .offset = rx->offset, .len = rx->len,
	};
	enum ored_counter fate = ored_area_rx(&area);

	if (fate == ORED_CNT_RX_DATA)
		count(rx, fate);
	else if (fate != ORED_CNT_MAX)
		drop(rx, fate);
}

static void rx_hello(struct ored_rx *rx)
{
	u8 buffer[ORED_HELLO_BYTES];
	struct ored_hello hello;
	struct ored_addr from;
	const void *data;
	enum ored_counter cause;
	u16 family = ip_hdr(rx->skb)->version == 4 ? AF_INET : AF_INET6;

	data = skb_header_pointer(rx->skb, rx->offset, sizeof(buffer), buffer);
	if (!data || ored_hello_parse(data, rx->len, &hello)) {
		drop_ns(rx, ORED_CNT_NS_SHORT);
		return;
	}
	source(rx->skb, family, &from);
	cause = ored_join_rx(rx->on, &rx->pkt, &from, &hello);
	if (cause != ORED_CNT_MAX)
		refused(rx, hello.epoch, cause);
}

/* Lays a packet to a membership and a peer, or drops it. */
static bool identify(struct ored_rx *rx)
{
	struct ored_member *m = ored_net_by_session(rx->on, rx->pkt.session);
	struct ored_addr from;

	if (!m) {
		drop_ns(rx, ORED_CNT_NS_SESSION);
		refused(rx, 0, ORED_CNT_NS_SESSION);
		return false;
	}
	rx->m = m;
	count(rx, ORED_CNT_RX_PACKETS);
	source(rx->skb, ip_hdr(rx->skb)->version == 4 ? AF_INET : AF_INET6, &from);
	if (rx->pkt.src >= m->nranks || rx->pkt.src == m->rank || rx->pkt.dst != m->rank ||
	    rx->pkt.group != m->conf.group ||
	    !ored_addr_equal(&m->links[rx->pkt.src].addr, &from)) {
		drop(rx, ORED_CNT_BAD_SOURCE);
		refused(rx, 0, ORED_CNT_BAD_SOURCE);
		return false;
	}
	rx->l = &m->links[rx->pkt.src];
	if (READ_ONCE(m->state) == ORED_STATE_JOINING && rx->pkt.type == ORED_T_BYE) {
		ored_join_bye(rx->l);
		return false;
	}
	/* Without the payload no chunk has a place; it comes again. */
	if (smp_load_acquire(&m->state) != ORED_STATE_JOINED && m->state != ORED_STATE_LEFT) {
		drop(rx, ORED_CNT_AHEAD);
		return false;
	}
	return true;
}

static void dispatch(struct ored_rx *rx)
{
	if (rx->pkt.type == ORED_T_HELLO) {
		rx_hello(rx);
		return;
	}
	if (!identify(rx))
		return;
	heard(rx);
	switch (rx->pkt.type) {
	case ORED_T_SCATTER:
		rx_data(rx, ORED_SCATTER);
		break;
	case ORED_T_GATHER:
		rx_data(rx, ORED_GATHER);
		break;
	case ORED_T_ACK:
		rx_ack(rx);
		break;
	case ORED_T_POLL:
		rx_poll(rx);
		break;
	case ORED_T_MARK:
		rx_mark(rx);
		break;
	case ORED_T_BYE:
		ored_leave_heard(rx->l, &rx->pkt);
		break;
	case ORED_T_FAILURE:
		rx_failure(rx);
		break;
	case ORED_T_AREA:
		rx_area(rx);
		break;
	}
	/* Not before the packet could say that the peer left because it failed. */
	if (rx->moved)
		ored_op_acked_all(rx->m);
	if (rx->look)
		ored_deadline_check(rx->m);
	if (READ_ONCE(rx->m->serves) &&
	    READ_ONCE(rx->l->standing.posted) > READ_ONCE(rx->m->posted))
		ored_deadline_serve(rx->m);
	if (rx->pump_all)
		ored_pump(rx->m);
	else if (rx->pump)
		ored_pump_peer(rx->l);
}

static void drop_malformed(struct ored_rx *rx, int err)
{
	enum ored_counter cause;

	switch (err) {
	case -EMSGSIZE:
		cause = ORED_CNT_NS_SHORT;
		break;
	case -EPROTONOSUPPORT:
		cause = ORED_CNT_NS_VERSION;
		break;
	default:
		cause = ORED_CNT_NS_TYPE;
		break;
	}
	drop_ns(rx, cause);
	ored_tell_refused(rx->on, rx->skb, NULL, rx->told, 0, cause);
}

/**
 * ored_rx_packet() - takes a packet in
 * @on: namespace that it has come to; in softirq, under RCU
 * @skb: from the UDP header on, its checksum verified; consumed
 */
void ored_rx_packet(struct ored_net *on, struct sk_buff *skb)
{
	u8 buffer[ORED_WIRE_HEADER];
	struct ored_rx rx = {
		.skb = skb,
		.on = on,
		.told = READ_ONCE(on->told),
		.offset = sizeof(struct udphdr) + ORED_WIRE_HEADER,
	};
	u32 size = skb->len - min_t(u32, skb->len, sizeof(struct udphdr));
	const void *header;
	int err;

	header = skb_header_pointer(skb, sizeof(struct udphdr),
				    min_t(u32, size, ORED_WIRE_HEADER), buffer);
	err = header ? ored_wire_parse(header, size, &rx.pkt) : -EMSGSIZE;
	if (err) {
		drop_malformed(&rx, err);
		goto out;
	}
	rx.len = size - ORED_WIRE_HEADER;
	dispatch(&rx);
out:
	if (rx.dropped)
		kfree_skb(skb);
	else
		consume_skb(skb);
}

/* Now, or later if debugging wants that. */
static void receive(struct ored_net *on, struct sk_buff *skb)
{
	if (!ored_inject_delay(on, skb))
		ored_rx_packet(on, skb);
}

/**
 * ored_rx() - a datagram has come to an outer socket
 * @sk: the outer socket
 * @skb: from the UDP header on, its checksum verified; consumed
 *
 * Return: 0: it isn't for anybody else
 */
int ored_rx(struct sock *sk, struct sk_buff *skb)
{
	struct ored_net *on = rcu_dereference_sk_user_data(sk);
	struct sk_buff *twin;

	if (!on || ored_inject_drop()) {
		kfree_skb(skb);
		return 0;
	}
	ored_inject_corrupt(skb);
	twin = ored_inject_duplicate() ? skb_clone(skb, GFP_ATOMIC) : NULL;
	receive(on, skb);
	if (twin)
		receive(on, twin);
	return 0;
}
