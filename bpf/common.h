/* SPDX-License-Identifier: GPL-2.0 */
/* What the BPF programs share: their maps, and counting. */
#ifndef ORED_BPF_COMMON_H
#define ORED_BPF_COMMON_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "../kmod/core/shim.h"
#include "maps.h"

/* BPF of this kind has no atomic loads; volatile ones do what the kernel's do. */
#undef READ_ONCE
#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))

/* Sizes are defaults: who loads the programs may set others before. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ored_x_config);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} ored_config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ored_x_state);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} ored_state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, struct ored_x_session);
	__type(value, struct ored_x_member);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} ored_members SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct ored_x_flow);
	__type(value, struct ored_x_latency);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} ored_latency SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct ored_x_refused_key);
	__type(value, struct ored_x_refused);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} ored_refused SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ored_x_counters);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} ored_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ORED_X_ARRIVALS);
	__type(key, __u32);
	__type(value, struct ored_x_arrival);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} ored_arrivals SEC(".maps");

/* What new entries of ored_latency and ored_members begin as: too large for a stack */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ored_x_latency);
} ored_no_latency SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ored_x_member);
} ored_no_member SEC(".maps");

static const __u32 ored_zero;

static __always_inline void ored_x_count(enum ored_x_counter what, u64 n)
{
	struct ored_x_counters *all = bpf_map_lookup_elem(&ored_counters, &ored_zero);

	if (all)
		all->value[what] += n;
}

/* Where a flow's latencies are; made when they are needed first */
static __always_inline struct ored_x_latency *ored_x_latency_of(const struct ored_x_flow *flow)
{
	struct ored_x_latency *found = bpf_map_lookup_elem(&ored_latency, flow);
	const void *none;

	if (found)
		return found;
	none = bpf_map_lookup_elem(&ored_no_latency, &ored_zero);
	if (!none)
		return NULL;
	bpf_map_update_elem(&ored_latency, flow, none, BPF_NOEXIST);
	found = bpf_map_lookup_elem(&ored_latency, flow);
	if (!found)
		ored_x_count(ORED_X_NO_ROOM, 1);
	return found;
}

static __always_inline void ored_x_record(struct ored_x_latency *l, u64 ns)
{
	u32 bucket = ored_hist_bucket(ns);

	if (bucket >= ORED_HIST_BUCKETS)
		return;
	l->bucket[bucket]++;
	l->sum_ns += ns;
	l->timed++;
	if (ns > l->max_ns)
		l->max_ns = ns;
}

/* Names a packet of gradients, for ored_arrivals */
static __always_inline u64 ored_x_tag(u32 session, u32 op, u32 peer, u32 stage, u32 chunk)
{
	u64 low = (u64)session << 32 | op;
	u64 high = (u64)peer << 32 | stage << 31 | chunk;

	return low * 0x9e3779b97f4a7c15ULL ^ high * 0xc2b2ae3d27d4eb4fULL;
}

static __always_inline u32 ored_x_arrival_index(u64 tag)
{
	return (u32)(tag >> 40) & (ORED_X_ARRIVALS - 1);
}

#endif /* ORED_BPF_COMMON_H */
