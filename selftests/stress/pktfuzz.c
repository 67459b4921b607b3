// SPDX-License-Identifier: GPL-2.0
/*
 * pktfuzz: damaged packets at a high rate against a group at work.
 *
 *   pktfuzz [--seed N] [--packets N] [--insider]
 *
 * A group of three ranks lives on addresses of its own on the loopback. Its
 * packets are captured, changed and sent again, with whatever source address.
 * Without --insider every packet sent is one that its receiver must refuse: from
 * a wrong address, of a stale session, to another rank, of a bad length, chunk or
 * type, or a replay. All ops must be exact bit by bit, and every refused packet
 * must have been counted by its cause. With --insider anything goes, as from a
 * peer that lies: sums may be wrong and ops may fail, but every call must return.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "common.h"

#define HEADER		32
#define HELLO_BYTES	28
#define ACK_MAX		(8 + 128)
#define CHUNK_MASK	0xfffff
#define KEPT		256	/* captured packets */
#define LARGEST		1024	/* bytes of a packet */
#define BURST		24	/* packets in a row, on average: the group sends as many */
#define AT_ONCE		32	/* packets of a system call */
#define OUR_TTL		33	/* tells our packets from the group's */
#define PER_ROUND	5000	/* packets until the group is made anew */
#define INSIDER_ROUND	500
#define STRANGER	0x7f000109
#define PAYLOAD		512	/* of the group, so that buckets have many chunks */
#define MASK		8	/* of ranks, behind chunks that lack some */
#define CALL_MS		20000	/* limit of a call */
#define SETTLE_MS	5000
/* Bytes of a captured packet that matter: headers, and its train's first */
#define SNAP		(sizeof(struct iphdr) + sizeof(struct udphdr) + HEADER + PAYLOAD + MASK)
#define INSIDER_MS	100	/* the same where ops are made to fail */

enum { HELLO = 1, SCATTER, GATHER, ACK, POLL, MARK, BYE, FAILURE, AREA };

struct packet {
	uint32_t	from;
	uint32_t	to;
	uint16_t	port;	/* of the destination */
	size_t		len;
	uint8_t		data[LARGEST + 512];
};

static struct rng rng;
static int raw, sniffer;
static struct packet kept[KEPT], stale[KEPT];
static unsigned int nkept, nstale;
static uint64_t before[ORED_CNT_MAX], expected[ORED_CNT_MAX], sent_packets;
static struct test_group group = {
	.id = 1, .epoch = 1, .nranks = 3, .depth = 2, .bucket_max = 32768,
	.addr = { 0x7f000101, 0x7f000102, 0x7f000103 },
	.port = { 4741, 4742, 4743 },
	.timeout_ms = 20000,
	.payload_max = PAYLOAD,
};

/* Sessions of this run by rank, as HELLOs tell; 0: not heard yet */
static uint32_t session[MAX_RANKS];
/* The op that is running, its length, and who has its slot in use for sure */
static uint64_t current_op;
static uint32_t current_bytes;
static bool in_use[MAX_RANKS];

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

static void put32(uint8_t *p, uint32_t v)
{
	p[0] = v >> 24;
	p[1] = v >> 16;
	p[2] = v >> 8;
	p[3] = v;
}

static int type_of(const struct packet *p)
{
	return p->data[1] >> 4;
}

static bool is_data(const struct packet *p)
{
	return type_of(p) == SCATTER || type_of(p) == GATHER;
}

/* Only what the group has sent: not ours, and each packet once. */
static void sniff_the_group(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, SKF_AD_OFF + SKF_AD_PKTTYPE),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 3, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offsetof(struct iphdr, ttl)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_TTL, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SNAP),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = { ARRAY_SIZE(code), code };

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)))
		die("a filter for the packets of the group");
}

