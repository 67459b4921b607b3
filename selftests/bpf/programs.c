// SPDX-License-Identifier: GPL-2.0
/*
 * ored_xdp by BPF_PROG_TEST_RUN: what it makes of good, damaged, truncated and
 * foreign frames. Its parser has to agree with the module's on the same corpus.
 */

#include <dirent.h>
#include <sys/socket.h>

#include "../unit/tap.h"
#include "bench.h"
#include "../../tools/oredctl/xdp.h"

#define FUZZ_ROUNDS 20000

/* Nothing known, nothing refused, the given things switched on */
static void start(u32 flags)
{
	if (xdp)
		ored_xdp_bpf__destroy(xdp);
	load();
	configure(flags);
}

#define ALL (ORED_X_MEASURE | ORED_X_SHIELD)

static void expect(const struct frame *f, u32 verdict, enum ored_x_counter which, const char *what)
{
	u64 before = counter(which);
	bool untouched;
	u32 got = feed(f, &untouched);

	CHECK(got == verdict, "%s: verdict %u", what, got);
	CHECK(untouched, "%s", what);
	CHECK(counter(which) == before + 1, "%s: counted %llu", what,
	      (unsigned long long)(counter(which) - before));
}

/* Not even looked at: no counter moves. */
static void expect_foreign(const struct frame *f, const char *what)
{
	u64 before[ORED_X_COUNTERS];
	bool untouched;
	u32 i, got;

	for (i = 0; i < ORED_X_COUNTERS; i++)
		before[i] = counter(i);
	got = feed(f, &untouched);
	CHECK(got == XDP_PASS && untouched, "%s: verdict %u", what, got);
	for (i = 0; i < ORED_X_COUNTERS; i++)
		CHECK(counter(i) == before[i], "%s: counter %u", what, i);
}

/* The module would have refused a datagram like this one. */
static void refuse(const struct frame *f, enum ored_x_counter which, bool readable, u32 generation,
		   u64 epoch)
{
	struct ored_x_refused refused = { .until_ns = now_ns() + 3600000000000ULL,
					  .counter = which, .generation = generation };
	struct ored_x_state state = { .refused_until_ns = refused.until_ns };
	struct ored_x_refused_key key = { .netns = NETNS, .port = PORT };
	const u8 *wire = f->data + f->l4 + sizeof(struct udphdr);
	struct ored_packet pkt;
	u32 zero = 0;

	if (readable && !ored_wire_parse(wire, ORED_WIRE_HEADER + 1024, &pkt)) {
		key.group = pkt.group;
		key.session = pkt.session;
		key.type = pkt.type;
		key.dst = pkt.dst;
		key.src = pkt.src;
		if (pkt.type == ORED_T_HELLO)
			key.epoch = epoch;
	}
	if (f->six)
		memcpy(key.addr, f->data + f->l3 + 8, 16);
	else
		memcpy(key.addr, f->data + f->l3 + 12, 4);
	put(xdp->maps.ored_refused, &key, &refused);
	put(xdp->maps.ored_state, &zero, &state);
}

/* Insert @n bytes at @at. */
static void widen(struct frame *f, u32 at, u32 n)
{
	memmove(f->data + at + n, f->data + at, f->len - at);
	memset(f->data + at, 0, n);
	f->len += n;
}

/* One that would be dropped if it were looked at: not from whom it says */
static void forged(struct frame *f)
{
	struct ored_packet pkt = packet(ORED_T_SCATTER);

	build(f, &pkt, 3, 512);
}

TEST(buckets)
{
	u32 i, b;
	u64 ns;

	for (b = 1; b < ORED_HIST_BUCKETS; b++) {
		u64 from = ored_hist_from(b), next = ored_hist_from(b + 1);

		CHECK_EQ(ored_hist_bucket(from), b);
		CHECK_EQ(ored_hist_bucket(from - 1), b - 1);
		if (b < ORED_HIST_BUCKETS - 1)
			CHECK((double)(next - from) / (double)from <= 0.04);
	}
	for (i = 0; i < 100000; i++) {
		ns = tap_random() >> (tap_below(50) + 10);
		b = ored_hist_bucket(ns);
		CHECK(b < ORED_HIST_BUCKETS && ored_hist_from(b) <= ns);
		CHECK(b == ORED_HIST_BUCKETS - 1 || ns < ored_hist_from(b + 1));
	}
	CHECK(ored_hist_from(1) <= 1000 && ored_hist_from(ORED_HIST_BUCKETS - 1) > 10000000000ULL);
}

