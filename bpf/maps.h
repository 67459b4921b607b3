/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The maps that BPF programs and tools share: pinned by name in /sys/fs/bpf/ored,
 * they outlive both. Numbers are in host order, addresses in network order.
 */
#ifndef ORED_BPF_MAPS_H
#define ORED_BPF_MAPS_H

#include <linux/types.h>

#include "hist.h"

#define ORED_X_RANKS	256
#define ORED_X_CPUS	256
#define ORED_X_ARRIVALS	16384	/* a power of two */

/* What the XDP programs do: bits of struct ored_x_config.flags */
#define ORED_X_MEASURE	1
#define ORED_X_SHIELD	2
#define ORED_X_STEER	4

/**
 * struct ored_x_config - map ored_config, one entry
 * @flags: ORED_X_*; changes take effect with the next packet
 * @ncpus: CPUs to steer to
 * @cpu: their numbers: entries of the map ored_cpus
 */
struct ored_x_config {
	__u32	flags;
	__u32	ncpus;
	__u32	cpu[ORED_X_CPUS];
};

/* Keys of the map ored_members */
struct ored_x_session {
	__u32	netns;
	__u32	session;
};

/**
 * struct ored_x_peer - a rank, in struct ored_x_member
 * @addr: what its packets come from, IPv4 in the first four bytes
 * @passed_ns: when a packet of a sealed op was let through last
 * @synced_ns: when its clock was compared with ours; 0: never
 * @rtt_us: round trip of that comparison
 * @offset_us: its clock less ours
 * @known: @addr is set
 * @reserved: zero
 */
struct ored_x_peer {
	__u8	addr[16];
	__u64	passed_ns;
	__u64	synced_ns;
	__u32	rtt_us;
	__u32	offset_us;
	__u32	known;
	__u32	reserved;
};

/**
 * struct ored_x_member - map ored_members: a membership, by namespace and session
 * @epoch: run of the group
 * @posted: ops posted here, as far as is known
 * @retained: chunks of ops below it have no place any more
 * @told_ns: when the module told of it last
 * @group: id
 * @rank: this rank
 * @nranks: ranks of the group
 * @family: AF_INET or AF_INET6
 * @port: UDP port of this rank
 * @gone: there is no such membership any more
 * @peer: by rank
 */
struct ored_x_member {
	__u64	epoch;
	__u64	posted;
	__u64	retained;
	__u64	told_ns;
	__u32	group;
	__u16	rank;
	__u16	nranks;
	__u16	family;
	__u16	port;
	__u32	gone;
	struct ored_x_peer peer[ORED_X_RANKS];
};

/* Which latency a histogram holds */
enum ored_x_what {
	ORED_X_NETWORK	= 0,	/* from the sender's clock to the earliest arrival */
	ORED_X_HOST	= 1,	/* from there until its chunk is ready to be reduced */
};

/* Keys of the map ored_latency */
struct ored_x_flow {
	__u32	netns;
	__u32	group;
	__u8	rank;
	__u8	peer;
	__u8	stage;
	__u8	what;
};

/**
 * struct ored_x_latency - map ored_latency, per CPU: packets of a peer and stage
 * @packets: how many
 * @bytes: of UDP payload
 * @gaps: chunks that were passed over: lost, or overtaken by later ones
 * @sum_ns: of all latencies
 * @max_ns: the longest
 * @timed: how many latencies there are; fewer than @packets until the peer's clock
 *	is known
 * @op: of the last packet
 * @next: chunk expected after it
 * @bucket: how many latencies were so long: hist.h
 */
struct ored_x_latency {
	__u64	packets;
	__u64	bytes;
	__u64	gaps;
	__u64	sum_ns;
	__u64	max_ns;
	__u64	timed;
	__u32	op;
	__u32	next;
	__u64	bucket[ORED_HIST_BUCKETS];
};

/*
 * Keys of the map ored_refused: packets of which the module has just refused one
 * like it. What can't be read of them is 0.
 */
struct ored_x_refused_key {
	__u64	epoch;		/* of a HELLO */
	__u32	netns;
	__u32	group;
	__u32	session;
	__u16	port;
	__u8	type;
	__u8	dst;
	__u8	src;
	__u8	reserved[7];
	__u8	addr[16];
};

/**
 * struct ored_x_refused - map ored_refused
 * @until_ns: so long it holds
 * @generation: of struct ored_x_state when it was refused
 * @counter: enum ored_x_counter to count drops in
 */
struct ored_x_refused {
	__u64	until_ns;
	__u32	generation;
	__u32	counter;
};

/**
 * struct ored_x_state - map ored_state, one entry
 * @refused_until_ns: no entry of ored_refused holds longer
 * @generation: one more with every membership that is made
 * @reserved: zero
 */
struct ored_x_state {
	__u64	refused_until_ns;
	__u32	generation;
	__u32	reserved;
};

/* Counters: map ored_counters, per CPU, one entry with all of them */
enum ored_x_counter {
	ORED_X_PACKETS,		/* that have an ORED header */
	ORED_X_BYTES,		/* of their UDP payload */
	ORED_X_UNKNOWN,		/* of a session that isn't known here: passed */
	ORED_X_TIMED,		/* latencies recorded */
	ORED_X_UNSYNCED,	/* not recorded: the peer's clock isn't known yet */
	ORED_X_NO_ROOM,		/* not recorded: ored_latency is full */
	ORED_X_STEERED,		/* sent to their CPU */
	ORED_X_UNSTEERED,	/* not sent there, though steering is on */
	ORED_X_ANSWERED,	/* of a sealed op, passed so that the module answers */
	ORED_X_DROP_GROUP,	/* dropped: of a group that isn't here */
	ORED_X_DROP_EPOCH,	/* dropped: of another run of the group */
	ORED_X_DROP_MEMBER,	/* dropped: the source isn't the rank that it names */
	ORED_X_DROP_SEALED,	/* dropped: of an op that has no place any more */
	ORED_X_DROP_LENGTH,	/* dropped: too short */
	ORED_X_DROP_VERSION,	/* dropped: another version or type */
	ORED_X_EVENTS,		/* of the module */
	ORED_X_EVENTS_LOST,	/* events that never came, by their numbers */
	ORED_X_MEMBERS_FULL,	/* memberships that ored_members had no room for */
	ORED_X_COUNTERS,
};

struct ored_x_counters {
	__u64	value[ORED_X_COUNTERS];
};

/* Map ored_arrivals: when a packet was first seen; what is older gives way */
struct ored_x_arrival {
	__u64	tag;
	__u64	at_ns;
};

#define ORED_X_LEASE_NS		10000000ULL	/* a refusal holds for 10 ms */
#define ORED_X_ANSWER_NS	1000000ULL	/* so often the module answers a peer */
#define ORED_X_SYNC_MAX_US	10000000	/* a longer round trip is none */
#define ORED_X_DRIFT_SHIFT	13		/* clocks drift apart by 2^-13 at most */

#endif /* ORED_BPF_MAPS_H */
