// SPDX-License-Identifier: GPL-2.0

#include "../../uapi/linux/ored.h"
#include "placement.h"

/**
 * ored_placement_valid() - can it be used?
 * @pl: the placement
 */
bool ored_placement_valid(const struct ored_placement *pl)
{
	return pl->nranks >= 1 && pl->nranks <= ORED_MAX_RANKS &&
	       pl->copies >= 1 && pl->copies <= pl->nranks &&
	       pl->kind <= ORED_PLACE_RING &&
	       pl->jump >= 1 && pl->jump <= pl->nranks;
}

/*
 * The order: ranks 0, J, 2J, ..., then 1, 1 + J, ..., as columns of a table with
 * J ranks a row. The first nranks % J columns are one longer.
 */

/**
 * ored_placement_at() - a rank's place in the order of neighbours
 * @pl: the placement
 * @rank: below its nranks
 */
u32 ored_placement_at(const struct ored_placement *pl, u32 rank)
{
	u32 column = rank % pl->jump, whole = pl->nranks / pl->jump;

	return column * whole + min(column, pl->nranks % pl->jump) + rank / pl->jump;
}

/**
 * ored_placement_rank() - the rank at a place
 * @pl: the placement
 * @at: below its nranks
 */
u32 ored_placement_rank(const struct ored_placement *pl, u32 at)
{
	u32 whole = pl->nranks / pl->jump, longer = pl->nranks % pl->jump;
	u32 column, row;

	if (at < longer * (whole + 1)) {
		column = at / (whole + 1);
		row = at % (whole + 1);
	} else {
		at -= longer * (whole + 1);
		column = longer + at / whole;
		row = at % whole;
	}
	return row * pl->jump + column;
}

/* The cluster that a place belongs to: a group, or the ring */
static void cluster(const struct ored_placement *pl, u32 at, u32 *first, u32 *size)
{
	u32 groups = pl->nranks / pl->copies, group;

	*first = 0;
	*size = pl->nranks;
	if (pl->kind == ORED_PLACE_RING)
		return;
	group = min(at / pl->copies, groups - 1);
	*first = group * pl->copies;
	*size = group == groups - 1 ? pl->nranks - *first : pl->copies;
}

/* In a group the next copies - 1, going round, are all the others. */
static u32 neighbour(const struct ored_placement *pl, u32 rank, u32 steps, bool back)
{
	u32 at = ored_placement_at(pl, rank), first, size;

	cluster(pl, at, &first, &size);
	steps = back ? size - steps : steps;
	return ored_placement_rank(pl, first + (at - first + steps) % size);
}

/**
 * ored_placement_holder() - who keeps copies of a rank's state
 * @pl: the placement
 * @owner: the rank
 * @i: which of the copies - 1 holders, from 0
 */
u32 ored_placement_holder(const struct ored_placement *pl, u32 owner, u32 i)
{
	return neighbour(pl, owner, i + 1, false);
}

/**
 * ored_placement_owner() - whose copies a rank keeps
 * @pl: the placement
 * @holder: the rank
 * @i: which of the copies - 1 owners, from 0: this rank is its @i-th holder
 */
u32 ored_placement_owner(const struct ored_placement *pl, u32 holder, u32 i)
{
	return neighbour(pl, holder, i + 1, true);
}

static bool mul_add(u64 *to, u64 a, u64 b)
{
	u64 product;

	return __builtin_mul_overflow(a, b, &product) ||
	       __builtin_add_overflow(*to, product, to);
}

/* Multiplies the polynomial @p by @q, both up to x^n. Return: true on overflow */
static bool times(u64 *p, const u64 *q, u32 n)
{
	u32 i, j;

	/* From the top, so that what is still needed isn't overwritten. */
	for (i = n + 1; i-- > 0;) {
		u64 sum = 0;

		for (j = 0; j <= i; j++) {
			if (q[j] && p[i - j] && mul_add(&sum, p[i - j], q[j]))
				return true;
		}
		p[i] = sum;
	}
	return false;
}

/* C(n, i) for i up to @most. Return: true on overflow */
static bool binomials(u64 *to, u32 n, u32 most)
{
	u32 row, i;

	memset(to, 0, (most + 1) * sizeof(*to));
	to[0] = 1;
	for (row = 1; row <= n; row++) {
		for (i = min(row, most); i > 0; i--) {
			if (__builtin_add_overflow(to[i], to[i - 1], &to[i]))
				return true;
		}
	}
	return false;
}

/*
 * How many ways there are to lose i of a ring's @size so that no @run neighbours
 * are lost together. Those that stay cut the ring into size - i stretches of less
 * than @run lost ones; each way is met once for each of them as the first, and
 * each of the @size places can be the first one's.
 */
static bool ring_ways(u64 *ways, u64 *work, u32 size, u32 run, u32 i)
{
	u32 stay, j, step;
	u64 sum;

	*ways = 0;
	if (i >= size)
		return false;
	stay = size - i;
	memset(work, 0, (i + 1) * sizeof(*work));
	work[0] = 1;
	for (step = 0; step < stay; step++) {
		/* Times 1 + x + ... + x^(run - 1), from the top */
		for (j = i + 1; j-- > 0;) {
			u32 k;

			sum = 0;
			for (k = 0; k < run && k <= j; k++) {
				if (__builtin_add_overflow(sum, work[j - k], &sum))
					return true;
			}
			work[j] = sum;
		}
	}
	if (__builtin_mul_overflow(work[i], (u64)size, &sum))
		return true;
	*ways = div64_u64(sum, stay);
	return false;
}

/* What one cluster of @size contributes, up to x^n. Return: true on overflow */
static bool cluster_ways(const struct ored_placement *pl, u64 *ways, u64 *work, u32 size, u32 n)
{
	u32 i;

	if (size == pl->copies) {
		if (binomials(ways, size, n))
			return true;
		if (size <= n)
			ways[size] = 0;
		return false;
	}
	for (i = 0; i <= n; i++) {
		if (ring_ways(&ways[i], work, size, pl->copies, i))
			return true;
	}
	return false;
}

/**
 * ored_placement_survives() - how likely is it that a copy of everything is left?
 * @pl: the placement
 * @lost: ranks that are lost with their memory, at most its nranks
 * @room: ored_placement_room(@lost) words to work in
 * @good: receives the ways to lose that many after which every rank's state is
 *	still held by somebody
 * @all: receives all ways; the probability is @good / @all
 *
 * Exact: no state is left without a copy unless all its holders and its owner are
 * lost, and clusters don't touch each other, so that their ways multiply.
 *
 * Return: 0, -EINVAL, or -ERANGE if a number has more than 64 bits
 */
int ored_placement_survives(const struct ored_placement *pl, u32 lost, u64 *room,
			    u64 *good, u64 *all)
{
	u64 *product = room, *ways = room + lost + 1, *work = ways + lost + 1;
	u32 first = 0, size;

	if (!ored_placement_valid(pl) || lost > pl->nranks)
		return -EINVAL;
	if (binomials(product, pl->nranks, lost))
		return -ERANGE;
	*all = product[lost];
	memset(product, 0, (lost + 1) * sizeof(*product));
	product[0] = 1;
	while (first < pl->nranks) {
		cluster(pl, first, &first, &size);
		if (cluster_ways(pl, ways, work, size, lost) || times(product, ways, lost))
			return -ERANGE;
		first += size;
	}
	*good = product[lost];
	return 0;
}
