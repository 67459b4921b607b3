// SPDX-License-Identifier: GPL-2.0
/*
 * What ored_xdp costs a packet: nanoseconds as BPF_PROG_TEST_RUN measures them, the
 * best of several turns, its own loop included; and instructions, if the processor
 * counts them here. Prints lines of a name and a figure.
 */

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

#define TURNS	15
#define REPEAT	200000

/* Counts instructions of this thread in the kernel; -1: the machine doesn't. */
static int open_counter(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE, .size = sizeof(attr), .disabled = 1,
		.config = PERF_COUNT_HW_INSTRUCTIONS, .exclude_user = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static u32 run(const struct frame *f)
{
	u8 out[FRAME_MAX];
	struct bpf_test_run_opts opts = {
		.sz = sizeof(opts), .data_in = f->data, .data_size_in = f->len,
		.data_out = out, .data_size_out = sizeof(out), .repeat = REPEAT
	};

	if (bpf_prog_test_run_opts(bpf_program__fd(xdp->progs.ored_xdp), &opts))
		die("BPF_PROG_TEST_RUN");
	return opts.duration;
}

static void cost(const char *name, const struct frame *f)
{
	u64 count = 0, fewest = UINT64_MAX;
	u32 best = UINT32_MAX, i;
	int fd = open_counter();

	for (i = 0; i < TURNS; i++) {
		if (fd >= 0) {
			ioctl(fd, PERF_EVENT_IOC_RESET, 0);
			ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		}
		best = min(best, run(f));
		if (fd >= 0 && read(fd, &count, sizeof(count)) == sizeof(count))
			fewest = min(fewest, count);
	}
	printf("%s_ns %u\n", name, best);
	if (fd >= 0) {
		printf("%s_instructions %.1f\n", name, (double)fewest / REPEAT);
		close(fd);
	}
}

/* A program of the same kind that does nothing: what the loop itself costs */
static void empty(void)
{
	static const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct frame f = { .len = 64 };
	u8 out[FRAME_MAX];
	u32 best = UINT32_MAX, i;
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "empty", "GPL", code, ARRAY_SIZE(code), NULL);
	struct bpf_test_run_opts opts = {
		.sz = sizeof(opts), .data_in = f.data, .data_size_in = f.len,
		.data_out = out, .data_size_out = sizeof(out), .repeat = REPEAT
	};

	for (i = 0; i < TURNS; i++) {
		if (fd < 0 || bpf_prog_test_run_opts(fd, &opts))
			die("an empty program");
		best = min(best, opts.duration);
	}
	printf("empty_ns %u\n", best);
	close(fd);
}

int main(void)
{
	struct bpf_cpumap_val size = { .qsize = 64 };
	struct ored_x_config config = { .flags = ORED_X_MEASURE | ORED_X_SHIELD, .ncpus = 1 };
	struct ored_x_session key = { .netns = NETNS, .session = SESSION };
	static struct ored_x_member m;
	struct ored_packet pkt;
	u32 zero = 0;
	struct frame f;
	u8 text[1000] = "GET / HTTP/1.1";

	load();
	membership(SESSION, false, 10, false);
	bpf_map_lookup_elem(bpf_map__fd(xdp->maps.ored_members), &key, &m);
	m.peer[1].synced_ns = now_ns();
	put(xdp->maps.ored_members, &key, &m);
	put(xdp->maps.ored_cpus, &zero, &size);
	empty();

	pkt = packet(ORED_T_SCATTER);
	pkt.op = 10;
	build(&f, &pkt, 1, 1024);
	config.flags = 0;
	put(xdp->maps.ored_config, &zero, &config);
	cost("nothing", &f);
	config.flags = ORED_X_MEASURE;
	put(xdp->maps.ored_config, &zero, &config);
	cost("measure", &f);
	config.flags = ORED_X_MEASURE | ORED_X_STEER;
	put(xdp->maps.ored_config, &zero, &config);
	cost("measure_steer", &f);
	config.flags |= ORED_X_SHIELD;
	put(xdp->maps.ored_config, &zero, &config);
	cost("all", &f);
	build(&f, &pkt, 3, 1024);
	cost("dropped_member", &f);
	pkt.op = 9;
	build(&f, &pkt, 1, 1024);
	cost("dropped_sealed", &f);

	datagram(&f, false, 1, text, sizeof(text));
	cost("other_udp", &f);
	datagram(&f, true, 1, text, sizeof(text));
	cost("other_udp6", &f);
	datagram(&f, false, 1, text, sizeof(text));
	((struct iphdr *)(f.data + f.l3))->protocol = IPPROTO_TCP;
	cost("other_tcp", &f);
	((struct ethhdr *)f.data)->h_proto = htons(ETH_P_ARP);
	cost("other_arp", &f);
	ored_xdp_bpf__destroy(xdp);
	return 0;
}
