// SPDX-License-Identifier: GPL-2.0
/* The sender's side of a flow, one ACK at a time. On a link: unit_flow.c. */

#include "tap.h"
#include "../../kmod/core/repair.h"

#define ROOM	3000

static struct ored_flow flow;
static struct ored_news news;

static void start(u32 count)
{
	u32 longs = BITS_TO_LONGS(ROOM);

	if (!flow.sent) {
		flow.sent = malloc(ROOM * sizeof(u32));
		flow.done = malloc(longs * sizeof(long));
		flow.out = malloc(longs * sizeof(long));
		flow.lost = malloc(longs * sizeof(long));
	}
	/* What the memory held before mustn't matter. */
	memset(flow.sent, 0x5a, ROOM * sizeof(u32));
	memset(flow.done, 0xff, longs * sizeof(long));
	memset(flow.out, 0xff, longs * sizeof(long));
	memset(flow.lost, 0xff, longs * sizeof(long));
	ored_flow_start(&flow, count);
}

/* Sends chunks @from to @to, one each 10 us from clock @clock on. */
static void send_from(u32 from, u32 to, u32 clock)
{
	for (; from < to; from++, clock += 10)
		ored_flow_sent(&flow, from, clock);
}

/* An ACK of @base and of the chunks listed after @first, ended by ~0 */
static void acked(u32 base, u32 first, u32 nbits, const u32 *chunk, u32 echo,
		  u32 reorder)
{
	u8 *bits = calloc(1, nbits / 8 + 1);
	struct ored_ack ack = {
		.echo = echo, .base = base, .first = first, .nbits = nbits,
		.bits = bits,
	};

	for (; chunk && *chunk != ~0U; chunk++)
		bits[(*chunk - first) / 8] |= (u8)(1 << (*chunk - first) % 8);
	ored_flow_acked(&flow, &ack, reorder, &news);
	free(bits);
}

/* The counts must be those of the bits. */
static void check_counts(void)
{
	u32 i, done = 0, lost = 0, inflight = 0;

	for (i = 0; i < flow.count; i++) {
		bool d = test_bit(i, flow.done), l = test_bit(i, flow.lost);

		CHECK(!(d && l));
		done += d;
		lost += l;
		inflight += test_bit(i, flow.out) && !d && !l;
	}
	CHECK_EQ(flow.arrived, done);
	CHECK_EQ(flow.nlost, lost);
	CHECK_EQ(flow.inflight, inflight);
	for (i = 0; i < flow.low; i++)
		CHECK(test_bit(i, flow.done));
	CHECK(flow.low == flow.count || !test_bit(flow.low, flow.done));
}

static void check_resends(const u32 *chunk)
{
	u32 got;

	for (; *chunk != ~0U; chunk++) {
		CHECK(ored_flow_resend(&flow, &got));
		CHECK_EQ(got, *chunk);
		ored_flow_sent(&flow, got, 1000000);
	}
	CHECK(!ored_flow_resend(&flow, &got));
}

/* Some chunks, ended by ~0 */
#define LIST(...) ((const u32[]){ __VA_ARGS__, ~0U })

TEST(flow_start__empty)
{
	u32 chunk;

	start(0);
	CHECK(ored_flow_complete(&flow));
	CHECK(!ored_flow_resend(&flow, &chunk));
	acked(5, 0, 64, LIST(1), 100, 0);
	CHECK(ored_flow_complete(&flow));
	check_counts();
}

TEST(flow_acked__all_at_once)
{
	u32 count;

	for (count = 1; count < 300; count++) {
		start(count);
		send_from(0, count, 0);
		CHECK_EQ(flow.inflight, count);
		CHECK(!ored_flow_complete(&flow));
		acked(count, count / 64 * 64, 0, NULL, 10 * count, 0);
		CHECK_EQ(news.arrived, count);
		CHECK_EQ(news.lost, 0);
		CHECK(ored_flow_complete(&flow));
		check_counts();
	}
}

TEST(flow_acked__one_hole)
{
	u32 hole, i;

	for (hole = 0; hole < 200; hole++) {
		u32 there[257], n = 0;

		start(256);
		send_from(0, 256, 5);
		for (i = hole + 1; i < 256; i++)
			there[n++] = i;
		there[n] = ~0U;
		acked(hole, 0, 256, there, 5 + 2550, 50);
		CHECK_EQ(news.arrived, 255);
		CHECK_EQ(news.lost, 1);
		CHECK_EQ(news.oldest, 5 + 10 * hole);
		check_counts();
		check_resends(LIST(hole));
		check_counts();
		acked(256, 256, 0, NULL, 1000000, 50);
		CHECK(ored_flow_complete(&flow));
	}
}

