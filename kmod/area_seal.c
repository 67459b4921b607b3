// SPDX-License-Identifier: GPL-2.0
/*
 * From the open slot to a generation. The order matters: first nobody may reach the
 * slot any more, then nobody may have reached it before and still write (DMA), and
 * only then is it digested.
 */

#include <linux/crc32.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "area.h"
#include "err.h"

#define ORED_HELD_MS 50		/* how long to wait for I/O that is under way */

/* Pages of a slot that somebody else has a reference to: by I/O, or pinned for DMA */
static unsigned long held_pages(const struct ored_area_slot *slot)
{
	unsigned long i, held = 0;

	for (i = 0; i < slot->npages; i++) {
		struct page *page = slot->pages[i];

		if (PageTail(page))
			continue;
		if (page_count(page) != 1 || folio_maybe_dma_pinned(page_folio(page)))
			held += compound_nr(page);
		if (i % 1024 == 0)
			cond_resched();
	}
	return held;
}

static int check_held(const struct ored_area_slot *slot, char *why)
{
	unsigned long held;
	u32 ms;

	for (ms = 0;; ms++) {
		held = held_pages(slot);
		if (!held)
			return 0;
		if (ms == ORED_HELD_MS)
			break;
		usleep_range(900, 1100);
	}
	return ored_refuse(why, EBUSY,
			   "%lu of the slot's %lu pages are pinned or in I/O: end that, or commit with ORED_COMMIT_DIGEST_ONLY",
			   held, slot->npages);
}

/* Return: 0 or -EINTR: the process has been killed */
static int digest(struct ored_area_slot *slot, u64 bytes, u32 *all, char *why)
{
	u32 blocks = ored_area_blocks(bytes), b;

	*all = 0;
	for (b = 0; b < blocks; b++) {
		u64 offset = (u64)b * ORED_AREA_BLOCK;
		u32 len = min_t(u64, bytes - offset, ORED_AREA_BLOCK);

		ored_area_digest_block(slot, bytes, b, &slot->crc[b]);
		*all = b ? __crc32c_le_combine(*all, slot->crc[b], len) : slot->crc[b];
		if (fatal_signal_pending(current))
			return ored_refuse(why, EINTR, "killed while committing");
		cond_resched();
	}
	return 0;
}

static void set_serial(struct ored_area *area, struct ored_area_slot *slot, unsigned long serial)
{
	spin_lock_bh(&area->state);
	slot->serial = serial;
	spin_unlock_bh(&area->state);
}

/* Makes the open slot a generation, and opens another one. */
static void publish(struct ored_area *area, const struct ored_commit *commit, u32 crc)
{
	struct ored_area_copy *own = &area->copy[0];
	struct ored_area_slot *slot = &own->slot[own->gens.open];
	u32 open;

	slot->digest_only = commit->flags & ORED_COMMIT_DIGEST_ONLY;
	slot->meta_len = commit->meta_len;
	memcpy(slot->meta, commit->meta, sizeof(slot->meta));
	spin_lock_bh(&area->state);
	slot->serial++;
	open = ored_generations_seal(&own->gens, commit->step, commit->bytes, crc);
	own->slot[open].serial++;
	if (area->place.copies == 1)
		area->complete = commit->step;
	spin_unlock_bh(&area->state);
	/* Of those who still read the oldest generation */
	ored_area_unmap(area, 0, open);
	if (area->place.copies > 1)
		ored_share_committed(area);
}

static int seal(struct ored_area *area, const struct ored_commit *commit, char *why)
{
	struct ored_area_copy *own = &area->copy[0];
	struct ored_area_slot *slot = &own->slot[own->gens.open];
	unsigned long serial = slot->serial;
	u32 crc;
	int err = 0;

	if (!(commit->flags & ORED_COMMIT_DIGEST_ONLY)) {
		set_serial(area, slot, serial + 1);
		ored_area_unmap(area, 0, own->gens.open);
		err = check_held(slot, why);
	}
	if (!err)
		err = digest(slot, commit->bytes, &crc, why);
	if (!err)
		publish(area, commit, crc);
	else
		set_serial(area, slot, serial);
	return err;
}

