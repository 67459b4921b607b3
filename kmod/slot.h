/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Slots: the memory of one op, and what is known of its progress.
 *
 * A membership has 2 depth + 1 slots; op k uses slot k mod (2 depth + 1). Depth
 * of them are for ops that are in flight, as many for ops of the past that peers
 * may have in flight still, and one for an op that peers may be ahead by. Life
 * of a slot, with who may move it on:
 *
 *   OPEN      for op k: peers' contributions to it may arrive already
 *     | ored_op_post() by send()
 *   POSTED    its own contribution is in; flows to the peers run
 *     | ored_op_finish(), by whoever places the last chunk, fails it, or finds
 *     | that its time is up
 *   FINISHED  the result is recv()'s to take; peers may still want our data
 *     | ored_slot_try_release(): result taken, and all peers have left op k; or,
 *     | unless it was a reliable op, its slot is wanted for op k + 2 depth + 1
 *   CLOSED    nobody may enter; the last user that is inside resets it
 *     | reset()
 *   OPEN      for op k + 2 depth + 1
 *
 * Packets enter a slot without a lock: ored_slot_enter() counts the user in
 * and then looks whether the slot is still that op's; a slot is reset only
 * when it is closed and empty. State changes are made under the membership's
 * lock.
 */
#ifndef ORED_SLOT_H
#define ORED_SLOT_H

#include <linux/atomic.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "core/chunkmap.h"
#include "core/kind.h"
#include "core/repair.h"
#include "core/tar.h"
#include "core/term.h"
#include "core/wire.h"

struct ored_link;
struct ored_member;

#define ORED_NO_OP	(~0ULL)

/* Memory of a group is charged to who joins; ENOMEM comes, not the OOM killer */
#define ORED_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN | __GFP_ZERO)

enum ored_slot_state {
	ORED_SLOT_OPEN,
	ORED_SLOT_POSTED,
	ORED_SLOT_FINISHED,
	ORED_SLOT_CLOSED,
};

/* The two stages of TAR, as indices */
enum {
	ORED_SCATTER,
	ORED_GATHER,
	ORED_STAGES,
	ORED_MOVING = ORED_STAGES,	/* in @sealed: the result's place is being changed */
};

/**
 * struct ored_slot_peer - a slot's flows from and to one peer
 * @rx: what has arrived from it, by stage
 * @tx: what goes to it, by stage; under the link's lock
 * @next: next chunk (scatter), or next place in the slot's order (gather),
 *	that hasn't been sent yet; under the link's lock
 * @again: the last chunk that was sent had been sent before; under the link's lock
 * @scattering: chunks of the own shard that it has not contributed to yet;
 *	counted only from the post on, below zero before
 * @gathering: likewise, chunks of its shard that are not placed yet
 */
struct ored_slot_peer {
	struct ored_chunkmap	rx[ORED_STAGES];
	struct ored_flow	tx[ORED_STAGES];
	u32			next[ORED_STAGES];
	bool			again[ORED_STAGES];
	atomic_t		scattering;
	atomic_t		gathering;
};

/**
 * struct ored_slot - one op's memory and progress
 * @m: the membership
 * @op: its number, ORED_NO_OP while nobody may enter
 * @state: enum ored_slot_state; changed under the membership's lock
 * @users: packets and senders inside
 * @known: @params and @map are set, by the first packet or by the post
 * @known_by: rank whose parameters they are
 * @know: serialises setting them
 * @params: what the op is
 * @mine: what was posted here, which may differ
 * @map: how its bucket is cut
 * @adds: contributions are reduced, and not only handed on
 * @givers: ranks whose contributions are a part of the own shard
 * @in: the own contribution, and
 * @out: the result, as the kernel keeps them for peers
 * @made: where the own shard is reduced, and gathered from: in @out
 * @own: where the own contribution is reduced from
 * @from: where it is sent from
 * @to: where the result goes
 * @user: the mapped slot that it was posted from, or NULL
 * @readers: trains that are being filled from @from
 * @staged: the peers' contributions to the own shard, by sender; @stride apart
 * @stride: bytes
 * @words: words of a set of ranks
 * @need: ranks whose contributions the op waits for; set by the post, only shrinks
 * @owners: likewise, ranks whose shards it waits for
 * @present: per chunk of the own shard, @words each: whose contribution is in
 * @counted: likewise: whose contribution the reduction took in
 * @reduced: chunks of the own shard that somebody reduces, or has reduced
 * @tails: by stage, @words each: senders of which the last packets are coming
 * @incast: how many peers it serves at once
 * @whole: ranks of which every contribution that is known of was counted
 * @some: ranks of which any was counted
 * @uncounted: chunks of the bucket in which others didn't count the own one
 * @order: chunks of the own shard plus one, in the order of completion; 0: a
 *	place that has been taken but isn't filled yet
 * @ready: places taken in @order
 * @reducing: chunks of the own shard that are not reduced yet
 * @sealed: bit of a stage: it takes no more; ORED_MOVING: nobody may write
 * @writers: who writes into the result at the moment
 * @peer: by rank
 * @used: chunks of a shard that may have been touched since the last reset
 * @delivered: recv() has taken the result
 * @bounded: it ends by its bound
 * @delivers: this rank broadcasts, and is through when peers have it all
 * @dtype: as posted
 * @silent: this rank has left the group, and only reduces its shard
 * @settled: what is missing of @out has been filled in
 * @zero: with zeros
 * @limits: how long it may take
 * @term: when it ends, once the ops before it have
 * @in_term: @term has begun
 * @limit: enum ored_limit
 * @behind: by how many ops the group had gone on
 * @resync: this rank hasn't had a whole result since one was missed
 * @published_ns: the longest that it can take, from its post; 0: not bounded
 * @posted_ns: when it was posted
 * @elapsed_ns: from then to the finish
 * @rotate_ns: what the Hadamard transform has taken
 * @error: negative errno it failed with
 * @failure: why it failed, or will when it is posted: field is set then
 * @received: bytes that came, by stage
 * @repaired: of these, those that had been sent before
 * @duplicates: packets
 * @resent: packets
 */
