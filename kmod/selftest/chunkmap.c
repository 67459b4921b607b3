// SPDX-License-Identifier: GPL-2.0
/*
 * Chunk maps on the kernel's bit operations: an ACK's bits are bytes, lowest
 * bit first, whatever the endianness and word size of the map's words.
 */

#include <linux/init.h>
#include <linux/slab.h>

#include "../core/chunkmap.h"
#include "selftest.h"

#define COUNT	1500	/* more than one ACK tells of, no multiple of a word */
#define STEP	7	/* has no factor in common with COUNT */

static bool __init told(const u8 *bits, u32 i)
{
	return bits[i / 8] >> (i % 8) & 1;
}

static void __init take_in(struct ored_chunkmap *map, u32 chunk)
{
	ored_chunkmap_claim(map, chunk);
	ored_chunkmap_arrived(map, chunk);
}

/* Any order: each chunk is claimed once, and all are complete after the last. */
static bool __init test_claim(struct ored_chunkmap *map)
{
	u32 i, chunk = 0;
	bool ok = true;

	for (i = 0; i < COUNT; i++) {
		ok &= ored_expect(!ored_chunkmap_complete(map));
		ok &= ored_expect(ored_chunkmap_claim(map, chunk));
		ok &= ored_expect(!ored_chunkmap_claim(map, chunk));
		ored_chunkmap_arrived(map, chunk);
		chunk = (chunk + STEP) % COUNT;
	}
	return ok & ored_expect(ored_chunkmap_complete(map)) &
	       ored_expect(map->base == COUNT);
}

/* Every third chunk: the ACK of any window shows these and no others. */
static bool __init test_bits(struct ored_chunkmap *map, u8 *bits)
{
	u32 i, first, n;
	bool ok = true;

	for (i = 0; i < COUNT; i += 3)
		take_in(map, i);
	for (first = 0; first < COUNT; first += 64) {
		n = ored_chunkmap_ack_from(map, first, bits);
		ok &= ored_expect(n == min_t(u32, ALIGN(map->top - first, 64), ORED_ACK_BITS));
		for (i = 0; i < n; i++)
			ok &= ored_expect(told(bits, i) == ((first + i) % 3 == 0 &&
							    first + i < COUNT));
	}
	return ok & ored_expect(map->base == 1) &
	       ored_expect(!ored_chunkmap_ack_from(map, ALIGN(COUNT, 64), bits));
}

/* Holes at the words' edges stop the base, and filling them moves it. */
static bool __init test_base(struct ored_chunkmap *map)
{
	static const u32 holes[] __initconst = { 0, 31, 32, 63, 64, 127, 128, COUNT - 1 };
	bool ok = true;
	u32 i, next = 0;

	for (i = 0; i < COUNT; i++) {
		if (i == holes[next])
			next++;
		else
			take_in(map, i);
	}
	for (i = 0; i < ARRAY_SIZE(holes); i++) {
		ok &= ored_expect(!ored_chunkmap_complete(map));
		ok &= ored_expect(map->base == holes[i]);
		take_in(map, holes[i]);
	}
	return ok & ored_expect(ored_chunkmap_complete(map));
}

static void __init clear(struct ored_chunkmap *map)
{
	ored_chunkmap_reset(map, COUNT);
	map->count = COUNT;
}

bool __init ored_selftest_chunkmap(void)
{
	struct ored_chunkmap map = { .room = ALIGN(COUNT, BITS_PER_LONG) };
	u8 *bits = kmalloc(ORED_ACK_BITS / 8, GFP_KERNEL);
	bool ok = false;

	map.bits = kcalloc(BITS_TO_LONGS(COUNT), sizeof(long), GFP_KERNEL);
	if (ored_expect(map.bits && bits)) {
		map.count = COUNT;
		ok = test_claim(&map);
		clear(&map);
		ok &= test_bits(&map, bits);
		clear(&map);
		ok &= test_base(&map);
	}
	kfree(map.bits);
	kfree(bits);
	return ok;
}
