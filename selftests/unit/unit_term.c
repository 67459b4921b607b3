// SPDX-License-Identifier: GPL-2.0
/* When ops end, who counts, and how much of what peers say is believed. */

#include "tap.h"
#include "../../kmod/core/standing.h"
#include "../../kmod/core/term.h"

#define MS	((u64)1000000)

static const struct ored_limits limits = {
	.bound = 450 * MS, .seal = 285 * MS, .wait = 112 * MS, .grace = 30 * MS,
};

static struct ored_term begun(u64 now)
{
	struct ored_term t;

	ored_term_begin(&t, &limits, now);
	return t;
}

TEST(term__nobody_else)
{
	struct ored_term t = begun(1000 * MS);

	CHECK_EQ(ored_term_seal_at(&t), (1000 + 112 + 285) * MS);
	CHECK_EQ(ored_term_hard_at(&t), (1000 + 112 + 450) * MS);
	CHECK_EQ(ored_term_end_at(&t), (1000 + 112 + 450) * MS);
	CHECK_EQ(ored_limits_published(&limits), 562 * MS);
}

TEST(term__reference)
{
	struct ored_term t = begun(1000 * MS);

	ored_term_posted(&t, 1050 * MS);
	CHECK_EQ(ored_term_hard_at(&t), 1500 * MS);
	CHECK_EQ(ored_term_seal_at(&t), 1335 * MS);
	ored_term_posted(&t, 1020 * MS);
	CHECK_EQ(ored_term_hard_at(&t), 1470 * MS);
	t = begun(1000 * MS);
	ored_term_posted(&t, 2000 * MS);
	CHECK_EQ(ored_term_hard_at(&t), 1562 * MS);
}

TEST(term__left_behind)
{
	struct ored_term t = begun(1000 * MS);

	ored_term_left(&t, 0, 0 > 1, 1001 * MS);
	CHECK_EQ(ored_term_end_at(&t), 1562 * MS);
	ored_term_left(&t, 1, 1 > 1, 1100 * MS);
	CHECK_EQ(ored_term_end_at(&t), 1130 * MS);
	ored_term_used(&t, 1120 * MS);
	CHECK_EQ(ored_term_end_at(&t), 1150 * MS);
	/* What is useful puts it off, up to the bound. */
	ored_term_used(&t, 1555 * MS);
	CHECK_EQ(ored_term_end_at(&t), 1562 * MS);
	ored_term_left(&t, 2, 2 > 1, 1200 * MS);
	CHECK_EQ(ored_term_end_at(&t), 1200 * MS);
}

/* Known before the post: it ends at once, or soon. */
TEST(term__late_from_the_start)
{
	struct ored_term t = begun(1000 * MS);

	ored_term_left(&t, 5, 5 > 1, 1000 * MS);
	CHECK_EQ(ored_term_end_at(&t), 1000 * MS);
	t = begun(1000 * MS);
	ored_term_left(&t, 1, 1 > 1, 1000 * MS);
	CHECK_EQ(ored_term_end_at(&t), 1030 * MS);
}

/* No order of events makes an op longer than what is published. */
TEST(term__never_longer)
{
	u32 i, k;

	for (i = 0; i < 5000; i++) {
		struct ored_term t = begun(1000 * MS);
		u64 now = 1000 * MS, end = ored_term_end_at(&t);

		for (k = 0; k < 20; k++) {
			now += tap_below(60) * MS;
			if (now >= ored_term_end_at(&t))
				break;
			switch (tap_below(3)) {
			case 0:
				ored_term_posted(&t, now);
				break;
			case 1:
				ored_term_left(&t, tap_below(3), tap_below(3) > 1, now);
				break;
			default:
				ored_term_used(&t, now);
			}
			CHECK(ored_term_end_at(&t) <= 1562 * MS);
			CHECK(ored_term_hard_at(&t) <= end);
			CHECK(ored_term_end_at(&t) >= 1000 * MS);
			CHECK(ored_term_seal_at(&t) <= ored_term_hard_at(&t));
		}
	}
}