static int check(struct ored_area *area, const struct ored_commit *commit, char *why)
{
	const struct ored_generations *gens = &area->copy[0].gens;

	if (area->dead)
		return ored_area_gone(why);
	if (area->filling)
		return ored_refuse(why, EBUSY, "the slot is being read into");
	if (commit->bytes > area->conf.bytes)
		return ored_refuse(why, EMSGSIZE, "%llu bytes are more than the area's %llu",
				   (u64)commit->bytes, (u64)area->conf.bytes);
	if (ored_generations_check(gens, commit->step))
		return ored_refuse(why, EEXIST,
				   "step %llu is not after the newest, %llu: roll back first",
				   (u64)commit->step,
				   gens->slot[ored_generations_newest(gens)].step);
	if (!ored_area_may_commit(area))
		return ored_refuse(why, EAGAIN, "the generation before is not complete yet");
	return 0;
}

static void set_sealing(struct ored_area *area, bool sealing)
{
	spin_lock_bh(&area->state);
	area->sealing = sealing;
	spin_unlock_bh(&area->state);
}

static int lock(struct ored_area *area, char *why)
{
	if (mutex_lock_interruptible(&area->lock))
		return ored_refuse(why, EINTR, "interrupted while another call changed the area");
	return 0;
}

/**
 * ored_area_commit() - seals the open slot
 * @area: the area
 * @commit: checked, but for what depends on the area
 * @why: receives a sentence if it is refused
 *
 * Return: 0 or negative errno
 */
int ored_area_commit(struct ored_area *area, const struct ored_commit *commit, char *why)
{
	struct ored_commit mine = *commit;
	int err;

	err = lock(area, why);
	if (err)
		return err;
	mine.bytes = mine.bytes ?: area->conf.bytes;
	err = check(area, &mine, why);
	if (!err) {
		set_sealing(area, true);
		err = seal(area, &mine, why);
		set_sealing(area, false);
	}
	mutex_unlock(&area->lock);
	if (!err)
		wake_up_all(&area->wait);
	return err;
}

/* A slot is no longer what it was. */
static void renew(struct ored_area *area, u32 slot)
{
	set_serial(area, &area->copy[0].slot[slot], area->copy[0].slot[slot].serial + 1);
	ored_area_unmap(area, 0, slot);
}

/**
 * ored_area_abort() - gives up what has been written
 * @area: the area
 * @why: receives a sentence if it is refused
 *
 * Return: 0, -ENODEV, -EBUSY or -EINTR
 */
int ored_area_abort(struct ored_area *area, char *why)
{
	int err;

	err = lock(area, why);
	if (err)
		return err;
	if (area->dead)
		err = ored_area_gone(why);
	else if (area->filling)
		err = ored_refuse(why, EBUSY, "the slot is being read into");
	else
		renew(area, area->copy[0].gens.open);
	mutex_unlock(&area->lock);
	return err;
}

static u32 forget_after(struct ored_area *area, u64 step)
{
	struct ored_generations *gens = &area->copy[0].gens;
	u32 gone, newest;

	spin_lock_bh(&area->state);
	gone = ored_generations_roll_back(gens, step);
	newest = ored_generations_newest(gens);
	/* Whatever is older than a generation is complete. */
	if (newest == ORED_NO_SLOT)
		area->complete = ORED_NO_STEP;
	else if (area->complete != ORED_NO_STEP)
		area->complete = min(area->complete, gens->slot[newest].step);
	spin_unlock_bh(&area->state);
	return gone;
}

/**
 * ored_area_roll_back() - forgets what is newer than a step
 * @area: the area
 * @step: the newest that may stay
 * @why: receives a sentence if it is refused
 *
 * Return: 0, -ENODEV or -EINTR
 */
int ored_area_roll_back(struct ored_area *area, u64 step, char *why)
{
	u32 gone, s;
	int err;

	err = lock(area, why);
	if (err)
		return err;
	if (area->dead) {
		err = ored_area_gone(why);
		goto out;
	}
	gone = forget_after(area, step);
	for (s = 0; s < ORED_SLOTS; s++) {
		if (gone & 1U << s)
			renew(area, s);
	}
	if (area->place.copies > 1)
		ored_share_rolled(area, step);
out:
	mutex_unlock(&area->lock);
	if (!err)
		wake_up_all(&area->wait);
	return err;
}
