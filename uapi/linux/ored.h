/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * ORED: bounded-time collectives and checkpoint areas as a socket family.
 *
 * This file is the whole ABI of ored.ko; nothing else is.
 *
 * Finding the family
 *   The kernel's table of families has no free number for an out-of-tree
 *   module, so one is borrowed: 18 by default, or what the module parameter
 *   `family` says. Read /sys/module/ored/parameters/family before socket().
 *
 * Life of a socket
 *   s = socket(family, SOCK_SEQPACKET, ORED_PROTO_REDUCE)
 *   setsockopt(s, SOL_ORED, ORED_JOIN, {struct ored_join, nranks peers})
 *   send(s, bucket)        one message is one bucket, that is one op
 *   recv(s, bucket)        the oldest op's result, in the order of posting
 *   close(s)
 *   Neither bind() nor connect() is needed, so any language that can create
 *   a socket of an unknown family can use it.
 *
 * How the structures grow
 *   A structure may get longer at its end. The kernel takes a shorter one
 *   (what is absent counts as zero) and a longer one whose excess is zero;
 *   a non-zero excess is E2BIG. Fields named reserved, and bits without a
 *   name, must be zero, else EINVAL. getsockopt() fills at most the caller's
 *   length and returns the kernel's, cut to it. All integers are in host
 *   order; 64-bit fields are aligned to 8 bytes for 32-bit callers too.
 *
 * Errors
 *   Every refusal has an errno and a sentence: getsockopt(ORED_ERROR).
 *   What a version of the module doesn't have yet is EOPNOTSUPP.
 */
#ifndef _UAPI_LINUX_ORED_H
#define _UAPI_LINUX_ORED_H

#include <linux/types.h>
#include <linux/socket.h>

#define ORED_ABI_VERSION	1

#define ORED_FAMILY_DEFAULT	18	/* see "Finding the family" */
#define SOL_ORED		300	/* level of all options and ancillary data */

#define ORED_MAX_RANKS		256
#define ORED_MAX_DEPTH		16
#define ORED_MAX_BUCKET		(1U << 30)	/* bytes; the kernel cuts longer I/O */
#define ORED_PORT_DEFAULT	4741		/* UDP */
#define ORED_TIMEOUT_DEFAULT	30000		/* ms, for joining */
#define ORED_ERROR_MAX		256		/* bytes of a sentence, with its NUL */

/* enum ored_proto - third argument of socket() */
enum ored_proto {
	ORED_PROTO_REDUCE	= 0,	/* collectives */
	ORED_PROTO_CKPT		= 1,	/* a handle on a checkpoint area */
};

/* enum ored_option - option names at level SOL_ORED */
enum ored_option {
	ORED_JOIN		= 1,	/* set: struct ored_join and peers */
	ORED_SETUP		= 2,	/* set: struct ored_join and peers */
	ORED_TEARDOWN		= 3,	/* set: struct ored_join, no peers */
	ORED_OP			= 4,	/* set, get: struct ored_op; and cmsg of send */
	ORED_RESULT		= 5,	/* get: struct ored_result; and cmsg of recv */
	ORED_RESULTS		= 6,	/* set, get: int, 1: recv attaches ORED_RESULT */
	ORED_ERROR		= 7,	/* get: the sentence of this socket's last error */
	ORED_GROUP		= 8,	/* get: struct ored_group */
	ORED_PEERS		= 9,	/* get: struct ored_peer_state[] */
	ORED_STATS		= 10,	/* get: __u64[], by enum ored_counter */
	ORED_POLICY		= 11,	/* set, get: struct ored_policy */
	ORED_UNCOUNTED		= 12,	/* get: struct ored_uncounted and a bitmap */
	ORED_RESULT_OF		= 13,	/* set: __u64, an op; get: its struct ored_result */
	/*
	 * set, no value: tracepoint ored_member tells of all memberships of the
	 * namespace again (linux/ored_trace.h). EPERM without CAP_NET_ADMIN there,
	 * EINVAL with a value
	 */
	ORED_TELL_AGAIN		= 30,

	ORED_AREA_OPEN		= 32,	/* set, get: struct ored_area_conf */
	ORED_AREA_REMOVE	= 33,	/* set: struct ored_area_conf */
	ORED_AREA_COMMIT	= 34,	/* set: struct ored_commit */
	ORED_AREA_ABORT		= 35,	/* set: no value */
	ORED_AREA_STATUS	= 36,	/* get: struct ored_area_status */
	ORED_AREA_READ		= 37,	/* set: struct ored_area_read */
	ORED_AREA_NEWEST	= 38,	/* get: struct ored_area_newest */
	ORED_AREA_ROLL_BACK	= 39,	/* set: __u64, a step */
	ORED_AREA_WAIT		= 40,	/* set: __u64, a step */
	ORED_AREA_GENERATIONS	= 41,	/* get: struct ored_generation[] */
	ORED_AREA_LIST		= 42,	/* get: struct ored_area_entry[] */
};

/**
 * struct sockaddr_ored - address for bind(): a rank of a group that an
 * administrator has set up (ORED_SETUP). Sugar over ORED_JOIN.
 * @sored_family: the family's number
 * @sored_flags: zero
 * @sored_group: group id
 * @sored_rank: the rank to take
 * @sored_reserved: zero
 * @sored_epoch: the run of the group; 0: the newest that was set up
 */
