/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints. They fire with bottom halves off and never in hard interrupt
 * context, so that a BPF program at one isn't interrupted by itself.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ored

#if !defined(ORED_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ORED_TRACE_H

#include <linux/tracepoint.h>
#include <linux/ored.h>
#include <linux/ored_trace.h>

#include "member.h"

#ifndef ORED_FATES
#define ORED_FATES
/* What becomes of a packet of gradients */
enum ored_fate {
	ORED_FATE_TAKEN,
	ORED_FATE_REPAIRED,
	ORED_FATE_DUPLICATE,
	ORED_FATE_LATE,
	ORED_FATE_AHEAD,
	ORED_FATE_MISMATCH,
	ORED_FATE_BAD,
};
#endif

#define ored_show_limit(limit) __print_symbolic(limit,			\
	{ ORED_LIMIT_NONE, "none" }, { ORED_LIMIT_COMPLETE, "complete" },\
	{ ORED_LIMIT_EARLY, "early" }, { ORED_LIMIT_HARD, "hard" },	\
	{ ORED_LIMIT_BEHIND, "behind" })

#define ored_show_stage(stage) __print_symbolic(stage,			\
	{ ORED_SCATTER, "scatter" }, { ORED_GATHER, "gather" })

#define ored_show_fate(fate) __print_symbolic(fate,			\
	{ ORED_FATE_TAKEN, "taken" }, { ORED_FATE_REPAIRED, "repaired" },\
	{ ORED_FATE_DUPLICATE, "duplicate" }, { ORED_FATE_LATE, "late" },\
	{ ORED_FATE_AHEAD, "ahead" }, { ORED_FATE_MISMATCH, "mismatch" },\
	{ ORED_FATE_BAD, "bad" })

#define ored_show_event(event) __print_symbolic(event,			\
	{ ORED_EVENT_MADE, "made" }, { ORED_EVENT_PEER, "peer" },	\
	{ ORED_EVENT_WINDOW, "window" }, { ORED_EVENT_GONE, "gone" })

#define ored_show_peer(status) __print_symbolic(status,			\
	{ ORED_PEER_UNKNOWN, "unknown" }, { ORED_PEER_HEARD, "heard" },	\
	{ ORED_PEER_LIVE, "live" }, { ORED_PEER_SILENT, "silent" },	\
	{ ORED_PEER_LEFT, "left" }, { ORED_PEER_REFUSED, "refused" },	\
	{ ORED_PEER_STALLED, "stalled" })

/* An op has been posted here */
TRACE_EVENT(ored_op_post,
	TP_PROTO(const struct ored_slot *slot),
	TP_ARGS(slot),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, group)
		__field(u32, rank)
		__field(u64, op)
		__field(u64, bytes)
		__field(u64, bound_ns)
		__field(u32, incast)
		__field(u8, mode)
	),
	TP_fast_assign(
		__entry->netns = slot->m->on->net->ns.inum;
		__entry->group = slot->m->conf.group;
		__entry->rank = slot->m->rank;
		__entry->op = slot->op;
		__entry->bytes = slot->mine.bytes;
		__entry->bound_ns = slot->published_ns;
		__entry->incast = slot->incast;
		__entry->mode = ored_params_mode(slot->mine.word);
	),
	TP_printk("netns=%u group=%u rank=%u op=%llu bytes=%llu bound_ns=%llu incast=%u mode=%u",
		  __entry->netns, __entry->group, __entry->rank, __entry->op, __entry->bytes,
		  __entry->bound_ns, __entry->incast, __entry->mode)
);

