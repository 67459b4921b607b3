// SPDX-License-Identifier: GPL-2.0
/*
 * Reading a generation that a peer has: whole blocks come as a holder takes them over,
 * straight into the open slot, or into pages of the reader from which they are copied
 * when they are verified.
 */

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "area.h"
#include "area_share.h"
#include "core/remote.h"
#include "err.h"
#include "member.h"

#define PATIENCE	(2 * HZ)	/* for peers that don't say what they have */
#define BLOCK_PAGES	(ORED_AREA_BLOCK / PAGE_SIZE)
#define PART_BLOCKS	64		/* that are taken before they are copied: 4 MiB */

/**
 * struct fetch - a range being read
 * @area: the reader's handle is on it
 * @read: what is wanted
 * @told: the generation
 * @from: the peer that is asked
 * @take: how far it is
 * @pages: where blocks come that aren't placed in the open slot
 * @npages: how many
 * @tried: peers that haven't got it right
 * @err: what the last of them has got wrong, or 0
 * @why: receives a sentence
 */
struct fetch {
	struct ored_area		*area;
	const struct ored_area_read	*read;
	struct ored_told		told;
	u32				from;
	struct ored_take		*take;
	struct page			**pages;
	u32				npages;
	DECLARE_BITMAP(tried, ORED_MAX_RANKS);
	int				err;
	char				*why;
};

static void ended(struct ored_take *take)
{
	wake_up_all(&take->area->wait);
}

/* From now on chunks find their way. Return: false if the area has been removed */
static bool attach(struct fetch *f)
{
	bool dead;

	spin_lock_bh(&f->area->state);
	dead = f->area->dead;
	if (!dead) {
		list_add_tail_rcu(&f->take->list, &f->area->takes);
		f->area->readers++;
	}
	spin_unlock_bh(&f->area->state);
	return !dead;
}

static void detach(struct fetch *f)
{
	ored_take_forget(f->take);
	spin_lock_bh(&f->area->state);
	list_del_rcu(&f->take->list);
	f->area->readers--;
	spin_unlock_bh(&f->area->state);
	wake_up_all(&f->area->wait);
}

static int begin(struct fetch *f, u32 serial)
{
	struct ored_window window = { .bytes = f->told.bytes, .serial = serial };
	struct ored_member *m;

	rcu_read_lock();
	m = ored_share_member(f->area);
	if (m)
		ored_take_begin(f->take, &m->links[f->from], &window);
	rcu_read_unlock();
	return m ? 0 : -ENOTCONN;
}

/* Why a take has ended, in words */
static int explain(struct fetch *f, int err)
{
	u64 at = (u64)f->take->bad * ORED_AREA_BLOCK;

	switch (err) {
	case 0:
		return 0;
	case -EBADMSG:
		return ored_refuse(f->why, EBADMSG,
				   "step %llu of rank %u, held by rank %u, is damaged in bytes %llu to %llu",
				   (u64)f->told.step, f->told.rank, f->from, at,
				   at + ored_block_bytes(f->told.bytes, f->take->bad) - 1);
	case -ENOENT:
		return ored_refuse(f->why, ENOENT, "rank %u doesn't have step %llu of rank %u any more",
				   f->from, (u64)f->told.step, f->told.rank);
	case -ETIMEDOUT:
		return ored_refuse(f->why, ETIMEDOUT, "rank %u has sent nothing more", f->from);
	case -ENOTCONN:
		return ored_refuse(f->why, ENOTCONN, "the membership has ended");
	default:
		return ored_refuse(f->why, -err, "rank %u doesn't give step %llu of rank %u",
				   f->from, (u64)f->told.step, f->told.rank);
	}
}

static bool is_over(struct fetch *f)
{
	return READ_ONCE(f->take->over) || READ_ONCE(f->area->dead);
}

