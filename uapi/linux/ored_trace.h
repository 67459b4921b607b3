/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What the module's tracepoints for BPF programs hand over.
 *
 * A raw tracepoint program gets a pointer to one of these as its only argument and
 * copies it with bpf_probe_read_kernel(); it needs no type information of kernel or
 * module. Fields are only ever added at the end. All tracepoints fire with bottom
 * halves off and never in hard interrupts, so that a program isn't interrupted by
 * itself. Numbers are in host order, addresses in network order.
 */
#ifndef _UAPI_LINUX_ORED_TRACE_H
#define _UAPI_LINUX_ORED_TRACE_H

#include <linux/types.h>

/* enum ored_event - what a struct ored_event_member tells */
enum ored_event {
	/* A membership is there; its peers and its window follow. */
	ORED_EVENT_MADE	= 1,
	/* One of its ranks, and the address that packets of that rank come from */
	ORED_EVENT_PEER	= 2,
	/* How far its ops are */
	ORED_EVENT_WINDOW = 3,
	/* It is gone; no packet with its session is taken any more. */
	ORED_EVENT_GONE	= 4,
};

/**
 * struct ored_event_member - tracepoint ored_member: memberships come and go
 * @netns: inode of the network namespace
 * @event: enum ored_event
 * @session: what peers put into their packets to this membership; drawn at random
 *	when it is made, so that no other has had it
 * @seq: of MADE, PEER and GONE in this namespace, one more each time: a gap tells
 *	that events were lost. With @replayed that of the last such event. Of others 0
 * @group: id
 * @rank: this rank
 * @nranks: ranks of the group
 * @epoch: run of the group
 * @posted: ops posted here
 * @retained: ops below it are done with: a chunk of theirs has no place any more
 * @family: AF_INET or AF_INET6
 * @port: UDP port of this rank
 * @peer: with PEER: the rank that @addr is of
 * @replayed: told again, because somebody asked for it
 * @reserved: zero
 * @addr: with PEER: its address, IPv4 in the first four bytes
 */
struct ored_event_member {
	__u32		netns;
	__u32		event;
	__u32		session;
	__u32		seq;
	__u32		group;
	__u16		rank;
	__u16		nranks;
	__aligned_u64	epoch;
	__aligned_u64	posted;
	__aligned_u64	retained;
	__u16		family;
	__u16		port;
	__u16		peer;
	__u8		replayed;
	__u8		reserved;
	__u8		addr[16];
};

/**
 * struct ored_event_refused - tracepoint ored_refused: a packet that nobody wants
 * @netns: inode of the network namespace
 * @cause: enum ored_counter, as it was counted
 * @session: of its header; 0 if that can't be read
 * @group: likewise
 * @family: AF_INET or AF_INET6
 * @port: UDP port that it came to
 * @type: of its header, as it is on the wire; 0 if that can't be read
 * @dst: likewise, the rank it is for
 * @src: likewise, the rank it says that it is from
 * @reserved: zero
 * @told: @seq of the last event of a membership when the packet was looked at: who
 *	hasn't seen that one, or has seen another since, doesn't know enough to judge
 * @reserved2: zero
 * @epoch: of a HELLO; else 0
 * @addr: where it says that it comes from, IPv4 in the first four bytes
 */
struct ored_event_refused {
	__u32		netns;
	__u32		cause;
	__u32		session;
	__u32		group;
	__u16		family;
	__u16		port;
	__u8		type;
	__u8		dst;
	__u8		src;
	__u8		reserved;
	__u32		told;
	__u32		reserved2;
	__aligned_u64	epoch;
	__u8		addr[16];
};

/**
 * struct ored_event_chunk - tracepoint ored_chunk: a packet of gradients has come
 * @netns: inode of the network namespace
 * @session: of the membership
 * @group: id
 * @rank: this rank
 * @peer: who sent it
 * @op: its op
 * @chunk: within its shard
 * @clock: of its header: the sender's, microseconds
 * @stage: 0: scatter, 1: gather
 * @fate: 0: taken, 1: taken, sent before, 2: duplicate, 3: late, 4: ahead, 5: of
 *	other parameters, 6: bad
 * @reserved: zero
 */
struct ored_event_chunk {
	__u32		netns;
	__u32		session;
	__u32		group;
	__u16		rank;
	__u16		peer;
	__aligned_u64	op;
	__u32		chunk;
	__u32		clock;
	__u8		stage;
	__u8		fate;
	__u8		reserved[6];
};

#endif /* _UAPI_LINUX_ORED_TRACE_H */
