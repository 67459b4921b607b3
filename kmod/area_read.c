// SPDX-License-Identifier: GPL-2.0
/* Looking at the generations that are here. */

#include <linux/crc32c.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "area.h"
#include "core/remote.h"
#include "err.h"

static u64 step_in(const struct ored_generations *gens, u32 slot)
{
	return slot == ORED_NO_SLOT ? ORED_NO_STEP : gens->slot[slot].step;
}

/**
 * ored_area_complete() - the newest own step that all holders have
 * @area: the area
 *
 * Return: the step, or ORED_NO_STEP
 */
u64 ored_area_complete(struct ored_area *area)
{
	u64 step;

	spin_lock_bh(&area->state);
	step = area->complete;
	spin_unlock_bh(&area->state);
	return step;
}

/**
 * ored_area_newest_complete() - do all holders have the newest own generation?
 * @area: the area
 *
 * Return: false if there is none
 */
bool ored_area_newest_complete(struct ored_area *area)
{
	const struct ored_generations *gens = &area->copy[0].gens;
	u64 newest, complete;

	spin_lock_bh(&area->state);
	newest = step_in(gens, ored_generations_newest(gens));
	complete = area->complete;
	spin_unlock_bh(&area->state);
	return newest != ORED_NO_STEP && newest == complete;
}

/**
 * ored_area_may_commit() - would a commit be made without waiting?
 * @area: the area
 *
 * So that what was complete is never given up for what isn't.
 */
bool ored_area_may_commit(struct ored_area *area)
{
	const struct ored_generations *gens = &area->copy[0].gens;
	bool may;

	spin_lock_bh(&area->state);
	may = step_in(gens, ored_generations_newest(gens)) == area->complete;
	spin_unlock_bh(&area->state);
	return may;
}

/**
 * ored_area_status() - tells how far an area is
 * @area: the area
 * @status: receives it
 * @why: receives a sentence if it is refused
 *
 * Return: 0 or -ENODEV
 */
int ored_area_status(struct ored_area *area, struct ored_area_status *status, char *why)
{
	const struct ored_generations *gens = &area->copy[0].gens;
	u32 slot[2], i;
	bool dead;

	memset(status, 0, sizeof(*status));
	spin_lock_bh(&area->state);
	dead = area->dead;
	slot[0] = ored_generations_newest(gens);
	slot[1] = ored_generations_previous(gens);
	for (i = 0; i < ARRAY_SIZE(slot); i++) {
		status->step[i] = step_in(gens, slot[i]);
		if (slot[i] == ORED_NO_SLOT)
			continue;
		status->bytes[i] = gens->slot[slot[i]].bytes;
		status->digest[i] = gens->slot[slot[i]].digest;
	}
	status->complete = area->complete;
	if (slot[0] != ORED_NO_SLOT)
		status->acked[area->conf.owner / 64] |= 1ULL << (area->conf.owner % 64);
	for (i = 0; i < area->ncopies - 1 && slot[0] != ORED_NO_SLOT; i++) {
		u32 rank = area->target[i].rank;

		if (area->target[i].acked)
			status->acked[rank / 64] |= 1ULL << (rank % 64);
	}
	spin_unlock_bh(&area->state);
	return dead ? ored_area_gone(why) : 0;
}

static void describe(struct ored_area *area, u32 c, u32 s, struct ored_generation *gen)
{
	const struct ored_area_copy *copy = &area->copy[c];
	const struct ored_generation_slot *in = &copy->gens.slot[s];
	const struct ored_area_slot *slot = &copy->slot[s];

	memset(gen, 0, sizeof(*gen));
	gen->step = in->step;
	gen->bytes = in->bytes;
	gen->offset = (u64)ored_area_offset(area, c, s) << PAGE_SHIFT;
	gen->rank = copy->rank;
	gen->digest = in->digest;
	/* Of a peer's we only know that we have it; that may be all there is to know. */
	if (c ? area->place.copies == 2 :
		area->complete != ORED_NO_STEP && in->step <= area->complete)
		gen->flags |= ORED_GENERATION_COMPLETE;
	if (slot->digest_only)
		gen->flags |= ORED_GENERATION_DIGEST_ONLY;
	gen->meta_len = slot->meta_len;
	memcpy(gen->meta, slot->meta, sizeof(gen->meta));
}

/**
 * ored_area_generations() - tells what is here
 * @area: the area
 * @gens: receives all generations, for kvfree()
 * @n: receives their number
 * @why: receives a sentence if it is refused
 *
 * Return: 0 or negative errno
 */
