// SPDX-License-Identifier: GPL-2.0
/*
 * Who computes: the vector unit, where the processor has one that is known here
 * and where it may be used at the moment, else the reference. Both give the same
 * bits, so nobody can tell which it was but by the time it took.
 *
 * The user's registers are in the FPU unless kernel_fpu_begin() has saved them.
 * It must not be called where somebody else's section has been interrupted; that
 * is asked each time. Sections are short, some 10 us, because whatever has
 * interrupted ours has to do without the FPU, and because nothing preempts them. So
 * what isn't for vectors, such as infinities, is computed outside of them.
 * In process context softirqs are kept off for so long: one that came in between
 * would find the FPU taken and use the reference, 20 times slower.
 */

#include <linux/bottom_half.h>
#include <linux/kernel.h>
#include <linux/printk.h>
#include <linux/ored.h>

#include "compute.h"
#include "fpu.h"
#include "inject.h"

static struct ored_reduce_unit unit_of[ORED_I64 + 1] __ro_after_init;

/* For the Hadamard transform; process context */
static struct ored_hadamard_unit fast __ro_after_init;
static const struct ored_hadamard_unit slow = { .ops = &ored_hadamard_soft };

static bool begin(void)
{
	if (ored_inject_no_fpu())
		return false;
	local_bh_disable();
	if (ored_fpu_usable()) {
		ored_fpu_begin();
		return true;
	}
	local_bh_enable();
	return false;
}

static void end(void)
{
	ored_fpu_end();
	local_bh_enable();
}

/**
 * ored_compute_reduce() - ored_reduce(), by whoever is fastest here and now
 * @dst: as there
 * @c: as there
 * @len: as there
 * @dtype: as there
 * @reduction: as there
 *
 * Process context and softirq, with interrupts enabled.
 *
 * Return: as there
 */
u32 ored_compute_reduce(void *dst, const struct ored_contribs *c, u32 len, u8 dtype, u8 reduction)
{
	const struct ored_reduce_unit *unit = &unit_of[dtype];

	if (!unit->reduce)
		return ored_reduce(dst, c, len, dtype, reduction);
	return ored_reduce_by(unit, dst, c, len, dtype, reduction);
}

/* The FPU is free in process context, but for somebody else's section: not here. */
static void hadamard_begin(void)
{
	local_bh_disable();
	ored_fpu_begin();
}

/**
 * ored_compute_hadamard() - who transforms the next tile
 *
 * Process context, outside of any section with the FPU.
 *
 * Return: the vector unit, or who computes in integers
 */
const struct ored_hadamard_unit *ored_compute_hadamard(void)
{
	if (!fast.ops || ored_inject_no_fpu() || !ored_fpu_usable())
		return &slow;
	return &fast;
}

/** ored_compute_init() - chooses the units; before anything is computed */
void ored_compute_init(void)
{
	const struct ored_simd *unit = ored_fpu_unit(false), *half_unit = ored_fpu_unit(true);
	u8 dtype;

	for (dtype = 0; unit && dtype < ARRAY_SIZE(unit_of); dtype++) {
		bool is_half = ored_dtype_size(dtype) == 2;

		unit_of[dtype].reduce = is_half ? half_unit->reduce : unit->reduce;
		unit_of[dtype].begin = begin;
		unit_of[dtype].end = end;
	}
	/* Wider vectors, as for 16-bit floats, make it 3 % faster at the most. */
	if (unit) {
		fast.ops = &unit->hadamard;
		fast.begin = hadamard_begin;
		fast.end = end;
	}
	pr_info("ored: reduces by %s, 16-bit floats by %s\n",
		unit ? unit->name : "integers", half_unit ? half_unit->name : "integers");
}
