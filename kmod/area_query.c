// SPDX-License-Identifier: GPL-2.0
/* Which generations there are: telling peers, and asking them. */

#include <linux/random.h>
#include <linux/skbuff.h>

#include "area.h"
#include "area_share.h"
#include "err.h"
#include "member.h"
#include "tx.h"

#define TELL_MOST	16			/* generations in a packet */
#define META_ROOM	(ORED_TELL_BYTES + ORED_TOLD_BYTES + ORED_AREA_META_MAX)
#define TELL_ROOM	(ORED_TELL_BYTES + TELL_MOST * ORED_TOLD_BYTES)
#define FIRST_WAIT	msecs_to_jiffies(20)	/* before peers are asked again; it doubles */
#define LAST_WAIT	msecs_to_jiffies(500)

/* Metadata comes with one generation. */
static_assert(META_ROOM <= TELL_ROOM);

/* --- telling ------------------------------------------------------------------ */

/* A walk over the generations that are here */
struct walk {
	const struct ored_query	*query;
	u8			*content;	/* of a TELL, TELL_ROOM bytes, or NULL */
	struct ored_tell	tell;
	struct ored_inquiry	*inquiry;	/* or one that learns of them */
};

static void tell(struct walk *w, const struct ored_told *told, const struct ored_area_slot *slot)
{
	bool with_meta = w->query->flags & ORED_QUERY_META;
	u8 *to = w->content + ORED_TELL_BYTES + w->tell.n * ORED_TOLD_BYTES;

	if (w->tell.total < w->tell.first || w->tell.n == (with_meta ? 1 : TELL_MOST))
		return;
	ored_told_build(to, told);
	w->tell.n++;
	if (!with_meta)
		return;
	w->tell.meta_len = slot->meta_len;
	memcpy(to + ORED_TOLD_BYTES, slot->meta, slot->meta_len);
}

static void visit(struct walk *w, const struct ored_area_copy *copy, u32 s)
{
	const struct ored_generation_slot *gen = &copy->gens.slot[s];
	struct ored_told told = {
		.step = gen->step,
		.bytes = gen->bytes,
		.digest = gen->digest,
		.rank = copy->rank,
		.digest_only = copy->slot[s].digest_only,
	};

	if (!gen->sealed)
		return;
	if (w->query->rank != ORED_ANY_RANK && w->query->rank != copy->rank)
		return;
	if (w->query->step != ORED_NO_STEP && w->query->step != gen->step)
		return;
	if (w->content)
		tell(w, &told, &copy->slot[s]);
	else
		ored_survey_add(&w->inquiry->ranks[copy->rank], gen->step);
	w->tell.total += w->tell.total < U16_MAX;
}

/* All areas of the group that are here. Under RCU, bottom halves off */
static void walk(struct walk *w, const struct ored_member *m)
{
	struct ored_area *area;
	u32 c, s;

	for (area = ored_shared_next(m, NULL); area; area = ored_shared_next(m, area)) {
		spin_lock(&area->state);
		for (c = 0; c < area->ncopies && !area->dead; c++)
			for (s = 0; s < ORED_SLOTS; s++)
				visit(w, &area->copy[c], s);
		spin_unlock(&area->state);
	}
}

/**
 * ored_area_queried() - a peer asks which generations are here
 * @rx: the packet
 *
 * Return: the counter of what has become of it
 */
enum ored_counter ored_area_queried(const struct ored_area_rx *rx)
{
	u8 buffer[ORED_QUERY_BYTES], content[TELL_ROOM];
	struct ored_query query;
	struct walk w = { .query = &query, .content = content };
	struct ored_packet pkt;
	const void *asked;

	asked = skb_header_pointer(rx->skb, rx->offset, min_t(u32, rx->len, sizeof(buffer)),
				   buffer);
	if (!asked || ored_query_parse(asked, rx->len, &query))
		return ORED_CNT_BAD_CONTROL;
	w.tell.id = query.id;
	w.tell.first = query.first;
	walk(&w, rx->l->m);
	w.tell.first = min(w.tell.first, w.tell.total);
	ored_packet_init(rx->l, &pkt, ORED_T_AREA, 0);
	ored_tell_build(content, &w.tell);
	ored_send_packet(rx->l, &pkt, content,
			 ORED_TELL_BYTES + w.tell.n * ORED_TOLD_BYTES + w.tell.meta_len, 0);
	return ORED_CNT_MAX;
}