struct sockaddr_ored {
	__kernel_sa_family_t	sored_family;
	__u16			sored_flags;
	__u32			sored_group;
	__u32			sored_rank;
	__u32			sored_reserved;
	__aligned_u64		sored_epoch;
};

/**
 * struct ored_peer - where a rank lives
 * @family: AF_INET or AF_INET6, the same for all peers of a group; an IPv4
 *	address mapped into IPv6 counts as AF_INET
 * @port: its UDP port; 0: the group's
 * @scope_id: interface index of a link-local IPv6 address, else 0
 * @addr: the address in network order; IPv4 in the first four bytes, the
 *	others zero
 */
struct ored_peer {
	__u16	family;
	__u16	port;
	__u32	scope_id;
	__u8	addr[16];
};

/* Bits of ored_join.flags */
#define ORED_JOIN_KEY		(1U << 0)	/* @key is set: tag every packet */
#define ORED_JOIN_SLOTS		(1U << 1)	/* allocate slots for mmap() */
#define ORED_JOIN_FLAGS		(ORED_JOIN_KEY | ORED_JOIN_SLOTS)

#define ORED_ANYONE		(~0U)		/* ored_join.uid */

/**
 * struct ored_join - a group, seen by one of its ranks
 * @size: bytes of this structure as the caller knows it; @nranks times
 *	@peer_size bytes of peers follow, by rank
 * @flags: ORED_JOIN_*
 * @group: id of the group; different groups may share a port
 * @rank: this socket's rank, below @nranks (ORED_SETUP: zero)
 * @nranks: 1 to ORED_MAX_RANKS
 * @depth: ops in flight, 1 to ORED_MAX_DEPTH; the same on every rank
 * @epoch: the run of the group; packets of another are refused as stale
 * @bucket_max: largest bucket in bytes, a multiple of 8 up to ORED_MAX_BUCKET
 *	(more is EMSGSIZE); the same on every rank
 * @timeout_ms: how long to wait for all peers; 0: ORED_TIMEOUT_DEFAULT.
 *	SO_RCVTIMEO, where it is set, bounds the wait too
 * @port: UDP port of all peers that don't name their own, this rank included;
 *	0: ORED_PORT_DEFAULT
 * @payload_max: upper limit of a packet's payload in bytes, at least 512;
 *	0: what the smallest path MTU of the group allows
 * @peer_size: sizeof(struct ored_peer)
 * @uid: ORED_SETUP: the user who may bind(), or ORED_ANYONE; else zero
 * @key: secret of the group, with ORED_JOIN_KEY
 * @reserved: zero
 *
 * ORED_JOIN needs CAP_NET_ADMIN in the namespace's user namespace. It
 * allocates all memory of the group (about 3 times @bucket_max times
 * (2 @depth + 1), and with ORED_JOIN_SLOTS @bucket_max times (@depth + 1) more;
 * ENOMEM comes here and not later), then waits until every peer
 * has answered and all have agreed on the payload size. ORED_JOIN_SLOTS is each
 * rank's own choice.
 * Errors: EINVAL (a field, named by the sentence), EMSGSIZE (@bucket_max, or a
 * path that carries no payload of 512 bytes), EPERM, EISCONN (joined already),
 * EALREADY (this socket is joining), EADDRINUSE (port, or this rank is taken
 * here), EADDRNOTAVAIL (this rank's address isn't on this host),
 * EAFNOSUPPORT (peers of another family), ENOMEM, EPROTO (a peer disagrees
 * about the group; the sentence has both values), ETIMEDOUT (who is missing
 * is in the sentence and in ORED_PEERS), EINTR, EINPROGRESS (O_NONBLOCK:
 * wait for POLLOUT, then read SO_ERROR).
 *
 * ORED_SETUP (CAP_NET_ADMIN) stores the same without joining, so that @uid
 * can bind() without privileges; EEXIST if the group and epoch are there,
 * ENOSPC if the namespace has too many. ORED_TEARDOWN forgets @group's
 * @epoch; sockets that have joined stay.
 */
struct ored_join {
	__u32		size;
	__u32		flags;
	__u32		group;
	__u32		rank;
	__u32		nranks;
	__u32		depth;
	__aligned_u64	epoch;
	__aligned_u64	bucket_max;
	__u32		timeout_ms;
	__u16		port;
	__u16		payload_max;
	__u32		peer_size;
	__u32		uid;
	__u8		key[16];
	__aligned_u64	reserved[4];
};

/*
 * enum ored_kind - collectives
 *
 * ORED_ALLREDUCE: everybody gives a bucket and gets the result of all of it.
 *
 * ORED_REDUCE_SCATTER: everybody gives a bucket and gets its own shard of the
 * result: recv() returns that shard's length. Shards are those of
 * numpy.array_split(): of a bucket of n elements every rank has n / N, and the
 * first n % N ranks one more; n is at least N.
 *
 * ORED_ALL_GATHER: the reverse: everybody gives its shard and gets the bucket. The
 * bucket's bytes are ored_op.length, or if that is zero N times the shard's. Where
 * a shard is missing there are zeros; a slot keeps what it had, unless
 * ORED_OP_MISSING_ZERO is set.
 *
 * ORED_BROADCAST: everybody gives a bucket and gets that of ored_op.root. What the
 * others have given stands in where something is missing (ORED_OP_MISSING_ZERO:
 * zeros). The root is through when all have it, or when its bound has come. Bytes
 * are moved, so the dtype need not be the same.
 *
 * ORED_BARRIER: send() carries nothing, and recv() returns 8 bytes, the op's
 * number, when everybody has posted it. A bounded one ends by its bound, and
 * ored_result.missing says who hadn't come.
 */
