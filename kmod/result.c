// SPDX-License-Identifier: GPL-2.0
/*
 * What became of an op: what is missing of its result is filled in, and told to
 * the byte. Once an op has ended nobody writes into its result any more but
 * the one who takes it.
 */

#include <linux/bitmap.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/ored.h>

#include "event.h"
#include "op.h"

/* Has a chunk of the own shard been reduced? */
static bool has_reduced(const struct ored_slot *slot, u32 chunk)
{
	return !bitmap_empty(ored_slot_set(slot, slot->counted, chunk), slot->m->nranks);
}

static u8 kind_of(const struct ored_slot *slot)
{
	return ored_params_kind(slot->mine.word);
}

static bool has_gathered(const struct ored_slot *slot, u32 owner, u32 chunk)
{
	return test_bit(chunk, slot->peer[owner].rx[ORED_GATHER].bits);
}

/*
 * What stands in for a chunk that is missing: the own contribution in the place of
 * everybody's, or 0. Where each rank has given something else it is 0, but for a mapped
 * slot, which keeps what it has.
 */
static void stand_in(struct ored_slot *slot, u32 whole)
{
	u32 offset = ored_map_offset(&slot->map, whole);
	u32 len = ored_map_length(&slot->map, whole);
	DECLARE_BITMAP(alone, ORED_MAX_RANKS) = {};

	__set_bit(slot->m->rank, alone);
	if (slot->zero || (kind_of(slot) == ORED_ALL_GATHER && !slot->user))
		memset(slot->to + offset, 0, len);
	else if (slot->adds)
		ored_op_reduce(slot, whole, alone);
	else if (kind_of(slot) == ORED_BROADCAST && slot->to != slot->own)
		memcpy(slot->to + offset, slot->own + offset, len);
}

/*
 * What of the own shard was not reduced in time is reduced from what is there:
 * for this rank alone, since nobody would take it any more. Of a reduce-scatter
 * nobody else would have anyway: there it counts.
 */
static void settle_own(struct ored_slot *slot)
{
	u32 chunk, own = slot->m->rank, first = ored_map_first(&slot->map, own);

	for (chunk = 0; chunk < ored_map_count(&slot->map, own); chunk++) {
		cond_resched();
		if (has_reduced(slot, chunk))
			continue;
		if (kind_of(slot) == ORED_REDUCE_SCATTER || kind_of(slot) == ORED_BROADCAST) {
			if (!ored_op_reduce_chunk(slot, chunk))
				stand_in(slot, first + chunk);
			continue;
		}
		ored_op_reduce(slot, first + chunk,
			       ored_slot_set(slot, slot->present, chunk));
	}
}

static void settle_peer(struct ored_slot *slot, u32 owner)
{
	u32 chunk, first = ored_map_first(&slot->map, owner);
	u32 count = ored_kind_gathers(&slot->map, slot->mine.word, owner, slot->m->rank);

	for (chunk = 0; chunk < count; chunk++) {
		if (!has_gathered(slot, owner, chunk))
			stand_in(slot, first + chunk);
		cond_resched();
	}
}

/**
 * ored_op_is_whole() - is all there that can be?
 * @slot: finished
 *
 * Of an op that is complete nothing is missing that was
 * waited for; but not everybody may have been, and what was gathered may have been
 * reduced without somebody's contribution.
 */
bool ored_op_is_whole(const struct ored_slot *slot)
{
	u32 n = slot->m->nranks;

	return !slot->bounded || (slot->limit == ORED_LIMIT_COMPLETE &&
				  bitmap_full(slot->need, n) && bitmap_full(slot->whole, n));
}

/**
 * ored_op_settle() - fills in what is missing of a result
 * @slot: finished without an error; the caller is the only one to take its
 *	result; process context, no lock held
 */
void ored_op_settle(struct ored_slot *slot)
{
	struct ored_link *l;

	if (slot->settled || ored_op_is_whole(slot))
		return;
	ored_slot_quiesce(slot);
	settle_own(slot);
	ored_for_each_link(slot->m, l)
		settle_peer(slot, l->rank);
	slot->settled = true;
}

/* Bytes of contributions of others that were counted in the own shard */
static u64 scattered(const struct ored_slot *slot)
{
	const struct ored_member *m = slot->m;
	u32 chunk, first = ored_map_first(&slot->map, m->rank);
	u64 bytes = 0;

	for (chunk = 0; chunk < ored_map_count(&slot->map, m->rank); chunk++) {
		const unsigned long *counted = ored_slot_set(slot, slot->counted, chunk);

		bytes += (u64)(bitmap_weight(counted, m->nranks) - test_bit(m->rank, counted)) *
			 ored_map_length(&slot->map, first + chunk);
	}
	return bytes;
}