int ored_area_generations(struct ored_area *area, struct ored_generation **gens, u32 *n,
			  char *why)
{
	u32 c, i, slot[2];

	*n = 0;
	*gens = kvcalloc(2 * area->ncopies, sizeof(**gens), GFP_KERNEL_ACCOUNT);
	if (!*gens)
		return ored_refuse(why, ENOMEM, "out of memory");
	if (mutex_lock_killable(&area->lock))
		return ored_refuse(why, EINTR, "killed while waiting for a commit");
	for (c = 0; c < area->ncopies && !area->dead; c++) {
		slot[0] = ored_generations_newest(&area->copy[c].gens);
		slot[1] = ored_generations_previous(&area->copy[c].gens);
		for (i = 0; i < ARRAY_SIZE(slot); i++) {
			if (slot[i] != ORED_NO_SLOT)
				describe(area, c, slot[i], &(*gens)[(*n)++]);
		}
	}
	mutex_unlock(&area->lock);
	return area->dead ? ored_area_gone(why) : 0;
}

/* The slot of a generation that is here, or NULL with a sentence */
static struct ored_area_slot *find(struct ored_area *area, const struct ored_area_read *read,
				   u64 *bytes, char *why)
{
	u32 c, s;

	lockdep_assert_held(&area->lock);
	for (c = 0; c < area->ncopies && !area->dead; c++) {
		if (area->copy[c].rank != read->rank)
			continue;
		s = ored_generations_find(&area->copy[c].gens, read->step);
		if (s == ORED_NO_SLOT)
			break;
		*bytes = area->copy[c].gens.slot[s].bytes;
		return &area->copy[c].slot[s];
	}
	ored_refuse(why, ENOENT, "step %llu of rank %u is not here", (u64)read->step, read->rank);
	return NULL;
}

/* Copies the whole block that @at is in, and verifies it. */
static int take_block(struct ored_area *area, const struct ored_area_read *read, u64 at,
		      u8 *block, char *why)
{
	u64 bytes, start = at - at % ORED_AREA_BLOCK;
	struct ored_area_slot *slot;
	u32 b = at / ORED_AREA_BLOCK, len;

	slot = find(area, read, &bytes, why);
	if (!slot)
		return area->dead ? ored_area_gone(why) : -ENOENT;
	if (!ored_span_inside(bytes, read->offset, read->length))
		return ored_refuse(why, ERANGE, "the generation has %llu bytes, not %llu from %llu on",
				   bytes, (u64)read->length, (u64)read->offset);
	len = min_t(u64, bytes - start, ORED_AREA_BLOCK);
	ored_area_copy_out(slot, start, block, len);
	if (~crc32c(~0U, block, len) != slot->crc[b])
		return ored_refuse(why, EBADMSG,
				   "step %llu of rank %u, held by rank %u, is damaged in bytes %llu to %llu",
				   (u64)read->step, read->rank, area->conf.owner, start,
				   start + len - 1);
	return 0;
}

/* Into the open slot; a reader's mistake there is his own. */
static int put_open(struct ored_area *area, const struct ored_area_read *read, u64 at,
		    const u8 *from, u32 len, char *why)
{
	struct ored_area_copy *own = &area->copy[0];

	lockdep_assert_held(&area->lock);
	if (!ored_span_inside(area->conf.bytes, at, len))
		return ored_refuse(why, ERANGE, "the area's slots have %llu bytes",
				   (u64)area->conf.bytes);
	ored_area_copy_in(&own->slot[own->gens.open], at, from, len);
	return 0;
}

static int read_block(struct ored_area *area, const struct ored_area_read *read, u64 at, u32 len,
		      u8 *block, char *why)
{
	u32 skip = at % ORED_AREA_BLOCK;
	int err;

	if (mutex_lock_killable(&area->lock))
		return ored_refuse(why, EINTR, "killed while reading");
	err = take_block(area, read, at, block, why);
	if (!err && !read->buffer)
		err = put_open(area, read, at, block + skip, len, why);
	mutex_unlock(&area->lock);
	/* Never under the lock: it may take as long as the user likes. */
	if (!err && read->buffer &&
	    copy_to_user(u64_to_user_ptr(read->buffer + (at - read->offset)), block + skip, len))
		err = ored_refuse(why, EFAULT, "the buffer can't be written");
	return err;
}

/* Reads what is here. */
static int read_here(struct ored_area *area, const struct ored_area_read *read, char *why)
{
	u64 at = read->offset, left = read->length;
	u8 *block;
	int err = 0;

	block = kvmalloc(ORED_AREA_BLOCK, GFP_KERNEL_ACCOUNT);
	if (!block)
		return ored_refuse(why, ENOMEM, "out of memory");
	while (!err && left) {
		u32 len = min_t(u64, left, ORED_AREA_BLOCK - at % ORED_AREA_BLOCK);

		err = read_block(area, read, at, len, block, why);
		at += len;
		left -= len;
		if (fatal_signal_pending(current) && !err)
			err = ored_refuse(why, EINTR, "killed while reading");
		cond_resched();
	}
	kvfree(block);
	return err;
}

