// SPDX-License-Identifier: GPL-2.0
/* Windows and time-outs of one peer. How they do on a link: unit_flow.c. */

#include "tap.h"
#include "../../kmod/core/rate.h"

static struct ored_rate fresh(u32 peers)
{
	struct ored_rate rate;

	memset(&rate, 0xff, sizeof(rate));
	ored_rate_init(&rate, peers);
	return rate;
}

TEST(rate_init__first_bursts_share_a_port)
{
	u32 peers;

	for (peers = 0; peers < 256; peers++) {
		struct ored_rate rate = fresh(peers);

		CHECK(rate.window >= ORED_WINDOW_MIN);
		CHECK(rate.window <= 10);
		CHECK(rate.window == ORED_WINDOW_MIN ||
		      rate.window * peers <= ORED_WINDOW_SHARE);
		CHECK_EQ(ored_rate_pto(&rate), ORED_PTO_FIRST_US);
		CHECK_EQ(ored_rate_reorder(&rate), 0);
	}
}

TEST(rate_rtt__first_sample)
{
	struct ored_rate rate = fresh(1);

	ored_rate_rtt(&rate, 800);
	CHECK_EQ(rate.srtt_us, 800);
	CHECK_EQ(rate.rttvar_us, 400);
	CHECK_EQ(ored_rate_pto(&rate), 800 + 1600 + ORED_PTO_SLACK_US);
	CHECK_EQ(ored_rate_reorder(&rate), 200);
}

TEST(rate_rtt__settles_on_a_steady_one)
{
	struct ored_rate rate = fresh(1);
	u32 i;

	ored_rate_rtt(&rate, 100000);
	for (i = 0; i < 200; i++)
		ored_rate_rtt(&rate, 500);
	CHECK(rate.srtt_us >= 490 && rate.srtt_us <= 510, "%u", rate.srtt_us);
	CHECK(rate.rttvar_us <= 10, "%u", rate.rttvar_us);
	/* the factor of two never goes, whatever the variance */
	CHECK(ored_rate_pto(&rate) >= 2 * rate.srtt_us + ORED_PTO_SLACK_US);
}

TEST(rate_rtt__absurd_samples)
{
	static const u32 sample[] = { 0, 1, 0x7fffffff, 0x80000000, 0xffffffff };
	struct ored_rate rate;
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(sample); i++) {
		for (j = 0; j < ARRAY_SIZE(sample); j++) {
			rate = fresh(1);
			ored_rate_rtt(&rate, sample[i]);
			ored_rate_rtt(&rate, sample[j]);
			CHECK(rate.srtt_us >= 1);
			CHECK(rate.srtt_us <= ORED_PTO_MAX_US);
			CHECK(ored_rate_pto(&rate) > ORED_PTO_SLACK_US);
			CHECK(ored_rate_pto(&rate) <= ORED_PTO_MAX_US);
		}
	}
}

TEST(rate_acked__doubles_until_the_threshold)
{
	struct ored_rate rate = fresh(1);
	u32 window = rate.window;

	ored_rate_acked(&rate, window, true);
	CHECK_EQ(rate.window, 2 * window);
	rate.threshold = 25;
	ored_rate_acked(&rate, 20, true);
	CHECK_EQ(rate.window, 25);
	/* then by one for each window of ACKs */
	ored_rate_acked(&rate, 24, true);
	CHECK_EQ(rate.window, 25);
	ored_rate_acked(&rate, 1, true);
	CHECK_EQ(rate.window, 26);
}

TEST(rate_acked__unused_does_not_grow)
{
	struct ored_rate rate = fresh(1);
	u32 window = rate.window;

	ored_rate_acked(&rate, 1000, false);
	CHECK_EQ(rate.window, window);
	CHECK_EQ(rate.credit, 0);
}

TEST(rate_acked__has_a_ceiling)
{
	struct ored_rate rate = fresh(1);
	u32 i;

	ored_rate_acked(&rate, 0xffffffffU - 10, true);
	CHECK(rate.window <= ORED_WINDOW_MAX);
	rate.window = ORED_WINDOW_MAX;
	rate.threshold = ORED_WINDOW_MAX;
	for (i = 0; i < 10000; i++)
		ored_rate_acked(&rate, 1000, true);
	CHECK_EQ(rate.window, ORED_WINDOW_MAX);
}

static void settle(struct ored_rate *rate, u32 rtt)
{
	u32 i;

	for (i = 0; i < 100; i++)
		ored_rate_rtt(rate, rtt);
}

TEST(rate_acked__shrinks_while_packets_queue)
{
	struct ored_rate rate = fresh(1);

	ored_rate_rtt(&rate, 400);
	rate.window = 64;
	settle(&rate, 8000);	/* 7.6 ms in queues, 60 packets' worth */
	ored_rate_acked(&rate, 63, true);
	CHECK_EQ(rate.window, 64);
	ored_rate_acked(&rate, 1, true);
	CHECK_EQ(rate.window, 56);
	CHECK_EQ(rate.threshold, 56);
	while (rate.window > ORED_WINDOW_MIN) {
		u32 before = rate.window;

		ored_rate_acked(&rate, rate.window, true);
		if (rate.window > before)
			break;
	}
	CHECK(rate.window >= ORED_WINDOW_MIN && rate.window <= ORED_QUEUE_PACKETS + 2,
	      "%u", rate.window);
}

