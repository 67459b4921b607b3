// SPDX-License-Identifier: GPL-2.0
/* How a group decides to transform its buckets: all ranks alike, whoever asks. */

#include <string.h>
#include "tap.h"
#include "../../kmod/core/rotation.h"

#define WINDOW	ORED_ROTATION_WINDOW
#define RANKS	8

static struct ored_rotation fresh(void)
{
	struct ored_rotation r;

	ored_rotation_init(&r);
	return r;
}

/* Ends @ops ops that have lost so much, the first of which is @op. */
static u64 train(struct ored_rotation *r, u64 op, u32 ops, u32 loss_ppm)
{
	u64 end = op + ops;

	for (; op < end; op++)
		ored_rotation_ended(r, op + 1, loss_ppm, false);
	return end;
}

TEST(rotation__off_at_first_and_without_loss)
{
	struct ored_rotation r = fresh();
	u64 op;

	for (op = 0; op < 10000; op++) {
		CHECK(!ored_rotation_on(&r, op));
		CHECK(!ored_rotation_ended(&r, op + 1, 0, false));
	}
}

/* On above 2 %, off below 0.5 %, and in between as it was */
TEST(rotation__hysteresis)
{
	static const struct {
		u32 loss_ppm;
		bool on;
	} step[] = {
		{ 4000, 0 }, { 12000, 0 }, { 19000, 0 }, { 22000, 1 }, { 12000, 1 },
		{ 6000, 1 }, { 4000, 0 }, { 12000, 0 }, { 19000, 0 }, { 900000, 1 },
		{ 5100, 1 }, { 0, 0 },
	};
	struct ored_rotation r = fresh();
	u64 op = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(step); i++) {
		op = train(&r, op, 1000, step[i].loss_ppm);
		CHECK(ored_rotation_on(&r, op) == step[i].on, "step %u, %u ppm", i,
		      step[i].loss_ppm);
	}
}

/* One bad op is no reason; and a switch is in force late enough to be known. */
TEST(rotation__when)
{
	struct ored_rotation r = fresh();
	u64 op = train(&r, 0, 100, 0), asked, on;

	op = train(&r, op, 1, 100000);
	op = train(&r, op, 200, 0);
	CHECK_EQ(r.switches, 0);
	while (!r.switches)
		op = train(&r, op, 1, 50000);
	asked = op;
	for (on = asked; !ored_rotation_on(&r, on); on++)
		;
	CHECK(on > asked + WINDOW && on <= asked + 2 * WINDOW, "asked %llu, on %llu",
	      (unsigned long long)asked, (unsigned long long)on);
	CHECK_EQ(on % WINDOW, 0);
	CHECK(!ored_rotation_on(&r, on - 1));
	/* Asked once */
	op = train(&r, op, 200, 50000);
	CHECK_EQ(r.switches, 1);
}

TEST(rotation__a_peer_that_loses_keeps_it_on)
{
	struct ored_rotation r = fresh();
	u64 op = train(&r, 0, 200, 30000);
	u32 i;

	for (i = 0; i < 1000; i++)
		CHECK(!ored_rotation_ended(&r, ++op, 0, true));
	CHECK(ored_rotation_on(&r, op));
	op = train(&r, op, 200, 0);
	CHECK(!ored_rotation_on(&r, op));
}

TEST(rotation__pack_and_hear)
{
	u32 i;

	for (i = 0; i < 100000; i++) {
		u64 posted = tap_random() >> (tap_below(40) + 8), from;
		struct ored_rotation a = {
			.switches = (u8)tap_random(), .loss_ppm = tap_below(10000),
			.from = posted / WINDOW + tap_below(4) - 1,
		};
		struct ored_rotation b = { .switches = (u8)(a.switches - 1 - tap_below(127)) };
		u16 packed = ored_rotation_pack(&a, posted);
		/* A rank posts while it makes up a packet. */
		u64 said = posted + tap_below(WINDOW);

		if (a.from > posted / WINDOW + 2)
			continue;
		CHECK(packed < 1 << 12);
		CHECK_EQ(ored_rotation_loses(packed), a.loss_ppm >= ORED_ROTATION_OFF_PPM);
		CHECK(ored_rotation_heard(&b, packed, said));
		CHECK_EQ(b.switches, a.switches);
		from = max(a.from, posted / WINDOW);
		if (a.from > posted / WINDOW)
			CHECK_EQ(b.from, from);
		else
			CHECK(b.from >= from && b.from <= said / WINDOW);
		CHECK(!ored_rotation_heard(&b, packed, said));
		CHECK(!ored_rotation_heard(&a, packed, said));
		/* What is older isn't news. */
		b.switches = (u8)(a.switches + 1 + tap_below(127));
		CHECK(!ored_rotation_heard(&b, packed, said));
	}
}

/* Whatever is on the wire, nothing but a decision comes of it. */
TEST(rotation__any_word)
{
	u32 i;

	for (i = 0; i < 1 << 16; i++) {
		struct ored_rotation r = { .switches = (u8)tap_random() };
		u64 posted = tap_random();

		ored_rotation_heard(&r, (u16)i, posted);
		CHECK(r.from <= posted / WINDOW + 3);
		ored_rotation_on(&r, tap_random());
	}
}