/* Bytes of a peer's shard that were gathered */
static u64 gathered(const struct ored_slot *slot, u32 owner)
{
	u32 count = ored_kind_gathers(&slot->map, slot->mine.word, owner, slot->m->rank);
	u32 last = ored_map_first(&slot->map, owner) + count - 1;
	u64 bytes;

	if (!count)
		return 0;
	bytes = (u64)bitmap_weight(slot->peer[owner].rx[ORED_GATHER].bits, count) *
		slot->map.payload;
	if (has_gathered(slot, owner, count - 1))
		bytes -= slot->map.payload - ored_map_length(&slot->map, last);
	return bytes;
}

static void stage_result(struct ored_stage *stage, u64 expected, u64 received, u64 repaired)
{
	stage->expected = expected;
	stage->received = min(expected, received);
	stage->repaired = min(stage->received, repaired);
	stage->missing = expected - stage->received;
}

/* Has a rank left the group before this op? Then it isn't missing. */
static bool is_absent(const struct ored_slot *slot, u32 r)
{
	return slot->bounded && ored_link_left_by(&slot->m->links[r], slot->op);
}

static u32 absent(const struct ored_slot *slot)
{
	u32 r, n = 0;

	for (r = 0; r < slot->m->nranks; r++)
		n += is_absent(slot, r);
	return n;
}

/* Bytes that a peer scatters to this rank */
static u64 scatters(const struct ored_slot *slot, u32 r)
{
	u32 own = slot->m->rank;

	return ored_kind_scatters(&slot->map, slot->mine.word, r, own) ?
	       ored_map_shard_bytes(&slot->map, own) : 0;
}

/* Bytes that this rank gathers from a peer */
static u64 gathers(const struct ored_slot *slot, u32 r)
{
	return ored_kind_gathers(&slot->map, slot->mine.word, r, slot->m->rank) ?
	       ored_map_shard_bytes(&slot->map, r) : 0;
}

static void stages(const struct ored_slot *slot, struct ored_result *result)
{
	u64 scatter = 0, gather = 0, in, out;
	const struct ored_link *l;

	ored_for_each_link(slot->m, l) {
		if (!is_absent(slot, l->rank))
			scatter += scatters(slot, l->rank);
		/* Nobody waits at a barrier for who has left. */
		if (!is_absent(slot, l->rank) || kind_of(slot) != ORED_BARRIER)
			gather += gathers(slot, l->rank);
	}
	in = scatter;
	out = gather;

	if (slot->error) {
		in = atomic64_read(&slot->received[ORED_SCATTER]);
		out = atomic64_read(&slot->received[ORED_GATHER]);
	} else if (!ored_op_is_whole(slot)) {
		in = scattered(slot);
		out = 0;
		ored_for_each_link(slot->m, l)
			out += gathered(slot, l->rank);
	}
	stage_result(&result->scatter, scatter, in,
		     atomic64_read(&slot->repaired[ORED_SCATTER]));
	stage_result(&result->gather, gather, out, atomic64_read(&slot->repaired[ORED_GATHER]));
}

static void set_rank(__u64 *ranks, u32 r)
{
	ranks[r / 64] |= 1ULL << (r % 64);
}

/* Is a rank's whole contribution in, and its whole shard, as far as is known here? */
static bool all_in(const struct ored_slot *slot, u32 r)
{
	if (slot->error == -ECONNRESET)
		return !ored_link_left_by(&slot->m->links[r], slot->op);
	if (slot->error)
		return false;
	if (ored_op_is_whole(slot))
		return true;
	return test_bit(r, slot->whole) &&
	       (r == slot->m->rank || ored_slot_has_shard(slot, r));
}

/* Does the result lack something of a rank that was still there? */
static bool is_missing(const struct ored_slot *slot, u32 r)
{
	return !all_in(slot, r) && !(is_absent(slot, r) && ored_slot_has_shard(slot, r));
}

/*
 * Of an own shard that wasn't reduced in time, ranks count as missing that
 * haven't contributed to it.
 */
static void note_unreduced(struct ored_slot *slot)
{
	u32 chunk, r;

	for (chunk = 0; chunk < ored_map_count(&slot->map, slot->m->rank); chunk++) {
		if (has_reduced(slot, chunk))
			continue;
		for_each_set_bit(r, slot->givers, slot->m->nranks) {
			if (!test_bit(r, ored_slot_set(slot, slot->present, chunk)))
				clear_bit(r, slot->whole);
		}
	}
}