enum ored_kind {
	ORED_ALLREDUCE		= 0,
	ORED_REDUCE_SCATTER	= 1,
	ORED_ALL_GATHER		= 2,
	ORED_BROADCAST		= 3,
	ORED_BARRIER		= 4,
};

/* enum ored_dtype - element types */
enum ored_dtype {
	ORED_F32	= 0,
	ORED_F64	= 1,
	ORED_F16	= 2,
	ORED_BF16	= 3,
	ORED_I32	= 4,
	ORED_I64	= 5,
};

/*
 * enum ored_reduction - how contributions become a result. They are always
 * combined in the order of ranks, so the result doesn't depend on arrival.
 */
enum ored_reduction {
	ORED_SUM	= 0,
	ORED_MEAN	= 1,	/* the sum divided by the number of contributors */
	ORED_MIN	= 2,
	ORED_MAX	= 3,
};

/* enum ored_mode - what an op does about loss */
enum ored_mode {
	ORED_MODE_DEFAULT	= 0,	/* as ORED_POLICY says: bounded */
	/* Returns within its bound and says what is missing. */
	ORED_MODE_BOUNDED	= 1,
	/* Loss is repaired until nothing is missing. */
	ORED_MODE_RELIABLE	= 2,
};

/*
 * enum ored_hadamard_mode - is a bucket rotated by a randomised Hadamard transform
 * before it is sent, and its result rotated back? What is lost on the way then
 * takes a little from all elements instead of all from some. It is for sums and
 * means of 32- and 16-bit floats.
 */
enum ored_hadamard_mode {
	ORED_HADAMARD_DEFAULT	= 0,	/* as ORED_POLICY says: auto */
	/* While the group loses more than 2 % of its bounded ops, until less than 0.5 % */
	ORED_HADAMARD_AUTO	= 1,
	ORED_HADAMARD_ON	= 2,
	ORED_HADAMARD_OFF	= 3,
};

/* Bits of ored_op.flags */
#define ORED_OP_SLOT		(1U << 0)	/* the bucket is in mmap'ed slot @slot */
#define ORED_OP_MISSING_ZERO	(1U << 1)	/* missing in gather: 0, not one's own */
#define ORED_OP_HADAMARD_ON	(1U << 2)	/* ORED_HADAMARD_ON; without one of */
#define ORED_OP_HADAMARD_OFF	(1U << 3)	/* these two, as ORED_POLICY says */
#define ORED_OP_NO_WAIT		(1U << 4)	/* don't wait for late posters */
#define ORED_OP_FLAGS		(ORED_OP_SLOT | ORED_OP_MISSING_ZERO | \
				 ORED_OP_HADAMARD_ON | ORED_OP_HADAMARD_OFF | \
				 ORED_OP_NO_WAIT)

/**
 * struct ored_op - parameters of an op: those of the socket (setsockopt), or
 * of one send() as ancillary data, which then replaces them as a whole
 * @kind: enum ored_kind
 * @dtype: enum ored_dtype; the bucket's length must be a multiple of it; zero for
 *	a barrier
 * @reduction: enum ored_reduction; zero where nothing is reduced
 * @mode: enum ored_mode
 * @flags: ORED_OP_*
 * @root: rank that broadcasts; else zero
 * @slot: with ORED_OP_SLOT: index of the slot, below ored_group.slots
 * @deadline_us: bound of a bounded op in microseconds; 0: the policy's
 * @wait_us: how long beyond it to wait for late posters; 0: the policy's
 * @length: with ORED_OP_SLOT: bytes in the slot. Of an all-gather: bytes of the
 *	whole bucket; 0: N times what is sent. Else zero
 * @reserved: zero
 *
 * With ORED_OP_SLOT send() carries nothing and returns 0. The bucket is where mmap()
 * of the socket, MAP_SHARED at offset @slot times ored_group.slot_stride, shows it
 * (of an all-gather the own shard, in its place); the result is there when recv()
 * returns its length, whatever room that is given. Until then the slot isn't to
 * be touched (EBUSY for another op): what is written to it may or may not
 * become part of the contribution and may spoil the own copy of the result, and
 * nothing else. After an error its contents are undefined. A mapping holds the
 * socket open as a descriptor does. An op that is Hadamard-transformed is copied out of
 * the slot and back into it.
 *
 * All ranks must post the same kind, dtype, reduction, mode, root, length and enum
 * ored_hadamard_mode as their n-th op; where they don't, the op fails with EPROTO on all
 * of them.
 */
struct ored_op {
	__u8		kind;
	__u8		dtype;
	__u8		reduction;
	__u8		mode;
	__u32		flags;
	__u32		root;
	__u32		slot;
	__u32		deadline_us;
	__u32		wait_us;
	__aligned_u64	length;
	__aligned_u64	reserved[2];
};

