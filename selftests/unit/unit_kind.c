// SPDX-License-Identifier: GPL-2.0
/*
 * What each collective moves: whoever plays all packets of an op has what its
 * name promises, no chunk comes twice, and shards are numpy.array_split()'s.
 */

#include "tap.h"
#include "../../kmod/core/kind.h"
#include "../../uapi/linux/ored.h"

#define RANKS	9

static const u8 sizes[] = { [ORED_F32] = 4, [ORED_F64] = 8, [ORED_F16] = 2, [ORED_BF16] = 2,
			    [ORED_I32] = 4, [ORED_I64] = 8 };

static struct ored_params params_of(u8 kind, u8 dtype, u32 root, u32 bytes)
{
	struct ored_params p = { .bytes = bytes };

	p.word = kind == ORED_BROADCAST ? ored_params_broadcast((u8)root, ORED_MODE_BOUNDED) :
		 ored_params_word(dtype, ORED_SUM, kind, ORED_MODE_BOUNDED);
	return p;
}

/* Shards lie end to end, differ by one element, and so do their chunks. */
static void check_deal(const struct ored_map *map, u32 unit)
{
	u32 rank, i, at = 0, elements = map->bytes / unit;

	for (rank = 0; rank < map->nranks; rank++) {
		u32 first = ored_map_first(map, rank), count = ored_map_count(map, rank);
		u32 share = elements / map->nranks + (rank < elements % map->nranks);

		CHECK_EQ(ored_map_shard_bytes(map, rank), share * unit);
		CHECK_EQ(ored_map_start(map, rank), at);
		CHECK(count && count <= map->longest && first + count <= map->chunks);
		for (i = 0; i < count; i++) {
			u32 len = ored_map_length(map, first + i);

			CHECK_EQ(ored_map_offset(map, first + i), at);
			CHECK(len > 0 && len % unit == 0);
			CHECK(len == map->payload || i == count - 1);
			CHECK(len <= map->payload);
			at += len;
		}
	}
	CHECK_EQ(at, map->bytes);
}

TEST(deal__every_small_bucket)
{
	struct ored_map map, tar;
	u32 unit, nranks, n;

	for (unit = 2; unit <= 8; unit *= 2) {
		for (nranks = 1; nranks <= RANKS; nranks++) {
			for (n = nranks; n < 2500; n += n < 60 ? 1 : 37) {
				ored_map_deal(&map, n * unit, 512, nranks, unit);
				check_deal(&map, unit);
				ored_map_init(&tar, n * unit, 512, nranks);
				CHECK(map.longest <= tar.longest);
			}
		}
	}
}

TEST(deal__random_buckets)
{
	struct ored_map map, tar;
	u32 i;

	for (i = 0; i < 2000; i++) {
		u32 unit = 2U << tap_below(3), nranks = 1 + tap_below(256);
		u32 n = nranks + tap_below((1U << (6 + tap_below(21))) / unit);
		u32 payload = 512 + 8 * tap_below(8128);

		if (n * unit > ORED_MAX_BUCKET)
			continue;
		ored_map_deal(&map, n * unit, payload, nranks, unit);
		ored_map_init(&tar, n * unit, payload, nranks);
		CHECK(map.longest <= tar.longest);
		if (map.chunks < 5000)
			check_deal(&map, unit);
	}
	ored_map_deal(&map, ORED_MAX_BUCKET, ORED_PAYLOAD_MIN, 2, 8);
	CHECK_EQ(ored_map_count(&map, 0), 1 << ORED_CHUNK_BITS);
	CHECK_EQ(ored_map_offset(&map, map.chunks - 1), ORED_MAX_BUCKET - ORED_PAYLOAD_MIN);
}

/* --- all packets of an op ----------------------------------------------------- */

/* What a rank has of a chunk: whose contributions, by bit */
static u32 has[RANKS][4096];
static u32 given[RANKS][4096];

static u32 everybody(u32 nranks)
{
	return (1U << nranks) - 1;
}

/* Every owner collects what it is given of its shard. */
static void scatter(const struct ored_map *map, u16 word)
{
	u32 from, to, i;

	for (to = 0; to < map->nranks; to++) {
		for (from = 0; from < map->nranks; from++) {
			u32 count = ored_kind_scatters(map, word, from, to);

			CHECK(from != to || !count);
			CHECK(!count || count == ored_map_count(map, to));
			for (i = 0; i < count; i++)
				given[to][ored_map_first(map, to) + i] |= 1U << from;
			if (from == to && ored_kind_gives(word, to, from))
				for (i = 0; i < ored_map_count(map, to); i++)
					given[to][ored_map_first(map, to) + i] |= 1U << from;
		}
		for (i = 0; i < ored_map_count(map, to); i++)
			has[to][ored_map_first(map, to) + i] =
				given[to][ored_map_first(map, to) + i];
	}
}

static void gather(const struct ored_map *map, u16 word)
{
	u32 from, to, i;

	for (to = 0; to < map->nranks; to++) {
		for (from = 0; from < map->nranks; from++) {
			u32 count = ored_kind_gathers(map, word, from, to);

			CHECK(from != to || !count);
			CHECK(!count || count == ored_map_count(map, from));
			for (i = 0; i < count; i++)
				has[to][ored_map_first(map, from) + i] =
					given[from][ored_map_first(map, from) + i];
		}
	}
}