static void contributors(struct ored_slot *slot, struct ored_result *result)
{
	u32 r;

	if (!slot->error && !ored_op_is_whole(slot))
		note_unreduced(slot);
	for (r = 0; r < slot->m->nranks; r++) {
		if (all_in(slot, r))
			set_rank(result->contributed, r);
		else if (is_missing(slot, r))
			set_rank(result->missing, r);
	}
}

/* Has a peer given anything to an op that waited for it? */
static bool gave(const struct ored_slot *slot, const struct ored_link *l)
{
	const struct ored_slot_peer *peer = &slot->peer[l->rank];

	int scatter = ored_kind_scatters(&slot->map, slot->mine.word, l->rank, slot->m->rank);
	int gather = ored_kind_gathers(&slot->map, slot->mine.word, l->rank, slot->m->rank);

	if (!test_bit(l->rank, slot->need))
		return false;
	/* Of whom nothing is wanted nothing is missing. */
	return (!scatter && !gather) || atomic_read(&peer->scattering) < scatter ||
	       atomic_read(&peer->gathering) < gather;
}

/* Bytes of a peer's contributions that came to the own shard; the last chunk roughly */
static u64 contributed(const struct ored_slot *slot, const struct ored_link *l)
{
	u64 shard = scatters(slot, l->rank);
	int owes = max(atomic_read(&slot->peer[l->rank].scattering), 0);

	return shard - min(shard, (u64)owes * slot->map.payload);
}

/**
 * ored_op_loss() - how much is missing of what peers should have given
 * @slot: finished
 * @given: receives how many ranks have given anything, the own one included
 *
 * Ranks that the op didn't wait for, or that have given nothing at all, don't
 * count: no bound would have brought theirs.
 *
 * Return: parts per million
 */
u32 ored_op_loss(const struct ored_slot *slot, u32 *given)
{
	u64 expected = 0, missing = 0;
	const struct ored_link *l;

	*given = 1;
	ored_for_each_link(slot->m, l) {
		u64 own = scatters(slot, l->rank), shard = gathers(slot, l->rank);

		if (!gave(slot, l))
			continue;
		++*given;
		expected += own + shard;
		missing += own - contributed(slot, l) + shard - gathered(slot, l->rank);
	}
	return expected ? (u32)div64_u64(missing * 1000000, expected) : 0;
}

/* Parts per million of what should have come */
static u32 loss_of(const struct ored_result *result)
{
	u64 expected = result->scatter.expected + result->gather.expected;
	u64 missing = result->scatter.missing + result->gather.missing;

	return expected ? (u32)div64_u64(missing * 1000000, expected) : 0;
}

static bool any_missing(const struct ored_slot *slot)
{
	u32 r;

	for (r = 0; r < slot->m->nranks; r++) {
		if (is_missing(slot, r))
			return true;
	}
	return false;
}

static u8 judge(const struct ored_slot *slot, const struct ored_result *result)
{
	const struct ored_policy *policy = &slot->m->policy;
	u32 loss = loss_of(result), n = slot->m->nranks - absent(slot);
	u32 some = bitmap_weight(slot->some, slot->m->nranks);

	if (slot->error)
		return ORED_VERDICT_HALT;
	if (ored_op_is_whole(slot))
		return ORED_VERDICT_OK;
	/* What a rank lacks that the group has overtaken is no reason to stop. */
	if (slot->limit == ORED_LIMIT_BEHIND && result->gather.missing)
		return ORED_VERDICT_SKIP;
	if (loss > policy->loss_halt)
		return ORED_VERDICT_HALT;
	/* Of a broadcast only one contributes. */
	if (some < (policy->min_ranks ?: n / 2 + 1) && kind_of(slot) != ORED_BROADCAST)
		return ORED_VERDICT_HALT;
	if (loss > policy->loss_skip)
		return ORED_VERDICT_SKIP;
	/* All may have come, and some of it without a late rank's contribution. */
	return loss || any_missing(slot) ? ORED_VERDICT_PARTIAL : ORED_VERDICT_OK;
}

static void why_failed(const struct ored_slot *slot, struct ored_result *result)
{
	result->rank[0] = slot->failure.rank[0];
	if (slot->error != -EPROTO)
		return;
	result->field = slot->failure.field;
	result->rank[1] = slot->failure.rank[1];
	result->value[0] = slot->failure.value[0];
	result->value[1] = slot->failure.value[1];
}