/* enum ored_limit - what ended an op */
enum ored_limit {
	ORED_LIMIT_NONE		= 0,	/* it failed */
	ORED_LIMIT_COMPLETE	= 1,	/* all came that was waited for */
	ORED_LIMIT_EARLY	= 2,	/* early timeout t_C */
	ORED_LIMIT_HARD		= 3,	/* hard bound t_B */
	ORED_LIMIT_BEHIND	= 4,	/* the group had gone on */
};

/* enum ored_verdict - what to do with a result */
enum ored_verdict {
	ORED_VERDICT_OK		= 0,	/* whole */
	ORED_VERDICT_PARTIAL	= 1,	/* usable, something is missing */
	ORED_VERDICT_SKIP	= 2,	/* don't apply it */
	ORED_VERDICT_HALT	= 3,	/* stop and look */
};

/**
 * struct ored_stage - bytes of one stage of an op, as seen by this rank
 * @expected: what should have come from peers
 * @received: what came, repaired included
 * @repaired: what came only after it had been sent again
 * @missing: @expected less @received
 */
struct ored_stage {
	__aligned_u64	expected;
	__aligned_u64	received;
	__aligned_u64	repaired;
	__aligned_u64	missing;
};

/* enum ored_field - the parameter in which two ranks differ */
enum ored_field {
	ORED_FIELD_NONE		= 0,
	ORED_FIELD_BYTES	= 1,	/* length of the bucket */
	ORED_FIELD_DTYPE	= 2,
	ORED_FIELD_REDUCTION	= 3,
	ORED_FIELD_KIND		= 4,
	ORED_FIELD_MODE		= 5,
	ORED_FIELD_HADAMARD	= 6,	/* values: enum ored_hadamard_mode */
	ORED_FIELD_ROOT		= 7,	/* of a broadcast */
};

#define ORED_RANK_WORDS		(ORED_MAX_RANKS / 64)

/* Bits of ored_result.flags */
#define ORED_RESULT_RESYNC	(1U << 0)	/* a result was missed: run a reliable op */
#define ORED_RESULT_HADAMARD	(1U << 1)	/* it was transformed */

/**
 * struct ored_result - what became of an op
 * @op: its number; the first op of a socket is 0. getsockopt(ORED_RESULT)
 *	reads it as the op asked for (ENOENT: unfinished, or too long ago:
 *	the last ORED_MAX_DEPTH that recv has returned are kept). Languages
 *	whose getsockopt() passes nothing in name the op by
 *	setsockopt(ORED_RESULT_OF) before they read ORED_RESULT_OF; if they
 *	don't, it is the last op that recv() has returned
 * @elapsed_ns: from post to finish
 * @bytes: length of the bucket; of a barrier 8
 * @scatter: first stage; only the root of a broadcast scatters, and nobody in an
 *	all-gather or a barrier
 * @gather: second stage; a reduce-scatter has none
 * @contributed: bit r of word r / 64: rank r's whole contribution is in, and all
 *	that it had to hand on
 * @missing: likewise, ranks of which something is missing. A rank that left the
 *	group before is in neither, nor is anything expected of it, unless its
 *	shard is missing: it serves that until its socket is closed
 * @error: errno that recv returned for it, or 0
 * @limit: enum ored_limit
 * @verdict: enum ored_verdict
 * @kind: as posted
 * @dtype: as posted
 * @reduction: as posted
 * @mode: the mode it ran in
 * @flags: ORED_RESULT_*
 * @bound_us: the bound it ran under, from its post: D + W, and those of the ops
 *	that were in flight before it; 0: none; ~0: that or longer
 * @behind: ops that were skipped because the group had gone on
 * @field: enum ored_field: with EPROTO, where two ranks differ
 * @rank: the two ranks that differ; with ECONNRESET rank[0] is who left
 * @value: their two values
 * @duplicates: packets that came twice
 * @resent: packets that this rank sent again
 * @hadamard_ns: what the transform has taken of this rank's time, there and back
 * @reserved: zero
 */
struct ored_result {
	__aligned_u64		op;
	__aligned_u64		elapsed_ns;
	__aligned_u64		bytes;
	struct ored_stage	scatter;
	struct ored_stage	gather;
	__aligned_u64		contributed[ORED_RANK_WORDS];
	__aligned_u64		missing[ORED_RANK_WORDS];
	__u32			error;
	__u8			limit;
	__u8			verdict;
	__u8			kind;
	__u8			dtype;
	__u8			reduction;
	__u8			mode;
	__u16			flags;
	__u32			bound_us;
	__u32			behind;
	__u32			field;
	__u32			rank[2];
	__aligned_u64		value[2];
	__aligned_u64		duplicates;
	__aligned_u64		resent;
	__aligned_u64		hadamard_ns;
	__aligned_u64		reserved[3];
};

/* enum ored_state - of a socket */
enum ored_state {
	ORED_STATE_NEW		= 0,	/* no group */
	ORED_STATE_JOINING	= 1,
	ORED_STATE_JOINED	= 2,
	ORED_STATE_FAILED	= 3,	/* joining failed: SO_ERROR, ORED_ERROR */
	ORED_STATE_LEFT		= 4,	/* shut down */
};

