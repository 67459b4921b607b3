// SPDX-License-Identifier: GPL-2.0
/* Programs that need the module's types: at a function of it, and at a tracepoint. */

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* As much of the module's structures as is looked at; libbpf finds out where it is. */
struct ored_net {
	__u32 told;
} __attribute__((preserve_access_index));

struct ored_event_chunk {
	__u8 fate;
	__u32 group;
} __attribute__((preserve_access_index));

__u64 packets, chunks, taken;
__u32 told, group;

SEC("fentry/ored_rx_packet")
int BPF_PROG(on_packet, struct ored_net *on)
{
	__sync_fetch_and_add(&packets, 1);
	told = on->told;
	return 0;
}

SEC("tp_btf/ored_chunk")
int BPF_PROG(on_chunk, struct ored_event_chunk *ev)
{
	__sync_fetch_and_add(&chunks, 1);
	if (!ev->fate)
		__sync_fetch_and_add(&taken, 1);
	group = ev->group;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