/* What a rank should have of an owner's shard in the end; 0: nobody cares */
static u32 wanted(u8 kind, u32 root, u32 nranks, u32 rank, u32 owner)
{
	switch (kind) {
	case ORED_ALLREDUCE:
		return everybody(nranks);
	case ORED_REDUCE_SCATTER:
		return rank == owner ? everybody(nranks) : 0;
	case ORED_BROADCAST:
		return rank == root ? 0 : 1U << root;
	default:
		return 1U << owner;
	}
}

static void play(u8 kind, u8 dtype, u32 root, u32 nranks, u32 bytes)
{
	struct ored_params p = params_of(kind, dtype, root, bytes);
	struct ored_map map;
	u32 rank, owner, i;

	CHECK(ored_kind_fits(&p, nranks, 1 << 20));
	ored_kind_map(&map, &p, 512, nranks);
	memset(has, 0, sizeof(has));
	memset(given, 0, sizeof(given));
	scatter(&map, p.word);
	gather(&map, p.word);
	for (rank = 0; rank < nranks; rank++) {
		for (owner = 0; owner < nranks; owner++) {
			u32 want = wanted(kind, root, nranks, rank, owner);

			for (i = 0; want && i < ored_map_count(&map, owner); i++)
				CHECK_EQ(has[rank][ored_map_first(&map, owner) + i], want);
		}
	}
}

TEST(kinds__everybody_gets_what_is_due)
{
	static const u32 counts[] = { 1, 2, 7, 8, 63, 64, 65, 1000, 4099 };
	u32 nranks, c, root;
	u8 dtype;

	for (nranks = 1; nranks <= RANKS; nranks++) {
		for (c = 0; c < ARRAY_SIZE(counts); c++) {
			for (dtype = 0; dtype < ARRAY_SIZE(sizes); dtype++) {
				u32 bytes = counts[c] * sizes[dtype];

				play(ORED_ALLREDUCE, dtype, 0, nranks, bytes);
				for (root = 0; root < nranks; root++)
					play(ORED_BROADCAST, dtype, root, nranks, bytes);
				if (counts[c] < nranks)
					continue;
				play(ORED_REDUCE_SCATTER, dtype, 0, nranks, bytes);
				play(ORED_ALL_GATHER, dtype, 0, nranks, bytes);
			}
		}
		play(ORED_BARRIER, 0, 0, nranks, nranks * ORED_BARRIER_BYTES);
	}
}

/* --- what can't be ------------------------------------------------------------ */

TEST(fits__refuses)
{
	static const struct {
		u8 kind, dtype, root;
		u32 bytes;
		bool fits;
	} c[] = {
		{ ORED_ALLREDUCE,	ORED_F32, 0, 4096, true },
		{ ORED_ALLREDUCE,	ORED_F32, 0, 4097, false },
		{ ORED_ALLREDUCE,	ORED_F32, 0, 0, false },
		{ ORED_REDUCE_SCATTER,	ORED_F32, 0, 16, true },
		{ ORED_REDUCE_SCATTER,	ORED_F32, 0, 12, false },	/* 3 for 4 ranks */
		{ ORED_REDUCE_SCATTER,	ORED_F32, 0, 18, false },
		{ ORED_REDUCE_SCATTER,	15, 0, 64, false },		/* no dtype */
		{ ORED_ALL_GATHER,	ORED_F64, 0, 32, true },
		{ ORED_ALL_GATHER,	ORED_F64, 0, 28, false },
		{ ORED_ALL_GATHER,	ORED_F16, 0, 8, true },
		{ ORED_ALL_GATHER,	ORED_F16, 0, 6, false },
		{ ORED_BROADCAST,	ORED_F32, 3, 1, true },
		{ ORED_BROADCAST,	ORED_F32, 4, 1, false },
		{ ORED_BROADCAST,	ORED_F32, 131, 1, false },
		{ ORED_BROADCAST,	ORED_F32, 3, 0, false },
		{ ORED_BARRIER,		ORED_F32, 0, 32, true },
		{ ORED_BARRIER,		ORED_F32, 0, 24, false },
		{ ORED_BARRIER,		ORED_F32, 0, 40, false },
		{ 6,			ORED_F32, 0, 64, false },
		{ 7,			ORED_F32, 0, 64, false },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(c); i++) {
		struct ored_params p = params_of(c[i].kind, c[i].dtype, c[i].root, c[i].bytes);

		CHECK(ored_kind_fits(&p, 4, 4096) == c[i].fits, "case %u", i);
	}
	/* A barrier fits a group for the smallest buckets. */
	CHECK(ored_kind_fits(&(struct ored_params){ 2048, params_of(ORED_BARRIER, 0, 0, 0).word },
			     256, 8));
}

TEST(cost__is_that_of_the_stages)
{
	u8 kind;

	for (kind = ORED_ALLREDUCE; kind <= ORED_BARRIER; kind++) {
		struct ored_params p = params_of(kind, ORED_F32, 1, 4096);
		bool half = kind == ORED_REDUCE_SCATTER || kind == ORED_ALL_GATHER;

		CHECK_EQ(ored_kind_cost(&p), half ? 2048 : 4096);
		CHECK_EQ(ored_kind_adds(p.word), kind <= ORED_REDUCE_SCATTER);
		CHECK_EQ(ored_kind_relays(p.word),
			 kind == ORED_ALLREDUCE || kind == ORED_BROADCAST);
	}
}

TAP_MAIN