/* A stage of an op takes no more; @limit says why */
TRACE_EVENT(ored_op_seal,
	TP_PROTO(const struct ored_slot *slot, u32 stage, u8 limit, u64 now),
	TP_ARGS(slot, stage, limit, now),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, group)
		__field(u32, rank)
		__field(u64, op)
		__field(u64, elapsed_ns)
		__field(u8, stage)
		__field(u8, limit)
	),
	TP_fast_assign(
		__entry->netns = slot->m->on->net->ns.inum;
		__entry->group = slot->m->conf.group;
		__entry->rank = slot->m->rank;
		__entry->op = slot->op;
		__entry->elapsed_ns = now - slot->posted_ns;
		__entry->stage = stage;
		__entry->limit = limit;
	),
	TP_printk("netns=%u group=%u rank=%u op=%llu stage=%s limit=%s elapsed_ns=%llu",
		  __entry->netns, __entry->group, __entry->rank, __entry->op,
		  ored_show_stage(__entry->stage), ored_show_limit(__entry->limit),
		  __entry->elapsed_ns)
);

/* An op has ended here */
TRACE_EVENT(ored_op_end,
	TP_PROTO(const struct ored_slot *slot),
	TP_ARGS(slot),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, group)
		__field(u32, rank)
		__field(u64, op)
		__field(u64, elapsed_ns)
		__field(u32, behind)
		__field(int, error)
		__field(u8, limit)
	),
	TP_fast_assign(
		__entry->netns = slot->m->on->net->ns.inum;
		__entry->group = slot->m->conf.group;
		__entry->rank = slot->m->rank;
		__entry->op = slot->op;
		__entry->elapsed_ns = slot->elapsed_ns;
		__entry->behind = slot->behind;
		__entry->error = slot->error;
		__entry->limit = slot->limit;
	),
	TP_printk("netns=%u group=%u rank=%u op=%llu limit=%s elapsed_ns=%llu behind=%u error=%d",
		  __entry->netns, __entry->group, __entry->rank, __entry->op,
		  ored_show_limit(__entry->limit), __entry->elapsed_ns, __entry->behind,
		  __entry->error)
);

/* A packet of gradients has come; for BPF programs as linux/ored_trace.h says */
TRACE_EVENT(ored_chunk,
	TP_PROTO(const struct ored_event_chunk *ev),
	TP_ARGS(ev),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, group)
		__field(u32, rank)
		__field(u32, peer)
		__field(u64, op)
		__field(u32, chunk)
		__field(u32, clock)
		__field(u8, stage)
		__field(u8, fate)
	),
	TP_fast_assign(
		__entry->netns = ev->netns;
		__entry->group = ev->group;
		__entry->rank = ev->rank;
		__entry->peer = ev->peer;
		__entry->op = ev->op;
		__entry->chunk = ev->chunk;
		__entry->clock = ev->clock;
		__entry->stage = ev->stage;
		__entry->fate = ev->fate;
	),
	TP_printk("netns=%u group=%u rank=%u peer=%u op=%llu stage=%s chunk=%u clock=%u fate=%s",
		  __entry->netns, __entry->group, __entry->rank, __entry->peer, __entry->op,
		  ored_show_stage(__entry->stage), __entry->chunk, __entry->clock,
		  ored_show_fate(__entry->fate))
);

/* Memberships come and go; for BPF programs as linux/ored_trace.h says */
TRACE_EVENT(ored_member,
	TP_PROTO(const struct ored_event_member *ev),
	TP_ARGS(ev),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, event)
		__field(u32, session)
		__field(u32, seq)
		__field(u32, group)
		__field(u32, rank)
		__field(u32, nranks)
		__field(u32, peer)
		__field(u64, epoch)
		__field(u64, posted)
		__field(u64, retained)
	),
	TP_fast_assign(
		__entry->netns = ev->netns;
		__entry->event = ev->event;
		__entry->session = ev->session;
		__entry->seq = ev->seq;
		__entry->group = ev->group;
		__entry->rank = ev->rank;
		__entry->nranks = ev->nranks;
		__entry->peer = ev->peer;
		__entry->epoch = ev->epoch;
		__entry->posted = ev->posted;
		__entry->retained = ev->retained;
	),
	TP_printk("netns=%u group=%u rank=%u event=%s session=%#x seq=%u epoch=%llu nranks=%u peer=%u posted=%llu retained=%llu",
		  __entry->netns, __entry->group, __entry->rank,
		  ored_show_event(__entry->event), __entry->session, __entry->seq,
		  __entry->epoch, __entry->nranks, __entry->peer, __entry->posted,
		  __entry->retained)
);

