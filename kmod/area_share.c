// SPDX-License-Identifier: GPL-2.0
/* Offering one's own generations to those who keep copies, and taking over theirs. */

#include <linux/crc32.h>
#include <linux/skbuff.h>

#include "area.h"
#include "area_share.h"
#include "lock.h"
#include "member.h"
#include "tx.h"

#define FIRST_GAP	msecs_to_jiffies(20)	/* between offers; it doubles */
#define LAST_GAP	msecs_to_jiffies(1000)

/* --- who and over what ------------------------------------------------------ */

/* The area of a rank of a group. Under RCU, or the namespace's lock */
static struct ored_area *find(const struct ored_net *on, u32 group, u32 owner)
{
	struct ored_area *area;

	list_for_each_entry_rcu(area, &on->shared, shared, lockdep_is_held(&on->lock)) {
		if (area->conf.group == group && area->conf.owner == owner)
			return area;
	}
	return NULL;
}

static struct ored_area *area_of(const struct ored_member *m)
{
	struct ored_area *area = find(m->on, m->conf.group, m->rank);

	return area && area->conf.nranks == m->nranks ? area : NULL;
}

/**
 * ored_shared_next() - all areas of a group that are here, one after the other
 * @m: a membership of it; under RCU
 * @area: the one before, or NULL
 *
 * Return: NULL: that was the last
 */
struct ored_area *ored_shared_next(const struct ored_member *m, struct ored_area *area)
{
	struct list_head *at = area ? &area->shared : &m->on->shared;
	struct ored_area *next;

	for (;;) {
		next = list_next_or_null_rcu(&m->on->shared, at, struct ored_area, shared);
		if (!next || (next->conf.group == m->conf.group &&
			      next->conf.nranks == m->nranks))
			return next;
		at = &next->shared;
	}
}

/* The membership that an area's rank has now, the newest. Under RCU */
static struct ored_member *member_of(const struct ored_area *area)
{
	struct ored_member *m, *best = NULL;

	list_for_each_entry_rcu(m, &area->on->members, list) {
		if (m->conf.group != area->conf.group || m->rank != area->conf.owner ||
		    m->nranks != area->conf.nranks)
			continue;
		/* Pairs with the release in try_finish(): the payload is set. */
		if (smp_load_acquire(&m->state) == ORED_STATE_JOINED)
			best = m;
	}
	return best;
}

/**
 * ored_share_member() - over which membership peers can be asked
 * @area: the area; under RCU
 *
 * Return: that of its rank, or of another one of the group that is here, or NULL
 */
struct ored_member *ored_share_member(const struct ored_area *area)
{
	struct ored_member *m, *best = member_of(area);

	if (best)
		return best;
	list_for_each_entry_rcu(m, &area->on->members, list) {
		if (m->conf.group == area->conf.group && m->nranks == area->conf.nranks &&
		    /* As above */
		    smp_load_acquire(&m->state) == ORED_STATE_JOINED)
			best = m;
	}
	return best;
}

/* How to reach a peer now, or NULL. Under RCU */
static struct ored_link *link_to(const struct ored_area *area, u32 rank)
{
	struct ored_member *m = member_of(area);

	return m ? &m->links[rank] : NULL;
}

/* The copy of a peer's state, or NULL if it isn't kept here */
static struct ored_area_copy *copy_of(struct ored_area *area, u32 rank)
{
	u32 c;

	for (c = 1; c < area->ncopies; c++) {
		if (area->copy[c].rank == rank)
			return &area->copy[c];
	}
	return NULL;
}

/**
 * ored_share_check() - may there be such an area?
 * @on: its namespace, the lock held
 * @area: the area, in no list yet
 * @why: receives a sentence if not
 *
 * Return: 0 or -EEXIST
 */
int ored_share_check(struct ored_net *on, const struct ored_area *area, char *why)
{
	const struct ored_area *other;

	if (area->conf.nranks == 1)
		return 0;
	other = find(on, area->conf.group, area->conf.owner);
	return other ? ored_refuse(why, EEXIST, "rank %u of group %u has an area here already: %s",
				   area->conf.owner, area->conf.group, other->conf.name) : 0;
}

/**
 * ored_share_kick() - something is to be offered, answered or published
 * @area: the area; under RCU, or with a reference and its lock
 */