static int by_size(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* What the tools make of a histogram, against all samples in order */
TEST(quantiles)
{
	static const double shares[] = { 0, 0.5, 0.9, 0.99, 0.999, 1 };
	static struct ored_x_latency l, half;
	static u64 sample[10000];
	u32 round, i;

	for (round = 0; round < 20; round++) {
		u32 n = round ? 1 + tap_below(ARRAY_SIZE(sample)) : ARRAY_SIZE(sample);

		memset(&l, 0, sizeof(l));
		memset(&half, 0, sizeof(half));
		for (i = 0; i < n; i++) {
			/* 1 us to 10 s, as many in each octave */
			sample[i] = 1000 + (tap_random() >> 30 >> tap_below(24));
			l.bucket[ored_hist_bucket(sample[i])]++;
			l.timed++;
			l.max_ns = max(l.max_ns, sample[i]);
		}
		qsort(sample, n, sizeof(sample[0]), by_size);
		for (i = 0; i < ARRAY_SIZE(shares); i++) {
			u32 rank = min((u32)(shares[i] * n), n - 1);
			double exact = (double)sample[rank];
			double off = (double)xdp_quantile(&l, shares[i]) / exact - 1;

			CHECK(off > -0.02 && off < 0.02, "%g of %u: off by %g", shares[i], n, off);
		}
		xdp_add(&half, &l);
		xdp_add(&half, &l);
		xdp_subtract(&half, &l);
		CHECK(half.timed == n && !memcmp(half.bucket, l.bucket, sizeof(l.bucket)));
		CHECK(half.max_ns >= l.max_ns && (double)half.max_ns < (double)l.max_ns * 1.04);
		xdp_subtract(&half, &l);
		CHECK(xdp_quantile(&half, 0.5) == 0 && half.max_ns == 0);
	}
}

TEST(corpus)
{
	DIR *folder = opendir(CORPUS);
	struct dirent *entry;
	struct ored_packet pkt;
	u8 payload[1024];
	struct frame f;
	u32 files = 0;

	start(ALL);
	CHECK(!!folder, CORPUS);
	while (folder && (entry = readdir(folder))) {
		char path[4096];
		FILE *file;
		size_t len;
		int six;

		snprintf(path, sizeof(path), "%s/%s", CORPUS, entry->d_name);
		file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (!file)
			continue;
		files++;
		len = fread(payload, 1, sizeof(payload), file);
		fclose(file);
		for (six = 0; six < 2; six++) {
			u64 before = counter(ORED_X_PACKETS);
			bool good = !ored_wire_parse(payload, len, &pkt);

			datagram(&f, six, 1, payload, (u32)len);
			CHECK(feed(&f, NULL) == XDP_PASS, "%s", entry->d_name);
			CHECK(counter(ORED_X_PACKETS) == before + good, "%s", entry->d_name);
		}
	}
	if (folder)
		closedir(folder);
	CHECK(files > 10);
}

/* Mutants of a good datagram, lengths included: both parsers say the same. */
TEST(mutants)
{
	struct ored_packet pkt, back;
	u8 payload[ORED_WIRE_HEADER + 64];
	u32 i, good = 0;

	start(ORED_X_MEASURE);
	for (i = 0; i < FUZZ_ROUNDS; i++) {
		u32 len = tap_below(4) ? sizeof(payload) : tap_below(sizeof(payload));
		u32 flips = tap_below(3);
		struct frame f;
		bool fine;
		u64 before;

		memset(payload, 0, sizeof(payload));
		pkt = packet((u8)(1 + tap_below(8)));
		ored_wire_build(payload, &pkt);
		while (flips--)
			payload[tap_below(2) ? tap_below(2) : tap_below(sizeof(payload))] ^=
				(u8)(1 << tap_below(8));
		fine = !ored_wire_parse(payload, len, &back);
		good += fine;
		datagram(&f, tap_below(2), 1, payload, len);
		before = counter(ORED_X_PACKETS);
		CHECK(feed(&f, NULL) == XDP_PASS);
		CHECK_EQ(counter(ORED_X_PACKETS), before + fine);
	}
	CHECK(good > FUZZ_ROUNDS / 4 && good < FUZZ_ROUNDS * 3 / 4, "%u", good);
}

/* Noise at any place of the frame: nothing but passing or dropping, nothing written */
TEST(noise)
{
	u32 i, dropped = 0, verdict;
	struct frame f;
	bool untouched;

	start(ALL);
	membership(SESSION, false, 10, false);
	for (i = 0; i < FUZZ_ROUNDS; i++) {
		u32 flips = 1 + tap_below(8);

		forged(&f);
		while (flips--)
			f.data[tap_below(f.l4 + sizeof(struct udphdr) + ORED_WIRE_HEADER)] =
				(u8)tap_random();
		if (!tap_below(4))
			f.len = ETH_HLEN + tap_below(f.len - ETH_HLEN);
		verdict = feed(&f, &untouched);
		dropped += verdict == XDP_DROP;
		CHECK((verdict == XDP_PASS || verdict == XDP_DROP) && untouched, "%u", verdict);
	}
	CHECK(dropped > 0 && dropped < FUZZ_ROUNDS);
}

/* Cut off anywhere before the end of the header, a frame is nobody's. */
TEST(truncated)
{
	struct frame f;
	u32 whole, len;

	start(ALL);
	membership(SESSION, false, 10, false);
	forged(&f);
	expect(&f, XDP_DROP, ORED_X_DROP_MEMBER, "whole");
	whole = f.l4 + sizeof(struct udphdr) + ORED_WIRE_HEADER;
	for (len = ETH_HLEN; len < whole; len++) {
		f.len = len;
		expect_foreign(&f, "truncated");
	}
}

/* What the module doesn't send isn't looked at, though it would be dropped. */
TEST(foreign)
{
	static const u8 headers[] = { 0, 43, 44, 60 };
	struct frame f;
	u32 i;

	start(ALL);
	membership(SESSION, false, 10, false);
	forged(&f);
	widen(&f, 12, 4);
	((struct ethhdr *)f.data)->h_proto = htons(ETH_P_8021Q);
	expect_foreign(&f, "VLAN");
	((struct ethhdr *)f.data)->h_proto = htons(ETH_P_8021AD);
	expect_foreign(&f, "provider's VLAN");
	forged(&f);
	widen(&f, f.l4, 4);
	f.data[f.l3] = 0x46;
	memset(f.data + f.l4, 1, 4);
	expect_foreign(&f, "IP options");
	for (i = 0; i < 3; i++) {
		forged(&f);
		((struct iphdr *)(f.data + f.l3))->frag_off = htons(i == 0 ? 0x2000 : i);
		expect_foreign(&f, "fragment");
	}
	for (i = 0; i < ARRAY_SIZE(headers); i++) {
		struct ored_packet pkt = packet(ORED_T_SCATTER);
		u8 payload[ORED_WIRE_HEADER + 8] = {};

		ored_wire_build(payload, &pkt);
		datagram(&f, true, 3, payload, sizeof(payload));
		widen(&f, f.l4, 8);
		f.data[f.l3 + 6] = headers[i];
		f.data[f.l4] = IPPROTO_UDP;
		expect_foreign(&f, "extension header");
	}
	forged(&f);
	((struct iphdr *)(f.data + f.l3))->protocol = IPPROTO_TCP;
	expect_foreign(&f, "TCP");
	forged(&f);
	((struct ethhdr *)f.data)->h_proto = htons(ETH_P_ARP);
	expect_foreign(&f, "ARP");
	forged(&f);
	((struct udphdr *)(f.data + f.l4))->len = htons(7);
	expect_foreign(&f, "UDP length below its header");
}

/* What contradicts a membership for good */
TEST(shield_by_membership)
{
	struct ored_packet pkt;
	struct frame f;

	start(ALL);
	membership(SESSION, false, 10, false);
	membership(SESSION + 1, false, 10, true);
	pkt = packet(ORED_T_MARK);
	build(&f, &pkt, 1, 0);
	expect(&f, XDP_PASS, ORED_X_PACKETS, "a good one");
	build(&f, &pkt, 2, 0);
	expect(&f, XDP_DROP, ORED_X_DROP_MEMBER, "another's address");
	pkt.src = 0;
	build(&f, &pkt, 0, 0);
	expect(&f, XDP_DROP, ORED_X_DROP_MEMBER, "our own rank");
	pkt.src = 4;
	build(&f, &pkt, 4, 0);
	expect(&f, XDP_DROP, ORED_X_DROP_MEMBER, "a rank beyond the group");
	pkt.src = 255;
	build(&f, &pkt, 0, 0);
	expect(&f, XDP_DROP, ORED_X_DROP_MEMBER, "the last rank there could be");
	pkt = packet(ORED_T_MARK);
	pkt.dst = 2;
	build(&f, &pkt, 1, 0);
	expect(&f, XDP_DROP, ORED_X_DROP_MEMBER, "for another rank");
	pkt = packet(ORED_T_MARK);
	pkt.group++;
	build(&f, &pkt, 1, 0);
	expect(&f, XDP_DROP, ORED_X_DROP_MEMBER, "of another group");
	pkt = packet(ORED_T_MARK);
	pkt.session = SESSION + 1;
	build(&f, &pkt, 1, 0);
	expect(&f, XDP_DROP, ORED_X_DROP_EPOCH, "of a membership that is gone");
	configure(ORED_X_MEASURE);
	CHECK(feed(&f, NULL) == XDP_PASS, "the shield is off");
}

/* What isn't known passes: another port, an unknown session, an unknown peer. */
TEST(shield_passes_the_unknown)
{
	struct ored_x_session key = { .netns = NETNS, .session = SESSION };
	static struct ored_x_member m;
	struct ored_packet pkt;
	struct frame f;

	start(ALL);
	membership(SESSION, false, 10, false);
	forged(&f);
	((struct udphdr *)(f.data + f.l4))->dest = htons(PORT + 1);
	expect(&f, XDP_PASS, ORED_X_UNKNOWN, "another port");
	pkt = packet(ORED_T_SCATTER);
	pkt.session = SESSION + 9;
	build(&f, &pkt, 3, 16);
	expect(&f, XDP_PASS, ORED_X_UNKNOWN, "an unknown session");
	pkt = packet(ORED_T_HELLO);
	build(&f, &pkt, 3, ORED_HELLO_BYTES);
	expect(&f, XDP_PASS, ORED_X_UNKNOWN, "HELLO");
	if (bpf_map_lookup_elem(bpf_map__fd(xdp->maps.ored_members), &key, &m))
		die("reading a membership");
	m.peer[1].known = 0;
	put(xdp->maps.ored_members, &key, &m);
	forged(&f);
	expect(&f, XDP_PASS, ORED_X_PACKETS, "a peer whose event was lost");
	/* As if the event that made it had been lost */
	bpf_map_delete_elem(bpf_map__fd(xdp->maps.ored_members), &key);
	pkt = packet(ORED_T_SCATTER);
	build(&f, &pkt, 1, 16);
	expect(&f, XDP_PASS, ORED_X_UNKNOWN, "a membership whose event was lost");
}

TEST(shield_by_refusal)
{
	static const struct {
		enum ored_x_counter counter;
		bool readable;
	} causes[] = {
		{ ORED_X_DROP_GROUP, true }, { ORED_X_DROP_EPOCH, true },
		{ ORED_X_DROP_MEMBER, true }, { ORED_X_DROP_LENGTH, false },
		{ ORED_X_DROP_VERSION, false },
	};
	u8 greeting[ORED_WIRE_HEADER + ORED_HELLO_BYTES];
	struct ored_x_state state = {};
	struct ored_hello hello = { .session = 1 };
	struct ored_packet pkt;
	struct frame f, other;
	u32 i, zero = 0;
	int six;

	for (i = 0; i < ARRAY_SIZE(causes); i++) {
		for (six = 0; six < 2; six++) {
			u8 payload[ORED_WIRE_HEADER + 8] = {};

			start(ALL);
			pkt = packet(ORED_T_SCATTER);
			ored_wire_build(payload, &pkt);
			if (!causes[i].readable)
				payload[0] ^= 1;
			datagram(&f, six, 3, payload, sizeof(payload));
			datagram(&other, six, 2, payload, sizeof(payload));
			CHECK(feed(&f, NULL) == XDP_PASS, "cause %u", i);
			refuse(&f, causes[i].counter, causes[i].readable, 0, 0);
			expect(&f, XDP_DROP, causes[i].counter, "refused");
			CHECK(feed(&other, NULL) == XDP_PASS, "cause %u, another source", i);
		}
	}
	start(ALL);
	pkt = packet(ORED_T_SCATTER);
	build(&f, &pkt, 3, 16);
	refuse(&f, ORED_X_DROP_GROUP, true, 0, 0);
	pkt.session++;
	build(&other, &pkt, 3, 16);
	CHECK(feed(&other, NULL) == XDP_PASS, "another session");
	expect(&f, XDP_DROP, ORED_X_DROP_GROUP, "refused");
	configure(ORED_X_MEASURE);
	CHECK(feed(&f, NULL) == XDP_PASS, "the shield is off");
	configure(ALL);
	/* HELLOs of another run of the group are something else. */
	hello.epoch = 5;
	ored_wire_build(greeting, &(struct ored_packet){ .type = ORED_T_HELLO, .src = 1 });
	ored_hello_build(greeting + ORED_WIRE_HEADER, &hello);
	datagram(&other, false, 3, greeting, sizeof(greeting));
	refuse(&other, ORED_X_DROP_EPOCH, true, 0, 5);
	expect(&other, XDP_DROP, ORED_X_DROP_EPOCH, "HELLO of a refused epoch");
	hello.epoch = 6;
	ored_hello_build(greeting + ORED_WIRE_HEADER, &hello);
	datagram(&other, false, 3, greeting, sizeof(greeting));
	expect(&other, XDP_PASS, ORED_X_UNKNOWN, "HELLO of another epoch");
	/* A membership has been made since. */
	refuse(&f, ORED_X_DROP_GROUP, true, 1, 0);
	CHECK(feed(&f, NULL) == XDP_PASS, "of another generation");
	refuse(&f, ORED_X_DROP_GROUP, true, 0, 0);
	state.refused_until_ns = now_ns() - 1;
	put(xdp->maps.ored_state, &zero, &state);
	CHECK(feed(&f, NULL) == XDP_PASS, "too long ago");
}

TEST(shield_sealed)
{
	struct ored_packet pkt = packet(ORED_T_SCATTER);
	u32 i, passed = 0, turn, dropped;
	struct frame f;

	start(ALL);
	membership(SESSION, false, 10, false);
	pkt.op = 9;
	build(&f, &pkt, 1, 16);
	expect(&f, XDP_PASS, ORED_X_ANSWERED, "the first, so that it is answered");
	/* Time goes on here: some may be a millisecond later. */
	for (i = 0; i < 100; i++)
		passed += feed(&f, NULL) == XDP_PASS;
	CHECK_EQ(counter(ORED_X_ANSWERED), passed + 1);
	CHECK_EQ(counter(ORED_X_DROP_SEALED), 100 - passed);
	CHECK(passed < 100);
	pkt.op = 10;
	build(&f, &pkt, 1, 16);
	CHECK(feed(&f, NULL) == XDP_PASS, "not done with");
	pkt = packet(ORED_T_ACK);
	pkt.op = 9;
	build(&f, &pkt, 1, ORED_ACK_BYTES);
	CHECK(feed(&f, NULL) == XDP_PASS, "control packets have no place");
	/* Only the low half of numbers is on the wire. */
	membership(SESSION, false, (1ULL << 32) + 2, false);
	pkt = packet(ORED_T_GATHER);
	for (i = 0; i < 5; i++) {
		pkt.op = (u32)(i - 1);
		build(&f, &pkt, 1, 16);
		dropped = 0;
		/* One may pass each time that a slow machine takes a millisecond. */
		for (turn = 0; turn < 100; turn++)
			dropped += feed(&f, NULL) == XDP_DROP;
		CHECK(!!dropped == (i < 3), "op %d", (int)i - 1);
	}
}

static void read_latency(u8 peer, u8 stage, struct ored_x_latency *sum)
{
	struct ored_x_flow flow = { NETNS, GROUP, 0, peer, stage, ORED_X_NETWORK };
	int n = libbpf_num_possible_cpus(), i;
	struct ored_x_latency *all;
	u32 b;

	all = calloc(n, sizeof(*all));
	memset(sum, 0, sizeof(*sum));
	if (!all || bpf_map_lookup_elem(bpf_map__fd(xdp->maps.ored_latency), &flow, all)) {
		free(all);
		return;
	}
	for (i = 0; i < n; i++) {
		sum->packets += all[i].packets;
		sum->bytes += all[i].bytes;
		sum->gaps += all[i].gaps;
		sum->timed += all[i].timed;
		sum->max_ns = max(sum->max_ns, all[i].max_ns);
		for (b = 0; b < ORED_HIST_BUCKETS; b++)
			sum->bucket[b] += all[i].bucket[b];
	}
	free(all);
}

/* Compares clocks: rank 1's is @ahead microseconds ahead, the way takes @rtt. */
static void sync_clocks(u32 ahead, u32 rtt)
{
	u8 payload[ORED_WIRE_HEADER + ORED_ACK_BYTES] = {};
	struct ored_packet pkt = packet(ORED_T_ACK);
	u32 us = (u32)(now_ns() / 1000);
	struct frame f;

	pkt.clock = us - rtt / 2 + ahead;
	ored_wire_build(payload, &pkt);
	ored_ack_build(payload + ORED_WIRE_HEADER, us - rtt, 0);
	datagram(&f, false, 1, payload, sizeof(payload));
	feed(&f, NULL);
}

/*
 * A latency is what the clocks tell, however far they are apart and where they wrap.
 * Between reading the clock here and there a busy machine may do anything: what is
 * recorded may be later, and a bucket's width off.
 */
TEST(latency)
{
	static const u32 apart[] = { 0, 12345678, 0x80000000, 0xffffff00 };
	static const u32 delays[] = { 50, 1000, 20000, 5000000 };
	struct ored_x_latency l;
	u32 i, j, b;

	for (i = 0; i < ARRAY_SIZE(apart); i++) {
		for (j = 0; j < ARRAY_SIZE(delays); j++) {
			struct ored_packet pkt = packet(ORED_T_SCATTER);
			u64 began = now_ns(), late;
			struct frame f;

			start(ORED_X_MEASURE);
			membership(SESSION, false, 0, false);
			began = now_ns();
			sync_clocks(apart[i], 100);
			pkt.clock = (u32)(now_ns() / 1000) + apart[i] - delays[j];
			build(&f, &pkt, 1, 512);
			feed(&f, NULL);
			late = now_ns() - began;
			read_latency(1, 0, &l);
			CHECK_EQ(l.packets, 1);
			CHECK_EQ(l.bytes, ORED_WIRE_HEADER + 512);
			CHECK_EQ(l.timed, 1);
			for (b = 0; b < ORED_HIST_BUCKETS && !l.bucket[b]; b++)
				;
			CHECK(b == ored_hist_bucket(l.max_ns));
			CHECK(l.max_ns + late + 1000 >= delays[j] * 1000ULL &&
			      l.max_ns <= delays[j] * 1000ULL + late + 1000,
			      "%u us became %llu ns", delays[j], (unsigned long long)l.max_ns);
		}
	}
}

/* The comparison with the shortest round trip counts. */
TEST(clocks)
{
	struct ored_x_session key = { .netns = NETNS, .session = SESSION };
	struct ored_packet pkt = packet(ORED_T_SCATTER);
	static struct ored_x_member m;
	struct frame f;
	u32 best;

	start(ORED_X_MEASURE);
	membership(SESSION, false, 0, false);
	build(&f, &pkt, 1, 512);
	expect(&f, XDP_PASS, ORED_X_UNSYNCED, "clocks not compared");
	sync_clocks(500, 3000000);
	sync_clocks(1000, 1000000);
	bpf_map_lookup_elem(bpf_map__fd(xdp->maps.ored_members), &key, &m);
	best = m.peer[1].rtt_us;
	CHECK(best >= 1000000 && best < 3000000, "%u", best);
	sync_clocks(900000, 9000000);
	bpf_map_lookup_elem(bpf_map__fd(xdp->maps.ored_members), &key, &m);
	CHECK_EQ(m.peer[1].rtt_us, best);
	sync_clocks(7, ORED_X_SYNC_MAX_US * 2);
	/* An echo of what we haven't sent yet */
	sync_clocks(7, (u32)-5000000);
	bpf_map_lookup_elem(bpf_map__fd(xdp->maps.ored_members), &key, &m);
	CHECK_EQ(m.peer[1].rtt_us, best);
	expect(&f, XDP_PASS, ORED_X_TIMED, "clocks compared");
}

static void one_chunk(u32 op, u32 chunk, u8 flags)
{
	struct ored_packet pkt = packet(ORED_T_GATHER);
	struct frame f;

	pkt.op = op;
	pkt.chunk = chunk;
	pkt.flags = flags;
	build(&f, &pkt, 1, 512);
	feed(&f, NULL);
}

TEST(gaps)
{
	struct ored_x_latency l;

	start(ORED_X_MEASURE);
	membership(SESSION, false, 0, false);
	one_chunk(0, 0, 0);
	one_chunk(0, 1, 0);
	one_chunk(0, 4, 0);		/* 2, 3 */
	one_chunk(0, 2, ORED_F_RESENT);
	one_chunk(0, 5, 0);
	one_chunk(1, 0, 0);
	one_chunk(2, 3, 0);		/* 0, 1, 2 */
	read_latency(1, 1, &l);
	CHECK_EQ(l.packets, 7);
	CHECK_EQ(l.gaps, 5);
	read_latency(1, 0, &l);
	CHECK_EQ(l.packets, 0);
}

/* All contributions to a chunk go to one CPU, and all CPUs get some. */
TEST(steering)
{
	struct bpf_cpumap_val size = { .qsize = 64 };
	struct ored_x_config config = { .flags = ORED_X_STEER, .ncpus = 1 };
	struct ored_packet pkt;
	struct frame f;
	u32 zero = 0, cpu = 0;

	start(ORED_X_STEER);
	membership(SESSION, false, 0, false);
	pkt = packet(ORED_T_SCATTER);
	build(&f, &pkt, 1, 16);
	CHECK(feed(&f, NULL) == XDP_PASS, "no CPUs");
	put(xdp->maps.ored_config, &zero, &config);
	expect(&f, XDP_PASS, ORED_X_UNSTEERED, "a CPU without a queue");
	put(xdp->maps.ored_cpus, &cpu, &size);
	expect(&f, XDP_REDIRECT, ORED_X_STEERED, "steered");
	pkt = packet(ORED_T_ACK);
	build(&f, &pkt, 1, ORED_ACK_BYTES);
	CHECK(feed(&f, NULL) == XDP_PASS, "control packets stay");
	pkt = packet(ORED_T_SCATTER);
	pkt.session++;
	build(&f, &pkt, 1, 16);
	CHECK(feed(&f, NULL) == XDP_PASS, "what isn't known stays");
}

/* Does this kernel load an XDP program at all? */
static bool possible(void)
{
	static const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "possible", "GPL", code, ARRAY_SIZE(code),
			     NULL) >= 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--possible"))
		return !possible();
	return tap_main();
}