/* A group: ranks up to an op or two apart, whose packets get lost */
struct group {
	struct ored_rotation r[RANKS];
	u64 posted[RANKS];
	bool loses[RANKS][RANKS];
	u8 domain[1 << 14];	/* bit 0: somebody is off, bit 1: on */
	u32 mixed;
};

static void hear(struct group *g, u32 to, u32 from)
{
	u16 packed = ored_rotation_pack(&g->r[from], g->posted[from]);

	ored_rotation_heard(&g->r[to], packed, g->posted[from]);
	g->loses[to][from] = ored_rotation_loses(packed);
}

static void post(struct group *g, u32 rank)
{
	u64 op = g->posted[rank]++;
	u8 domain = ored_rotation_on(&g->r[rank], op) ? 2 : 1;

	if (g->domain[op] && g->domain[op] != domain)
		g->mixed++;
	g->domain[op] |= domain;
}

static void end(struct group *g, u32 rank, u32 loss_ppm)
{
	bool others = false;
	u32 from;

	for (from = 0; from < RANKS; from++)
		others |= from != rank && g->loses[rank][from];
	ored_rotation_ended(&g->r[rank], g->posted[rank], loss_ppm, others);
}

/* One op of all, in any order; of a hundred packets @heard come through. */
static void one_op(struct group *g, u32 heard, const u32 *loss_ppm)
{
	u32 rank, from, i;

	for (i = 0; i < RANKS; i++)
		post(g, (i * 5 + 3) % RANKS);
	for (i = 0; i < RANKS * RANKS; i++) {
		rank = i / RANKS;
		from = i % RANKS;
		if (rank != from && tap_below(100) < heard)
			hear(g, rank, from);
	}
	for (rank = 0; rank < RANKS; rank++)
		end(g, rank, loss_ppm[rank]);
}

/* Half of all packets lost, losses that come and go: never are two apart. */
TEST(rotation__all_decide_alike)
{
	static struct group g;
	u32 loss[RANKS], spell, i, op, on = 0, off = 0;

	memset(&g, 0, sizeof(g));
	for (spell = 0; spell < 50; spell++) {
		u32 level = tap_below(2) ? 0 : 30000;

		for (op = 0; op < 200; op++) {
			for (i = 0; i < RANKS; i++)
				loss[i] = level ? tap_below(2 * level) : 0;
			one_op(&g, 50, loss);
		}
	}
	CHECK_EQ(g.mixed, 0);
	for (op = 0; op < 10000; op++) {
		on += g.domain[op] == 2;
		off += g.domain[op] == 1;
	}
	printf("# %u ops on, %u off, %u switches\n", on, off, g.r[0].switches);
	CHECK(on > 1000 && off > 1000 && g.r[0].switches >= 6);
}

/* One that was cut off for hundreds of ops agrees soon after it is back. */
TEST(rotation__cut_off)
{
	static struct group g;
	u32 loss[RANKS] = { 0 }, rank, from, op, mixed;

	memset(&g, 0, sizeof(g));
	for (op = 0; op < 600; op++) {
		for (rank = 0; rank < RANKS; rank++)
			post(&g, rank);
		for (rank = 1; rank < RANKS; rank++) {
			for (from = 1; from < RANKS; from++)
				if (from != rank)
					hear(&g, rank, from);
			end(&g, rank, op < 300 ? 100000 : 1000);
		}
	}
	CHECK(g.mixed > 0);
	mixed = g.mixed;
	for (op = 0; op < 400; op++)
		one_op(&g, 100, loss);
	CHECK(g.mixed <= mixed + 1, "%u more", g.mixed - mixed);
	for (rank = 1; rank < RANKS; rank++)
		CHECK_EQ(g.r[rank].switches, g.r[0].switches);
}

/* A packet that comes late says what was true, not what is to come. */
TEST(rotation__late_packets)
{
	struct ored_rotation a = fresh(), b = fresh();
	u64 at = 10 * WINDOW, op;
	u16 late;

	while (!a.switches)
		ored_rotation_ended(&a, at, 100000, false);
	late = ored_rotation_pack(&a, at);
	CHECK(ored_rotation_heard(&b, late, at));
	for (op = at; op < at + 10 * WINDOW; op++) {
		CHECK(!ored_rotation_heard(&b, late, at));
		ored_rotation_heard(&b, ored_rotation_pack(&a, op), op);
		CHECK_EQ(ored_rotation_on(&b, op), ored_rotation_on(&a, op));
	}
}

/* Two ask in different windows: the later one is what all go by. */
TEST(rotation__two_ask)
{
	struct ored_rotation a = fresh(), b = fresh();
	u64 at = 10 * WINDOW, op;

	while (!a.switches)
		ored_rotation_ended(&a, at - 1, 100000, false);
	while (!b.switches)
		ored_rotation_ended(&b, at, 100000, false);
	CHECK(a.from + 1 == b.from);
	CHECK(ored_rotation_heard(&a, ored_rotation_pack(&b, at), at));
	CHECK(!ored_rotation_heard(&b, ored_rotation_pack(&a, at), at));
	for (op = 0; op < 1000; op++)
		CHECK_EQ(ored_rotation_on(&a, op), ored_rotation_on(&b, op));
}

TAP_MAIN