static void open_sockets(void)
{
	struct sockaddr_ll ll = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP), .sll_ifindex = 1,
	};
	int size = 8 << 20;

	raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	/* It receives when it is bound. */
	sniffer = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (raw < 0 || sniffer < 0)
		die("raw sockets");
	sniff_the_group(sniffer);
	if (bind(sniffer, (struct sockaddr *)&ll, sizeof(ll)))
		die("raw sockets");
	setsockopt(sniffer, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	setsockopt(raw, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
}

static uint32_t rank_of(uint32_t addr)
{
	uint32_t r;

	for (r = 0; r < group.nranks && group.addr[r] != addr; r++)
		;
	return r;
}

static uint64_t get64(const uint8_t *p)
{
	return (uint64_t)get32(p) << 32 | get32(p + 4);
}

/* Is it of this run of the group? HELLOs teach the sessions. */
static bool of_this_run(uint32_t from, uint32_t to, const uint8_t *data, size_t len)
{
	uint32_t rf = rank_of(from), rt = rank_of(to);

	if (rf == group.nranks || rt == group.nranks || data[0] != 0xe1)
		return false;
	if (data[1] >> 4 != HELLO)
		return session[rt] && get32(data + 8) == session[rt];
	if (len < HEADER + HELLO_BYTES || get64(data + HEADER) != group.epoch)
		return false;
	session[rf] = get32(data + HEADER + 8);
	return true;
}

/* Keeps one captured packet, a train's first. */
static void keep(const uint8_t *bytes, size_t len)
{
	const struct iphdr *ip = (const struct iphdr *)bytes;
	const struct udphdr *udp = (const struct udphdr *)(bytes + sizeof(*ip));
	struct packet *p;
	size_t size, most;

	if (len < sizeof(*ip) + sizeof(*udp) + HEADER || ip->protocol != IPPROTO_UDP ||
	    ip->ihl != 5)
		return;
	size = len - sizeof(*ip) - sizeof(*udp);
	if (!of_this_run(ntohl(ip->saddr), ntohl(ip->daddr), (const uint8_t *)(udp + 1), size))
		return;
	/* A train is cut where its first packet ends; a HELLO can be longer. */
	most = HEADER + PAYLOAD;
	if (((const uint8_t *)(udp + 1))[1] >> 4 == HELLO)
		most += MASK;
	if (size > most)
		size = most;
	p = &kept[nkept < KEPT ? nkept : rng_below(&rng, KEPT)];
	nkept += nkept < KEPT;
	p->from = ntohl(ip->saddr);
	p->to = ntohl(ip->daddr);
	p->port = ntohs(udp->dest);
	p->len = size;
	memcpy(p->data, udp + 1, size);
}

/* Takes in what has been captured. */
static void capture(void)
{
	static uint8_t bytes[AT_ONCE][SNAP];
	struct mmsghdr msgs[AT_ONCE] = {};
	struct iovec iov[AT_ONCE];
	int i, n;

	for (i = 0; i < AT_ONCE; i++) {
		iov[i] = (struct iovec){ bytes[i], sizeof(bytes[i]) };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	do {
		n = recvmmsg(sniffer, msgs, AT_ONCE, 0, NULL);
		for (i = 0; i < n; i++)
			keep(bytes[i], msgs[i].msg_len);
	} while (n == AT_ONCE);
}

/* Packets on their way out: a system call for each would take longer than they do. */
static struct {
	uint8_t bytes[sizeof(struct iphdr) + sizeof(struct udphdr) + LARGEST + 512];
	struct sockaddr_in to;
	struct iovec iov;
} queue[AT_ONCE];

static unsigned int queued;

static void flush(void)
{
	struct mmsghdr msgs[AT_ONCE] = {};
	unsigned int i, done;
	int n;

	for (i = 0; i < queued; i++) {
		msgs[i].msg_hdr.msg_name = &queue[i].to;
		msgs[i].msg_hdr.msg_namelen = sizeof(queue[i].to);
		msgs[i].msg_hdr.msg_iov = &queue[i].iov;
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	for (done = 0; done < queued; done += n) {
		n = sendmmsg(raw, msgs + done, queued - done, 0);
		if (n <= 0)
			die("pktfuzz: sending %zu bytes", queue[done].iov.iov_len);
	}
	for (i = 0; i < queued; i++) {
		if (msgs[i].msg_len != queue[i].iov.iov_len)
			fail("pktfuzz: %u of %zu bytes were sent", msgs[i].msg_len,
			     queue[i].iov.iov_len);
	}
	sent_packets += queued;
	queued = 0;
}

static void transmit(const struct packet *p)
{
	uint8_t *bytes = queue[queued].bytes;
	struct iphdr *ip = (struct iphdr *)bytes;
	struct udphdr *udp = (struct udphdr *)(ip + 1);
	size_t len = sizeof(*ip) + sizeof(*udp) + p->len;

	queue[queued].to = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(p->to),
	};
	queue[queued].iov = (struct iovec){ bytes, len };
	*ip = (struct iphdr) {
		.version = 4, .ihl = 5, .ttl = OUR_TTL, .protocol = IPPROTO_UDP,
		.tot_len = htons(len), .saddr = htonl(p->from), .daddr = htonl(p->to),
	};
	*udp = (struct udphdr) {
		.source = htons(4741), .dest = htons(p->port),
		.len = htons(sizeof(*udp) + p->len),
	};
	memcpy(udp + 1, p->data, p->len);
	if (++queued == AT_ONCE)
		flush();
}

/* Some bits of it turned, or some bytes set to what is a limit of something */
static void flip(uint8_t *data, size_t from, size_t to)
{
	static const uint8_t odd[] = { 0, 1, 0x7f, 0x80, 0xff };
	int n = 1 + rng_below(&rng, 4);

	while (n--) {
		size_t at = from + rng_below(&rng, to - from);

		if (rng_one_in(&rng, 2))
			data[at] ^= 1 << rng_below(&rng, 8);
		else
			data[at] = odd[rng_below(&rng, sizeof(odd))];
	}
}

static void expect(enum ored_counter counter)
{
	expected[counter]++;
}

/* What a receiver says about a packet whose source or session is wrong */
static void expect_by_header(const struct packet *p, enum ored_counter otherwise)
{
	static const uint8_t least[16] = {
		[HELLO] = HELLO_BYTES, [SCATTER] = 1, [GATHER] = 1, [ACK] = 8,
		[FAILURE] = 20, [AREA] = 8,
	};

	if (p->len < HEADER)
		expect(ORED_CNT_NS_SHORT);
	else if (p->data[0] != 0xe1)
		expect(ORED_CNT_NS_VERSION);
	else if (type_of(p) < HELLO || type_of(p) > AREA)
		expect(ORED_CNT_NS_TYPE);
	else if (p->len < HEADER + (size_t)least[type_of(p)])
		expect(ORED_CNT_NS_SHORT);
	else
		expect(otherwise);
}

/* A stranger knows all but our address. */
static bool wrong_source(struct packet *p)
{
	if (type_of(p) == HELLO)
		return false;
	p->from = rng_one_in(&rng, 2) ? STRANGER : p->to;
	/* All but the session, or it would be another case. */
	if (rng_one_in(&rng, 2))
		flip(p->data, 12, p->len);
	expect_by_header(p, ORED_CNT_BAD_SOURCE);
	return true;
}

static bool wrong_session(struct packet *p)
{
	if (type_of(p) == HELLO)
		return false;
	p->data[8 + rng_below(&rng, 4)] ^= 1 + rng_below(&rng, 255);
	if (rng_one_in(&rng, 2))
		flip(p->data, 12, p->len);
	expect_by_header(p, ORED_CNT_NS_SESSION);
	return true;
}

/* A packet of the group's last run */
static bool stale_session(struct packet *p)
{
	if (!nstale)
		return false;
	*p = stale[rng_below(&rng, nstale)];
	if (type_of(p) == HELLO)
		expect(ORED_CNT_NS_EPOCH);
	else
		expect(ORED_CNT_NS_SESSION);
	return true;
}

/*
 * Makes data that will be refused once its slot has been found belong to the
 * op that is running: of another it would be refused for being late. Returns
 * false if the receiver's slot may not be in use.
 */
static bool refused_in_slot(struct packet *p)
{
	uint32_t r = rank_of(p->to);

	if (r == group.nranks || !in_use[r])
		return false;
	put32(p->data + 12, current_op);
	put32(p->data + 16, current_bytes);
	expect(ORED_CNT_BAD_CHUNK);
	return true;
}

/* Cut off so that it can't be what it was. */
static bool truncated(struct packet *p)
{
	if (type_of(p) == HELLO) {
		p->len -= 1 + rng_below(&rng, p->len - 1);
		expect(ORED_CNT_NS_SHORT);
		return true;
	}
	if (is_data(p) && rng_one_in(&rng, 2)) {
		/* No chunk has an odd length. */
		p->len = HEADER + (rng_below(&rng, p->len - HEADER) | 1);
		return refused_in_slot(p);
	}
	p->len = rng_below(&rng, HEADER);
	expect(ORED_CNT_NS_SHORT);
	return true;
}

static bool extended(struct packet *p)
{
	size_t by = 1 + rng_below(&rng, 500);

	memset(p->data + p->len, 0x5a, by + 2);
	switch (type_of(p)) {
	case HELLO:
		expect(ORED_CNT_NS_SHORT);
		break;
	case SCATTER:
	case GATHER:
		by += ~(p->len + by) & 1;
		p->len += by;
		return refused_in_slot(p);
	case ACK:
		/* Whole words of zeros would only tell less. */
		by |= 1;
		if ((p->len + by - HEADER - 8) % 8 == 0)
			by++;
		expect(ORED_CNT_BAD_CONTROL);
		break;
	default:
		return false;
	}
	p->len += by;
	return true;
}

static bool unknown_type(struct packet *p)
{
	static const uint8_t types[] = { 0, 10, 11, 12, 13, 14, 15 };

	p->data[1] = types[rng_below(&rng, sizeof(types))] << 4 | (p->data[1] & 15);
	if (rng_one_in(&rng, 2))
		flip(p->data, 2, p->len);
	expect(ORED_CNT_NS_TYPE);
	return true;
}

static bool wrong_version(struct packet *p)
{
	p->data[0] ^= 1 + rng_below(&rng, 255);
	if (rng_one_in(&rng, 2))
		flip(p->data, 1, p->len);
	expect(ORED_CNT_NS_VERSION);
	return true;
}

static bool wrong_group(struct packet *p)
{
	p->data[4 + rng_below(&rng, 4)] ^= 1 + rng_below(&rng, 255);
	expect(type_of(p) == HELLO ? ORED_CNT_NS_GROUP : ORED_CNT_BAD_SOURCE);
	return true;
}

static bool wrong_rank(struct packet *p)
{
	if (type_of(p) == HELLO)
		return false;
	/* Nobody's, or that of another address */
	if (rng_one_in(&rng, 2))
		p->data[3] ^= 1 + rng_below(&rng, 255);
	else
		p->data[2] ^= 1 + rng_below(&rng, 255);
	expect(ORED_CNT_BAD_SOURCE);
	return true;
}

/* A chunk that its owner hasn't got. Returns false where there is no such thing. */
static bool bad_chunk(struct packet *p)
{
	uint32_t word = get32(p->data + 20);

	if (!is_data(p))
		return false;
	put32(p->data + 20, (word & ~CHUNK_MASK) | (4096 + rng_below(&rng, CHUNK_MASK - 4096)));
	return refused_in_slot(p);
}

static bool bad_bytes(struct packet *p)
{
	if (!is_data(p) || !refused_in_slot(p))
		return false;
	put32(p->data + 16, rng_one_in(&rng, 2) ? 0 :
	      group.bucket_max + 1 + rng_below(&rng, 0xf0000000));
	return true;
}

/* A HELLO of another run, or that says that the group is another one */
static bool wrong_hello(struct packet *p)
{
	if (type_of(p) != HELLO)
		return false;
	switch (rng_below(&rng, 5)) {
	case 0:
		p->data[HEADER + rng_below(&rng, 8)] ^= 1 + rng_below(&rng, 255);
		expect(ORED_CNT_NS_EPOCH);
		break;
	case 1:
		/* ranks, depth, largest bucket */
		p->data[HEADER + 12 + rng_below(&rng, 8)] ^= 1 + rng_below(&rng, 255);
		expect(ORED_CNT_MISMATCH);
		break;
	case 2:
		/* It would have to be one that has started again. */
		put32(p->data + HEADER + 8, get32(p->data + HEADER + 8) ^
					    (1 + rng_below(&rng, 0xffff)));
		if (get32(p->data + HEADER + 8) == 0)
			return false;
		expect(ORED_CNT_BAD_CONTROL);
		break;
	case 3:
		/* size and nothing else */
		p->data[HEADER + 24 + rng_below(&rng, 2)] ^= 1 + rng_below(&rng, 255);
		expect(ORED_CNT_NS_SHORT);
		break;
	default:
		p->from = STRANGER;
		expect(ORED_CNT_BAD_SOURCE);
	}
	return true;
}

/* As it was: what was true when it was sent does no harm later. */
static bool replayed(struct packet *p)
{
	return type_of(p) != BYE && type_of(p) != FAILURE;
}

/* Bytes without any sense */
static bool noise(struct packet *p)
{
	size_t i;

	p->len = rng_below(&rng, 600);
	for (i = 0; i < p->len; i++)
		p->data[i] = rng_next(&rng);
	if (p->len && p->data[0] == 0xe1)
		p->data[0] = 0;
	expect(p->len < HEADER ? ORED_CNT_NS_SHORT : ORED_CNT_NS_VERSION);
	return true;
}

typedef bool (*kind_fn)(struct packet *p);

static void send_refused(void)
{
	static const kind_fn kinds[] = {
		wrong_source, wrong_session, stale_session, truncated, extended,
		unknown_type, wrong_version, wrong_group, wrong_rank, bad_chunk,
		bad_bytes, wrong_hello, replayed, noise,
	};
	struct packet p = kept[rng_below(&rng, nkept)];
	kind_fn change = kinds[rng_below(&rng, ARRAY_SIZE(kinds))];

	if (change(&p))
		transmit(&p);
}

/* A peer that has every right to speak, and no sense of shame */
static void send_anything(void)
{
	struct packet p = kept[rng_below(&rng, nkept)];

	switch (rng_below(&rng, 6)) {
	case 0:
		flip(p.data, 1, p.len < HEADER ? p.len : HEADER);
		break;
	case 1:
		flip(p.data, 1, p.len);
		break;
	case 2:
		/* Another type with what the old one said */
		p.data[1] = (1 + rng_below(&rng, 8)) << 4 | rng_below(&rng, 16);
		p.len = HEADER + (rng_one_in(&rng, 2) ? rng_below(&rng, ACK_MAX + 9) :
				  rng_below(&rng, 513));
		break;
	case 3:
		/* An op nearby or far away, and a chunk likewise */
		put32(p.data + 12, get32(p.data + 12) + rng_below(&rng, 8) - 3);
		put32(p.data + 20, get32(p.data + 20) ^ 1 << rng_below(&rng, 32));
		break;
	case 4:
		put32(p.data + 24, rng_next(&rng));
		break;
	default:
		flip(p.data, 12, p.len);
		flip(p.data, HEADER < p.len ? HEADER : 1, p.len);
	}
	/* HELLOs say their own size. */
	if (p.data[1] >> 4 == HELLO && p.len >= HEADER + HELLO_BYTES && !rng_one_in(&rng, 4)) {
		p.data[HEADER + 24] = p.len >> 8;
		p.data[HEADER + 25] = p.len;
	}
	transmit(&p);
}

static void read_counters(const int *fd, uint64_t *sum)
{
	uint64_t one[ORED_CNT_MAX];
	uint32_t r, i;

	memset(sum, 0, ORED_CNT_MAX * sizeof(*sum));
	for (r = 0; r < group.nranks; r++) {
		socklen_t len = sizeof(one);

		if (getsockopt(fd[r], SOL_ORED, ORED_STATS, one, &len) || len != sizeof(one))
			die("ORED_STATS");
		/* The namespace's are told by every socket. */
		for (i = 0; i < ORED_CNT_MAX; i++)
			sum[i] = (i < ORED_CNT_NS_SHORT ? sum[i] : 0) + one[i];
	}
}

/* Packets that this host has dropped before any socket saw them */
static uint64_t dropped_by_host(void)
{
	FILE *file = fopen("/proc/net/softnet_stat", "r");
	unsigned int processed, dropped;
	uint64_t sum = 0;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%x %x", &processed, &dropped) == 2)
			sum += dropped;
	}
	if (file)
		fclose(file);
	return sum;
}

static const struct {
	enum ored_counter which;
	const char *name;
} causes[] = {
	{ ORED_CNT_MISMATCH, "mismatch" },
	{ ORED_CNT_BAD_SOURCE, "bad_source" },
	{ ORED_CNT_BAD_CHUNK, "bad_chunk" },
	{ ORED_CNT_BAD_CONTROL, "bad_control" },
	{ ORED_CNT_NS_SHORT, "ns_short" },
	{ ORED_CNT_NS_VERSION, "ns_version" },
	{ ORED_CNT_NS_TYPE, "ns_type" },
	{ ORED_CNT_NS_SESSION, "ns_session" },
	{ ORED_CNT_NS_GROUP, "ns_group" },
	{ ORED_CNT_NS_EPOCH, "ns_epoch" },
};

/*
 * Waits until every refused packet has been counted by its cause: they may be
 * taken in a little later than they are sent. Returns what isn't, or -1.
 */
static int settle(const int *fd, uint64_t *got)
{
	uint64_t after[ORED_CNT_MAX], end = now_ms() + SETTLE_MS;
	unsigned int i;

	for (;;) {
		read_counters(fd, after);
		for (i = 0; i < ARRAY_SIZE(causes); i++) {
			*got = after[causes[i].which] - before[causes[i].which];
			if (*got != expected[causes[i].which])
				break;
		}
		if (i == ARRAY_SIZE(causes))
			return -1;
		if (now_ms() > end)
			return i;
		sleep_ms(1);
	}
}

static void check_counters(const int *fd, uint64_t dropped)
{
	uint64_t got;
	int wrong = settle(fd, &got);

	if (wrong < 0)
		return;
	dropped = dropped_by_host() - dropped;
	if (dropped)
		fprintf(stderr, "pktfuzz: this host has dropped %lu packets\n", dropped);
	fail("pktfuzz: %s has counted %lu packets, but %lu were sent",
	     causes[wrong].name, got, expected[causes[wrong].which]);
}

static void burst(bool insider)
{
	uint64_t n;

	/* Sometimes few, so that an insider's group lives to see its second op. */
	for (n = rng_below(&rng, 2 * BURST); n; n--) {
		if (insider)
			send_anything();
		else
			send_refused();
	}
	flush();
	capture();
}

/*
 * One op, with packets thrown in between its steps. Returns false if it failed
 * or isn't exact, which only an insider can make it.
 */
static bool run_op(const int *fd, uint64_t op, uint32_t count, bool insider,
		   uint64_t dropped)
{
	static float bucket[8192];
	bool good = true;
	uint64_t begun;
	uint32_t r;
	ssize_t n;

	current_op = op;
	current_bytes = count * 4;
	for (r = 0; r < group.nranks && good; r++) {
		fill(bucket, count, r, op);
		begun = now_ms();
		n = send(fd[r], bucket, count * 4, 0);
		if (now_ms() - begun > CALL_MS)
			fail("pktfuzz: send took %lu ms", now_ms() - begun);
		if (n != (ssize_t)count * 4 && !insider)
			die("pktfuzz: op %lu: rank %u's send returned %zd", op, r, n);
		good = n == (ssize_t)count * 4;
		in_use[r] = good;
		burst(insider);
	}
	for (r = 0; r < group.nranks && good; r++) {
		/* What was meant for this op must not come late. */
		if (!insider)
			check_counters(fd, dropped);
		/* Its slot can be given back as soon as the result is taken. */
		in_use[r] = false;
		begun = now_ms();
		n = recv(fd[r], bucket, sizeof(bucket), 0);
		if (now_ms() - begun > CALL_MS)
			fail("pktfuzz: recv took %lu ms", now_ms() - begun);
		if (n != (ssize_t)count * 4 && !insider)
			die("pktfuzz: op %lu: rank %u's recv returned %zd", op, r, n);
		good = n == (ssize_t)count * 4;
		if (!insider && wrong_at(bucket, count, group.nranks, op) >= 0)
			fail("pktfuzz: op %lu: rank %u's number %ld is wrong", op, r,
			     wrong_at(bucket, count, group.nranks, op));
		burst(insider);
	}
	return good;
}

/* One run of the group. Returns the number of ops. */
static uint64_t run_round(bool insider, uint64_t packets)
{
	uint64_t op, end = sent_packets + packets, dropped;
	int fd[MAX_RANKS], error;
	uint32_t r;

	memcpy(stale, kept, sizeof(stale));
	nstale = nkept;
	nkept = 0;
	memset(expected, 0, sizeof(expected));
	memset(session, 0, sizeof(session));
	memset(in_use, 0, sizeof(in_use));
	group.epoch++;
	error = join_all(&group, fd);
	if (error)
		fail("pktfuzz: the group can't be joined: %s", strerror(-error));
	for (r = 0; r < group.nranks; r++)
		set_limit(fd[r], insider ? INSIDER_MS : CALL_MS / 2);
	/* What the last run still had to say is over soon. */
	sleep_ms(20);
	capture();
	if (!nkept)
		fail("pktfuzz: no packet of the group was captured");
	read_counters(fd, before);
	dropped = dropped_by_host();
	for (op = 0; sent_packets < end; op++) {
		uint32_t count = 1 + rng_below(&rng, group.bucket_max / 4);

		if (!run_op(fd, op, count, insider, dropped))
			break;
	}
	if (!insider)
		check_counters(fd, dropped);
	for (r = 0; r < group.nranks; r++)
		close(fd[r]);
	/* Not taken for our own packets' next victims: goodbyes */
	sleep_ms(20);
	return op;
}

static void usage(void)
{
	fprintf(stderr, "usage: pktfuzz [--seed N] [--packets N] [--insider]\n");
	exit(2);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, packets = 10000, ops = 0, rounds = 0;
	bool insider = false;
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--insider"))
			insider = true;
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			seed = number(argv[i], argv[i + 1]), i++;
		else if (!strcmp(argv[i], "--packets") && i + 1 < argc)
			packets = number(argv[i], argv[i + 1]), i++;
		else
			usage();
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("# pktfuzz: seed %lu, %lu packets%s\n", seed, packets,
	       insider ? ", from an insider" : "");
	rng = rng_seeded(seed, insider);
	new_namespace();
	open_sockets();
	while (sent_packets < packets) {
		ops += run_round(insider, insider ? INSIDER_ROUND : PER_ROUND);
		rounds++;
	}
	printf("# pktfuzz: %lu packets in %lu runs of the group, %lu ops\n",
	       sent_packets, rounds, ops);
	return 0;
}
