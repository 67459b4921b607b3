// SPDX-License-Identifier: GPL-2.0
/*
 * How much memory areas may take: net.ored.ckpt_max_bytes. The first namespace's
 * cap is everybody's; another namespace has its own below that, since the root of a
 * container could otherwise set it for himself.
 */

#include <linux/mm.h>
#include <linux/sysctl.h>

#include "area.h"
#include "err.h"

/* Protects what is counted; taken with nothing else. */
static DEFINE_SPINLOCK(cap_lock);
static u64 reserved;

static u64 global_cap(void)
{
	return READ_ONCE(ored_net(&init_net)->area_cap);
}

/**
 * ored_area_reserve() - counts an area's memory against the caps
 * @on: its namespace
 * @bytes: all of it
 * @why: receives a sentence if it is refused
 *
 * Return: 0 or -ENOMEM
 */
int ored_area_reserve(struct ored_net *on, u64 bytes, char *why)
{
	u64 cap, used, available = (u64)max(si_mem_available(), 0L) << PAGE_SHIFT;

	/* Others shouldn't have to die for it. */
	if (bytes > available)
		return ored_refuse(why, ENOMEM,
				   "the area needs %llu bytes, but only %llu are available",
				   bytes, available);
	spin_lock(&cap_lock);
	cap = min(READ_ONCE(on->area_cap), global_cap());
	used = on->area_bytes;
	/* Whichever leaves less */
	if (global_cap() - min(global_cap(), reserved) < cap - min(cap, used)) {
		cap = global_cap();
		used = reserved;
	}
	if (bytes <= cap && used <= cap - bytes) {
		on->area_bytes += bytes;
		reserved += bytes;
		spin_unlock(&cap_lock);
		return 0;
	}
	spin_unlock(&cap_lock);
	return ored_refuse(why, ENOMEM,
			   "the area needs %llu bytes, but net.ored.ckpt_max_bytes leaves %llu of %llu",
			   bytes, cap - min(cap, used), cap);
}

/**
 * ored_area_unreserve() - the memory has been given back
 * @on: the namespace
 * @bytes: as it was reserved
 */
void ored_area_unreserve(struct ored_net *on, u64 bytes)
{
	spin_lock(&cap_lock);
	on->area_bytes -= bytes;
	reserved -= bytes;
	spin_unlock(&cap_lock);
}

static int handle(ORED_CTL_TABLE *table, int write, void *buffer, size_t *len, loff_t *pos)
{
	struct ored_net *on = table->extra1;
	struct ctl_table one = *table;
	unsigned long cap = min(READ_ONCE(on->area_cap), global_cap());
	int err;

	one.data = &cap;
	one.extra1 = NULL;
	err = proc_doulongvec_minmax(&one, write, buffer, len, pos);
	if (err || !write)
		return err;
	if (on->net != &init_net && cap > global_cap())
		return -EINVAL;
	WRITE_ONCE(on->area_cap, cap);
	return 0;
}

/**
 * ored_area_cap_begin() - a namespace gets its cap
 * @on: the namespace
 * @entry: of its sysctl table, to be filled in
 *
 * Half of all memory by default.
 */
void ored_area_cap_begin(struct ored_net *on, struct ctl_table *entry)
{
	on->area_cap = on->net == &init_net ? (u64)(totalram_pages() / 2) << PAGE_SHIFT : ULONG_MAX;
	entry->procname = "ckpt_max_bytes";
	entry->maxlen = sizeof(unsigned long);
	entry->mode = 0644;
	entry->proc_handler = handle;
	entry->extra1 = on;
}