TEST(term__grace)
{
	CHECK_EQ(ored_term_grace(&limits, 0), 30 * MS);
	CHECK_EQ(ored_term_grace(&limits, 50 * MS), 50 * MS);
	CHECK_EQ(ored_term_grace(&limits, 5000 * MS), 112 * MS + MS / 2);
}

TEST(term__quorum)
{
	CHECK(ored_quorum(1, 1));
	CHECK(!ored_quorum(1, 2));
	CHECK(ored_quorum(2, 2));
	CHECK(ored_quorum(2, 3));
	CHECK(!ored_quorum(4, 8));
	CHECK(ored_quorum(5, 8));
}

/* --- standing ----------------------------------------------------------------- */

static struct ored_standing fresh(void)
{
	struct ored_standing s;

	ored_standing_init(&s, MS);
	return s;
}

TEST(standing__news)
{
	struct ored_standing s = fresh();

	CHECK(ored_standing_counts(&s));
	CHECK(!ored_standing_live(&s, 1, 100 * MS));
	CHECK_EQ(ored_standing_heard(&s, 11, 10, 0, MS, 0), ORED_NEWS_POSTED | ORED_NEWS_LEFT);
	CHECK_EQ(s.posted, 11);
	CHECK_EQ(s.left, 10);
	CHECK_EQ(ored_standing_heard(&s, 11, 11, 0, 2 * MS, 0), ORED_NEWS_LEFT);
	/* What is old is nothing. */
	CHECK_EQ(ored_standing_heard(&s, 9, 8, 0, 3 * MS, 0), 0);
	CHECK_EQ(s.posted, 11);
	/* Nobody has left what he hasn't posted. */
	ored_standing_heard(&s, 12, 19, 0, 3 * MS, 0);
	CHECK_EQ(s.left, 12);
}

TEST(standing__live)
{
	struct ored_standing s = fresh();

	CHECK_EQ(ored_standing_heard(&s, 1, 0, 0, 1000 * MS, 0), ORED_NEWS_POSTED);
	CHECK(ored_standing_live(&s, 1000 * MS, 50 * MS));
	CHECK(ored_standing_live(&s, 1200 * MS, 50 * MS));
	CHECK(!ored_standing_live(&s, 1200 * MS + 1, 50 * MS));
	s.gone = true;
	CHECK(!ored_standing_live(&s, 1000 * MS, 50 * MS));
	CHECK(!ored_standing_counts(&s));
	CHECK(!ored_standing_accepts(&s, 0, 1));
}

/* Two ops without it, and it doesn't count; its packets alone don't help it. */
TEST(standing__counts)
{
	struct ored_standing s = fresh();

	ored_standing_heard(&s, 5, 4, 5, MS, 0);
	ored_standing_ended(&s, 4);
	CHECK(ored_standing_counts(&s));
	ored_standing_ended(&s, 5);
	CHECK(ored_standing_counts(&s));
	ored_standing_ended(&s, 6);
	CHECK(!ored_standing_counts(&s));
	CHECK_EQ(ored_standing_heard(&s, 5, 5, 7, 2 * MS, 0), ORED_NEWS_LEFT);
	CHECK(!ored_standing_counts(&s));
	ored_standing_ended(&s, 7);
	CHECK_EQ(ored_standing_heard(&s, 7, 6, 9, 3 * MS, 0),
		 ORED_NEWS_POSTED | ORED_NEWS_LEFT);
	CHECK(!ored_standing_counts(&s));
	CHECK(ored_standing_heard(&s, 8, 7, 9, 4 * MS, 0) & ORED_NEWS_COUNTS);
	CHECK(ored_standing_counts(&s));
	/* One op missed and one not, for ever: it counts. */
	for (u64 op = 10; op < 50; op++) {
		if (op & 1)
			ored_standing_heard(&s, op + 1, op, op + 1, op * MS, 0);
		ored_standing_ended(&s, op);
		CHECK(ored_standing_counts(&s));
	}
}

