/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A loaded ored_xdp with maps of its own, and frames to feed it: for tests and
 * measurements by BPF_PROG_TEST_RUN, which needs no interface.
 */
#ifndef ORED_BPF_BENCH_H
#define ORED_BPF_BENCH_H

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <time.h>

#include "../../kmod/core/wire.h"
#include "../../bpf/maps.h"
#include "ored_xdp.skel.h"

#define NETNS		7
#define SESSION		0x00012345
#define GROUP		42
#define PORT		5555
#define FRAME_MAX	2048

static struct ored_xdp_bpf *xdp;

/* A frame; @l3 and @l4 are offsets of its headers */
struct frame {
	u8	data[FRAME_MAX];
	u32	len;
	u32	l3;
	u32	l4;
	bool	six;
};

static inline void die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static inline int silent(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_WARN)
		return vfprintf(stderr, format, args);
	return 0;
}

static inline void load(void)
{
	struct bpf_map *map;

	libbpf_set_print(silent);
	xdp = ored_xdp_bpf__open();
	if (!xdp)
		die("opening ored_xdp");
	bpf_object__for_each_map(map, xdp->obj)
		bpf_map__set_pin_path(map, NULL);
	xdp->rodata->ored_netns = NETNS;
	if (ored_xdp_bpf__load(xdp))
		die("loading ored_xdp");
}

static inline void put(struct bpf_map *map, const void *key, const void *value)
{
	if (bpf_map_update_elem(bpf_map__fd(map), key, value, BPF_ANY))
		die("updating a map");
}

/* Sums up the counters of all CPUs. */
static inline u64 counter(enum ored_x_counter which)
{
	int n = libbpf_num_possible_cpus(), i;
	struct ored_x_counters *all;
	u32 zero = 0;
	u64 sum = 0;

	all = calloc(n, sizeof(*all));
	if (!all || bpf_map_lookup_elem(bpf_map__fd(xdp->maps.ored_counters), &zero, all))
		die("reading counters");
	for (i = 0; i < n; i++)
		sum += all[i].value[which];
	free(all);
	return sum;
}

static inline void configure(u32 flags)
{
	struct ored_x_config config = { .flags = flags };
	u32 zero = 0;

	put(xdp->maps.ored_config, &zero, &config);
}

static inline u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* The address of rank @r, as sources of datagrams have it */
static inline void address(u32 r, bool six, u8 addr[16])
{
	memset(addr, 0, 16);
	if (six) {
		addr[0] = 0xfd;
		addr[15] = (u8)r;
	} else {
		addr[0] = 10;
		addr[3] = (u8)r;
	}
}

/* A membership: rank 0 of 4, all of whose peers are known */
static inline void membership(u32 session, bool six, u64 retained, bool gone)
{
	static struct ored_x_member m;
	struct ored_x_session key = { .netns = NETNS, .session = session };
	u32 r;

	memset(&m, 0, sizeof(m));
	m.group = GROUP;
	m.nranks = 4;
	m.family = six ? AF_INET6 : AF_INET;
	m.port = PORT;
	m.retained = retained;
	m.posted = retained;
	m.gone = gone;
	for (r = 0; r < m.nranks; r++) {
		address(r, six, m.peer[r].addr);
		m.peer[r].known = 1;
	}
	put(xdp->maps.ored_members, &key, &m);
}

static inline void ip4(struct frame *f, u32 source, u32 payload)
{
	struct iphdr ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP };

	ip.tot_len = htons((u16)(sizeof(ip) + sizeof(struct udphdr) + payload));
	address(source, false, f->data + f->l3);
	memcpy(&ip.saddr, f->data + f->l3, 4);
	memcpy(f->data + f->l3, &ip, sizeof(ip));
	f->l4 = f->l3 + sizeof(ip);
}

static inline void ip6(struct frame *f, u32 source, u32 payload)
{
	struct ipv6hdr ip = { .version = 6, .hop_limit = 64, .nexthdr = IPPROTO_UDP };

	ip.payload_len = htons((u16)(sizeof(struct udphdr) + payload));
	address(source, true, ip.saddr.s6_addr);
	memcpy(f->data + f->l3, &ip, sizeof(ip));
	f->l4 = f->l3 + sizeof(ip);
}

/* A datagram from rank @source to our port */
static inline void datagram(struct frame *f, bool six, u32 source, const void *payload, u32 len)
{
	struct udphdr udp = { .source = htons(1), .dest = htons(PORT) };

	memset(f, 0, sizeof(*f));
	f->six = six;
	f->l3 = ETH_HLEN;
	((struct ethhdr *)f->data)->h_proto = htons(six ? ETH_P_IPV6 : ETH_P_IP);
	if (six)
		ip6(f, source, len);
	else
		ip4(f, source, len);
	udp.len = htons((u16)(sizeof(udp) + len));
	memcpy(f->data + f->l4, &udp, sizeof(udp));
	memcpy(f->data + f->l4 + sizeof(udp), payload, len);
	f->len = f->l4 + sizeof(udp) + len;
}

/* What rank 1 would send us; len bytes of content behind the header */
static inline struct ored_packet packet(u8 type)
{
	return (struct ored_packet) {
		.type = type, .src = 1, .group = GROUP, .session = SESSION,
		.params = { .bytes = 4096 }, .clock = (u32)(now_ns() / 1000),
	};
}

static inline void build(struct frame *f, const struct ored_packet *pkt, u32 source, u32 content)
{
	u8 payload[ORED_WIRE_HEADER + 1024] = {};

	ored_wire_build(payload, pkt);
	datagram(f, false, source, payload, ORED_WIRE_HEADER + content);
}

/* Runs the program over a frame. Return: its verdict; the frame must be as it was. */
static inline u32 feed(const struct frame *f, bool *untouched)
{
	u8 out[FRAME_MAX];
	struct bpf_test_run_opts opts = {
		.sz = sizeof(opts), .data_in = f->data, .data_size_in = f->len,
		.data_out = out, .data_size_out = sizeof(out), .repeat = 1
	};

	if (bpf_prog_test_run_opts(bpf_program__fd(xdp->progs.ored_xdp), &opts))
		die("BPF_PROG_TEST_RUN");
	if (untouched)
		*untouched = opts.data_size_out == f->len && !memcmp(out, f->data, f->len);
	return opts.retval;
}

#endif /* ORED_BPF_BENCH_H */