TEST(rate_acked__short_delay_is_noise)
{
	struct ored_rate rate = fresh(1);

	ored_rate_rtt(&rate, 20);
	rate.window = 64;
	settle(&rate, 20 + ORED_QUEUE_US - 10);
	ored_rate_acked(&rate, 64, true);
	CHECK_EQ(rate.window, 128);
}

TEST(rate_rtt__forgets_a_path_that_was_faster)
{
	struct ored_rate rate = fresh(1);
	u32 i;

	ored_rate_rtt(&rate, 100);
	for (i = 0; i < 2 * ORED_BASE_SAMPLES; i++)
		ored_rate_rtt(&rate, 9000);
	CHECK_EQ(rate.base_us, 9000);
}

TEST(rate_lost__once_for_each_flight)
{
	struct ored_rate rate = fresh(1);

	rate.window = 100;
	CHECK(ored_rate_lost(&rate, 1000, 2000));
	CHECK_EQ(rate.window, 70);
	CHECK_EQ(rate.threshold, 70);
	/* sent before the cut: the same event */
	CHECK(!ored_rate_lost(&rate, 1500, 2500));
	CHECK(!ored_rate_lost(&rate, 1999, 2600));
	CHECK_EQ(rate.window, 70);
	CHECK(ored_rate_lost(&rate, 2001, 3000));
	CHECK_EQ(rate.window, 49);
}

TEST(rate_lost__clock_wraps)
{
	struct ored_rate rate = fresh(1);

	rate.window = 100;
	CHECK(ored_rate_lost(&rate, 0xffffff00, 0xfffffff0));
	CHECK(!ored_rate_lost(&rate, 0xffffffe0, 5));
	CHECK(ored_rate_lost(&rate, 3, 100));
	CHECK(!ored_rate_lost(&rate, 0xffffffff, 200));
}

TEST(rate_lost__has_a_floor)
{
	struct ored_rate rate = fresh(1);
	u32 i;

	for (i = 0; i < 100; i++)
		ored_rate_lost(&rate, i * 100 + 1, i * 100 + 50);
	CHECK_EQ(rate.window, ORED_WINDOW_MIN);
	ored_rate_acked(&rate, 2, true);
	CHECK_EQ(rate.window, ORED_WINDOW_MIN + 1);
}

TEST(rate_spurious__forgives_more_up_to_two_round_trips)
{
	struct ored_rate rate = fresh(1);
	u32 i, last;

	ored_rate_spurious(&rate);
	CHECK(ored_rate_reorder(&rate) <= 1);
	ored_rate_rtt(&rate, 1000);
	for (i = 0; i < 20; i++) {
		last = ored_rate_reorder(&rate);
		ored_rate_spurious(&rate);
		CHECK(ored_rate_reorder(&rate) >= last);
	}
	CHECK_EQ(ored_rate_reorder(&rate), 2000);
}

TEST(rate_timeout__backs_off_and_comes_back)
{
	struct ored_rate rate = fresh(1);
	u32 base, last, i;

	ored_rate_rtt(&rate, 1000);
	base = ored_rate_pto(&rate);
	last = base;
	for (i = 0; i < 300; i++) {
		u32 pto;

		ored_rate_timeout(&rate);
		pto = ored_rate_pto(&rate);
		if (i + 1 < ORED_PTO_PATIENT)
			CHECK_EQ(pto, last + base);
		else
			CHECK(pto == 2 * last || pto == ORED_PTO_MAX_US);
		last = pto;
	}
	CHECK_EQ(last, ORED_PTO_MAX_US);
	ored_rate_rtt(&rate, 1000);
	CHECK_EQ(rate.backoff, 0);
	CHECK(ored_rate_pto(&rate) < 10000);
}

/* A short op leaves a busy peer less time, a long one or none what it may need. */
TEST(rate__hurry)
{
	struct ored_rate rate;
	u64 bound;

	ored_rate_init(&rate, 3);
	ored_rate_rtt(&rate, 800);
	for (bound = 1; bound < 1ULL << 50; bound *= 2) {
		ored_rate_hurry(&rate, bound);
		CHECK(rate.slack_us >= ORED_PTO_SLACK_LEAST_US);
		CHECK(rate.slack_us <= ORED_PTO_SLACK_US);
	}
	/* A question and a repair fit into a bound of a few round trips. */
	ored_rate_hurry(&rate, 8000000);
	CHECK_EQ(ored_rate_pto(&rate), 800 + 1600 + 500);
	ored_rate_hurry(&rate, 1000000000);
	CHECK_EQ(ored_rate_pto(&rate), 800 + 1600 + ORED_PTO_SLACK_US);
	ored_rate_hurry(&rate, 0);
	CHECK_EQ(ored_rate_pto(&rate), 800 + 1600 + ORED_PTO_SLACK_US);
}

TAP_MAIN