/* Rounded up; deadlines of several ops in flight can be more than fits. */
static u32 published_us(const struct ored_slot *slot)
{
	return min_t(u64, div_u64(slot->published_ns + NSEC_PER_USEC - 1, NSEC_PER_USEC),
		     U32_MAX);
}

/**
 * ored_op_result() - what became of an op
 * @slot: finished, its result not yet released; its op is set by the caller
 * @result: zeroed but for @op; receives the rest
 */
void ored_op_result(struct ored_slot *slot, struct ored_result *result)
{
	if (!ored_op_is_whole(slot))
		ored_slot_quiesce(slot);
	result->elapsed_ns = slot->elapsed_ns;
	result->bytes = kind_of(slot) == ORED_BARRIER ? ORED_BARRIER_BYTES : slot->mine.bytes;
	stages(slot, result);
	contributors(slot, result);
	result->error = -slot->error;
	result->limit = slot->limit;
	result->verdict = judge(slot, result);
	result->flags = slot->resync ? ORED_RESULT_RESYNC : 0;
	if (ored_params_is_rotated(slot->mine.word))
		result->flags |= ORED_RESULT_HADAMARD;
	result->hadamard_ns = slot->rotate_ns;
	result->behind = slot->behind;
	result->bound_us = published_us(slot);
	result->dtype = slot->dtype;
	result->kind = kind_of(slot);
	if (result->kind != ORED_BROADCAST)
		result->reduction = ored_params_reduction(slot->mine.word);
	result->mode = ored_params_mode(slot->mine.word);
	if (slot->error)
		why_failed(slot, result);
	result->duplicates = atomic64_read(&slot->duplicates);
	result->resent = atomic64_read(&slot->resent);
}

/**
 * ored_op_report() - a line for the log about an op that isn't whole
 * @slot: finished; the membership's lock is held
 *
 * A few in a few seconds for each membership: a bad network fills no disk.
 */
void ored_op_report(const struct ored_slot *slot)
	__must_hold(&slot->m->lock)
{
	static const char * const limits[] = { "failed", "complete", "early", "hard", "behind" };
	DECLARE_BITMAP(missing, ORED_MAX_RANKS) = {};
	struct ored_member *m = slot->m;
	struct ored_result result = {};
	u32 r;

	lockdep_assert_held(&m->lock);
	for (r = 0; r < m->nranks; r++) {
		if (is_missing(slot, r))
			__set_bit(r, missing);
	}
	if (bitmap_empty(missing, m->nranks) || !__ratelimit(&m->report))
		return;
	stages(slot, &result);
	ored_event_op(slot, loss_of(&result), missing);
	pr_info("ored: group %u rank %u op %llu: partial, %s after %llu of %llu us, %u ppm missing; ranks present: %*pbl, missing: %*pbl\n",
		m->conf.group, m->rank, slot->op, limits[slot->limit],
		div_u64(slot->elapsed_ns, NSEC_PER_USEC),
		div_u64(slot->published_ns, NSEC_PER_USEC), loss_of(&result),
		m->nranks, slot->some, m->nranks, missing);
}

/* Did others go without the own contribution to a chunk of @owner's shard? */
static bool is_uncounted(const struct ored_slot *slot, u32 owner, u32 chunk)
{
	/* In the own shard: was it reduced for everybody? */
	if (owner == slot->m->rank)
		return !has_reduced(slot, chunk);
	if (test_bit(ored_map_first(&slot->map, owner) + chunk, slot->uncounted))
		return true;
	return !has_gathered(slot, owner, chunk) &&
	       !test_bit(chunk, slot->peer[owner].tx[ORED_SCATTER].done);
}

/**
 * ored_op_uncounted() - which chunks of the own contribution others went without
 * @slot: finished without an error, its result not yet released
 * @bits: receives a bit for each chunk of the bucket
 *
 * Of a chunk that was not gathered here it isn't known; it counts as counted if
 * its owner has acknowledged the contribution.
 */
void ored_op_uncounted(const struct ored_slot *slot, u64 *bits)
{
	u32 owner, chunk, at;

	memset(bits, 0, DIV_ROUND_UP(slot->map.chunks, 64) * sizeof(*bits));
	/* Of a reduce-scatter whose own shard is whole nothing more is known. */
	if (!slot->adds || ored_op_is_whole(slot))
		return;
	for (owner = 0; owner < slot->m->nranks; owner++) {
		at = ored_map_first(&slot->map, owner);
		for (chunk = 0; chunk < ored_map_count(&slot->map, owner); chunk++, at++)
			if (is_uncounted(slot, owner, chunk))
				bits[at / 64] |= 1ULL << (at % 64);
		cond_resched();
	}
}
