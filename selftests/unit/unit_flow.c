// SPDX-License-Identifier: GPL-2.0
/*
 * A flow over a simulated link: chunk map and ACKs on one side, repair and
 * rate on the other, between them paths of varying length, a bottleneck with a
 * queue, delay, loss and duplicates, in both directions. Time is virtual. Every
 * copy of every chunk is accounted for, so it is known whether a resend was
 * needed.
 */

#include "tap.h"
#include "../../kmod/core/chunkmap.h"
#include "../../kmod/core/rate.h"
#include "../../kmod/core/repair.h"

#define MAX_CHUNKS	6000
#define TRAIN		16	/* packets that leave with one clock */
#define ACK_EVERY	16
#define GIVE_UP_US	600000000ULL

enum kind { DATA, ACK, POLL };

struct event {
	u64 at;
	u64 serial;		/* of two at the same time, the first comes first */
	enum kind kind;
	bool request, queued;
	u32 chunk, clock, base, nbits;
	u8 flags;
	u8 bits[ORED_ACK_BITS / 8];
};

/* What a link does; probabilities in thousandths, times in microseconds */
struct link {
	u32 delay, jitter, packet, queue;
	u32 loss, dup;
};

struct sim {
	struct link link;
	u64 now, free_at[2], pto_at, serial;
	u32 clock0, count, next;
	struct ored_flow flow;
	struct ored_rate rate;
	struct ored_chunkmap map;
	u8 *alive;		/* copies of a chunk that have come or will */
	struct event **heap;
	u32 events, room;
	/* what happened */
	u32 sent, dropped, control_dropped, spurious, polls, acks, delivered;
};

static u32 clock_of(const struct sim *s)
{
	return s->clock0 + (u32)s->now;
}

static bool earlier(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->serial < b->serial;
}