/* Both ends agree on the window: what is accepted there may touch a slot here. */
TEST(standing__window)
{
	u32 depth;
	u64 op;

	for (depth = 1; depth <= 16; depth++) {
		u32 slots = 0;
		struct ored_standing s = fresh();

		ored_standing_heard(&s, 20, 20, 20, MS, 0);
		for (op = 0; op < 60; op++) {
			slots += ored_standing_window(20, op, depth);
			CHECK(!ored_standing_accepts(&s, op, depth) ||
			      ored_standing_window(20, op, depth));
			CHECK_EQ(ored_standing_accepts(&s, op, depth),
				 op >= 20 && op <= 20 + depth);
		}
		CHECK_EQ(slots, 2 * depth + 1);
	}
	CHECK(ored_standing_window(0, 0, 1));
	CHECK(ored_standing_window(0, 1, 1));
	CHECK(!ored_standing_window(0, 2, 1));
}

/* A wild number is believed as far as 32 ops, however often it is said. */
TEST(standing__lies)
{
	struct ored_standing s = fresh();
	u64 fastest = 10 * MS, now = MS;
	u32 i;

	s.posted = 100;
	s.left = 100;
	for (i = 0; i < 1000; i++)
		ored_standing_heard(&s, 1ULL << 40, 1ULL << 40, 100, ++now, fastest);
	CHECK(s.posted >= 100 + 16 && s.posted <= 100 + 34, "%" PRIu64, s.posted);
	CHECK(s.left <= s.posted);
	/* From then on not much quicker than can be, as long as it is new. */
	for (i = 0; i < 500; i++) {
		now += MS;
		ored_standing_heard(&s, 1ULL << 40, 1ULL << 40, 100, now, fastest);
	}
	CHECK(s.posted <= 134 + 500 * 4 / 10 + 1, "%" PRIu64, s.posted);
	/* A single one, when all is well */
	s = fresh();
	for (i = 0; i < 1000; i++) {
		now += fastest;
		ored_standing_heard(&s, i + 1, i, i + 1, now, fastest);
		CHECK_EQ(s.posted, i + 1);
	}
	ored_standing_heard(&s, 1ULL << 40, 1ULL << 40, i, now + MS, fastest);
	CHECK(s.posted <= i + 34, "%" PRIu64, s.posted - i);
}

/* Honest peers are believed: those who are ahead, and however wrong the speed is. */
TEST(standing__truth)
{
	u64 fastest = 10 * MS, now = MS, at = 0;
	struct ored_standing s = fresh();
	u32 i;

	/* As quick as can be, and we stand still */
	for (i = 0; i < 1000; i++) {
		now += fastest;
		at++;
		ored_standing_heard(&s, at, at - 1, 0, now, fastest);
		CHECK_EQ(s.posted, at);
	}
	/* After a silence, in which it may have done as much */
	now += 5000 * MS;
	at += 500;
	ored_standing_heard(&s, at, at - 1, 0, now, fastest);
	CHECK_EQ(s.posted, at);
	/* Together, a thousand times quicker than ever thought */
	s = fresh();
	for (i = 0; i < 1000; i++) {
		now += MS / 100;
		ored_standing_heard(&s, i + 1, i, i, now, fastest);
		CHECK_EQ(s.posted, i + 1);
		CHECK_EQ(s.left, i);
	}
	/* Ahead, and ten times quicker than thought: in the end */
	s = fresh();
	at = 0;
	for (i = 0; i < 20000; i++) {
		now += MS / 4;
		at++;
		ored_standing_heard(&s, at, at - 1, 0, now, fastest);
	}
	for (i = 0; i < 20000; i++) {
		now += MS;
		at += i % 4 == 0;
		ored_standing_heard(&s, at, at - 1, 0, now, fastest);
	}
	CHECK_EQ(s.posted, at);
}

TAP_MAIN
