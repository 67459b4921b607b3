// SPDX-License-Identifier: GPL-2.0

#include "../../uapi/linux/ored.h"
#include "kind.h"
#include "reduce.h"

/* Are shards the caller's own, so that elements are dealt out? */
static bool deals(u8 kind)
{
	return kind == ORED_REDUCE_SCATTER || kind == ORED_ALL_GATHER || kind == ORED_BARRIER;
}

static u32 unit_of(u16 word)
{
	return ored_params_kind(word) == ORED_BARRIER ? ORED_BARRIER_BYTES :
	       ored_dtype_size(ored_params_dtype(word));
}

/**
 * ored_kind_fits() - can an op with these parameters be?
 * @params: from the network, or from a caller
 * @nranks: ranks of the group
 * @bucket_max: its largest bucket, bytes
 *
 * Where elements are dealt out each rank must get one, so that no shard is empty.
 */
bool ored_kind_fits(const struct ored_params *params, u32 nranks, u64 bucket_max)
{
	u8 kind = ored_params_kind(params->word), mode = ored_params_mode(params->word);

	if (mode != ORED_MODE_BOUNDED && mode != ORED_MODE_RELIABLE)
		return false;
	if (kind == ORED_BARRIER)
		return params->bytes == nranks * ORED_BARRIER_BYTES;
	if (!params->bytes || params->bytes > bucket_max || kind > ORED_BARRIER)
		return false;
	if (kind == ORED_BROADCAST)
		return ored_params_root(params->word) < nranks;
	return ored_params_possible(params) &&
	       (!deals(kind) || params->bytes / unit_of(params->word) >= nranks);
}

/**
 * ored_kind_map() - how the bucket of an op is cut
 * @map: what to fill in
 * @params: for which ored_kind_fits()
 * @payload: bytes of a full chunk, a multiple of ORED_PAYLOAD_ALIGN
 * @nranks: ranks
 */
void ored_kind_map(struct ored_map *map, const struct ored_params *params, u32 payload,
		   u32 nranks)
{
	if (deals(ored_params_kind(params->word)))
		ored_map_deal(map, params->bytes, payload, nranks, unit_of(params->word));
	else
		ored_map_init(map, params->bytes, payload, nranks);
}

/**
 * ored_kind_adds() - is there anything to reduce?
 * @word: the op's parameters
 */
bool ored_kind_adds(u16 word)
{
	u8 kind = ored_params_kind(word);

	return kind == ORED_ALLREDUCE || kind == ORED_REDUCE_SCATTER;
}

/**
 * ored_kind_relays() - do owners serve others with what isn't theirs?
 * @word: the op's parameters
 *
 * Then a rank that gives nothing itself is still wanted.
 */
bool ored_kind_relays(u16 word)
{
	u8 kind = ored_params_kind(word);

	return kind == ORED_ALLREDUCE || kind == ORED_BROADCAST;
}

/**
 * ored_kind_gives() - is a rank's contribution a part of a shard?
 * @word: the op's parameters
 * @owner: whose shard
 * @rank: the rank
 */
bool ored_kind_gives(u16 word, u32 owner, u32 rank)
{
	if (ored_kind_adds(word))
		return true;
	if (ored_params_kind(word) == ORED_BROADCAST)
		return rank == ored_params_root(word);
	return rank == owner;
}

/**
 * ored_kind_scatters() - chunks that a rank scatters to another
 * @map: how the bucket is cut
 * @word: the op's parameters
 * @from: who sends
 * @to: the owner
 */
u32 ored_kind_scatters(const struct ored_map *map, u16 word, u32 from, u32 to)
{
	return from != to && ored_kind_gives(word, to, from) ? ored_map_count(map, to) : 0;
}

/**
 * ored_kind_gathers() - chunks that a rank gathers from another
 * @map: how the bucket is cut
 * @word: the op's parameters
 * @from: the owner
 * @to: who hears
 */
u32 ored_kind_gathers(const struct ored_map *map, u16 word, u32 from, u32 to)
{
	u8 kind = ored_params_kind(word);

	if (from == to || kind == ORED_REDUCE_SCATTER)
		return 0;
	/* It has it. */
	if (kind == ORED_BROADCAST && to == ored_params_root(word))
		return 0;
	return ored_map_count(map, from);
}

/**
 * ored_kind_cost() - what an op costs, in bytes of an allreduce
 * @params: the op's
 *
 * By which bounds are learnt, so that all kinds share what is known. A broadcast
 * is taken for an allreduce: an owner can't pass on what it hasn't got.
 */
u32 ored_kind_cost(const struct ored_params *params)
{
	u8 kind = ored_params_kind(params->word);

	if (kind == ORED_REDUCE_SCATTER || kind == ORED_ALL_GATHER)
		return DIV_ROUND_UP(params->bytes, 2);
	return params->bytes;
}
