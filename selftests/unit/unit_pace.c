// SPDX-License-Identifier: GPL-2.0
/* Pacing against a link with a queue: what it finds, holds and lets through. */

#include "tap.h"
#include "../../kmod/core/pace.h"

#define PACKET	1500
#define SECOND	1000000000ULL
#define QUEUE	4096

/* A link that sends one packet after the other, and acknowledges each */
struct pipe {
	struct ored_pace pace;
	u64 now, rate, delay, free_at;
	u64 sent[QUEUE], at[QUEUE];	/* of packets on their way, in order */
	u32 head, tail;
	u64 queue_max;
	bool some;	/* only some peers' windows are full */
};

static void ack_until(struct pipe *l, u64 when)
{
	while (l->head != l->tail && l->at[l->head % QUEUE] <= when) {
		u64 at = l->at[l->head % QUEUE];

		ored_pace_acked(&l->pace, PACKET, l->sent[l->head % QUEUE], at);
		l->head++;
	}
}

static void send(struct pipe *l)
{
	l->free_at = max(l->free_at, l->now) + PACKET * SECOND / l->rate;
	l->queue_max = max(l->queue_max, l->free_at - l->now);
	l->sent[l->tail % QUEUE] = l->now;
	l->at[l->tail++ % QUEUE] = l->free_at + l->delay;
}

/* Sends all it may for a time; @window packets may be on their way. */
static void run(struct pipe *l, u64 span, u32 window)
{
	u64 end = l->now + span, when, next;

	while (l->now < end) {
		when = ~0ULL;
		ack_until(l, l->now);
		while (l->tail - l->head < window &&
		       ored_pace_take(&l->pace, 1, l->now, &when))
			send(l);
		if (when == ~0ULL && l->some)
			ored_pace_idle(&l->pace);
		next = l->head != l->tail ? l->at[l->head % QUEUE] : end;
		l->now = min(end, min(max(when, l->now + 1), max(next, l->now + 1)));
	}
}

static struct pipe fresh(u64 rate, u64 delay)
{
	struct pipe l = { .rate = rate, .delay = delay, .now = SECOND };

	ored_pace_init(&l.pace, PACKET);
	return l;
}

static void check_rate(const struct pipe *l, u64 rate)
{
	CHECK(l->pace.rate > rate / 100 * 95 && l->pace.rate < rate / 100 * 105,
	      "%llu of %llu", (unsigned long long)l->pace.rate, (unsigned long long)rate);
}

TEST(pace__finds_rates_from_a_modem_to_a_data_centre)
{
	static const u64 rates[] = { 2500000, 12500000, 125000000, 1250000000, 12500000000ULL };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		struct pipe l = fresh(rates[i], 100000);

		run(&l, 2 * SECOND, 64 + (u32)(rates[i] / 5000000));
		check_rate(&l, rates[i]);
	}
}

TEST(pace__keeps_queues_short_once_the_rate_is_known)
{
	struct pipe l = fresh(2500000, 100000);
	u64 packet = PACKET * SECOND / l.rate;

	run(&l, 2 * SECOND, 60);
	/* Stages are that long, with pauses between them. */
	l.now += SECOND / 20;
	ack_until(&l, l.now);
	l.queue_max = 0;
	run(&l, SECOND * 14 / 100, 60);
	CHECK(l.queue_max <= (ORED_PACE_PACKETS + 12) * packet, "%llu packets",
	      (unsigned long long)(l.queue_max / packet));
}

TEST(pace__isnt_fooled_by_a_busy_receiver)
{
	struct pipe l = fresh(12500000, 100000);

	run(&l, SECOND, 64);
	check_rate(&l, 12500000);
	/* A round trip is longer than two packets: a tenth of the rate. */
	l.delay = 2400000;
	l.some = true;
	run(&l, 3 * SECOND, 2);
	check_rate(&l, 12500000);
}

TEST(pace__follows_a_link_that_changes)
{
	struct pipe l = fresh(12500000, 100000);

	run(&l, SECOND, 200);
	l.rate = 2500000;
	run(&l, 3 * SECOND, 200);
	check_rate(&l, 2500000);
	l.rate = 25000000;
	run(&l, 3 * SECOND, 200);
	check_rate(&l, 25000000);
}

TEST(pace__queues_that_empty_together_are_no_faster_link)
{
	struct pipe l = fresh(2500000, 100000);
	u64 sent = 0;
	u32 i;

	run(&l, SECOND, 60);
	ack_until(&l, ~0ULL - 1);
	ored_pace_idle(&l.pace);
	l.now += SECOND / 10;
	/* 200 packets that were sent at the link's rate come in within 10 ms. */
	for (i = 0; i < 200; i++) {
		sent = l.now - 200 * 600000 + i * 600000;
		ored_pace_acked(&l.pace, PACKET, sent, l.now + i * 50000);
	}
	check_rate(&l, 2500000);
}

TEST(pace__tokens_are_neither_lost_nor_made)
{
	struct ored_pace p;
	u64 now = SECOND, when;
	u32 n, i;

	ored_pace_init(&p, PACKET);
	CHECK_EQ(ored_pace_take(&p, 77, now, &when), 77);
	p.rate = 1500000;	/* a packet in a millisecond */
	p.steady = 100;
	p.nrecent = 1;
	now += 2 * SECOND;
	n = ored_pace_take(&p, 77, now, &when);
	CHECK(n == ORED_PACE_PACKETS, "%u", n);
	CHECK(when > now && when <= now + 1000000, "%llu", (unsigned long long)(when - now));
	CHECK_EQ(ored_pace_take(&p, 1, now, &when), 0);
	ored_pace_return(&p, 2);
	CHECK_EQ(ored_pace_take(&p, 3, now, &when), 2);
	/* Always called when it was said to be: as many as are earned, 3 % more. */
	for (i = 0, n = 0; i < 1000; i++) {
		now = when;
		n += ored_pace_take(&p, 5, now, &when);
	}
	CHECK(n >= 1000 && n <= 1001, "%u", n);
	CHECK(now - 3 * SECOND >= SECOND * 95 / 100 && now - 3 * SECOND <= SECOND, "%llu",
	      (unsigned long long)(now - 3 * SECOND));
}

TEST(pace_train__a_quarter_of_a_millisecond)
{
	struct ored_pace p;

	ored_pace_init(&p, PACKET);
	CHECK_EQ(ored_pace_train(&p), 16);
	CHECK_EQ(ored_pace_packet_us(&p), 0);
	p.rate = 2500000;
	CHECK_EQ(ored_pace_train(&p), 1);
	CHECK_EQ(ored_pace_packet_us(&p), 601);
	p.rate = 60000000;
	CHECK_EQ(ored_pace_train(&p), 9);
	p.rate = 12500000000ULL;
	CHECK_EQ(ored_pace_train(&p), 16);
	CHECK_EQ(ored_pace_packet_us(&p), 1);
}

TAP_MAIN