void ored_share_kick(struct ored_area *area)
{
	if (area->conf.nranks > 1 && !READ_ONCE(area->dead))
		mod_delayed_work(ored_wq, &area->share, 0);
}

/**
 * ored_share_joined() - a rank has joined: its area may go on
 * @m: its membership
 */
void ored_share_joined(struct ored_member *m)
{
	struct ored_area *area;

	rcu_read_lock();
	area = area_of(m);
	if (area)
		ored_share_kick(area);
	rcu_read_unlock();
}

/* --- the owner's side ------------------------------------------------------- */

/* The newest own generation. Under the area's state. Return: false if there is none */
static bool newest(struct ored_area *area, u32 *slot)
{
	lockdep_assert_held(&area->state);
	*slot = ored_generations_newest(&area->copy[0].gens);
	return *slot != ORED_NO_SLOT;
}

/* Nobody has the newest yet, as far as is known. */
static void forget_acks(struct ored_area *area)
{
	u32 t;

	lockdep_assert_held(&area->state);
	for (t = 0; t < area->ncopies - 1; t++) {
		area->target[t].acked = false;
		area->target[t].code = ORED_AREA_TAKING;
		area->target[t].blocks = 0;
	}
	area->offer_gap = FIRST_GAP;
	area->offer_at = jiffies;
}

/**
 * ored_share_committed() - there is a new generation
 * @area: the area, its lock held
 */
void ored_share_committed(struct ored_area *area)
{
	spin_lock_bh(&area->state);
	forget_acks(area);
	spin_unlock_bh(&area->state);
	ored_share_kick(area);
}

/**
 * ored_share_rolled() - the owner has given up generations
 * @area: the area, its lock held
 * @step: those that are newer
 *
 * Holders learn of it with the next offer; until then they keep what they have.
 */
void ored_share_rolled(struct ored_area *area, u64 step)
{
	u32 t;

	spin_lock_bh(&area->state);
	forget_acks(area);
	for (t = 0; t < area->ncopies - 1; t++) {
		area->back_to = area->target[t].tell_rolled ? min(area->back_to, step) : step;
		area->target[t].tell_rolled = true;
	}
	spin_unlock_bh(&area->state);
	ored_share_kick(area);
}

/* Describes the newest to a holder that hasn't got it. */
static bool make_offer(struct ored_area *area, const struct ored_target *target,
		       struct ored_offer *offer, u8 *meta)
{
	const struct ored_generation_slot *gen;
	const struct ored_area_slot *slot;
	u32 s;

	lockdep_assert_held(&area->state);
	if (target->acked || !newest(area, &s))
		return false;
	gen = &area->copy[0].gens.slot[s];
	slot = &area->copy[0].slot[s];
	*offer = (struct ored_offer) {
		.flags = target->tell_rolled ? ORED_OFFER_ROLLED : 0,
		.step = gen->step,
		.bytes = gen->bytes,
		.digest = gen->digest,
		.area_bytes = area->conf.bytes,
		.back_to = area->back_to,
		.nranks = area->conf.nranks,
		.copies = area->conf.copies,
		.jump = area->conf.jump,
		.placement = area->conf.placement,
		.meta_len = slot->meta_len,
	};
	memcpy(meta, slot->meta, slot->meta_len);
	return true;
}

static void send_offer(struct ored_link *l, const struct ored_offer *offer, const u8 *meta)
{
	u8 content[ORED_OFFER_BYTES + ORED_AREA_META_MAX];
	struct ored_packet pkt;

	ored_packet_init(l, &pkt, ORED_T_AREA, 0);
	ored_offer_build(content, offer);
	memcpy(content + ORED_OFFER_BYTES, meta, offer->meta_len);
	ored_send_packet(l, &pkt, content, ORED_OFFER_BYTES + offer->meta_len, 0);
}

/* Offers to all that haven't got it. Return: whether there are such */
static bool offer_all(struct ored_area *area)
{
	u8 meta[ORED_AREA_META_MAX];
	struct ored_offer offer;
	bool any = false, one;
	struct ored_link *l;
	u32 t;

	for (t = 0; t < area->ncopies - 1; t++) {
		spin_lock_bh(&area->state);
		one = make_offer(area, &area->target[t], &offer, meta);
		spin_unlock_bh(&area->state);
		any |= one;
		rcu_read_lock();
		l = link_to(area, area->target[t].rank);
		if (one && l)
			send_offer(l, &offer, meta);
		rcu_read_unlock();
	}
	return any;
}

