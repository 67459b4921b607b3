// SPDX-License-Identifier: GPL-2.0

#include <linux/slab.h>
#include <linux/ored.h>

#include "early.h"
#include "trace.h"

/* What travels in control packets: t_C's sample, packed, above the incast */
static u32 advert_of(u16 sample, u32 incast)
{
	return (u32)sample << 16 | min(incast, 0xffffU);
}

static u64 sample_of(u32 advert)
{
	return ored_early_unpack(advert >> 16);
}

static u32 incast_of(u32 advert)
{
	return advert & 0xffff;
}

/**
 * ored_early_incast_init() - begins to find out how many peers may send at once
 * @m: the membership, its policy set; its lock is held, or nobody can reach it yet
 *
 * Peers learn it by the next control packet.
 */
void ored_early_incast_init(struct ored_member *m)
{
	ored_incast_init(&m->incast, m->policy.incast, m->nranks);
	WRITE_ONCE(m->advert, advert_of(m->advert >> 16, m->incast.own));
}

/**
 * ored_early_alloc() - prepares what is learnt from all ranks
 * @m: with ranks and policy set; nobody can reach it yet
 *
 * Return: 0 or -ENOMEM; in any case ored_early_free() cleans up
 */
int ored_early_alloc(struct ored_member *m)
{
	ored_early_init(&m->early);
	ored_early_incast_init(m);
	m->samples = kvcalloc(m->nranks, sizeof(*m->samples), GFP_KERNEL_ACCOUNT);
	m->takes = kvcalloc(m->nranks, sizeof(*m->takes), GFP_KERNEL_ACCOUNT);
	return m->samples && m->takes ? 0 : -ENOMEM;
}

void ored_early_free(struct ored_member *m)
{
	kvfree(m->samples);
	kvfree(m->takes);
}

/**
 * ored_early_heard() - a control packet says what its sender has measured
 * @l: the sender; its lock is held
 * @advert: from the packet
 */
void ored_early_heard(struct ored_link *l, u32 advert)
	__must_hold(&l->lock)
{
	lockdep_assert_held(&l->lock);
	WRITE_ONCE(l->advert, advert);
}

/**
 * ored_early_takes() - how many peers a peer lets send to it at once
 * @l: the peer
 *
 * Return: as last heard; 0: not yet
 */
u32 ored_early_takes(const struct ored_link *l)
{
	return incast_of(READ_ONCE(l->advert));
}

/**
 * ored_early_end() - learns from an op that has ended
 * @slot: the op's; the membership's lock is held
 * @took: from the beginning of its term to its end, ns
 * @loss_ppm: what it has lost of what peers that count should have given
 */
void ored_early_end(struct ored_slot *slot, u64 took, u32 loss_ppm)
	__must_hold(&slot->m->lock)
{
	struct ored_member *m = slot->m;
	u64 quiet = ored_bound_quiet(&m->bound, ored_kind_cost(&slot->mine));
	bool hard = slot->limit == ORED_LIMIT_HARD;
	u32 takes = m->incast.own;
	struct ored_link *l;

	lockdep_assert_held(&m->lock);
	ored_early_adapt(&m->early, loss_ppm);
	ored_incast_ended(&m->incast, !hard && !loss_ppm);
	if (m->incast.own != takes)
		trace_ored_incast(m, takes, m->incast.own);
	m->samples[m->rank] = ored_early_sample(took, slot->limits.bound, 1000000 - loss_ppm,
						1000000, slot->limit);
	ored_for_each_link(m, l)
		m->samples[l->rank] = sample_of(READ_ONCE(l->advert));
	ored_early_learn(&m->early, m->samples, m->nranks, quiet);
	WRITE_ONCE(m->advert, advert_of(ored_early_pack(m->samples[m->rank]), m->incast.own));
}

/**
 * ored_early_mark() - a packet among the last of its flow has come
 * @slot: entered
 * @stage: ORED_SCATTER or ORED_GATHER
 * @rank: its sender
 *
 * Return: whether it is the first such
 */
