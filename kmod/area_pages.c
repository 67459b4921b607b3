// SPDX-License-Identifier: GPL-2.0
/* Memory of areas: taken when they are made, with digests by block. */

#include <linux/crc32.h>
#include <linux/crc32c.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "area.h"
#include "err.h"

/* ENOMEM comes, and not the OOM killer; the creator's cgroup is charged. */
#define AREA_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)
#define PAGE_GFP (GFP_USER | __GFP_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN | \
		  __GFP_ZERO | __GFP_COMP)

#define HUGE_ORDER	(PMD_SHIFT - PAGE_SHIFT)

static u64 slot_bytes(const struct ored_area *area)
{
	return ((u64)area->npages << PAGE_SHIFT) +
	       PAGE_ALIGN(area->npages * sizeof(struct page *)) +
	       PAGE_ALIGN((u64)ored_area_blocks(area->conf.bytes) * sizeof(u32));
}

/**
 * ored_area_needs() - all memory that an area will have
 * @area: with its sizes set
 *
 * Return: bytes
 */
u64 ored_area_needs(const struct ored_area *area)
{
	return area->ncopies * ORED_SLOTS * slot_bytes(area) +
	       PAGE_ALIGN(area->ncopies * sizeof(struct ored_area_copy)) +
	       PAGE_ALIGN(area->ncopies * sizeof(struct ored_target));
}

/**
 * ored_area_blocks() - how many blocks have digests of their own
 * @bytes: length of a generation
 */
u32 ored_area_blocks(u64 bytes)
{
	return DIV_ROUND_UP_ULL(bytes, ORED_AREA_BLOCK);
}

static void note_pages(struct ored_area_slot *slot, struct page *page, unsigned int order)
{
	unsigned long i;

	for (i = 0; i < 1UL << order; i++)
		slot->pages[slot->npages++] = page + i;
}

/* The next pages of a slot: huge ones as far as there are any and they fit. */
static int take_more(struct ored_area *area, struct ored_area_slot *slot)
{
	unsigned long left = area->npages - slot->npages;
	bool fits = left >= 1UL << HUGE_ORDER;
	struct page *page = NULL;

	if (fits && area->conf.flags & ORED_AREA_HUGE)
		page = alloc_pages(PAGE_GFP, HUGE_ORDER);
	else if (fits)
		page = alloc_pages((PAGE_GFP & ~__GFP_RETRY_MAYFAIL) | __GFP_NORETRY, HUGE_ORDER);
	if (page) {
		note_pages(slot, page, HUGE_ORDER);
		return 0;
	}
	if (fits && area->conf.flags & ORED_AREA_HUGE)
		return -ENOMEM;
	page = alloc_pages(PAGE_GFP, 0);
	if (!page)
		return -ENOMEM;
	note_pages(slot, page, 0);
	return 0;
}