/**
 * ored_area_read() - copies a range of a generation, verified
 * @area: the area
 * @read: what and where to
 * @rights: of the handle
 * @why: receives a sentence if it is refused
 *
 * Return: 0 or negative errno
 */
int ored_area_read(struct ored_area *area, const struct ored_area_read *read, u32 rights,
		   char *why)
{
	char here[ORED_ERROR_MAX];
	int err, elsewhere;

	if (!(rights & ORED_AREA_MAY_READ) || (!read->buffer && !(rights & ORED_AREA_MAY_WRITE)))
		return ored_refuse(why, EACCES, "this handle may not do that");
	if (read->holder != ORED_ANY_HOLDER && read->holder >= area->conf.nranks)
		return ored_refuse(why, ENOENT, "the group has no rank %u", read->holder);
	if (read->rank >= area->conf.nranks)
		return ored_refuse(why, ENOENT, "the group has no rank %u", read->rank);
	if (!read->length || read->offset + read->length < read->offset)
		return ored_refuse(why, ERANGE, "%llu bytes from %llu on are no range",
				   (u64)read->length, (u64)read->offset);
	if (area->conf.nranks == 1 || read->holder == area->conf.owner)
		return read_here(area, read, why);
	if (read->holder != ORED_ANY_HOLDER)
		return ored_fetch(area, read, why);
	err = read_here(area, read, why);
	if (err != -ENOENT && err != -EBADMSG)
		return err;
	/* Where it was sought first says most if there is nobody to be asked. */
	memcpy(here, why, sizeof(here));
	elsewhere = ored_fetch(area, read, why);
	if (elsewhere != -ENOTCONN && (elsewhere != -ENOENT || err == -ENOENT))
		return elsewhere;
	scnprintf(why, ORED_ERROR_MAX, "%s%s", here,
		  elsewhere == -ENOENT ? "; no other rank has it" : "");
	return err;
}

static void note_own(struct ored_area *area, struct ored_area_newest *newest)
{
	const struct ored_generations *gens = &area->copy[0].gens;

	spin_lock_bh(&area->state);
	newest->step = step_in(gens, ored_generations_newest(gens));
	spin_unlock_bh(&area->state);
	newest->holders[0] = 1;
}

static int ask_all(struct ored_area *area, struct ored_area_newest *newest,
		   struct ored_inquiry *inquiry, long patience, char *why)
{
	u32 r;
	int err;

	inquiry->ranks = kvcalloc(area->conf.nranks, sizeof(*inquiry->ranks), GFP_KERNEL_ACCOUNT);
	if (!inquiry->ranks)
		return ored_refuse(why, ENOMEM, "out of memory");
	inquiry->query.rank = ORED_ANY_RANK;
	inquiry->query.step = ORED_NO_STEP;
	inquiry->only = ORED_ANY_HOLDER;
	err = ored_inquire(area, inquiry, patience, why);
	newest->step = ored_survey_newest(inquiry->ranks, area->conf.nranks);
	for (r = 0; r < area->conf.nranks; r++) {
		if (test_bit(r, inquiry->answered))
			newest->holders[r / 64] |= 1ULL << (r % 64);
	}
	/* Nobody looks at it: it is in no list, or it was never. */
	synchronize_rcu();
	kvfree(inquiry->ranks);
	return err;
}

/**
 * ored_area_newest() - the newest step of which all ranks' states are somewhere
 * @area: the area
 * @newest: receives it
 * @patience: for how long to wait for those who don't answer, jiffies
 * @why: receives a sentence if it can't be
 *
 * Return: 0, -ENOTCONN, -ENODEV, -ENOMEM or -EINTR
 */
int ored_area_newest(struct ored_area *area, struct ored_area_newest *newest, long patience,
		     char *why)
{
	struct ored_inquiry *inquiry;
	int err;

	memset(newest, 0, sizeof(*newest));
	if (area->conf.nranks == 1) {
		note_own(area, newest);
		return READ_ONCE(area->dead) ? ored_area_gone(why) : 0;
	}
	inquiry = kzalloc(sizeof(*inquiry), GFP_KERNEL_ACCOUNT);
	if (!inquiry)
		return ored_refuse(why, ENOMEM, "out of memory");
	err = ask_all(area, newest, inquiry, patience, why);
	kfree(inquiry);
	return err;
}