/* Offers, if it is time to. Return: jiffies until it is again; MAX_JIFFY_OFFSET: never */
static unsigned long offer_due(struct ored_area *area)
{
	long left;

	spin_lock_bh(&area->state);
	left = area->offer_at - jiffies;
	spin_unlock_bh(&area->state);
	if (left > 0)
		return left;
	if (!offer_all(area))
		return MAX_JIFFY_OFFSET;
	spin_lock_bh(&area->state);
	left = area->offer_gap;
	area->offer_at = jiffies + left;
	area->offer_gap = min(2 * area->offer_gap, LAST_GAP);
	spin_unlock_bh(&area->state);
	return left;
}

/* A holder says how far it is. Under the area's state. Return: whether all have it now */
static bool take_answer(struct ored_area *area, struct ored_target *target,
			const struct ored_answer *answer)
{
	const struct ored_generation_slot *gen;
	u32 s, t;

	lockdep_assert_held(&area->state);
	if (!newest(area, &s))
		return false;
	gen = &area->copy[0].gens.slot[s];
	if (gen->step != answer->step || gen->digest != answer->digest)
		return false;
	target->code = answer->code;
	target->blocks = answer->blocks;
	if (answer->code != ORED_AREA_HAVE)
		return false;
	target->acked = true;
	target->tell_rolled = false;
	for (t = 0; t < area->ncopies - 1; t++) {
		if (!area->target[t].acked)
			return false;
	}
	area->complete = gen->step;
	return true;
}

static struct ored_target *target_of(struct ored_area *area, u32 rank)
{
	u32 t;

	for (t = 0; t < area->ncopies - 1; t++) {
		if (area->target[t].rank == rank)
			return &area->target[t];
	}
	return NULL;
}

static enum ored_counter answered(struct ored_area *area, const struct ored_area_rx *rx)
{
	u8 buffer[ORED_ANSWER_BYTES];
	struct ored_answer answer;
	struct ored_target *target;
	const void *content;

	content = skb_header_pointer(rx->skb, rx->offset, min_t(u32, rx->len, sizeof(buffer)),
				     buffer);
	if (!content || ored_answer_parse(content, rx->len, &answer))
		return ORED_CNT_BAD_CONTROL;
	target = target_of(area, rx->l->rank);
	if (!target)
		return ORED_CNT_BAD_CHUNK;
	spin_lock(&area->state);
	take_answer(area, target, &answer);
	spin_unlock(&area->state);
	/* Who waits looks for refusals too. */
	if (answer.code != ORED_AREA_TAKING)
		wake_up_all(&area->wait);
	return ORED_CNT_MAX;
}

/* Some refusals only mean that it has to be tried again. */
static bool is_final(u8 code)
{
	return code != ORED_AREA_HAVE && code != ORED_AREA_TAKING && code != ORED_AREA_NO_AREA;
}

/**
 * ored_share_is_refused() - does a holder refuse the newest generation?
 * @area: the area
 * @rank: receives who does
 * @code: receives why, enum ored_area_code
 */
bool ored_share_is_refused(struct ored_area *area, u32 *rank, u8 *code)
{
	bool refused = false;
	u32 t;

	spin_lock_bh(&area->state);
	for (t = 0; t < area->ncopies - 1 && !refused; t++) {
		*rank = area->target[t].rank;
		*code = area->target[t].code;
		refused = is_final(*code);
	}
	spin_unlock_bh(&area->state);
	return refused;
}

/**
 * ored_share_reason() - in words
 * @code: enum ored_area_code, of a refusal
 */
const char *ored_share_reason(u8 code)
{
	switch (code) {
	case ORED_AREA_DIFFERS:
		return "its area has another shape";
	case ORED_AREA_NO_HOLDER:
		return "it keeps no copies of this rank's state";
	case ORED_AREA_NEWER:
		return "it has a newer step: roll back first";
	case ORED_AREA_DAMAGED:
		return "what was sent is not what was sealed";
	default:
		return "it can't keep it";
	}
}

/* --- the holder's side ------------------------------------------------------ */

/* A take has ended, in softirq: the rest needs process context. */
static void ended(struct ored_take *take)
{
	ored_share_kick(take->area);
}

