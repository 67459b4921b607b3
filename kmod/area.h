/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checkpoint areas: named memory of a network namespace that outlives whoever
 * fills it.
 *
 * Slots
 * =====
 * An area has the copy of its owner's state, and a copy for each peer's state
 * that this rank holds. A copy has three slots (core/generation.h): two with
 * generations, and one that is open. A slot has a serial number that grows
 * whenever it is sealed or opened; mappings and remote keys carry the one
 * they were made with, and are worth nothing when it has grown.
 *
 * Locking
 * =======
 * ored_area.lock: what changes generations: committing, rolling back, removing,
 *	publishing what has come from a peer; never held over copies from and to the
 *	user.
 * ored_area.state: a spinlock around each change of what @dead, serials and
 *	generations say, so that fault handlers and softirqs can look.
 * ored_take.lock: what is being taken over from a peer; packets place their chunks under
 *	it, after they have checked the key. Who has taken the key back under it knows
 *	that nothing is written any more.
 * A folio's lock: a fault handler looks at the serial under it and returns with it
 *	held; the page is in the page table when it is let go. So who changes a
 *	serial, and then has held the lock of each folio, can unmap the slot and
 *	be sure that nothing comes after him.
 *
 * Lifetime
 * ========
 * References are held by the namespace's list, until the area is removed, by
 * sockets and by @file, which mappings hold. Removing unmaps and frees all
 * pages; what is left goes with the last reference. @file also holds the module.
 *
 * Packets find areas under RCU. Removing first makes the area dead and takes it
 * out of their sight, waits for a grace period, and then ends what is being taken
 * over, with its timers and the worker. Packets on their way to a peer hold the
 * pages that they are from: they are taken from a slot under ored_area.state, while
 * the area isn't dead.
 */
#ifndef ORED_AREA_H
#define ORED_AREA_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/ored.h>

#include "area_share.h"
#include "charge.h"
#include "core/generation.h"
#include "core/placement.h"
#include "err.h"
#include "net.h"

struct file;
struct page;
struct socket;
struct vm_area_struct;

/**
 * struct ored_area_slot - memory for one generation
 * @serial: see "Slots"
 * @pages: of 4 KiB each, though larger folios they may be part of
 * @npages: how many of them there are; less than the area's if there was no memory
 * @crc: digest of each block
 * @digest_only: committed so
 * @meta_len: bytes of @meta
 * @meta: as committed
 */
struct ored_area_slot {
	unsigned long		serial;
	struct page		**pages;
	unsigned long		npages;
	u32			*crc;
	bool			digest_only;
	u32			meta_len;
	u8			meta[ORED_AREA_META_MAX];
};

/**
 * struct ored_area_copy - of one rank's state
 * @rank: whose
 * @gens: what is where
 * @slot: the memory
 * @offered: a peer's: what it has offered last
 * @taking: a peer's: the generation that goes into the open slot; without metadata
 * @take: a peer's: how far it is
 */
struct ored_area_copy {
	u32			rank;
	struct ored_generations	gens;
	struct ored_area_slot	slot[ORED_SLOTS];
	struct ored_offered	offered;
	struct ored_offer	taking;
	struct ored_take	take;
};

/**
 * struct ored_area - an area
 * @ref: see "Lifetime"
 * @on: its namespace; valid until @dead
 * @list: in ored_net.areas, under its lock
 * @conf: as it was made
 * @uid: who made it
 * @gid: his group
 * @place: who holds copies
 * @npages: pages of a slot
 * @stride: pages between the offsets of two slots
 * @ncopies: copies here, the own one first
 * @copy: the copies
 * @file: what mappings are of
 * @charge: who is charged
 * @handles: sockets that have it open
 * @wait: who waits for a generation to be complete, or for room
 * @lock: see "Locking"
 * @state: see "Locking"
 * @complete: newest own step that all holders have, or ORED_NO_STEP
 * @sealing: a commit is under way
 * @filling: the open slot is being read into, from a peer
 * @shared: in ored_net.shared, under its lock; read under RCU
 * @takes: all that is being taken over; read under RCU, changed under @state
 * @inquiries: who wants to know what there is; likewise
 * @readers: those in the two lists who read; none comes when @dead
 * @target: who keeps copies of the own generations, copies - 1 of them
 * @share: offers, answers and publishes
 * @session: of the membership over which it did so last
 * @back_to: what the targets must be told, if they must: newer steps are given up
 * @offer_at: next offer, jiffies
 * @offer_gap: until the one after it
 * @dead: it has been removed
 */