static void push(struct sim *s, const struct event *event)
{
	u32 i = s->events++;
	struct event *e = malloc(sizeof(*e));

	if (s->events > s->room) {
		s->room = s->room * 2 + 64;
		s->heap = realloc(s->heap, s->room * sizeof(*s->heap));
	}
	*e = *event;
	e->serial = s->serial++;
	for (; i && earlier(e, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = e;
}

static struct event *pop(struct sim *s)
{
	struct event *first = s->heap[0], *last = s->heap[--s->events];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < s->events) {
		if (child + 1 < s->events &&
		    earlier(s->heap[child + 1], s->heap[child]))
			child++;
		if (!earlier(s->heap[child], last))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	if (s->events)
		s->heap[i] = last;
	return first;
}

static void drop(struct sim *s, const struct event *e)
{
	if (e->kind != DATA) {
		s->control_dropped++;
		return;
	}
	s->alive[e->chunk]--;
	s->dropped++;
}

/* A packet sets out: each copy takes its own time to reach the bottleneck. */
static void put(struct sim *s, struct event *e)
{
	u32 copies = 1 + (tap_below(1000) < s->link.dup);

	for (; copies; copies--) {
		e->at = s->now + tap_below(s->link.jitter + 1);
		e->queued = false;
		if (e->kind == DATA)
			s->alive[e->chunk]++;
		push(s, e);
	}
}

/* It has reached the bottleneck, whose queue keeps the order. */
static void enqueue(struct sim *s, struct event *e)
{
	static const u32 permille[] = { [DATA] = 1000, [ACK] = 100, [POLL] = 50 };
	u32 way = e->kind == ACK;
	u64 backlog = s->free_at[way] > s->now ? s->free_at[way] - s->now : 0;
	bool full = s->link.queue && backlog > (u64)s->link.queue * s->link.packet;

	if (full || tap_below(1000) < s->link.loss) {
		drop(s, e);
		return;
	}
	s->free_at[way] = s->now + backlog +
			  (u64)s->link.packet * permille[e->kind] / 1000;
	e->at = s->free_at[way] + s->link.delay;
	e->queued = true;
	push(s, e);
}

static void send_data(struct sim *s, u32 chunk, bool request)
{
	struct event e = {
		.kind = DATA, .chunk = chunk, .clock = clock_of(s),
		.request = request,
	};

	s->spurious += s->alive[chunk] != 0;
	s->sent++;
	put(s, &e);
}

static bool choose(struct sim *s, u32 *chunk)
{
	if (ored_flow_resend(&s->flow, chunk))
		return true;
	if (s->next == s->count)
		return false;
	*chunk = s->next++;
	return true;
}

static void arm(struct sim *s)
{
	s->pto_at = s->now + ored_rate_pto(&s->rate);
}

static void pump(struct sim *s)
{
	u32 train[TRAIN], n, i, most;

	while (s->flow.inflight < s->rate.window) {
		most = min_t(u32, s->rate.window - s->flow.inflight, TRAIN);
		for (n = 0; n < most && choose(s, &train[n]); n++)
			ored_flow_sent(&s->flow, train[n], clock_of(s));
		if (!n)
			return;
		if (s->pto_at == ~0ULL)
			arm(s);
		for (i = 0; i < n; i++)
			send_data(s, train[i], i == n - 1);
	}
}

static void send_ack(struct sim *s, u32 echo, u8 flags)
{
	struct event e = { .kind = ACK, .clock = echo, .flags = flags };

	e.nbits = ored_chunkmap_ack(&s->map, &e.chunk, e.bits);
	e.base = s->map.base;
	ored_chunkmap_acked(&s->map);
	s->acks++;
	put(s, &e);
}

static void on_data(struct sim *s, const struct event *e)
{
	bool fresh = ored_chunkmap_claim(&s->map, e->chunk);

	ored_chunkmap_arrived(&s->map, e->chunk);
	if (e->request || !fresh || s->map.unacked >= ACK_EVERY ||
	    ored_chunkmap_complete(&s->map))
		send_ack(s, e->clock, fresh ? 0 : ORED_F_DUPLICATE);
}

/* Through the wire format, as in life */
static void on_ack(struct sim *s, const struct event *e)
{
	u8 *content = malloc(ORED_ACK_BYTES + e->nbits / 8);
	bool limited = 2 * s->flow.inflight >= s->rate.window;
	struct ored_news news;
	struct ored_ack ack;

	ored_ack_build(content, e->clock, e->base);
	memcpy(content + ORED_ACK_BYTES, e->bits, e->nbits / 8);
	CHECK_EQ(ored_ack_parse(content, ORED_ACK_BYTES + e->nbits / 8, e->chunk,
				&ack), 0);
	ored_rate_rtt(&s->rate, clock_of(s) - ack.echo);
	ored_flow_acked(&s->flow, &ack, ored_rate_reorder(&s->rate), &news);
	free(content);
	ored_rate_acked(&s->rate, news.arrived, limited);
	if (news.lost)
		ored_rate_lost(&s->rate, news.oldest, clock_of(s));
	if (e->flags & ORED_F_DUPLICATE)
		ored_rate_spurious(&s->rate);
	s->pto_at = ~0ULL;
	if (s->flow.inflight)
		arm(s);
}

static void on_pto(struct sim *s)
{
	struct event e = { .kind = POLL, .clock = clock_of(s) };

	s->polls++;
	ored_rate_timeout(&s->rate);
	arm(s);
	put(s, &e);
}

static void sim_init(struct sim *s, const struct link *link, u32 count)
{
	u32 longs = BITS_TO_LONGS(count);

	memset(s, 0, sizeof(*s));
	s->link = *link;
	s->count = count;
	s->clock0 = (u32)tap_random();
	s->pto_at = ~0ULL;
	s->flow.sent = malloc(count * sizeof(u32));
	s->flow.done = malloc(longs * sizeof(long));
	s->flow.out = malloc(longs * sizeof(long));
	s->flow.lost = malloc(longs * sizeof(long));
	s->map.bits = malloc(longs * sizeof(long));
	s->alive = calloc(count, 1);
	ored_flow_start(&s->flow, count);
	s->map.room = count;
	ored_chunkmap_reset(&s->map, count);
	s->map.count = count;
	ored_rate_init(&s->rate, 1 + tap_below(8));
}

static void sim_free(struct sim *s)
{
	while (s->events)
		free(pop(s));
	free(s->heap);
	free(s->alive);
	free(s->map.bits);
	free(s->flow.sent);
	free(s->flow.done);
	free(s->flow.out);
	free(s->flow.lost);
}

static void happen(struct sim *s, struct event *e)
{
	s->delivered += e->queued && e->kind != ACK;
	if (!e->queued)
		enqueue(s, e);
	else if (e->kind == DATA)
		on_data(s, e);
	else if (e->kind == ACK)
		on_ack(s, e);
	else
		send_ack(s, e->clock, 0);
}

/* Runs until the sender knows that all has arrived, or time is up. */
static void sim_run(struct sim *s)
{
	struct event *e;

	pump(s);
	while (!ored_flow_complete(&s->flow) && s->now < GIVE_UP_US) {
		if (!s->events || s->heap[0]->at > s->pto_at) {
			CHECK(s->pto_at != ~0ULL, "nothing will ever happen");
			if (s->pto_at == ~0ULL)
				return;
			s->now = s->pto_at;
			on_pto(s);
		} else {
			e = pop(s);
			s->now = e->at;
			happen(s, e);
			free(e);
		}
		pump(s);
	}
	CHECK(ored_flow_complete(&s->flow), "%u of %u arrived", s->flow.arrived,
	      s->count);
	CHECK(ored_chunkmap_complete(&s->map));
	CHECK_EQ(s->flow.inflight, 0);
	CHECK_EQ(s->flow.nlost, 0);
}

static void describe(const struct sim *s)
{
	if (tap_failures)
		printf("# %u chunks, delay %u jitter %u packet %u queue %u loss %u dup %u: sent %u dropped %u/%u spurious %u polls %u acks %u, %.1f ms\n",
		       s->count, s->link.delay, s->link.jitter, s->link.packet,
		       s->link.queue, s->link.loss, s->link.dup, s->sent,
		       s->dropped, s->control_dropped, s->spurious, s->polls,
		       s->acks, (double)s->now / 1000);
}

/* A random link on which nothing overtakes by more than is forgiven at once */
static struct link mild_link(void)
{
	u32 delay = 20 + tap_below(2000);

	return (struct link){
		.delay = delay,
		.jitter = tap_below(delay / 4),
		.packet = 1 + tap_below(600),
	};
}

static void run_mild(struct link link, u32 count)
{
	u64 before = tap_failures;
	struct sim s;

	sim_init(&s, &link, count);
	sim_run(&s);
	/* Nothing is sent again but what was dropped, and all its copies. */
	CHECK_EQ(s.spurious, 0);
	CHECK(s.sent <= count + s.dropped);
	CHECK(link.dup || s.sent == count + s.dropped);
	CHECK(s.polls <= 2 + 2 * (s.dropped + s.control_dropped));
	CHECK(s.acks <= s.delivered);
	if (tap_failures != before && before < TAP_FAILURES_SHOWN)
		describe(&s);
	sim_free(&s);
}

TEST(flow__nothing_lost)
{
	u32 seed;

	for (seed = 0; seed < 2000; seed++)
		run_mild(mild_link(), 1 + tap_below(seed % 10 ? 100 : 2000));
}

TEST(flow__duplicates_alone)
{
	u32 seed;

	for (seed = 0; seed < 1000; seed++) {
		struct link link = mild_link();

		link.dup = 1 + tap_below(300);
		run_mild(link, 1 + tap_below(200));
	}
}

TEST(flow__loss_and_duplicates)
{
	u32 seed;

	for (seed = 0; seed < 3000; seed++) {
		struct link link = mild_link();

		link.loss = 1 + tap_below(300);
		link.dup = tap_below(100);
		run_mild(link, 1 + tap_below(seed % 10 ? 100 : 2000));
	}
}

/* One packet is all there is: no other's ACK can show that it is lost. */
TEST(flow__single_chunk)
{
	u32 seed;

	for (seed = 0; seed < 1000; seed++) {
		struct link link = mild_link();

		link.loss = 500;
		run_mild(link, 1 + seed % 3);
	}
}

/* Reordering beyond what is forgiven costs resends, but not many. */
TEST(flow__wild_reordering)
{
	u32 seed;

	for (seed = 0; seed < 1000; seed++) {
		struct link link = mild_link();
		u32 count = 1 + tap_below(1000);
		struct sim s;

		link.jitter = 6 * link.delay;
		link.loss = seed & 1 ? 50 : 0;
		sim_init(&s, &link, count);
		sim_run(&s);
		CHECK(s.sent <= 2 * count + s.dropped + 20, "%u of %u", s.sent, count);
		describe(&s);
		sim_free(&s);
	}
}

/* A drop-tail port of 64 KB, as switches have, from 20 Mbit/s to 10 Gbit/s */
TEST(flow__fills_the_link)
{
	static const struct { u32 packet, delay, queue, percent; } c[] = {
		{ 600, 100, 43, 105 },
		{ 120, 100, 43, 105 },
		{ 12, 100, 43, 110 },
		{ 12, 20, 43, 110 },
		{ 1, 30, 43, 150 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(c); i++) {
		struct link link = {
			.packet = c[i].packet, .delay = c[i].delay,
			.queue = c[i].queue,
		};
		u64 ideal = (u64)MAX_CHUNKS * link.packet + 2 * link.delay;
		struct sim s;

		sim_init(&s, &link, MAX_CHUNKS);
		sim_run(&s);
		CHECK_EQ(s.spurious, 0);
		CHECK(s.now * 100 <= ideal * c[i].percent, "%u us a packet: %" PRIu64
		      " us, not %" PRIu64, link.packet, s.now, ideal);
		describe(&s);
		sim_free(&s);
	}
}

TAP_MAIN