/**
 * struct ored_group - getsockopt(ORED_GROUP)
 * @abi: ORED_ABI_VERSION of the module
 * @state: enum ored_state
 * @group: id
 * @rank: this rank
 * @nranks: ranks
 * @depth: ops in flight that are allowed
 * @epoch: run of the group
 * @bucket_max: bytes
 * @payload: agreed bytes of a full chunk; 0 while joining
 * @header: bytes of our own header in each packet
 * @port: UDP port of this host
 * @family: AF_INET or AF_INET6
 * @ifindex: interface that packets to the next rank leave by, or 0
 * @posted: ops that send() has accepted
 * @finished: ops that have ended here, without a gap
 * @received: ops whose result recv() has returned
 * @memory: bytes allocated for the group
 * @slots: slots that can be mapped; 0 without ORED_JOIN_SLOTS
 * @reserved0: zero
 * @slot_stride: bytes from one of them to the next, whole pages
 * @reserved: zero
 */
struct ored_group {
	__u32		abi;
	__u32		state;
	__u32		group;
	__u32		rank;
	__u32		nranks;
	__u32		depth;
	__aligned_u64	epoch;
	__aligned_u64	bucket_max;
	__u32		payload;
	__u32		header;
	__u16		port;
	__u16		family;
	__u32		ifindex;
	__aligned_u64	posted;
	__aligned_u64	finished;
	__aligned_u64	received;
	__aligned_u64	memory;
	__u32		slots;
	__u32		reserved0;
	__aligned_u64	slot_stride;
	__aligned_u64	reserved[2];
};

/* enum ored_peer_status - what is known of a peer */
enum ored_peer_status {
	ORED_PEER_UNKNOWN	= 0,	/* never heard of */
	ORED_PEER_HEARD		= 1,	/* it answers; joining goes on */
	ORED_PEER_LIVE		= 2,
	ORED_PEER_SILENT	= 3,	/* live once, unheard for too long */
	ORED_PEER_LEFT		= 4,	/* it said goodbye */
	ORED_PEER_REFUSED	= 5,	/* it disagrees about the group */
	ORED_PEER_STALLED	= 6,	/* it answers, but hasn't posted the last ops */
};

/**
 * struct ored_peer_state - getsockopt(ORED_PEERS), one for each rank
 * @rank: whose
 * @status: enum ored_peer_status
 * @posted: ops it has posted, as last heard
 * @finished: ops that have ended there, as last heard
 * @heard_us: microseconds since it was last heard; ~0: never
 * @srtt_us: smoothed round trip in microseconds; 0: not measured
 * @window: packets allowed in flight to it
 * @inflight: packets in flight to it
 * @path_payload: largest payload that the path to it has carried, in bytes
 * @sent: packets of gradients sent to it, each resend included
 * @resent: of these, how many had been sent before
 * @received: packets of gradients taken from it
 * @duplicates: packets from it that were there already
 * @local_drops: packets to it that this host itself dropped
 * @reserved: zero
 */
struct ored_peer_state {
	__u32		rank;
	__u32		status;
	__aligned_u64	posted;
	__aligned_u64	finished;
	__aligned_u64	heard_us;
	__u32		srtt_us;
	__u32		window;
	__u32		inflight;
	__u32		path_payload;
	__aligned_u64	sent;
	__aligned_u64	resent;
	__aligned_u64	received;
	__aligned_u64	duplicates;
	__aligned_u64	local_drops;
	__aligned_u64	reserved[4];
};

/*
 * enum ored_counter - indices into ORED_STATS. Those marked [ns] belong to
 * the network namespace, since such a packet can't be laid to any group. New
 * ones come at the end, and into ored.yaml.
 */
enum ored_counter {
	ORED_CNT_RX_PACKETS	= 0,	/* packets that reached this rank */
	ORED_CNT_RX_DATA,		/* contributions and gather chunks taken */
	ORED_CNT_TX_PACKETS,		/* packets handed to IP; a GSO train counts each */
	ORED_CNT_TX_TRAINS,		/* hand-overs to IP */
	ORED_CNT_TX_DROPPED,		/* packets that this host dropped on the way out */
	ORED_CNT_RESENT,
	ORED_CNT_DUPLICATE,		/* data that was there already */
	ORED_CNT_LATE,			/* data of an op that has ended here */
	ORED_CNT_AHEAD,			/* data of an op that has no slot yet */
	ORED_CNT_MISMATCH,		/* data whose parameters differ from ours */
	ORED_CNT_BAD_SOURCE,		/* right session, wrong address or rank */
	ORED_CNT_BAD_CHUNK,		/* chunk, length or stage out of bounds */
	ORED_CNT_BAD_CONTROL,		/* malformed control packet */
	ORED_CNT_PATH_SHRUNK,		/* a path began to carry less than was agreed */
	ORED_CNT_NOMEM,			/* packets not sent for want of memory */
	ORED_CNT_NS_SHORT,		/* [ns] too short for a header */
	ORED_CNT_NS_VERSION,		/* [ns] no header of ours, or another version */
	ORED_CNT_NS_TYPE,		/* [ns] unknown packet type */
	ORED_CNT_NS_SESSION,		/* [ns] no such session: stale or not for us */
	ORED_CNT_NS_GROUP,		/* [ns] HELLO for a group or rank not here */
	ORED_CNT_NS_EPOCH,		/* [ns] HELLO of another epoch */
	ORED_CNT_MAX
};

/* enum ored_deadline - how the bound of ops without their own is found */
enum ored_deadline {
	ORED_DEADLINE_LOSS	= 0,	/* by what is lost after repair */
	ORED_DEADLINE_P95	= 1,	/* 95th percentile of the first ops, for comparison */
};