/* What was sent less than @reorder before the echo may still come. */
TEST(flow_acked__reordering_is_forgiven)
{
	start(10);
	send_from(0, 10, 0);
	acked(0, 0, 64, LIST(9), 90, 50);
	/* sent at 0, 10, 20, 30: more than 50 before 90; at 40: exactly 50 */
	CHECK_EQ(news.arrived, 1);
	CHECK_EQ(news.lost, 4);
	CHECK_EQ(news.oldest, 30);
	check_counts();
	/* a lost one that comes after all isn't sent again */
	acked(0, 0, 64, LIST(2, 4, 9), 90, 50);
	CHECK_EQ(news.arrived, 2);
	CHECK_EQ(news.lost, 0);
	check_counts();
	check_resends(LIST(0, 1, 3));
}

TEST(flow_acked__huge_reorder_is_never)
{
	start(3);
	send_from(0, 3, 0);
	acked(0, 0, 64, LIST(2), 0x7fffffff, 0xffffffff);
	CHECK_EQ(news.lost, 0);
	acked(0, 0, 64, LIST(2), 0x7fffffff, 0x7ffffffe);
	CHECK_EQ(news.lost, 1);
	CHECK_EQ(news.oldest, 0);
}

TEST(flow_acked__clock_wraps)
{
	start(10);
	send_from(0, 10, 0xfffffff0);
	acked(0, 0, 64, LIST(9), 0xfffffff0 + 90, 50);
	CHECK_EQ(news.lost, 4);
	CHECK_EQ(news.oldest, 14);
	check_counts();
}

/* An ACK that was overtaken by others tells nothing wrong. */
TEST(flow_acked__old_news)
{
	start(64);
	send_from(0, 64, 1000);
	acked(64, 64, 0, NULL, 1630, 0);
	CHECK(ored_flow_complete(&flow));
	acked(10, 0, 64, LIST(30), 1300, 0);
	CHECK_EQ(news.arrived, 0);
	CHECK_EQ(news.lost, 0);
	CHECK(ored_flow_complete(&flow));
	check_counts();
}

/* A resent chunk is judged by when it was sent last. */
TEST(flow_acked__resend_resets_the_clock)
{
	start(10);
	send_from(0, 10, 0);
	acked(0, 0, 64, LIST(9), 90, 85);
	CHECK_EQ(news.lost, 1);
	ored_flow_sent(&flow, 0, 100);
	acked(0, 0, 64, LIST(5, 9), 90, 85);
	CHECK_EQ(news.lost, 0);
	acked(0, 0, 64, LIST(5, 9), 186, 85);
	CHECK_EQ(news.lost, 8);
	CHECK_EQ(news.oldest, 100);
	check_counts();
}

/* Nobody can acknowledge, or miss, what hasn't been sent. */
TEST(flow_acked__unsent)
{
	u32 chunk;

	start(200);
	send_from(0, 10, 0);
	acked(200, 128, 128, LIST(130, 199, 200, 255), 5000, 0);
	CHECK_EQ(news.arrived, 10);
	CHECK_EQ(news.lost, 0);
	CHECK(!ored_flow_resend(&flow, &chunk));
	check_counts();
	CHECK_EQ(flow.low, 10);
	send_from(10, 200, 6000);
	CHECK_EQ(flow.inflight, 190);
	acked(~0U, 0xffffffc0, 1024, NULL, 9000, 0);
	CHECK_EQ(news.arrived, 190);
	CHECK(ored_flow_complete(&flow));
	check_counts();
}

/* Bits that end early say that the last packets are missing. */
TEST(flow_acked__tail)
{
	u32 count;

	for (count = 1; count < 200; count++) {
		start(200);
		send_from(0, count, 0);
		acked(0, 0, 0, NULL, 5000, 100);
		CHECK_EQ(news.lost, count);
		CHECK_EQ(flow.inflight, 0);
		check_counts();
	}
	start(200);
	send_from(0, 150, 0);
	acked(100, 64, 64, LIST(100), 1600, 100);
	CHECK_EQ(news.arrived, 101);
	CHECK_EQ(news.lost, 49);
	check_counts();
}

/* A full one says nothing about what lies beyond its bits. */
TEST(flow_acked__full_ack_ends_where_it_ends)
{
	u32 there[1025], i;

	for (i = 0; i < 1024; i++)
		there[i] = i + 64;
	there[1024] = ~0U;
	start(2000);
	send_from(0, 2000, 0);
	acked(64, 64, 1024, there, 30000, 100);
	CHECK_EQ(news.arrived, 1088);
	CHECK_EQ(news.lost, 0);
	check_counts();
}