static int alloc_slot(struct ored_area *area, struct ored_area_slot *slot)
{
	int err = 0;

	slot->pages = kvcalloc(area->npages, sizeof(*slot->pages), AREA_GFP);
	slot->crc = kvcalloc(ored_area_blocks(area->conf.bytes), sizeof(*slot->crc), AREA_GFP);
	if (!slot->pages || !slot->crc)
		return -ENOMEM;
	while (!err && slot->npages < area->npages) {
		err = take_more(area, slot);
		if (fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	return err;
}

/**
 * ored_area_alloc() - takes all memory
 * @area: with its sizes set; ored_area_free() cleans up in any case
 * @why: receives a sentence if it fails
 *
 * Return: 0, -ENOMEM or -EINTR
 */
int ored_area_alloc(struct ored_area *area, char *why)
{
	int err = -ENOMEM;
	u32 c, s;

	area->copy = kvcalloc(area->ncopies, sizeof(*area->copy), AREA_GFP);
	area->target = kvcalloc(area->ncopies, sizeof(*area->target), AREA_GFP);
	for (c = 0; area->copy && area->target && c < area->ncopies; c++) {
		ored_generations_init(&area->copy[c].gens);
		area->copy[c].rank = area->conf.owner;
		if (c)
			area->copy[c].rank = ored_placement_owner(&area->place, area->conf.owner,
								  c - 1);
		for (s = 0; s < ORED_SLOTS; s++) {
			err = alloc_slot(area, &area->copy[c].slot[s]);
			if (err)
				goto out;
		}
	}
	if (!err)
		ored_share_init(area);
out:
	if (err == -EINTR)
		return ored_refuse(why, EINTR, "killed while memory was being allocated");
	if (err)
		return ored_refuse(why, ENOMEM, "no memory for the %llu bytes of the area%s",
				   ored_area_needs(area),
				   area->conf.flags & ORED_AREA_HUGE ? " in huge pages" : "");
	return 0;
}

/**
 * ored_area_free_pages() - gives the pages back
 * @area: nobody can reach them any more, but for packets under way, which hold them
 */
void ored_area_free_pages(struct ored_area *area)
{
	u32 c, s;

	for (c = 0; area->copy && c < area->ncopies; c++) {
		for (s = 0; s < ORED_SLOTS; s++) {
			struct ored_area_slot *slot = &area->copy[c].slot[s];

			while (slot->npages) {
				struct page *page = slot->pages[slot->npages - 1];

				/* Once for each folio, at its first page */
				slot->npages--;
				if (!PageTail(page))
					put_page(page);
				if (slot->npages % 1024 == 0)
					cond_resched();
			}
		}
	}
}

/**
 * ored_area_free() - gives everything back
 * @area: nobody has it any more
 */
void ored_area_free(struct ored_area *area)
{
	u32 c, s;

	ored_area_free_pages(area);
	for (c = 0; area->copy && c < area->ncopies; c++) {
		for (s = 0; s < ORED_SLOTS; s++) {
			kvfree(area->copy[c].slot[s].pages);
			kvfree(area->copy[c].slot[s].crc);
		}
	}
	kvfree(area->copy);
	kvfree(area->target);
	ored_uncharge(&area->charge);
	kfree(area);
}

/* Calls @use for each part of a range that is in one page. */
static void each_part(const struct ored_area_slot *slot, u64 offset, size_t len,
		      void (*use)(void *at, size_t len, void *arg), void *arg)
{
	while (len) {
		size_t in_page = offset_in_page(offset);
		size_t part = min_t(size_t, len, PAGE_SIZE - in_page);
		void *at = kmap_local_page(slot->pages[offset >> PAGE_SHIFT]);

		use(at + in_page, part, arg);
		kunmap_local(at);
		offset += part;
		len -= part;
	}
}

static void digest_part(void *at, size_t len, void *arg)
{
	u32 *crc = arg;

	*crc = crc32c(*crc, at, len);
}

/**
 * ored_area_digest_block() - CRC32C over a block
 * @slot: where it is
 * @bytes: length of the generation
 * @block: which
 * @crc: receives it
 */
void ored_area_digest_block(const struct ored_area_slot *slot, u64 bytes, u32 block, u32 *crc)
{
	u64 offset = (u64)block * ORED_AREA_BLOCK;

	*crc = ~0U;
	each_part(slot, offset, min_t(u64, bytes - offset, ORED_AREA_BLOCK), digest_part, crc);
	*crc = ~*crc;
}

static void out_part(void *at, size_t len, void *arg)
{
	u8 **to = arg;

	memcpy(*to, at, len);
	*to += len;
}

/**
 * ored_area_copy_out() - copies from a slot
 * @slot: from where
 * @offset: first byte
 * @to: where to
 * @len: bytes
 */
void ored_area_copy_out(const struct ored_area_slot *slot, u64 offset, void *to, size_t len)
{
	each_part(slot, offset, len, out_part, &to);
}

static void in_part(void *at, size_t len, void *arg)
{
	const u8 **from = arg;

	memcpy(at, *from, len);
	*from += len;
}

/**
 * ored_area_copy_in() - copies into a slot
 * @slot: where to
 * @offset: first byte
 * @from: from where
 * @len: bytes
 */
void ored_area_copy_in(struct ored_area_slot *slot, u64 offset, const void *from, size_t len)
{
	each_part(slot, offset, len, in_part, &from);
}
