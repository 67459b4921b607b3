// SPDX-License-Identifier: GPL-2.0
/*
 * Taking over a generation from a peer: asking for it, and placing what comes, in
 * softirq. It goes over the membership that it was begun with, which is looked up for
 * each packet, and ends with it.
 */

#include <linux/crc32c.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/skbuff.h>

#include "area.h"
#include "area_share.h"
#include "lock.h"
#include "member.h"
#include "tx.h"

#define ASK_MOST	16		/* chunks */
#define ROUNDS		64		/* asks in one go */
#define PATIENCE_NS	(30 * NSEC_PER_SEC)	/* until a silent peer is given up */
#define PAUSE_NS	(2 * NSEC_PER_MSEC)	/* when gradients come first there */

/* The key isn't good any more. */
static void close_window(struct ored_take *take)
{
	lockdep_assert_held(&take->lock);
	if (take->window.key)
		WRITE_ONCE(take->past, take->window.key);
	take->window.key = 0;
}

static void open_window(struct ored_take *take)
{
	close_window(take);
	do {
		take->window.key = get_random_u64();
	} while (!take->window.key);
}

/* It is over. Under its lock; the caller says so to @ended when he has let it go. */
static void end(struct ored_take *take, int err)
{
	close_window(take);
	take->over = true;
	take->err = err;
	take->pto_at = U64_MAX;
}

static bool is_open(const struct ored_take *take)
{
	lockdep_assert_held(&take->lock);
	return take->window.key;
}