/* A packet that nobody wants; for BPF programs as linux/ored_trace.h says */
TRACE_EVENT(ored_refused,
	TP_PROTO(const struct ored_event_refused *ev),
	TP_ARGS(ev),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, cause)
		__field(u32, group)
		__field(u32, session)
		__field(u32, port)
		__field(u32, type)
	),
	TP_fast_assign(
		__entry->netns = ev->netns;
		__entry->cause = ev->cause;
		__entry->group = ev->group;
		__entry->session = ev->session;
		__entry->port = ev->port;
		__entry->type = ev->type;
	),
	TP_printk("netns=%u cause=%u group=%u session=%#x port=%u type=%u", __entry->netns,
		  __entry->cause, __entry->group, __entry->session, __entry->port,
		  __entry->type)
);

/* A peer is in another state */
TRACE_EVENT(ored_peer,
	TP_PROTO(const struct ored_link *l, u8 status),
	TP_ARGS(l, status),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, group)
		__field(u32, rank)
		__field(u32, peer)
		__field(u64, posted)
		__field(u64, left)
		__field(u8, status)
	),
	TP_fast_assign(
		__entry->netns = l->m->on->net->ns.inum;
		__entry->group = l->m->conf.group;
		__entry->rank = l->m->rank;
		__entry->peer = l->rank;
		__entry->posted = l->standing.posted;
		__entry->left = l->standing.left;
		__entry->status = status;
	),
	TP_printk("netns=%u group=%u rank=%u peer=%u status=%s posted=%llu left=%llu",
		  __entry->netns, __entry->group, __entry->rank, __entry->peer,
		  ored_show_peer(__entry->status), __entry->posted, __entry->left)
);

/* This rank lets another number of peers send to it at once */
TRACE_EVENT(ored_incast,
	TP_PROTO(const struct ored_member *m, u32 before, u32 now),
	TP_ARGS(m, before, now),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, group)
		__field(u32, rank)
		__field(u32, before)
		__field(u32, now)
	),
	TP_fast_assign(
		__entry->netns = m->on->net->ns.inum;
		__entry->group = m->conf.group;
		__entry->rank = m->rank;
		__entry->before = before;
		__entry->now = now;
	),
	TP_printk("netns=%u group=%u rank=%u incast=%u before=%u", __entry->netns,
		  __entry->group, __entry->rank, __entry->now, __entry->before)
);

/* A peer's window, or the pace of the link, has changed */
TRACE_EVENT(ored_rate,
	TP_PROTO(const struct ored_link *l, u64 pace),
	TP_ARGS(l, pace),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, group)
		__field(u32, rank)
		__field(u32, peer)
		__field(u32, window)
		__field(u32, srtt_us)
		__field(s32, gradient_us)
		__field(u64, pace)
	),
	TP_fast_assign(
		__entry->netns = l->m->on->net->ns.inum;
		__entry->group = l->m->conf.group;
		__entry->rank = l->m->rank;
		__entry->peer = l->rank;
		__entry->window = l->rate.window;
		__entry->srtt_us = l->rate.srtt_us;
		__entry->gradient_us = l->rate.gradient_us;
		__entry->pace = pace;
	),
	TP_printk("netns=%u group=%u rank=%u peer=%u window=%u srtt_us=%u gradient_us=%d pace=%llu",
		  __entry->netns, __entry->group, __entry->rank, __entry->peer, __entry->window,
		  __entry->srtt_us, __entry->gradient_us, __entry->pace)
);

#endif /* ORED_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