struct ored_slot {
	struct ored_member	*m;
	u64			op;
	int			state;
	atomic_t		users;

	bool			known;
	u32			known_by;
	spinlock_t		know;	/* setting the two lines above */
	struct ored_params	params;
	struct ored_params	mine;
	struct ored_map		map;

	bool			adds;
	unsigned long		*givers;
	u8			*in;
	u8			*out;
	u8			*made;
	u8			*own;
	u8			*from;
	u8			*to;
	u8			*user;
	atomic_t		readers;
	u8			*staged;
	size_t			stride;
	u32			words;
	unsigned long		*need;
	unsigned long		*owners;
	unsigned long		*present;
	unsigned long		*counted;
	unsigned long		*reduced;
	unsigned long		*tails;
	u32			incast;
	unsigned long		*whole;
	unsigned long		*some;
	unsigned long		*uncounted;
	u32			*order;
	atomic_t		ready;
	atomic_t		reducing;
	unsigned long		sealed;
	atomic_t		writers;
	struct ored_slot_peer	*peer;
	u32			used;

	bool			delivered;
	bool			bounded;
	bool			delivers;
	u8			dtype;
	bool			silent;
	bool			settled;
	bool			zero;
	bool			in_term;
	bool			resync;
	u8			limit;
	u32			behind;
	struct ored_limits	limits;
	struct ored_term	term;
	u64			published_ns;
	u64			posted_ns;
	u64			elapsed_ns;
	u64			rotate_ns;
	int			error;
	struct ored_failure	failure;
	atomic64_t		received[ORED_STAGES];
	atomic64_t		repaired[ORED_STAGES];
	atomic64_t		duplicates;
	atomic64_t		resent;
};

/* The @i-th of an array of sets of ranks, as @present and others are */
static inline unsigned long *ored_slot_set(const struct ored_slot *slot, unsigned long *sets,
					   u32 i)
{
	return sets + (size_t)i * slot->words;
}

/* Are the contributions in a set all that there can be to the own shard? */
static inline bool ored_slot_full(const struct ored_slot *slot, const unsigned long *set)
{
	u32 w;

	for (w = 0; w < slot->words; w++) {
		if (slot->givers[w] & ~READ_ONCE(set[w]))
			return false;
	}
	return true;
}

/* Has a peer's whole shard been gathered? Not to be asked before the post. */
static inline bool ored_slot_has_shard(const struct ored_slot *slot, u32 owner)
{
	return atomic_read(&slot->peer[owner].gathering) <= 0;
}

struct ored_slot *ored_slot_of(struct ored_member *m, u64 op);
bool ored_slot_enter(struct ored_slot *slot, u64 op);
void ored_slot_leave(struct ored_slot *slot);
u32 ored_slot_know(struct ored_slot *slot, const struct ored_params *params, u32 rank);
void ored_slot_try_release(struct ored_slot *slot);
void ored_slot_release_past(struct ored_member *m);
void ored_slot_stop_flows(struct ored_slot *slot, struct ored_link *l);
void ored_slot_stop(struct ored_slot *slot);
bool ored_slot_write(struct ored_slot *slot);
void ored_slot_written(struct ored_slot *slot);
void ored_slot_quiesce(struct ored_slot *slot);

void *ored_slots_take(struct ored_member *m, size_t bytes);
void ored_slot_at(struct ored_slot *slot, u32 skew);
int ored_slots_alloc(struct ored_member *m, char *why);
void ored_slots_free(struct ored_member *m);

#endif /* ORED_SLOT_H */