struct ored_area {
	struct kref		ref;
	struct ored_net		*on;
	struct list_head	list;
	struct ored_area_conf	conf;
	kuid_t			uid;
	kgid_t			gid;
	struct ored_placement	place;
	unsigned long		npages;
	unsigned long		stride;
	u32			ncopies;
	struct ored_area_copy	*copy;
	struct file		*file;
	struct ored_charge	charge;
	atomic_t		handles;
	wait_queue_head_t	wait;
	struct mutex		lock;	/* generations */
	spinlock_t		state;	/* looking at them in any context */
	u64			complete;
	bool			sealing;
	bool			filling;
	struct list_head	shared;
	struct list_head	takes;
	struct list_head	inquiries;
	u32			readers;
	struct ored_target	*target;
	struct delayed_work	share;
	u32			session;
	u64			back_to;
	unsigned long		offer_at;
	unsigned long		offer_gap;
	bool			dead;
};

/* Rights of a handle */
#define ORED_AREA_MAY_READ	4
#define ORED_AREA_MAY_WRITE	2

/* area.c: areas by name */
struct ored_area *ored_area_open(struct ored_net *on, struct ored_area_conf *conf, u32 *rights,
				 char *why);
void ored_area_close(struct ored_area *area);
int ored_area_remove(struct ored_net *on, struct ored_area *area, const u8 *name, char *why);
int ored_area_list(struct ored_net *on, struct ored_area_entry **entries, u32 *n);
void ored_area_put(struct ored_area *area);
void ored_area_end(struct ored_net *on);

/* area_cap.c: how much there may be */
int ored_area_reserve(struct ored_net *on, u64 bytes, char *why);
void ored_area_unreserve(struct ored_net *on, u64 bytes);
void ored_area_cap_begin(struct ored_net *on, struct ctl_table *entry);

/* area_pages.c: memory */
u64 ored_area_needs(const struct ored_area *area);
int ored_area_alloc(struct ored_area *area, char *why);
void ored_area_free_pages(struct ored_area *area);
void ored_area_free(struct ored_area *area);
u32 ored_area_blocks(u64 bytes);
void ored_area_digest_block(const struct ored_area_slot *slot, u64 bytes, u32 block, u32 *crc);
void ored_area_copy_out(const struct ored_area_slot *slot, u64 offset, void *to, size_t len);
void ored_area_copy_in(struct ored_area_slot *slot, u64 offset, const void *from, size_t len);

/* area_map.c: mappings */
int ored_area_map_init(void);
void ored_area_map_exit(void);
int ored_area_map_file(struct ored_area *area);
int ored_area_mmap(struct ored_area *area, u32 rights, struct vm_area_struct *vma, char *why);
unsigned long ored_area_offset(const struct ored_area *area, u32 copy, u32 slot);
void ored_area_unmap(struct ored_area *area, u32 copy, u32 slot);
bool ored_area_mapped(const struct ored_area *area);

/* area_seal.c: generations */
int ored_area_commit(struct ored_area *area, const struct ored_commit *commit, char *why);
int ored_area_abort(struct ored_area *area, char *why);
int ored_area_roll_back(struct ored_area *area, u64 step, char *why);

/* area_read.c: looking at them */
u64 ored_area_complete(struct ored_area *area);
bool ored_area_newest_complete(struct ored_area *area);
bool ored_area_may_commit(struct ored_area *area);
int ored_area_status(struct ored_area *area, struct ored_area_status *status, char *why);
int ored_area_generations(struct ored_area *area, struct ored_generation **gens, u32 *n,
			  char *why);
int ored_area_read(struct ored_area *area, const struct ored_area_read *read, u32 rights,
		   char *why);
int ored_area_newest(struct ored_area *area, struct ored_area_newest *newest, long patience,
		     char *why);

/* area_sock.c: handles */
int ored_area_sock_init(void);
void ored_area_sock_exit(void);
int ored_area_sock_create(struct net *net, struct socket *sock, int family, int kern);

static inline int ored_area_gone(char *why)
{
	return ored_refuse(why, ENODEV, "the area has been removed");
}

#endif /* ORED_AREA_H */
