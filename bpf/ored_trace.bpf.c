// SPDX-License-Identifier: GPL-2.0
/*
 * Keeps the maps true: raw tracepoint programs on the module's tracepoints
 * (linux/ored_trace.h). Events of a membership come one after the other.
 */

#include "common.h"
#include <linux/ored.h>
#include <linux/ored_trace.h>

static __always_inline void forget_gone(void);

static __always_inline struct ored_x_member *member_of(const struct ored_event_member *ev)
{
	struct ored_x_session key = { .netns = ev->netns, .session = ev->session };

	return bpf_map_lookup_elem(&ored_members, &key);
}

/* Numbers of a namespace's events, to notice what is missing */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} ored_seen SEC(".maps");

static __always_inline void check_seq(const struct ored_event_member *ev)
{
	__u32 netns = ev->netns, seq = ev->seq, lost;
	__u32 *last = bpf_map_lookup_elem(&ored_seen, &netns);

	ored_x_count(ORED_X_EVENTS, 1);
	if (!seq)
		return;
	if (!last) {
		bpf_map_update_elem(&ored_seen, &netns, &seq, BPF_ANY);
		return;
	}
	/* What is told again has the number of the last event that there was. */
	lost = seq - *last - !ev->replayed;
	if (lost)
		ored_x_count(ORED_X_EVENTS_LOST, lost);
	*last = seq;
}

/* Called for each membership: makes room. */
static long drop_if_gone(void *map, const void *key, const void *value, void *unused)
{
	const struct ored_x_member *m = value;

	if (m->gone)
		bpf_map_delete_elem(map, key);
	return 0;
}

static __always_inline void forget_gone(void)
{
	bpf_for_each_map_elem(&ored_members, drop_if_gone, NULL, 0);
}

static __always_inline struct ored_x_member *member_new(const struct ored_event_member *ev)
{
	struct ored_x_session key = { .netns = ev->netns, .session = ev->session };
	const void *none = bpf_map_lookup_elem(&ored_no_member, &ored_zero);

	if (!none)
		return NULL;
	if (bpf_map_update_elem(&ored_members, &key, none, BPF_ANY)) {
		forget_gone();
		if (bpf_map_update_elem(&ored_members, &key, none, BPF_ANY))
			ored_x_count(ORED_X_MEMBERS_FULL, 1);
	}
	return bpf_map_lookup_elem(&ored_members, &key);
}

/* Nothing that was refused before counts any more. */
static __always_inline void refused_before(void)
{
	struct ored_x_state *state = bpf_map_lookup_elem(&ored_state, &ored_zero);

	if (state)
		__sync_fetch_and_add(&state->generation, 1);
}

static __always_inline void made(const struct ored_event_member *ev)
{
	struct ored_x_member *m = ev->replayed ? member_of(ev) : NULL;

	refused_before();
	if (!m)
		m = member_new(ev);
	if (!m)
		return;
	m->epoch = ev->epoch;
	m->group = ev->group;
	m->rank = ev->rank;
	m->nranks = ev->nranks;
	m->family = ev->family;
	m->port = ev->port;
	m->gone = 0;
	m->told_ns = bpf_ktime_get_ns();
}

static __always_inline void peer(const struct ored_event_member *ev)
{
	struct ored_x_member *m = member_of(ev);
	struct ored_x_peer *p;

	if (!m || ev->peer >= ORED_X_RANKS)
		return;
	p = &m->peer[ev->peer];
	__builtin_memcpy(p->addr, ev->addr, sizeof(p->addr));
	p->known = 1;
}

static __always_inline void window(const struct ored_event_member *ev)
{
	struct ored_x_member *m = member_of(ev);

	if (!m)
		return;
	/* Ops that are done with stay so, whatever the order of events. */
	if (ev->posted > m->posted)
		m->posted = ev->posted;
	if (ev->retained > m->retained)
		m->retained = ev->retained;
}

static __always_inline void gone(const struct ored_event_member *ev)
{
	struct ored_x_member *m = member_of(ev);

	if (m)
		m->gone = 1;
}

