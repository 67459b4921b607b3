// SPDX-License-Identifier: GPL-2.0
/*
 * The life of a slot in a membership that nobody can reach: its memory, who
 * may enter, and that it isn't reset under a user (slot.h).
 */

#include <linux/init.h>
#include <linux/slab.h>
#include <linux/ored.h>

#include "../lock.h"
#include "../member.h"
#include "../slot.h"
#include "selftest.h"

#define RANKS	3
#define SLOTS	2
#define BUCKET	(5 * 512 + 8)

/* Every byte that ops may touch: written, and still there after all others. */
static bool __init test_memory(struct ored_member *m)
{
	bool ok = true;
	u32 i;

	for (i = 0; i < SLOTS; i++) {
		struct ored_slot *slot = &m->slots[i];

		memset(slot->in, 3 * i + 1, BUCKET);
		memset(slot->out, 3 * i + 2, BUCKET);
		memset(slot->staged, 3 * i + 3, (RANKS - 1) * slot->stride);
	}
	for (i = 0; i < SLOTS; i++) {
		struct ored_slot *slot = &m->slots[i];

		ok &= ored_expect(!memchr_inv(slot->in, 3 * i + 1, BUCKET));
		ok &= ored_expect(!memchr_inv(slot->out, 3 * i + 2, BUCKET));
		ok &= ored_expect(!memchr_inv(slot->staged, 3 * i + 3,
					      (RANKS - 1) * slot->stride));
	}
	return ok;
}

/* The maps of all flows: aligned, and none shares a word with another. */
static bool __init test_maps(struct ored_member *m)
{
	struct ored_slot *slot = &m->slots[0];
	u32 r, stage, i, room = slot->peer[0].rx[ORED_SCATTER].room;
	bool ok = true;

	for (r = 0; r < RANKS; r++) {
		for (stage = 0; stage < ORED_STAGES; stage++) {
			struct ored_slot_peer *peer = &slot->peer[r];

			ok &= ored_expect(IS_ALIGNED((unsigned long)peer->rx[stage].bits,
						     sizeof(long)));
			for (i = 0; i < room; i++) {
				ok &= ored_expect(ored_chunkmap_claim(&peer->rx[stage], i));
				ok &= ored_expect(!test_and_set_bit(i, peer->tx[stage].done));
				ok &= ored_expect(!test_and_set_bit(i, peer->tx[stage].out));
				ok &= ored_expect(!test_and_set_bit(i, peer->tx[stage].lost));
				peer->tx[stage].sent[i] = ~0;
			}
		}
	}
	for (i = 0; i < room; i++) {
		ok &= ored_expect(!test_and_set_bit(i, slot->reduced));
		ok &= ored_expect(!xchg(&slot->present[i], ~0UL));
		ok &= ored_expect(!xchg(&slot->counted[i], ~0UL));
		ok &= ored_expect(!slot->order[i]);
	}
	/* As an op with all these chunks would leave it. */
	slot->used = room;
	return ok;
}

static bool __init test_enter(struct ored_member *m)
{
	struct ored_slot *slot = ored_slot_of(m, 0);
	bool ok = ored_expect(slot == ored_slot_of(m, SLOTS));

	ok &= ored_expect(!ored_slot_enter(slot, SLOTS));
	ok &= ored_expect(ored_slot_enter(slot, 0));
	ok &= ored_expect(atomic_read(&slot->users) == 1);
	ored_slot_leave(slot);
	return ok & ored_expect(!atomic_read(&slot->users));
}

/* The first one's parameters stand. */
static bool __init test_know(struct ored_member *m)
{
	struct ored_params first = { .bytes = BUCKET, .word = 1 }, second = { .bytes = 8 };
	struct ored_slot *slot = ored_slot_of(m, 1);

	return ored_expect(ored_slot_know(slot, &first, 2) == 2) &
	       ored_expect(ored_slot_know(slot, &second, 1) == 2) &
	       ored_expect(ored_params_equal(&slot->params, &first)) &
	       ored_expect(slot->map.chunks == DIV_ROUND_UP(BUCKET, m->payload));
}

static void __init try_release(struct ored_slot *slot)
{
	spin_lock_bh(&slot->m->lock);
	ored_slot_try_release(slot);
	spin_unlock_bh(&slot->m->lock);
}

/* Result taken, peers gone, last user out: only then it is the next op's. */
static bool __init test_release(struct ored_member *m)
{
	struct ored_slot *slot = ored_slot_of(m, 0);
	bool ok = ored_expect(ored_slot_enter(slot, 0));

	slot->state = ORED_SLOT_FINISHED;
	try_release(slot);
	ok &= ored_expect(slot->op == 0);
	slot->delivered = true;
	m->links[1].standing.left = 1;
	try_release(slot);
	ok &= ored_expect(slot->op == 0);
	m->links[2].standing.left = 1;
	try_release(slot);
	ok &= ored_expect(slot->op == ORED_NO_OP && !m->retained);
	ok &= ored_expect(!ored_slot_enter(slot, 0) && !ored_slot_enter(slot, SLOTS));
	ok &= ored_expect(test_bit(0, slot->reduced));
	ored_slot_leave(slot);
	ok &= ored_expect(slot->op == SLOTS && m->retained == 1);
	ok &= ored_expect(slot->state == ORED_SLOT_OPEN && !slot->known && !slot->used);
	return ok;
}

/* What the last op has left is gone. */
static bool __init test_reset(struct ored_member *m)
{
	struct ored_slot *slot = ored_slot_of(m, SLOTS);
	u32 r, stage, i, room = slot->peer[0].rx[ORED_SCATTER].room;
	bool ok = true;

	for (i = 0; i < room; i++)
		ok &= ored_expect(!test_bit(i, slot->reduced) && !slot->present[i] &&
				  !slot->counted[i]);
	for (r = 0; r < RANKS; r++)
		for (stage = 0; stage < ORED_STAGES; stage++)
			for (i = 0; i < room; i++)
				ok &= ored_expect(ored_chunkmap_claim(&slot->peer[r].rx[stage], i));
	return ok;
}

static struct ored_member * __init member(void)
{
	struct ored_member *m = kzalloc(sizeof(*m), GFP_KERNEL);

	if (!m)
		return NULL;
	m->nranks = RANKS;
	m->nslots = SLOTS;
	m->conf.bucket_max = BUCKET;
	m->payload = ORED_PAYLOAD_MIN;
	m->payload_bound = ORED_PAYLOAD_MIN;
	spin_lock_init(&m->lock);
	ored_lock_class(&m->lock, ORED_LOCK_MEMBER);
	m->links = kcalloc(RANKS, sizeof(*m->links), GFP_KERNEL);
	for (u32 r = 0; m->links && r < RANKS; r++) {
		m->links[r].m = m;
		m->links[r].rank = r;
		spin_lock_init(&m->links[r].lock);
	}
	return m;
}

bool __init ored_selftest_slot(void)
{
	char *why = kzalloc(ORED_ERROR_MAX, GFP_KERNEL);
	struct ored_member *m = member();
	bool ok = false;

	if (ored_expect(m && m->links && why)) {
		if (ored_expect(!ored_slots_alloc(m, why)))
			ok = test_memory(m) & test_maps(m) & test_enter(m) & test_know(m) &
			     test_release(m) & test_reset(m);
		ored_slots_free(m);
	}
	if (m)
		kfree(m->links);
	kfree(m);
	kfree(why);
	return ok;
}