static void send_answer(struct ored_link *l, const struct ored_offer *offer, u8 code, u32 blocks)
{
	struct ored_answer say = {
		.code = code, .digest = offer->digest, .step = offer->step, .blocks = blocks,
	};
	u8 content[ORED_ANSWER_BYTES];
	struct ored_packet pkt;

	ored_packet_init(l, &pkt, ORED_T_AREA, 0);
	ored_answer_build(content, &say);
	ored_send_packet(l, &pkt, content, sizeof(content), 0);
}

static void answer(const struct ored_area *area, const struct ored_area_copy *copy,
		   const struct ored_offer *offer, u8 code)
{
	struct ored_link *l;

	rcu_read_lock();
	l = link_to(area, copy->rank);
	if (l)
		send_answer(l, offer, code, READ_ONCE(copy->take.pull.base));
	rcu_read_unlock();
}

static u8 compare(const struct ored_area *area, const struct ored_offer *offer)
{
	const struct ored_area_conf *conf = &area->conf;

	return conf->bytes == offer->area_bytes && conf->nranks == offer->nranks &&
	       conf->copies == offer->copies && conf->placement == offer->placement &&
	       conf->jump == offer->jump ? ORED_AREA_HAVE : ORED_AREA_DIFFERS;
}

/* Says at once that it can't be; else leaves it to the worker. */
static enum ored_counter offered(struct ored_area *area, const struct ored_area_rx *rx)
{
	u8 buffer[ORED_OFFER_BYTES + ORED_AREA_META_MAX];
	struct ored_area_copy *copy;
	struct ored_offer offer;
	const void *content;
	u8 code;

	if (rx->len > sizeof(buffer))
		return ORED_CNT_BAD_CONTROL;
	content = skb_header_pointer(rx->skb, rx->offset, rx->len, buffer);
	if (!content || ored_offer_parse(content, rx->len, &offer))
		return ORED_CNT_BAD_CONTROL;
	copy = copy_of(area, rx->l->rank);
	code = compare(area, &offer);
	if (code == ORED_AREA_HAVE && !copy)
		code = ORED_AREA_NO_HOLDER;
	if (code != ORED_AREA_HAVE) {
		send_answer(rx->l, &offer, code, 0);
		return ORED_CNT_MISMATCH;
	}
	spin_lock(&area->state);
	copy->offered.fresh = true;
	copy->offered.offer = offer;
	memcpy(copy->offered.meta, offer.meta, offer.meta_len);
	copy->offered.offer.meta = NULL;
	spin_unlock(&area->state);
	ored_share_kick(area);
	return ORED_CNT_MAX;
}

/* A slot is no longer what it was. */
static void renew(struct ored_area *area, struct ored_area_copy *copy, u32 s)
{
	lockdep_assert_held(&area->lock);
	spin_lock_bh(&area->state);
	copy->slot[s].serial++;
	spin_unlock_bh(&area->state);
	ored_area_unmap(area, copy - area->copy, s);
}

static void roll_back(struct ored_area *area, struct ored_area_copy *copy, u64 step)
{
	u32 gone, s;

	spin_lock_bh(&area->state);
	gone = ored_generations_roll_back(&copy->gens, step);
	spin_unlock_bh(&area->state);
	for (s = 0; s < ORED_SLOTS; s++) {
		if (gone & 1U << s)
			renew(area, copy, s);
	}
}

/* The open slot is what a peer's generation goes to now. */
static void begin(struct ored_area *area, struct ored_area_copy *copy,
		  const struct ored_offer *offer)
{
	struct ored_area_slot *slot = &copy->slot[copy->gens.open];
	struct ored_window window = { .bytes = offer->bytes };
	struct ored_link *l;

	ored_take_forget(&copy->take);
	renew(area, copy, copy->gens.open);
	copy->taking = *offer;
	memcpy(slot->meta, copy->offered.meta, sizeof(slot->meta));
	slot->meta_len = offer->meta_len;
	window.serial = slot->serial;
	copy->take.pages = slot->pages;
	copy->take.crc = slot->crc;
	copy->take.first = 0;
	copy->take.end = ored_area_blocks(offer->bytes);
	copy->take.rank = copy->rank;
	copy->take.step = offer->step;
	copy->take.digest = offer->digest;
	rcu_read_lock();
	l = link_to(area, copy->rank);
	if (l)
		ored_take_begin(&copy->take, l, &window);
	rcu_read_unlock();
}