/* Takes blocks @first to @end into @pages. */
static int take_blocks(struct fetch *f, u32 first, u32 end, struct page **pages, u32 serial)
{
	struct ored_take *take = f->take;
	int err;

	take->pages = pages;
	take->crc = NULL;
	take->first = first;
	take->end = end;
	take->rank = f->told.rank;
	take->step = f->told.step;
	take->digest = f->told.digest;
	if (!attach(f))
		return ored_area_gone(f->why);
	err = begin(f, serial);
	if (!err && wait_event_killable(f->area->wait, is_over(f)))
		err = -EINTR;
	spin_lock_bh(&take->lock);
	if (!err)
		err = take->over ? take->err : -ENODEV;
	spin_unlock_bh(&take->lock);
	detach(f);
	if (err == -EINTR)
		return ored_refuse(f->why, EINTR, "killed while reading");
	return err == -ENODEV ? ored_area_gone(f->why) : explain(f, err);
}

/* --- into the open slot ----------------------------------------------------------- */

static bool is_whole_blocks(const struct fetch *f)
{
	u64 end = f->read->offset + f->read->length;

	return f->read->offset % ORED_AREA_BLOCK == 0 &&
	       (end % ORED_AREA_BLOCK == 0 || end == f->told.bytes);
}

/* Nobody seals the slot or gives it up until it is full. */
static int claim_slot(struct fetch *f, struct ored_area_slot **slot)
{
	struct ored_area *area = f->area;
	struct ored_area_copy *own = &area->copy[0];
	int err = 0;

	if (mutex_lock_killable(&area->lock))
		return ored_refuse(f->why, EINTR, "killed while reading");
	if (area->dead)
		err = ored_area_gone(f->why);
	else if (area->filling)
		err = ored_refuse(f->why, EBUSY, "the slot is being read into");
	else if (!ored_span_inside(area->conf.bytes, f->read->offset, f->read->length))
		err = ored_refuse(f->why, ERANGE, "the area's slots have %llu bytes",
				  (u64)area->conf.bytes);
	if (!err) {
		area->filling = true;
		*slot = &own->slot[own->gens.open];
	}
	mutex_unlock(&area->lock);
	return err;
}

static int fetch_into_slot(struct fetch *f)
{
	u64 end = f->read->offset + f->read->length;
	u32 first = f->read->offset / ORED_AREA_BLOCK;
	struct ored_area_slot *slot;
	int err;

	err = claim_slot(f, &slot);
	if (err)
		return err;
	err = take_blocks(f, first, ored_area_blocks(end), slot->pages + first * BLOCK_PAGES,
			  slot->serial);
	mutex_lock(&f->area->lock);
	f->area->filling = false;
	mutex_unlock(&f->area->lock);
	return err;
}

/* --- into the reader's pages, and from there ---------------------------------------- */

static void drop_pages(struct fetch *f)
{
	while (f->npages)
		__free_page(f->pages[--f->npages]);
	kvfree(f->pages);
	f->pages = NULL;
}

static int get_pages_for(struct fetch *f, u32 blocks)
{
	u32 n = blocks * BLOCK_PAGES;

	f->pages = kvcalloc(n, sizeof(*f->pages), GFP_KERNEL_ACCOUNT);
	while (f->pages && f->npages < n) {
		f->pages[f->npages] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!f->pages[f->npages])
			break;
		f->npages++;
	}
	return f->npages == n ? 0 : ored_refuse(f->why, ENOMEM, "out of memory");
}

/* Part of a slot that is written under the area's lock */
static int put_open(struct fetch *f, u64 at, const void *from, u32 len)
{
	struct ored_area *area = f->area;
	struct ored_area_copy *own = &area->copy[0];
	int err = 0;

	if (mutex_lock_killable(&area->lock))
		return ored_refuse(f->why, EINTR, "killed while reading");
	if (area->dead)
		err = ored_area_gone(f->why);
	else if (!ored_span_inside(area->conf.bytes, at, len))
		err = ored_refuse(f->why, ERANGE, "the area's slots have %llu bytes",
				  (u64)area->conf.bytes);
	else
		ored_area_copy_in(&own->slot[own->gens.open], at, from, len);
	mutex_unlock(&area->lock);
	return err;
}