/* --- asking ------------------------------------------------------------------- */

/* Takes in what a rank has told of one generation. Under the area's state */
static void learn(struct ored_inquiry *inquiry, const struct ored_area *area, u32 from,
		  const struct ored_told *told, const u8 *meta, u32 meta_len)
{
	if (told->rank >= area->conf.nranks)
		return;
	if (inquiry->ranks) {
		ored_survey_add(&inquiry->ranks[told->rank], told->step);
		return;
	}
	if (told->rank != inquiry->query.rank || told->step != inquiry->query.step)
		return;
	if (bitmap_empty(inquiry->has, ORED_MAX_RANKS) || from == told->rank) {
		if (told->digest != inquiry->told.digest || told->bytes != inquiry->told.bytes)
			bitmap_zero(inquiry->has, ORED_MAX_RANKS);
		inquiry->told = *told;
		inquiry->meta_len = meta_len;
		memcpy(inquiry->meta, meta, meta_len);
	}
	if (told->digest == inquiry->told.digest && told->bytes == inquiry->told.bytes)
		__set_bit(from, inquiry->has);
}

/* Return: false if it makes no sense */
static bool learn_all(struct ored_inquiry *inquiry, const struct ored_area *area, u32 from,
		      const struct ored_tell *said, const u8 *content)
{
	const u8 *at = content + ORED_TELL_BYTES;
	struct ored_told told;
	u32 i;

	for (i = 0; i < said->n; i++, at += ORED_TOLD_BYTES) {
		if (ored_told_parse(at, &told))
			return false;
		learn(inquiry, area, from, &told, at + ORED_TOLD_BYTES, said->meta_len);
	}
	return true;
}

static enum ored_counter take_told(struct ored_area *area, u32 from,
				   const struct ored_tell *said, const u8 *content)
{
	struct ored_inquiry *inquiry;

	lockdep_assert_held(&area->state);
	list_for_each_entry(inquiry, &area->inquiries, list) {
		if (inquiry->query.id != said->id)
			continue;
		if (test_bit(from, inquiry->answered) || said->first != inquiry->got[from] ||
		    (inquiry->only != ORED_ANY_HOLDER && inquiry->only != from))
			return ORED_CNT_DUPLICATE;
		if (!learn_all(inquiry, area, from, said, content))
			return ORED_CNT_BAD_CONTROL;
		inquiry->got[from] += said->n;
		inquiry->news = true;
		if (inquiry->got[from] == said->total || inquiry->query.flags & ORED_QUERY_META)
			__set_bit(from, inquiry->answered);
		return ORED_CNT_MAX;
	}
	return ORED_CNT_LATE;
}

/**
 * ored_area_told() - a peer says which generations it has
 * @rx: the packet
 *
 * Return: the counter of what has become of it
 */
enum ored_counter ored_area_told(const struct ored_area_rx *rx)
{
	enum ored_counter fate = ORED_CNT_LATE;
	u8 buffer[TELL_ROOM];
	struct ored_tell said;
	struct ored_area *area;
	const void *content;

	if (rx->len > sizeof(buffer))
		return ORED_CNT_BAD_CONTROL;
	content = skb_header_pointer(rx->skb, rx->offset, rx->len, buffer);
	if (!content || ored_tell_parse(content, rx->len, &said))
		return ORED_CNT_BAD_CONTROL;
	for (area = ored_shared_next(rx->l->m, NULL); area && fate == ORED_CNT_LATE;
	     area = ored_shared_next(rx->l->m, area)) {
		spin_lock(&area->state);
		fate = take_told(area, rx->l->rank, &said, content);
		spin_unlock(&area->state);
		if (fate == ORED_CNT_MAX)
			wake_up_all(&area->wait);
	}
	return fate;
}

/* Asks all who haven't told all. Return: -ENOTCONN: there is no way to */
static int ask(struct ored_area *area, struct ored_inquiry *inquiry)
{
	u8 content[ORED_QUERY_BYTES];
	struct ored_query query;
	struct ored_packet pkt;
	struct ored_member *m;
	u32 r;

	rcu_read_lock();
	m = ored_share_member(area);
	for (r = 0; m && r < m->nranks; r++) {
		if (r == m->rank || (inquiry->only != ORED_ANY_HOLDER && inquiry->only != r))
			continue;
		spin_lock_bh(&area->state);
		query = inquiry->query;
		query.first = inquiry->got[r];
		query.id = test_bit(r, inquiry->answered) ? 0 : query.id;
		spin_unlock_bh(&area->state);
		if (!query.id)
			continue;
		ored_packet_init(&m->links[r], &pkt, ORED_T_AREA, 0);
		ored_query_build(content, &query);
		ored_send_packet(&m->links[r], &pkt, content, sizeof(content), 0);
	}
	rcu_read_unlock();
	return m ? 0 : -ENOTCONN;
}