static void go_on(const struct ored_area *area, struct ored_area_copy *copy)
{
	struct ored_link *l;

	rcu_read_lock();
	l = link_to(area, copy->rank);
	if (l)
		ored_take_move(&copy->take, l);
	rcu_read_unlock();
}

/* Looks at what has been offered. Return: enum ored_area_code, to be answered */
static u8 consider(struct ored_area *area, struct ored_area_copy *copy,
		   const struct ored_offer *offer)
{
	const struct ored_generation_slot *gen;
	u32 s;

	if (offer->flags & ORED_OFFER_ROLLED)
		roll_back(area, copy, offer->back_to);
	s = ored_generations_find(&copy->gens, offer->step);
	if (s != ORED_NO_SLOT) {
		gen = &copy->gens.slot[s];
		return gen->digest == offer->digest && gen->bytes == offer->bytes ?
		       ORED_AREA_HAVE : ORED_AREA_NEWER;
	}
	if (ored_generations_check(&copy->gens, offer->step))
		return ORED_AREA_NEWER;
	if (ored_take_is(&copy->take, offer->step, offer->digest,
			 copy->slot[copy->gens.open].serial))
		go_on(area, copy);
	else
		begin(area, copy, offer);
	return ORED_AREA_TAKING;
}

/* All blocks are there, each verified. Are they the generation? */
static bool is_whole(const struct ored_area_copy *copy)
{
	const struct ored_area_slot *slot = &copy->slot[copy->gens.open];
	u32 blocks = ored_area_blocks(copy->taking.bytes), b, all = 0;

	for (b = 0; b < blocks; b++)
		all = b ? __crc32c_le_combine(all, slot->crc[b],
					      ored_block_bytes(copy->taking.bytes, b))
			: slot->crc[b];
	return all == copy->taking.digest;
}

/* Makes what has been taken over a generation. */
static void publish(struct ored_area *area, struct ored_area_copy *copy)
{
	u32 open;

	spin_lock_bh(&area->state);
	copy->slot[copy->gens.open].serial++;
	copy->slot[copy->gens.open].digest_only = false;
	open = ored_generations_seal(&copy->gens, copy->taking.step, copy->taking.bytes,
				     copy->taking.digest);
	copy->slot[open].serial++;
	spin_unlock_bh(&area->state);
	/* Of those who still read the oldest generation */
	ored_area_unmap(area, copy - area->copy, open);
}

/* A take has ended. Return: enum ored_area_code, to be answered */
static u8 finish(struct ored_area *area, struct ored_area_copy *copy, int err)
{
	ored_take_close(&copy->take);
	if (err == -EBADMSG || (!err && !is_whole(copy))) {
		/* It begins anew, should it be offered again. */
		ored_take_forget(&copy->take);
		renew(area, copy, copy->gens.open);
		return ORED_AREA_DAMAGED;
	}
	if (err)
		return ORED_AREA_TAKING;
	ored_take_forget(&copy->take);
	publish(area, copy);
	return ORED_AREA_HAVE;
}

static void hold(struct ored_area *area, struct ored_area_copy *copy)
{
	struct ored_offer offer;
	bool fresh, over;
	int err;
	u8 code;

	spin_lock_bh(&copy->take.lock);
	over = copy->take.over;
	err = copy->take.err;
	spin_unlock_bh(&copy->take.lock);
	if (over) {
		code = finish(area, copy, err);
		if (code != ORED_AREA_TAKING)
			answer(area, copy, &copy->taking, code);
	}
	spin_lock_bh(&area->state);
	fresh = copy->offered.fresh;
	offer = copy->offered.offer;
	copy->offered.fresh = false;
	spin_unlock_bh(&area->state);
	if (fresh)
		answer(area, copy, &offer, consider(area, copy, &offer));
}

/* --- both --------------------------------------------------------------------- */

/* With another membership, who had said that he has the newest may be new too. */
static void note_member(struct ored_area *area)
{
	struct ored_member *m;
	u32 session;

	rcu_read_lock();
	m = member_of(area);
	session = m ? m->session : area->session;
	rcu_read_unlock();
	spin_lock_bh(&area->state);
	if (session != area->session) {
		area->session = session;
		forget_acks(area);
	}
	spin_unlock_bh(&area->state);
}