/* Chunks between the base and the first bit aren't told about. */
TEST(flow_acked__gap_before_the_bits)
{
	start(500);
	send_from(0, 500, 0);
	acked(3, 128, 64, LIST(130), 100000, 100);
	CHECK_EQ(news.arrived, 4);
	CHECK_EQ(news.lost, 63 + 500 - 192);
	CHECK(!test_bit(50, flow.lost));
	CHECK(test_bit(128, flow.lost));
	CHECK(test_bit(499, flow.lost));
	check_counts();
}

/* The gather sends chunks in the order in which they become complete. */
TEST(flow_acked__sent_in_any_order)
{
	u32 i, n = 0;

	start(200);
	for (i = 0; i < 100; i++, n++)
		ored_flow_sent(&flow, i * 77 % 200, 10 * i);
	acked(0, 0, 0, NULL, 2000, 500);
	CHECK_EQ(news.lost, 100);
	check_counts();
}

TEST(flow_unsent__is_lost_at_once)
{
	u32 chunk;

	start(5);
	send_from(0, 5, 0);
	ored_flow_unsent(&flow, 3);
	ored_flow_unsent(&flow, 3);
	CHECK_EQ(flow.nlost, 1);
	CHECK_EQ(flow.inflight, 4);
	acked(3, 0, 0, NULL, 40, 1000);
	ored_flow_unsent(&flow, 1);
	CHECK_EQ(flow.nlost, 1);
	CHECK(ored_flow_resend(&flow, &chunk));
	CHECK_EQ(chunk, 3);
	check_counts();
}

TEST(flow_resend__lowest_first)
{
	start(300);
	send_from(0, 300, 0);
	acked(0, 0, 320, LIST(299), 10000, 100);
	CHECK_EQ(news.lost, 299);
	acked(100, 64, 256, LIST(299), 10000, 100);
	check_counts();
	CHECK_EQ(flow.nlost, 199);
	ored_flow_sent(&flow, 100, 20000);
	acked(100, 64, 256, LIST(299), 20101, 100);
	CHECK_EQ(news.lost, 1);
	check_counts();
	ored_flow_resend(&flow, &(u32){ 0 });
	CHECK_EQ(flow.rescan, 100);
}

/* Nothing more is sent, but what arrives is still learnt. */
TEST(flow_stop__whatever_was_going_on)
{
	u32 count, chunk, arrived;

	for (count = 0; count < 200; count += 3) {
		start(count);
		send_from(0, count / 2, 0);
		if (count > 20)
			acked(0, 0, 64, LIST(3), 10000, 0);
		arrived = flow.arrived;
		chunk = flow.inflight;
		CHECK_EQ(ored_flow_stop(&flow), chunk);
		CHECK_EQ(ored_flow_stop(&flow), 0);
		CHECK(flow.stopped && flow.arrived == arrived);
		CHECK(!ored_flow_resend(&flow, &chunk));
		acked(1, 0, 64, LIST(2), 20000, 0);
		CHECK_EQ(news.lost, 0);
		CHECK_EQ(news.arrived, count > 20 ? 2 : min(count / 2, 1U) + (count / 2 > 2));
		CHECK_EQ(flow.inflight, 0);
		ored_flow_unsent(&flow, 0);
		CHECK(!ored_flow_resend(&flow, &chunk));
	}
}

/* Whatever an ACK says, the counts stay those of the bits. */
TEST(flow_acked__random_liars)
{
	u8 *bits = malloc(ORED_ACK_BITS / 8);
	u32 round, step, i, chunk, next;

	for (round = 0; round < 300; round++) {
		start(tap_below(ROOM));
		next = 0;
		for (step = 0; step < 50; step++) {
			u32 clock = (u32)step * 100;
			struct ored_ack ack = {
				.echo = tap_below(4) ? tap_below(5000) :
						       (u32)tap_random(),
				.base = tap_below(3) ? tap_below(ROOM + 100) :
						       (u32)tap_random(),
				.first = tap_below(1 << 14) * 64,
				.nbits = tap_below(17) * 64,
				.bits = bits,
			};

			if (tap_below(2))
				ack.first = tap_below(ROOM / 64) * 64;
			for (i = 0; i < ORED_ACK_BITS / 8; i++)
				bits[i] = (u8)tap_random();
			for (i = 0; i < 60 && next < flow.count; i++)
				ored_flow_sent(&flow, next++, clock);
			for (i = 0; i < 20 && ored_flow_resend(&flow, &chunk); i++)
				ored_flow_sent(&flow, chunk, clock);
			ored_flow_acked(&flow, &ack, tap_below(1000), &news);
			CHECK(flow.arrived <= next);
		}
		check_counts();
	}
	free(bits);
}

TAP_MAIN