/* Hands out what is wanted of blocks @first to @end, which are in the pages. */
static int hand_out(struct fetch *f, u32 first, u32 end)
{
	u64 base = (u64)first * ORED_AREA_BLOCK;
	u64 at = max_t(u64, f->read->offset, base);
	u64 stop = min_t(u64, f->read->offset + f->read->length, (u64)end * ORED_AREA_BLOCK);
	int err = 0;

	while (!err && at < stop) {
		u32 len = min_t(u64, stop - at, PAGE_SIZE - offset_in_page(at));
		const u8 *from = page_address(f->pages[(at - base) >> PAGE_SHIFT]) +
				 offset_in_page(at);

		if (!f->read->buffer)
			err = put_open(f, at, from, len);
		else if (copy_to_user(u64_to_user_ptr(f->read->buffer + (at - f->read->offset)),
				      from, len))
			err = ored_refuse(f->why, EFAULT, "the buffer can't be written");
		at += len;
		cond_resched();
	}
	return err;
}

static int fetch_by_parts(struct fetch *f)
{
	u32 first = f->read->offset / ORED_AREA_BLOCK;
	u32 stop = ored_area_blocks(f->read->offset + f->read->length), end;
	int err;

	err = get_pages_for(f, min_t(u32, stop - first, PART_BLOCKS));
	for (; !err && first < stop; first = end) {
		end = min_t(u32, stop, first + PART_BLOCKS);
		err = take_blocks(f, first, end, f->pages, 1) ?: hand_out(f, first, end);
	}
	drop_pages(f);
	return err;
}

/* --- from whom -------------------------------------------------------------------- */

static int fetch_from(struct fetch *f)
{
	if (f->read->offset > f->told.bytes ||
	    !ored_span_inside(f->told.bytes, f->read->offset, f->read->length))
		return ored_refuse(f->why, ERANGE,
				   "the generation has %llu bytes, not %llu from %llu on",
				   (u64)f->told.bytes, (u64)f->read->length,
				   (u64)f->read->offset);
	if (!f->read->buffer && is_whole_blocks(f))
		return fetch_into_slot(f);
	return fetch_by_parts(f);
}

/* Another one may do better. */
static bool is_his_fault(int err)
{
	return err == -EBADMSG || err == -ENOENT || err == -ETIMEDOUT || err == -EACCES;
}

/* The next to be asked: the owner, those who should have it, others. */
static u32 next_holder(const struct ored_area *area, u32 rank, const unsigned long *has)
{
	u32 i;

	if (test_bit(rank, has))
		return rank;
	for (i = 0; i + 1 < area->conf.copies; i++) {
		u32 holder = ored_placement_holder(&area->place, rank, i);

		if (test_bit(holder, has))
			return holder;
	}
	return find_first_bit(has, ORED_MAX_RANKS);
}

/* Says whom to ask when one hasn't got it right. */
static int add_next(struct fetch *f, int err, u32 next)
{
	size_t len = strnlen(f->why, ORED_ERROR_MAX);

	if (next < ORED_MAX_RANKS)
		scnprintf(f->why + len, ORED_ERROR_MAX - len, "; ask rank %u", next);
	else
		scnprintf(f->why + len, ORED_ERROR_MAX - len, "; no other rank has it");
	return err;
}