/* enum ored_incast - how many peers may send to a rank at a time */
enum ored_incast {
	ORED_INCAST_ALL		= 0,	/* all, at the pace of the link */
	ORED_INCAST_ADAPT	= 1,	/* from 1, one more after a clean op, else half */
};

#define ORED_WAIT_NONE		(~0U)	/* ored_policy.wait_ppm: don't wait at all */

/**
 * struct ored_policy - getsockopt, setsockopt(ORED_POLICY): of this rank, from
 * the next op on. Zero stands for a default, in brackets
 * @loss_skip: above this loss, in parts per million of the bytes that should
 *	have come, the verdict is skip [100000]
 * @loss_halt: above this loss the verdict is halt [500000]
 * @min_ranks: if fewer ranks than that have contributed anything, this one
 *	included, the verdict is halt [more than half]
 * @mode: of ops that name none: enum ored_mode [ORED_MODE_BOUNDED]
 * @deadline: enum ored_deadline [ORED_DEADLINE_LOSS]
 * @incast: enum ored_incast [ORED_INCAST_ALL]
 * @hadamard: of ops that say neither on nor off, where it is possible: enum
 *	ored_hadamard_mode [ORED_HADAMARD_AUTO]; the same on every rank
 * @loss_target: ORED_DEADLINE_LOSS: loss that is aimed at, ppm [3000]
 * @floor: the least bound, in ppm of the quiet time [1050000]
 * @ceiling: the longest bound, in ppm of the quiet time [4000000]
 * @warmup: ops from which the quiet time is learnt, 5 to 64 [20]
 * @bound_us: a fixed bound D in microseconds, whatever the length [none: found]
 * @wait_ppm: W, how long to wait for late posters, in ppm of D up to 500000;
 *	ORED_WAIT_NONE: not at all [250000]
 * @floor_us: the least bound, microseconds [2000]
 * @ceiling_us: the bound while nothing has been learnt, and never more, in
 *	microseconds, plus 50 ns for each byte [5000000]
 *
 * setsockopt() forgets what has been learnt if @deadline, @warmup or a floor or
 * ceiling changes. The defaults are those of the namespace: net.ored.* sysctls.
 */
struct ored_policy {
	__u32		loss_skip;
	__u32		loss_halt;
	__u32		min_ranks;
	__u8		mode;
	__u8		deadline;
	__u8		incast;
	__u8		hadamard;
	__u32		loss_target;
	__u32		floor;
	__u32		ceiling;
	__u32		warmup;
	__u32		bound_us;
	__u32		wait_ppm;
	__u32		floor_us;
	__u32		ceiling_us;
};

/**
 * struct ored_uncounted - getsockopt(ORED_UNCOUNTED): which chunks of this
 * rank's own contribution others went without, so that it can be added to the
 * next bucket (error feedback); a bitmap of @chunks bits, in 64-bit words, follows
 * @op: op asked for, the one whose result was received last (any other, and one
 *	that failed: ENOENT; no room for the bitmap: EMSGSIZE; it was
 *	Hadamard-transformed, so that its chunks are no parts of the bucket: EOPNOTSUPP)
 * @chunk: bytes of a full chunk
 * @chunks: number of chunks of the bucket. Of a reduce-scatter each shard has its
 *	own @chunks / N, from its start; of shorter ones the last may not be there
 *
 * Where nothing is reduced no bit is set, nor of a reduce-scatter whose own shard is
 * whole: what has become of the others isn't known.
 */
struct ored_uncounted {
	__aligned_u64	op;
	__u32		chunk;
	__u32		chunks;
};

/*
 * Checkpoint areas (ORED_PROTO_CKPT)
 *
 *   s = socket(family, SOCK_SEQPACKET, ORED_PROTO_CKPT)
 *   setsockopt(s, SOL_ORED, ORED_AREA_OPEN, {name, ORED_AREA_CREATE, bytes, ...})
 *   p = mmap(PROT_READ | PROT_WRITE, MAP_SHARED, s, 0)	the slot that is open
 *   ... write the state at p ...
 *   setsockopt(s, SOL_ORED, ORED_AREA_COMMIT, {step, bytes, meta})
 *   munmap(p), and so on with the next slot
 *
 * An area is memory of the kernel, in the network namespace of the socket. It
 * outlives the process that made it, however that ends: a new one opens it by its
 * name and finds all generations. It ends by ORED_AREA_REMOVE, with its namespace,
 * or with the host. The module can't be unloaded while there is one. The socket may
 * be handed on (SCM_RIGHTS); it keeps its namespace, and so the area, alive.
 *
 * Mapping: offset 0 with PROT_WRITE and MAP_SHARED is the open slot, or a part of it.
 * Generations are mapped without PROT_WRITE, at ored_generation.offset. Pages are
 * ordinary ones: O_DIRECT, process_vm_readv(), vmsplice() and the like work on them.
 * Large areas have huge pages where these can be had, and a mapping uses them if
 * its address is a multiple of their size as its offset is.
 *
 * Every mapping is of the slot as it was: when that is sealed, or opened again,
 * touching an old mapping is SIGBUS, in all processes that have one.
 *
 * Copies: with @copies above 1, generations go on to the ranks that the placement
 * names, into their areas of the same group, over the membership (ORED_JOIN) that the
 * owner's rank has in this namespace: when it joins again, in whatever epoch, that
 * goes on where it was. A holder gives nothing up for what isn't whole.
 */