static void share_work(struct work_struct *work)
{
	struct ored_area *area = container_of(to_delayed_work(work), struct ored_area, share);
	unsigned long next = MAX_JIFFY_OFFSET;
	u32 c;

	mutex_lock(&area->lock);
	if (!area->dead) {
		note_member(area);
		for (c = 1; c < area->ncopies; c++)
			hold(area, &area->copy[c]);
		next = offer_due(area);
	}
	mutex_unlock(&area->lock);
	if (next != MAX_JIFFY_OFFSET)
		queue_delayed_work(ored_wq, &area->share, next);
}

/**
 * ored_share_init() - prepares what peers are told, and tell
 * @area: with its copies, all zero but for their ranks; nobody knows of it yet
 */
void ored_share_init(struct ored_area *area)
{
	u32 c;

	INIT_LIST_HEAD(&area->shared);
	INIT_LIST_HEAD(&area->takes);
	INIT_LIST_HEAD(&area->inquiries);
	INIT_DELAYED_WORK(&area->share, share_work);
	for (c = 1; c < area->ncopies; c++) {
		area->target[c - 1].rank = ored_placement_holder(&area->place, area->conf.owner,
								 c - 1);
		ored_take_init(&area->copy[c].take, area, ended);
		list_add_tail_rcu(&area->copy[c].take.list, &area->takes);
	}
}

/**
 * ored_share_begin() - peers can reach the area from now on
 * @area: its namespace's lock is held; ored_share_check() has allowed it
 */
void ored_share_begin(struct ored_area *area)
{
	if (area->conf.nranks == 1)
		return;
	list_add_tail_rcu(&area->shared, &area->on->shared);
}

/**
 * ored_share_stop() - peers can't reach the area any more
 * @area: dead, its lock not held; process context
 *
 * When it returns, nothing is being taken over any more, and nobody reads from peers.
 */
void ored_share_stop(struct ored_area *area)
{
	u32 c;

	if (area->conf.nranks == 1)
		return;
	mutex_lock(&area->on->lock);
	if (!list_empty(&area->shared))
		list_del_rcu(&area->shared);
	mutex_unlock(&area->on->lock);
	synchronize_rcu();
	cancel_delayed_work_sync(&area->share);
	for (c = 1; c < area->ncopies; c++)
		ored_take_close(&area->copy[c].take);
	wake_up_all(&area->wait);
	wait_event(area->wait, !READ_ONCE(area->readers));
}

/* There is no area of that rank here. */
static enum ored_counter nothing(const struct ored_area_rx *rx)
{
	u8 buffer[ORED_OFFER_BYTES + ORED_AREA_META_MAX];
	struct ored_offer offer;
	const void *content;

	if (rx->len > sizeof(buffer))
		return ORED_CNT_LATE;
	content = skb_header_pointer(rx->skb, rx->offset, rx->len, buffer);
	if (content && !ored_offer_parse(content, rx->len, &offer))
		send_answer(rx->l, &offer, ORED_AREA_NO_AREA, 0);
	return ORED_CNT_LATE;
}

/**
 * ored_area_rx() - a packet about areas has come
 * @rx: the packet, at least ORED_AREA_LEAST bytes
 *
 * Return: the counter of what has become of it; ORED_CNT_MAX: it was good
 */
enum ored_counter ored_area_rx(const struct ored_area_rx *rx)
{
	struct ored_area *area = area_of(rx->l->m);
	u8 kind;

	if (skb_copy_bits(rx->skb, rx->offset, &kind, sizeof(kind)))
		return ORED_CNT_BAD_CONTROL;
	switch (kind) {
	case ORED_AREA_OFFER:
		return area ? offered(area, rx) : nothing(rx);
	case ORED_AREA_ANSWER:
		return area ? answered(area, rx) : ORED_CNT_LATE;
	case ORED_AREA_ASK:
		return ored_serve(rx);
	case ORED_AREA_DATA:
		return ored_take_data(rx);
	case ORED_AREA_REFUSE:
		return ored_take_refused(rx);
	case ORED_AREA_QUERY:
		return ored_area_queried(rx);
	case ORED_AREA_TELL:
		return ored_area_told(rx);
	default:
		return ORED_CNT_BAD_CONTROL;
	}
}
