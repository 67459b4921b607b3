// SPDX-License-Identifier: GPL-2.0
/*
 * The F32 arithmetic against the FPU by sheer number. Built without sanitizers
 * so that the number can be large.
 */

#include "f32.h"
#include "../../kmod/core/reduce.h"
#include "../../uapi/linux/ored.h"

#define PAIRS	30000000U

TEST(f32_add__random_pairs)
{
	u32 i;

	for (i = 0; i < PAIRS; i++) {
		u64 r = tap_random();
		u32 a = (u32)r, b = (u32)(r >> 32);
		u32 got = ored_f32_add(a, b), want = fpu_add(a, b);

		CHECK(got == want, "%08x + %08x: %08x, not %08x", a, b, got, want);
	}
}

TEST(f32_add__corner_pairs)
{
	u32 i;

	for (i = 0; i < PAIRS; i++) {
		u32 a = f32_corner(), b = f32_partner(a);
		u32 got = ored_f32_add(a, b), want = fpu_add(a, b);

		CHECK(got == want, "%08x + %08x: %08x, not %08x", a, b, got, want);
	}
}

TEST(f32_add__commutes)
{
	u32 i;

	for (i = 0; i < PAIRS / 10; i++) {
		u32 a = f32_corner(), b = f32_partner(a);

		CHECK_EQ(ored_f32_add(a, b), ored_f32_add(b, a));
	}
}

TEST(f32_div__every_divisor)
{
	u32 n, i;

	for (n = 1; n <= ORED_MAX_RANKS; n++) {
		for (i = 0; i < 40000; i++) {
			u32 a = f32_corner();
			u32 got = ored_f32_div_u32(a, n), want = fpu_div(a, n);

			CHECK(got == want, "%08x / %u: %08x, not %08x", a, n,
			      got, want);
		}
	}
}

/* Where quotients are subnormal: dividends from all of the lowest ten binades */
TEST(f32_div__subnormal_quotients)
{
	u32 n, i;

	for (n = 1; n <= ORED_MAX_RANKS; n++) {
		for (i = 0; i < 0x05000000; i += 1999) {
			u32 got = ored_f32_div_u32(i, n), want = fpu_div(i, n);

			CHECK(got == want, "%08x / %u: %08x, not %08x", i, n,
			      got, want);
		}
	}
}

TAP_MAIN