#define ORED_AREA_NAME_MAX	64	/* bytes, with the NUL */
#define ORED_AREA_META_MAX	256	/* bytes */
#define ORED_AREA_BYTES_MAX	(1ULL << 40)
#define ORED_AREA_BLOCK		65536	/* bytes that have a digest of their own */
#define ORED_NO_STEP		(~0ULL)

/* Bits of ored_area_conf.flags */
#define ORED_AREA_CREATE	(1U << 0)	/* if there is none of that name */
#define ORED_AREA_EXCLUSIVE	(1U << 1)	/* with ORED_AREA_CREATE: or fail */
#define ORED_AREA_READONLY	(1U << 2)	/* this handle neither writes nor commits */
#define ORED_AREA_HUGE		(1U << 3)	/* huge pages or nothing */
#define ORED_AREA_FLAGS		(ORED_AREA_CREATE | ORED_AREA_EXCLUSIVE | \
				 ORED_AREA_READONLY | ORED_AREA_HUGE)

/* enum ored_place - which ranks keep a rank's copies */
enum ored_place {
	ORED_PLACE_GROUP	= 0,	/* groups of @copies ranks; the last takes what is left */
	ORED_PLACE_RING		= 1,	/* the next @copies - 1 ranks */
};

/**
 * struct ored_area_conf - a named area of the network namespace
 * @name: NUL-terminated, not empty, without '/' and control characters
 * @flags: ORED_AREA_*
 * @mode: permission bits for owner, group and others, as of a file; 0: 0600
 * @bytes: size of the largest generation, 1 to ORED_AREA_BYTES_MAX
 * @memory: get: bytes allocated in all; set: zero
 * @group: group whose ranks hold copies
 * @owner: rank whose state it is
 * @copies: copies of a generation in all, the owner's included; 0: 1
 * @nranks: ranks of the group; 0: 1
 * @placement: enum ored_place
 * @jump: distance in ranks of those who hold each other's copies; 0: 1
 * @reserved: zero
 *
 * ORED_AREA_OPEN finds or makes an area and binds the socket to it for good. All
 * memory is allocated when it is made: three slots of @bytes for the own state (two
 * generations and the open slot), and three for each peer's state that this rank
 * holds a copy of. It counts against net.ored.ckpt_max_bytes of this namespace and of
 * the first one, against RLIMIT_MEMLOCK of the user unless he has CAP_IPC_LOCK, and in
 * the caller's memory cgroup. To open an area that exists, fields may be 0, or must be
 * as they were. On all ranks @bytes, @copies, @nranks, @placement and @jump must be the
 * same; a namespace has one area for a rank of a group with several.
 *
 * Errors: EINVAL (a field, named by the sentence), EEXIST (with
 * ORED_AREA_EXCLUSIVE, or that rank has another area), ENOENT, EACCES (@mode),
 * EISCONN (this socket has an area), ENOMEM (limit and need are in the sentence), EINTR
 * (killed while allocating).
 *
 * ORED_AREA_REMOVE removes the area of that name, or with an empty name the socket's:
 * its owner and who has CAP_NET_ADMIN may. Mappings of it are SIGBUS from then on, and
 * sockets that have it open get ENODEV.
 */
struct ored_area_conf {
	__u8		name[ORED_AREA_NAME_MAX];
	__u32		flags;
	__u32		mode;
	__aligned_u64	bytes;
	__aligned_u64	memory;
	__u32		group;
	__u32		owner;
	__u32		copies;
	__u32		nranks;
	__u32		placement;
	__u32		jump;
	__aligned_u64	reserved[3];
};

/* Bits of ored_commit.flags */
#define ORED_COMMIT_DIGEST_ONLY	(1U << 0)	/* mappings stay: the digest is the seal */

/**
 * struct ored_commit - seals the open slot as a generation
 * @step: training step; larger than the last one's (EEXIST), not ORED_NO_STEP
 * @flags: ORED_COMMIT_*
 * @meta_len: bytes of @meta in use
 * @bytes: bytes of the slot in use, from its start; 0: all
 * @meta: kept with the generation, never looked at; for what a reader should check,
 *	as the run, the number of ranks and a fingerprint of the topology
 * @reserved: zero
 *
 * The slot is unmapped from all processes, searched for pages that somebody still
 * holds for DMA or I/O (EBUSY, after 50 ms of waiting: the slot stays open and
 * mapped), and digested. With ORED_COMMIT_DIGEST_ONLY it stays mapped where it is,
 * and what is changed afterwards is found by whoever verifies it. The slot that opens
 * next had held the generation before the last.
 *
 * Before there is room for it, commit waits (EAGAIN with O_NONBLOCK, or after
 * SO_SNDTIMEO; EINTR). EMSGSIZE: @bytes.
 *
 * ORED_AREA_ABORT gives up what has been written: the open slot's mappings end.
 * ORED_AREA_ROLL_BACK forgets all generations after a step, so that training can go
 * on from there; holders forget them when they are offered what remains, or the next.
 * ORED_AREA_WAIT waits until a step or a later one is complete: all holders have it (EAGAIN
 * with O_NONBLOCK, or after SO_RCVTIMEO; if a holder refuses it, as the sentence says:
 * EEXIST: it has a newer one, since nothing was rolled back here; EBADMSG: what came isn't
 * what was sealed; EINVAL: its area has another shape). poll() tells the same as
 * POLLIN, of the newest generation; POLLOUT says that a commit would not wait.
 */