static int try_all(struct fetch *f, const struct ored_inquiry *inquiry)
{
	DECLARE_BITMAP(has, ORED_MAX_RANKS);

	f->told = inquiry->told;
	for (;;) {
		bitmap_andnot(has, inquiry->has, f->tried, ORED_MAX_RANKS);
		f->from = next_holder(f->area, f->read->rank, has);
		if (f->from >= ORED_MAX_RANKS)
			break;
		f->err = fetch_from(f);
		if (!is_his_fault(f->err))
			return f->err;
		__set_bit(f->from, f->tried);
	}
	if (f->err && !inquiry->all && test_bit(f->read->rank, f->tried))
		return f->err;
	if (f->err)
		return add_next(f, f->err, ORED_MAX_RANKS);
	return ored_refuse(f->why, ENOENT,
			   "step %llu of rank %u is with none of %u ranks, of which %u have answered",
			   (u64)f->read->step, f->read->rank, f->area->conf.nranks,
			   bitmap_weight(inquiry->answered, ORED_MAX_RANKS));
}

/* Just from the one that was named; the next is named if he hasn't got it right. */
static int try_one(struct fetch *f, const struct ored_inquiry *inquiry)
{
	DECLARE_BITMAP(has, ORED_MAX_RANKS) = { 0 };
	int err;
	u32 i;

	f->from = f->read->holder;
	if (!test_bit(f->from, inquiry->answered))
		return ored_refuse(f->why, ETIMEDOUT, "rank %u doesn't answer", f->from);
	if (!test_bit(f->from, inquiry->has))
		return ored_refuse(f->why, ENOENT, "rank %u doesn't have step %llu of rank %u",
				   f->from, (u64)f->read->step, f->read->rank);
	f->told = inquiry->told;
	err = fetch_from(f);
	if (err != -EBADMSG)
		return err;
	__set_bit(f->read->rank, has);
	for (i = 0; i + 1 < f->area->conf.copies; i++)
		__set_bit(ored_placement_holder(&f->area->place, f->read->rank, i), has);
	__clear_bit(f->from, has);
	return add_next(f, err, next_holder(f->area, f->read->rank, has));
}

static struct ored_take *new_take(struct ored_area *area)
{
	struct ored_take *take = kzalloc(sizeof(*take), GFP_KERNEL_ACCOUNT);

	if (take)
		ored_take_init(take, area, ended);
	return take;
}

/* Asks who has it, and tries them. @all: all have to answer, else the owner is enough. */
static int ask_and_try(struct fetch *f, bool all)
{
	struct ored_inquiry *inquiry = kzalloc(sizeof(*inquiry), GFP_KERNEL_ACCOUNT);
	int err;

	if (!inquiry)
		return ored_refuse(f->why, ENOMEM, "out of memory");
	inquiry->query.flags = ORED_QUERY_META;
	inquiry->query.rank = f->read->rank;
	inquiry->query.step = f->read->step;
	inquiry->only = f->read->holder;
	inquiry->all = all;
	err = ored_inquire(f->area, inquiry, PATIENCE, f->why);
	if (!err && f->read->holder == ORED_ANY_HOLDER)
		err = try_all(f, inquiry);
	else if (!err)
		err = try_one(f, inquiry);
	kfree_rcu(inquiry, rcu);
	return err;
}

/**
 * ored_fetch() - reads a range of a generation from peers
 * @area: of a group of several ranks
 * @read: what and where to; checked but for what depends on the generation
 * @why: receives a sentence if it can't be
 *
 * Return: 0 or negative errno, as ORED_AREA_READ
 */
int ored_fetch(struct ored_area *area, const struct ored_area_read *read, char *why)
{
	struct fetch f = { .area = area, .read = read, .why = why };
	int err;

	f.take = new_take(area);
	if (!f.take)
		return ored_refuse(why, ENOMEM, "out of memory");
	err = ask_and_try(&f, false);
	/* The owner is out of the question, and others haven't been waited for. */
	if (read->holder == ORED_ANY_HOLDER && test_bit(read->rank, f.tried) &&
	    is_his_fault(err))
		err = ask_and_try(&f, true);
	kfree_rcu(f.take, rcu);
	return err;
}