SEC("raw_tp/ored_member")
int on_ored_member(struct bpf_raw_tracepoint_args *ctx)
{
	struct ored_event_member ev;

	if (bpf_probe_read_kernel(&ev, sizeof(ev), (const void *)ctx->args[0]))
		return 0;
	check_seq(&ev);
	switch (ev.event) {
	case ORED_EVENT_MADE:
		made(&ev);
		break;
	case ORED_EVENT_PEER:
		peer(&ev);
		break;
	case ORED_EVENT_WINDOW:
		window(&ev);
		break;
	case ORED_EVENT_GONE:
		gone(&ev);
		break;
	}
	return 0;
}

static __always_inline u32 counter_of(u32 cause)
{
	switch (cause) {
	case ORED_CNT_NS_SHORT:
		return ORED_X_DROP_LENGTH;
	case ORED_CNT_NS_VERSION:
	case ORED_CNT_NS_TYPE:
		return ORED_X_DROP_VERSION;
	case ORED_CNT_NS_EPOCH:
		return ORED_X_DROP_EPOCH;
	case ORED_CNT_NS_GROUP:
	case ORED_CNT_NS_SESSION:
		return ORED_X_DROP_GROUP;
	case ORED_CNT_BAD_SOURCE:
		return ORED_X_DROP_MEMBER;
	default:
		return ORED_X_COUNTERS;
	}
}

SEC("raw_tp/ored_refused")
int on_ored_refused(struct bpf_raw_tracepoint_args *ctx)
{
	struct ored_x_state *state = bpf_map_lookup_elem(&ored_state, &ored_zero);
	struct ored_x_refused_key key = {};
	struct ored_x_refused refused = {};
	struct ored_event_refused ev;
	__u32 *seen;

	if (!state || bpf_probe_read_kernel(&ev, sizeof(ev), (const void *)ctx->args[0]))
		return 0;
	refused.counter = counter_of(ev.cause);
	if (refused.counter == ORED_X_COUNTERS)
		return 0;
	/* In this order: a membership that is made now moves @seen first. */
	refused.generation = READ_ONCE(state->generation);
	seen = bpf_map_lookup_elem(&ored_seen, &ev.netns);
	if (!seen || READ_ONCE(*seen) != ev.told)
		return 0;
	refused.until_ns = bpf_ktime_get_ns() + ORED_X_LEASE_NS;
	key.netns = ev.netns;
	key.group = ev.group;
	key.session = ev.session;
	key.port = ev.port;
	key.type = ev.type;
	key.dst = ev.dst;
	key.src = ev.src;
	key.epoch = ev.epoch;
	__builtin_memcpy(key.addr, ev.addr, sizeof(key.addr));
	bpf_map_update_elem(&ored_refused, &key, &refused, BPF_ANY);
	state->refused_until_ns = refused.until_ns;
	return 0;
}

SEC("raw_tp/ored_chunk")
int on_ored_chunk(struct bpf_raw_tracepoint_args *ctx)
{
	struct ored_x_arrival *arrival;
	struct ored_x_latency *l;
	struct ored_event_chunk ev;
	struct ored_x_flow flow;
	u64 now, tag, at;
	u32 index;

	if (bpf_probe_read_kernel(&ev, sizeof(ev), (const void *)ctx->args[0]))
		return 0;
	/* Taken, or taken after it was sent again */
	if (ev.fate > 1)
		return 0;
	tag = ored_x_tag(ev.session, (u32)ev.op, ev.peer, ev.stage, ev.chunk);
	index = ored_x_arrival_index(tag);
	arrival = bpf_map_lookup_elem(&ored_arrivals, &index);
	if (!arrival || arrival->tag != tag)
		return 0;
	at = arrival->at_ns;
	now = bpf_ktime_get_ns();
	flow.netns = ev.netns;
	flow.group = ev.group;
	flow.rank = (u8)ev.rank;
	flow.peer = (u8)ev.peer;
	flow.stage = ev.stage;
	flow.what = ORED_X_HOST;
	l = ored_x_latency_of(&flow);
	if (!l || now < at)
		return 0;
	l->packets++;
	ored_x_record(l, now - at);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