bool ored_early_mark(struct ored_slot *slot, u32 stage, u32 rank)
{
	unsigned long *tails = ored_slot_set(slot, slot->tails, stage);

	return !test_bit(rank, tails) && !test_and_set_bit(rank, tails);
}

static bool has_all(const struct ored_slot *slot, u32 stage, u32 rank)
{
	return stage == ORED_GATHER ? ored_slot_has_shard(slot, rank) :
				      atomic_read(&slot->peer[rank].scattering) <= 0;
}

/* Is anything owed, and have the marks of all live senders been seen that owe it? */
static bool tails_seen(const struct ored_slot *slot, u32 stage, u64 now, u64 *round_trip)
{
	const unsigned long *tails = ored_slot_set(slot, slot->tails, stage);
	u64 published = ored_limits_published(&slot->limits);
	const struct ored_link *l;
	bool owed = false;

	*round_trip = 0;
	ored_for_each_link(slot->m, l) {
		if (!test_bit(l->rank, stage == ORED_SCATTER ? slot->need : slot->owners) ||
		    has_all(slot, stage, l->rank))
			continue;
		owed = true;
		if (!ored_standing_live(&l->standing, now, published))
			continue;
		if (!test_bit(l->rank, tails))
			return false;
		*round_trip = max(*round_trip, ored_link_round_trip_ns(l) +
				  ored_rate_reorder(&l->rate) * (u64)NSEC_PER_USEC);
	}
	/* An op of which nothing is missing is about to be complete. */
	return owed;
}

/**
 * ored_early_stage_at() - when what is missing of a stage is given up
 * @slot: the op whose term it is; the membership's lock is held
 * @stage: ORED_SCATTER or ORED_GATHER
 * @now: the time
 *
 * Return: the time, as far as is known now; ORED_NEVER: it isn't
 */
u64 ored_early_stage_at(const struct ored_slot *slot, u32 stage, u64 now)
	__must_hold(&slot->m->lock)
{
	const struct ored_member *m = slot->m;
	u64 round_trip;

	lockdep_assert_held(&m->lock);
	/* What nobody could gather yet is no loss; who broadcasts waits for nothing. */
	if ((stage == ORED_GATHER && atomic_read(&slot->reducing)) || slot->delivers)
		return ORED_NEVER;
	if (!m->early.tc_ppm || !tails_seen(slot, stage, now, &round_trip))
		return ORED_NEVER;
	return ored_early_at(&m->early, ored_bound_quiet(&m->bound, ored_kind_cost(&slot->mine)),
			     READ_ONCE(slot->term.useful), round_trip, true);
}

/**
 * ored_early_incast() - how many peers an op serves at once
 * @m: the membership; its lock is held
 */
u32 ored_early_incast(struct ored_member *m)
	__must_hold(&m->lock)
{
	struct ored_link *l;
	u32 n = 0;

	lockdep_assert_held(&m->lock);
	ored_for_each_link(m, l) {
		u32 takes = incast_of(READ_ONCE(l->advert));

		if (takes && ored_standing_counts(&l->standing))
			m->takes[n++] = takes;
	}
	return ored_incast_obeyed(&m->incast, m->takes, n);
}

/**
 * ored_early_serves() - is it a peer's turn?
 * @slot: posted, entered
 * @stage: ORED_SCATTER or ORED_GATHER
 * @rank: the peer
 *
 * That is, have all peers of earlier rounds got what they take of that stage?
 * Their flows are looked at without their locks: an answer that is late is
 * given again when they are acknowledged.
 */
bool ored_early_serves(const struct ored_slot *slot, u32 stage, u32 rank)
{
	const struct ored_member *m = slot->m;
	u32 turn, end, peer;

	if (slot->incast >= m->nranks - 1)
		return true;
	end = ored_incast_round(m->rank, m->nranks, rank, slot->incast) * slot->incast;
	for (turn = 0; turn < end; turn++) {
		const struct ored_flow *flow;

		peer = ored_incast_peer(m->rank, m->nranks, turn);
		flow = &slot->peer[peer].tx[stage];
		if (test_bit(peer, slot->owners) && !READ_ONCE(flow->stopped) &&
		    READ_ONCE(flow->arrived) < flow->count)
			return false;
	}
	return true;
}