/* What is here counts as told by this rank. Return: -ENOTCONN: there is no membership */
static int ask_here(struct ored_area *area, struct ored_inquiry *inquiry)
{
	struct walk w = { .query = &inquiry->query, .inquiry = inquiry };
	struct ored_member *m;

	rcu_read_lock();
	m = ored_share_member(area);
	if (m) {
		local_bh_disable();
		/* Nobody else knows of the inquiry yet. */
		if (inquiry->ranks)
			walk(&w, m);
		__set_bit(m->rank, inquiry->answered);
		local_bh_enable();
	}
	rcu_read_unlock();
	return m ? 0 : -ENOTCONN;
}

/* Has all been told that can be, or that is needed? */
static bool is_through(struct ored_area *area, const struct ored_inquiry *inquiry)
{
	lockdep_assert_held(&area->state);
	if (inquiry->only != ORED_ANY_HOLDER)
		return test_bit(inquiry->only, inquiry->answered);
	/* Nobody knows better than the owner. */
	return (!inquiry->all && !inquiry->ranks && test_bit(inquiry->query.rank, inquiry->has)) ||
	       bitmap_weight(inquiry->answered, ORED_MAX_RANKS) >= area->conf.nranks;
}

static bool has_news(struct ored_area *area, struct ored_inquiry *inquiry, bool *through)
{
	bool news;

	spin_lock_bh(&area->state);
	*through = is_through(area, inquiry);
	news = inquiry->news;
	spin_unlock_bh(&area->state);
	return news || *through || READ_ONCE(area->dead);
}

static int ask_until(struct ored_area *area, struct ored_inquiry *inquiry, long patience, char *why)
{
	unsigned long end = jiffies + patience;
	long gap = FIRST_WAIT, left;
	bool through;

	for (;;) {
		spin_lock_bh(&area->state);
		inquiry->news = false;
		spin_unlock_bh(&area->state);
		if (ask(area, inquiry))
			return ored_refuse(why, ENOTCONN, "the membership has ended");
		left = end - jiffies;
		if (wait_event_killable_timeout(area->wait, has_news(area, inquiry, &through),
						clamp(left, 1L, gap)) < 0)
			return ored_refuse(why, EINTR, "killed while asking peers");
		if (READ_ONCE(area->dead))
			return ored_area_gone(why);
		if (through || time_after_eq(jiffies, end))
			return 0;
		gap = min_t(long, 2 * gap, LAST_WAIT);
	}
}

/**
 * ored_inquire() - asks peers which generations they have
 * @area: of a group of several ranks
 * @inquiry: all zero but for @query, without its @id, @only, @all and @ranks; the caller
 *	frees it by RCU
 * @patience: for how long to wait for those who don't answer, jiffies
 * @why: receives a sentence if it can't be
 *
 * Return: 0: who has told is in @inquiry, -ENOTCONN, -ENODEV or -EINTR
 */
int ored_inquire(struct ored_area *area, struct ored_inquiry *inquiry, long patience, char *why)
{
	bool dead;
	int err;

	do {
		inquiry->query.id = get_random_u32();
	} while (!inquiry->query.id);
	if (ask_here(area, inquiry))
		return ored_refuse(why, ENOTCONN, "no rank of group %u has joined here",
				   area->conf.group);
	spin_lock_bh(&area->state);
	dead = area->dead;
	if (!dead) {
		list_add_tail_rcu(&inquiry->list, &area->inquiries);
		area->readers++;
	}
	spin_unlock_bh(&area->state);
	if (dead)
		return ored_area_gone(why);
	err = ask_until(area, inquiry, patience, why);
	spin_lock_bh(&area->state);
	list_del_rcu(&inquiry->list);
	area->readers--;
	spin_unlock_bh(&area->state);
	wake_up_all(&area->wait);
	return err;
}