/* Has the timer fire when it must. */
static void arm(struct ored_take *take, u64 at)
{
	lockdep_assert_held(&take->lock);
	at = min(at, take->pto_at);
	if (at != U64_MAX && is_open(take))
		hrtimer_start(&take->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

/* How many chunks may be asked for now; else @when there may be some. */
static u32 allowed(struct ored_take *take, u64 now, u64 *when)
{
	u32 window = take->rate.window, inflight = take->pull.inflight;

	lockdep_assert_held(&take->lock);
	if (take->paused > now) {
		*when = take->paused;
		return 0;
	}
	if (inflight >= window)
		return 0;
	return ored_pace_take(&take->pace, min3(window - inflight, ASK_MOST + 0U,
						ored_pace_train(&take->pace)), now, when);
}

/* Return: false if there is nothing to be asked for now */
static bool choose(struct ored_take *take, struct ored_pull_ask *chosen)
{
	u64 now = ktime_get_ns(), when = U64_MAX;
	u32 n, used = 0;

	lockdep_assert_held(&take->lock);
	if (!is_open(take))
		return false;
	n = allowed(take, now, &when);
	if (n && ored_pull_next(&take->pull, n, ored_now_us(), chosen))
		used = hweight64(chosen->mask);
	ored_pace_return(&take->pace, n - used);
	if (used && take->pto_at == U64_MAX)
		take->pto_at = now + (u64)ored_rate_pto(&take->rate) * NSEC_PER_USEC;
	if (!used) {
		if (n)
			ored_pace_idle(&take->pace);
		arm(take, when);
	}
	return used;
}

static void send_ask(struct ored_take *take, struct ored_link *l,
		     const struct ored_pull_ask *chosen, const struct ored_window *window)
{
	struct ored_ask ask = {
		.word = chosen->word,
		.chunk = take->pull.chunk,
		.block = chosen->block,
		.key = window->key,
		.serial = window->serial,
		.mask = chosen->mask,
		.step = take->step,
		.digest = take->digest,
		.rank = take->rank,
	};
	u8 content[ORED_ASK_BYTES];
	struct ored_packet pkt;

	ored_packet_init(l, &pkt, ORED_T_AREA, 0);
	pkt.clock = chosen->clock;
	ored_ask_build(content, &ask);
	ored_send_packet(l, &pkt, content, sizeof(content), 0);
}

static struct ored_link *link_of(const struct ored_take *take)
{
	struct ored_member *m = ored_net_by_session(take->area->on, READ_ONCE(take->session));

	return m ? &m->links[take->window.rank] : NULL;
}

/* Asks for all that may be. No lock held. */
static void pump(struct ored_take *take)
{
	struct ored_window window;
	struct ored_pull_ask ask;
	struct ored_link *l;
	bool over = false;
	u32 round;

	rcu_read_lock();
	local_bh_disable();
	for (round = 0; round < ROUNDS; round++) {
		spin_lock(&take->lock);
		l = link_of(take);
		if (!l && is_open(take)) {
			end(take, -ENOTCONN);
			over = true;
		}
		window = take->window;
		if (!l || !choose(take, &ask)) {
			spin_unlock(&take->lock);
			break;
		}
		spin_unlock(&take->lock);
		send_ask(take, l, &ask, &window);
	}
	if (round == ROUNDS) {
		spin_lock(&take->lock);
		arm(take, ktime_get_ns());
		spin_unlock(&take->lock);
	}
	if (over)
		take->ended(take);
	local_bh_enable();
	rcu_read_unlock();
}

/* Nothing has come for too long. Return: whether that was the end */
static bool check_silence(struct ored_take *take, u64 now)
{
	lockdep_assert_held(&take->lock);
	if (!is_open(take))
		return false;
	if (now - take->heard >= PATIENCE_NS) {
		end(take, -ETIMEDOUT);
		return true;
	}
	if (take->pto_at <= now) {
		ored_pull_give_up(&take->pull);
		ored_rate_timeout(&take->rate);
		ored_rate_lost(&take->rate, ored_now_us(), ored_now_us());
		take->pto_at = U64_MAX;
	}
	return false;
}

static enum hrtimer_restart fire(struct hrtimer *timer)
{
	struct ored_take *take = container_of(timer, struct ored_take, timer);
	bool over;

	spin_lock(&take->lock);
	over = check_silence(take, ktime_get_ns());
	spin_unlock(&take->lock);
	if (over)
		take->ended(take);
	else
		pump(take);
	return HRTIMER_NORESTART;
}

/**
 * ored_take_init() - nothing is being taken over
 * @take: what to fill in; in no list yet
 * @area: whose
 * @ended: what to call when it has ended
 */
void ored_take_init(struct ored_take *take, struct ored_area *area,
		    void (*ended)(struct ored_take *take))
{
	INIT_LIST_HEAD(&take->list);
	take->area = area;
	take->ended = ended;
	spin_lock_init(&take->lock);
	ored_lock_class(&take->lock, ORED_LOCK_TAKE);
	take->pto_at = U64_MAX;
	hrtimer_setup(&take->timer, fire, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

static u32 chunk_for(const struct ored_link *l)
{
	return ored_payload_round(min(READ_ONCE(l->m->payload), ORED_AREA_BLOCK + 0U) -
				  ORED_WRITE_BYTES);
}

static void connect(struct ored_take *take, struct ored_link *l)
{
	lockdep_assert_held(&take->lock);
	WRITE_ONCE(take->session, l->m->session);
	ored_rate_init(&take->rate, 2);
	ored_pace_init(&take->pace, chunk_for(l) + ORED_WRITE_BYTES + ored_overhead(l->m) +
				    ORED_LINK_HEADER);
	take->heard = ktime_get_ns();
	take->paused = 0;
	take->pto_at = U64_MAX;
	take->over = false;
	take->err = 0;
}

/**
 * ored_take_begin() - begins to take over
 * @take: closed, with @pages, @crc, @first, @end, @rank, @step and @digest set
 * @l: from whom; under RCU
 * @window: the place: @bytes of the generation, @serial of the place; gets a key here
 */
void ored_take_begin(struct ored_take *take, struct ored_link *l, const struct ored_window *window)
{
	spin_lock_bh(&take->lock);
	close_window(take);
	take->window = *window;
	take->window.rank = l->rank;
	take->window.rights = ORED_REMOTE_WRITE;
	take->window.key = 0;
	open_window(take);
	ored_pull_begin(&take->pull, window->bytes, chunk_for(l), take->first,
			take->end);
	connect(take, l);
	spin_unlock_bh(&take->lock);
	pump(take);
}

/**
 * ored_take_move() - goes on, if need be over another membership
 * @take: begun before
 * @l: from whom, as then; under RCU
 *
 * Blocks that are whole stay so.
 */
void ored_take_move(struct ored_take *take, struct ored_link *l)
{
	spin_lock_bh(&take->lock);
	if (is_open(take) && take->session == l->m->session) {
		spin_unlock_bh(&take->lock);
		return;
	}
	ored_pull_give_up(&take->pull);
	ored_pull_rechunk(&take->pull, chunk_for(l));
	open_window(take);
	connect(take, l);
	spin_unlock_bh(&take->lock);
	pump(take);
}

/**
 * ored_take_close() - nothing is placed any more
 * @take: in whatever state; process context
 */
void ored_take_close(struct ored_take *take)
{
	spin_lock_bh(&take->lock);
	close_window(take);
	take->over = false;
	take->pto_at = U64_MAX;
	spin_unlock_bh(&take->lock);
	hrtimer_cancel(&take->timer);
}

/**
 * ored_take_forget() - it is not to go on, whatever is offered
 * @take: in whatever state; process context
 */
void ored_take_forget(struct ored_take *take)
{
	ored_take_close(take);
	spin_lock_bh(&take->lock);
	take->pull.end = 0;
	spin_unlock_bh(&take->lock);
}

/**
 * ored_take_is() - is it this that is being taken over, or was, but for an accident?
 * @take: begun before, or never
 * @step: of a generation
 * @digest: likewise
 * @serial: of the place
 */
bool ored_take_is(struct ored_take *take, u64 step, u32 digest, u32 serial)
{
	bool is;

	spin_lock_bh(&take->lock);
	is = take->pull.end && take->step == step && take->digest == digest &&
	     take->window.serial == serial;
	spin_unlock_bh(&take->lock);
	return is;
}

static struct ored_take *find(const struct ored_member *m, u64 key)
{
	struct ored_area *area;
	struct ored_take *take;

	for (area = ored_shared_next(m, NULL); area; area = ored_shared_next(m, area)) {
		list_for_each_entry_rcu(take, &area->takes, list) {
			if (READ_ONCE(take->window.key) == key)
				return take;
		}
	}
	return NULL;
}

/* May a chunk with this key have been asked for, and be late? */
static bool was_asked(const struct ored_member *m, u64 key)
{
	struct ored_area *area;
	struct ored_take *take;

	for (area = ored_shared_next(m, NULL); area; area = ored_shared_next(m, area)) {
		list_for_each_entry_rcu(take, &area->takes, list) {
			if (key && READ_ONCE(take->past) == key)
				return true;
		}
	}
	return false;
}

/* Calls for each part of the place that is in one page. */
static int place(struct ored_take *take, const struct ored_area_rx *rx, u64 at, u32 len)
{
	u32 from = rx->offset + ORED_WRITE_BYTES;
	int err = 0;

	at -= (u64)take->first * ORED_AREA_BLOCK;
	while (len && !err) {
		u32 part = min_t(u32, len, PAGE_SIZE - offset_in_page(at));
		void *to = kmap_local_page(take->pages[at >> PAGE_SHIFT]);

		err = skb_copy_bits(rx->skb, from, to + offset_in_page(at), part);
		kunmap_local(to);
		from += part;
		at += part;
		len -= part;
	}
	return err;
}

static u32 digest_block(const struct ored_take *take, u32 block)
{
	u32 crc = ~0U, left = ored_block_bytes(take->pull.bytes, block);
	unsigned long page = (unsigned long)(block - take->first) * (ORED_AREA_BLOCK / PAGE_SIZE);

	for (; left; page++) {
		u32 part = min_t(u32, left, PAGE_SIZE);
		void *at = kmap_local_page(take->pages[page]);

		crc = crc32c(crc, at, part);
		kunmap_local(at);
		left -= part;
	}
	return ~crc;
}

/* All of a block is there, or can't be right. */
static void look_at(struct ored_take *take, u32 block, u32 crc, bool whole)
{
	bool good = whole && digest_block(take, block) == crc;

	lockdep_assert_held(&take->lock);
	if (good && take->crc)
		take->crc[block] = crc;
	if (ored_pull_verified(&take->pull, block, good)) {
		take->bad = block;
		end(take, -EBADMSG);
	}
	if (is_open(take) && ored_pull_complete(&take->pull))
		end(take, 0);
}

/* What an arrival tells of the way */
static void measure(struct ored_take *take, u32 echo, bool limited)
{
	u32 sample = ored_now_us() - echo, newest, lost;
	u64 now = ktime_get_ns();

	lockdep_assert_held(&take->lock);
	take->heard = now;
	if (sample < ORED_PTO_MAX_US) {
		ored_rate_rtt(&take->rate, sample);
		ored_pace_acked(&take->pace, take->pace.packet, now - (u64)sample * NSEC_PER_USEC,
				now);
		take->rate.packet_us = ored_pace_packet_us(&take->pace);
	}
	ored_rate_acked(&take->rate, 1, limited);
	lost = ored_pull_lost(&take->pull, echo, ored_rate_reorder(&take->rate), &newest);
	if (lost)
		ored_rate_lost(&take->rate, newest, ored_now_us());
	take->pto_at = take->pull.inflight ?
		       now + (u64)ored_rate_pto(&take->rate) * NSEC_PER_USEC : U64_MAX;
}

static u8 code_of(int err)
{
	switch (err) {
	case -ESTALE:
		return ORED_AREA_STALE;
	case -EACCES:
		return ORED_AREA_RIGHTS;
	case -ERANGE:
		return ORED_AREA_RANGE;
	default:
		return ORED_AREA_BAD_KEY;
	}
}

/* Checks a chunk, and only then places it. Return: 0 or negative errno */
static int take_in(struct ored_take *take, const struct ored_area_rx *rx,
		   const struct ored_write *wr)
{
	u32 len = rx->len - ORED_WRITE_BYTES;
	struct ored_access access = {
		.key = wr->key,
		.serial = wr->serial,
		.rank = rx->l->rank,
		.right = ORED_REMOTE_WRITE,
		.offset = (u64)wr->block * ORED_AREA_BLOCK + (u64)wr->index * take->pull.chunk,
		.length = len,
	};
	bool limited = 2 * take->pull.inflight >= take->rate.window;
	int err;

	lockdep_assert_held(&take->lock);
	err = ored_window_check(&take->window, &access) ?:
	      ored_pull_check(&take->pull, wr->block, wr->index, len, wr->crc);
	if (err == -EBADMSG)
		look_at(take, wr->block, wr->crc, false);
	if (err)
		return err;
	if (WARN_ON_ONCE(place(take, rx, access.offset, len)))
		return -ERANGE;
	if (ored_pull_arrived(&take->pull, wr->block, wr->index))
		look_at(take, wr->block, wr->crc, true);
	if (is_open(take))
		measure(take, rx->pkt->op, limited);
	return 0;
}

/**
 * ored_take_data() - a chunk has come
 * @rx: the packet
 *
 * Return: the counter of what has become of it
 */
enum ored_counter ored_take_data(const struct ored_area_rx *rx)
{
	u8 buffer[ORED_WRITE_BYTES];
	struct ored_take *take;
	struct ored_write wr;
	const void *header;
	bool over;
	int err = -EKEYREJECTED;

	header = skb_header_pointer(rx->skb, rx->offset, min_t(u32, rx->len, sizeof(buffer)),
				    buffer);
	if (!header || ored_write_parse(header, rx->len, &wr))
		return ORED_CNT_BAD_CONTROL;
	if (!ored_shared_next(rx->l->m, NULL))
		return ORED_CNT_LATE;
	take = find(rx->l->m, wr.key);
	if (take) {
		spin_lock(&take->lock);
		err = take_in(take, rx, &wr);
		over = take->over;
		spin_unlock(&take->lock);
		if (over && (!err || err == -EBADMSG))
			take->ended(take);
		else if (!over)
			pump(take);
	}
	if (!err)
		return ORED_CNT_RX_DATA;
	if (err == -EEXIST)
		return ORED_CNT_DUPLICATE;
	if (err != -EBADMSG)
		ored_area_refuse(rx->l, code_of(err), wr.block, wr.key);
	return was_asked(rx->l->m, wr.key) ? ORED_CNT_LATE : ORED_CNT_BAD_CHUNK;
}

/* What an asked peer says that it won't do. Return: 0, or why that is the end */
static int why_end(u8 code)
{
	switch (code) {
	case ORED_AREA_NO_AREA:
	case ORED_AREA_NONE:
		return -ENOENT;
	case ORED_AREA_RIGHTS:
		return -EACCES;
	case ORED_AREA_RANGE:
		return -ERANGE;
	default:
		return 0;
	}
}

/**
 * ored_take_refused() - a peer refuses what it was asked for
 * @rx: the packet
 *
 * Return: the counter of what has become of it
 */
enum ored_counter ored_take_refused(const struct ored_area_rx *rx)
{
	u8 buffer[ORED_REFUSE_BYTES];
	struct ored_refusal refusal;
	struct ored_take *take;
	const void *content;
	bool over = false;

	content = skb_header_pointer(rx->skb, rx->offset, min_t(u32, rx->len, sizeof(buffer)),
				     buffer);
	if (!content || ored_refuse_parse(content, rx->len, &refusal))
		return ORED_CNT_BAD_CONTROL;
	take = find(rx->l->m, refusal.key);
	if (!take)
		return ORED_CNT_LATE;
	spin_lock(&take->lock);
	if (take->window.key == refusal.key && take->window.rank == rx->l->rank) {
		take->heard = ktime_get_ns();
		over = why_end(refusal.code);
		if (over) {
			end(take, why_end(refusal.code));
		} else if (refusal.code == ORED_AREA_BUSY) {
			ored_pull_give_up(&take->pull);
			take->pto_at = U64_MAX;
			take->paused = take->heard + PAUSE_NS;
			arm(take, take->paused);
		}
	}
	spin_unlock(&take->lock);
	if (over)
		take->ended(take);
	return ORED_CNT_MAX;
}