struct ored_commit {
	__aligned_u64	step;
	__u32		flags;
	__u32		meta_len;
	__aligned_u64	bytes;
	__u8		meta[ORED_AREA_META_MAX];
	__aligned_u64	reserved[2];
};

/* Bits of ored_generation.flags */
#define ORED_GENERATION_COMPLETE	(1U << 0)	/* all holders have it */
#define ORED_GENERATION_DIGEST_ONLY	(1U << 1)	/* as it was committed */

/**
 * struct ored_generation - getsockopt(ORED_AREA_GENERATIONS): a generation that is
 * here; the own ones from the newest on, then those held for peers
 * @step: training step
 * @bytes: its length
 * @offset: where to map it
 * @rank: whose state it is
 * @digest: CRC32C over all of it
 * @flags: ORED_GENERATION_*
 * @meta_len: bytes of @meta in use
 * @meta: as committed
 * @reserved: zero
 */
struct ored_generation {
	__aligned_u64	step;
	__aligned_u64	bytes;
	__aligned_u64	offset;
	__u32		rank;
	__u32		digest;
	__u32		flags;
	__u32		meta_len;
	__u8		meta[ORED_AREA_META_MAX];
	__aligned_u64	reserved[2];
};

/**
 * struct ored_area_status - getsockopt(ORED_AREA_STATUS)
 * @step: the own newest generation, and the one before; ORED_NO_STEP: none
 * @bytes: their lengths
 * @complete: newest own step that all holders have; ORED_NO_STEP: none
 * @acked: bit r of word r / 64: rank r holds the newest generation
 * @digest: CRC32C over all of each
 * @reserved: zero
 */
struct ored_area_status {
	__aligned_u64	step[2];
	__aligned_u64	bytes[2];
	__aligned_u64	complete;
	__aligned_u64	acked[ORED_RANK_WORDS];
	__u32		digest[2];
	__aligned_u64	reserved[8];
};

#define ORED_ANY_HOLDER		(~0U)

/**
 * struct ored_area_read - copies a range of a generation and verifies it
 * @step: which generation
 * @offset: first byte
 * @length: bytes
 * @rank: whose state
 * @holder: from whom; ORED_ANY_HOLDER: the nearest that has it
 * @buffer: where to, a pointer; 0: to the same place of the open slot
 * @reserved: zero
 *
 * What is here, in this area, is read first. From peers it comes over the membership
 * (ORED_JOIN) that a rank of the group has in this namespace, whole blocks of
 * ORED_AREA_BLOCK at a time, verified as they come: into the open slot without a copy, if
 * the range begins and ends with blocks or with the generation. Neither commit nor abort
 * is possible meanwhile (EBUSY). With ORED_ANY_HOLDER the owner is asked, then who
 * should hold a copy, then whoever has one; a damaged copy, or one that doesn't come, is
 * passed over.
 *
 * Errors: ENOENT (no such generation there), ERANGE (beyond its end), EBADMSG (a
 * digest is wrong: holder, place, and whom to ask next are in the sentence, and nothing
 * of the bad block has been copied to the buffer), ETIMEDOUT (the holder doesn't
 * answer), EBUSY (another one is reading into the slot), ENODEV, ENOMEM, EFAULT, EINTR
 * (killed).
 */
struct ored_area_read {
	__aligned_u64	step;
	__aligned_u64	offset;
	__aligned_u64	length;
	__u32		rank;
	__u32		holder;
	__aligned_u64	buffer;
	__aligned_u64	reserved[2];
};

/**
 * struct ored_area_newest - getsockopt(ORED_AREA_NEWEST): the step to go back to
 * @step: the newest of which every rank's generation is whole somewhere, with its owner
 *	or with who holds a copy; ORED_NO_STEP: there is none
 * @holders: bit r of word r / 64: rank r has said what it has, the caller's included
 * @reserved: zero
 *
 * Asks all ranks over the membership as ORED_AREA_READ does, and waits 2 s, or
 * SO_RCVTIMEO, for those that don't answer: what only they have isn't counted.
 * Errors: ENOTCONN (no rank of the group has joined here), ENODEV, ENOMEM, EINTR (killed).
 */
struct ored_area_newest {
	__aligned_u64	step;
	__aligned_u64	holders[ORED_RANK_WORDS];
	__aligned_u64	reserved[2];
};

/**
 * struct ored_area_entry - getsockopt(ORED_AREA_LIST): an area of this namespace
 * @conf: as it was made
 * @uid: who made it
 * @gid: his group then
 * @handles: sockets that have it open; 0: nobody, it is an orphan unless mapped
 * @mapped: 1: some process maps it
 * @step: newest generation of its owner and the one before; ORED_NO_STEP: none
 * @reserved: zero
 */
struct ored_area_entry {
	struct ored_area_conf	conf;
	__u32			uid;
	__u32			gid;
	__u32			handles;
	__u32			mapped;
	__aligned_u64		step[2];
	__aligned_u64		reserved[2];
};

#endif /* _UAPI_LINUX_ORED_H */
