// SPDX-License-Identifier: GPL-2.0

#include "rotation.h"

/* On the wire, in 12 bits: the count, when it is in force, and whether we lose */
#define FROM_SHIFT	8
#define FROM_MASK	3U	/* the window's lowest bits, while it is to come */
#define TO_COME		BIT_ULL(10)
#define LOSES		BIT_ULL(11)
/* A switch is in force so many windows after the one that it is asked in. */
#define AHEAD		2

static u64 window_of(u64 op)
{
	return op / ORED_ROTATION_WINDOW;
}

void ored_rotation_init(struct ored_rotation *r)
{
	*r = (struct ored_rotation){};
}

static bool loses(const struct ored_rotation *r)
{
	return r->loss_ppm >= ORED_ROTATION_OFF_PPM;
}

static void smooth(struct ored_rotation *r, u32 loss_ppm)
{
	u64 sum = (u64)r->loss_ppm * (ORED_ROTATION_SMOOTH - 1) + loss_ppm;

	r->loss_ppm = (u32)(sum / ORED_ROTATION_SMOOTH);
}

/**
 * ored_rotation_ended() - learns from a bounded op that has ended
 * @r: what is known
 * @posted: ops posted here
 * @loss_ppm: what it has lost, up to 1000000
 * @others: does any peer that counts lose more than a little?
 *
 * Return: whether it asks for a switch
 */
bool ored_rotation_ended(struct ored_rotation *r, u64 posted, u32 loss_ppm, bool others)
{
	bool on = r->switches & 1;

	smooth(r, loss_ppm);
	r->calm = loses(r) || others ? 0 : min(r->calm + 1, ORED_ROTATION_CALM + 0U);
	/* One after another */
	if (r->from > window_of(posted))
		return false;
	if (on ? r->calm < ORED_ROTATION_CALM : r->loss_ppm <= ORED_ROTATION_ON_PPM)
		return false;
	r->switches++;
	r->from = window_of(posted) + AHEAD;
	r->calm = 0;
	return true;
}

/**
 * ored_rotation_on() - is an op transformed, as far as is known here?
 * @r: what is known
 * @op: the op
 */
bool ored_rotation_on(const struct ored_rotation *r, u64 op)
{
	bool before = window_of(op) < r->from;

	return (r->switches & 1) != before;
}

/**
 * ored_rotation_pack() - what control packets say
 * @r: what is known
 * @posted: ops posted here; what the packet itself says may be more by then
 *
 * Return: 12 bits
 */
u16 ored_rotation_pack(const struct ored_rotation *r, u64 posted)
{
	u64 packed = r->switches | (loses(r) ? LOSES : 0);

	if (r->from > window_of(posted))
		packed |= TO_COME | ((u32)r->from & FROM_MASK) << FROM_SHIFT;
	return (u16)packed;
}

/* When a switch that has been heard of is in force; @window is its sender's. */
static u64 unpack_from(u16 packed, u64 window)
{
	u32 from = (u32)packed >> FROM_SHIFT;

	if (!(packed & TO_COME))
		return window;
	return window + ((from - (u32)window) & FROM_MASK);
}

/**
 * ored_rotation_heard() - a control packet says what its sender knows
 * @r: what is known here
 * @packed: from ored_rotation_pack()
 * @posted: ops posted by the sender
 *
 * Return: whether it is news
 */
bool ored_rotation_heard(struct ored_rotation *r, u16 packed, u64 posted)
{
	u8 ahead = (u8)(packed - r->switches);
	u64 from = unpack_from(packed, window_of(posted));

	if (ahead > 127)
		return false;
	/* Of what is in force already it isn't said since when. */
	if (!ahead && (from <= r->from || !(packed & TO_COME)))
		return false;
	r->switches = (u8)packed;
	r->from = from;
	r->calm = 0;
	return true;
}

/**
 * ored_rotation_loses() - does the sender of a control packet lose?
 * @packed: from ored_rotation_pack()
 */
bool ored_rotation_loses(u16 packed)
{
	return packed & LOSES;
}
