/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The packet format. Every packet is a UDP datagram that starts with the
 * 32 bytes of struct ored_wire, in network order:
 *
 *   0        8        16       24       31
 *   +--------+--------+--------+--------+
 *   | magic  |type|flg|  src   |  dst   |   ranks
 *   +--------+--------+--------+--------+
 *   |               group               |
 *   +-----------------------------------+
 *   |   session (drawn by the receiver) |
 *   +-----------------------------------+
 *   |         op, low 32 bits           |
 *   +-----------------------------------+
 *   |      length of the bucket         |
 *   +------------+----------------------+
 *   | params 12b |      chunk 20b       |   chunk within its shard
 *   +------------+----+-----------------+
 *   | posted, low 16b |  left, low 16b  |   ops posted and left by src
 *   +-----------------+-----------------+
 *   |     sender's clock, microseconds  |
 *   +-----------------------------------+
 *
 * The session is a random number that each rank draws when it joins and tells
 * its peers in HELLO, together with the epoch. So a packet of another epoch,
 * or of an earlier run on the same port, can't carry it.
 */
#ifndef ORED_CORE_WIRE_H
#define ORED_CORE_WIRE_H

#include "shim.h"

#define ORED_WIRE_MAGIC		0xe1	/* 0xe0 | version */
#define ORED_WIRE_HEADER	32
#define ORED_CHUNK_BITS		20
#define ORED_PAYLOAD_MIN	512	/* with it the longest shard fits ORED_CHUNK_BITS */
#define ORED_PAYLOAD_ALIGN	8	/* no element crosses a packet */
#define ORED_ACK_BITS		1024	/* chunks that one ACK can tell of */

/*
 * Is an op's bucket Hadamard-transformed? Ranks whose group decides that
 * (rotation.h) may differ in the decision for a while, in all else never.
 */
enum ored_rotate {
	ORED_ROTATE_OFF		= 0,
	ORED_ROTATE_ON		= 1,
	ORED_ROTATE_AUTO_OFF	= 2,
	ORED_ROTATE_AUTO_ON	= 3,
};

/* Packet types */
enum ored_type {
	ORED_T_HELLO	= 1,	/* joining, and probes of the path */
	ORED_T_SCATTER	= 2,	/* a contribution */
	ORED_T_GATHER	= 3,	/* a reduced chunk */
	ORED_T_ACK	= 4,	/* which chunks of a flow have arrived */
	ORED_T_POLL	= 5,	/* asks for an ACK of a flow */
	ORED_T_MARK	= 6,	/* posted and left, nothing else */
	ORED_T_BYE	= 7,	/* takes part in no op from @posted on */
	ORED_T_FAILURE	= 8,	/* an op has failed */
	ORED_T_AREA	= 9,	/* checkpoints (area_wire.h) */
};

/* Flags; their meaning depends on the type */
#define ORED_F_REQUEST		1	/* data: send an ACK now; MARK, BYE, HELLO: answer */
#define ORED_F_RESENT		2	/* data: sent before */
#define ORED_F_GATHER		2	/* ACK, POLL: about the gather, not the scatter */
#define ORED_F_SERVES		2	/* BYE: its shards are still reduced and sent */
#define ORED_F_DUPLICATE	4	/* ACK: caused by a duplicate */
#define ORED_F_TAIL		4	/* data: among the last of its flow */
#define ORED_F_PARTIAL		8	/* GATHER: the contributors' bits follow the chunk */
#define ORED_F_SEALED		8	/* ACK: that stage takes no more */
#define ORED_F_FINAL		4	/* HELLO: limit is final; BYE: nothing is served any */
					/* more; MARK: answers a BYE */

/**
 * struct ored_wire - the header as it is on the wire
 * @magic: ORED_WIRE_MAGIC
 * @type_flags: enum ored_type in the high half, ORED_F_* in the low one
 * @src: rank that sent it
 * @dst: rank that it is for
 * @group: id of the group
 * @session: the receiver's
 * @op: low half of the op's number; of an area's data, clock of what they answer
 * @bytes: length of the bucket; in control packets what @src has learnt, which
 *	needs no bucket: t_C's newest sample (core/early.h, packed) in the high
 *	half, how many peers it lets send to it in the low one
 * @params_chunk: the op's other parameters, and the chunk within its shard; in
 *	control packets, instead of parameters, what rotation.h packs
 * @posted: ops that @src has posted, low quarter
 * @left: ops that @src has left, low quarter
 * @clock: microseconds by the clock of @src
 */
struct ored_wire {
	u8	magic;
	u8	type_flags;
	u8	src;
	u8	dst;
	__be32	group;
	__be32	session;
	__be32	op;
	__be32	bytes;
	__be32	params_chunk;
	__be16	posted;
	__be16	left;
	__be32	clock;
};

/**
 * struct ored_params - what all ranks must agree on about an op
 * @bytes: length of the bucket
 * @word: dtype, reduction, kind and mode as ored_params_word() packs them, and
 *	enum ored_rotate; of a broadcast, which adds nothing up, the root in place of
 *	dtype, reduction and that
 */
struct ored_params {
	u32	bytes;
	u16	word;
};

/**
 * struct ored_packet - a header, decoded
 * @type: enum ored_type
 * @flags: ORED_F_*
 * @src: rank that sent it
 * @dst: rank that it is for
 * @group: id of the group
 * @session: the receiver's
 * @op: low half of the op's number
 * @params: what @src takes the op to be
 * @chunk: chunk within its shard
 * @posted: ops that @src has posted, low quarter
 * @left: ops that @src has left, low quarter
 * @clock: microseconds by the clock of @src
 */
struct ored_packet {
	u8			type;
	u8			flags;
	u8			src;
	u8			dst;
	u32			group;
	u32			session;
	u32			op;
	struct ored_params	params;
	u32			chunk;
	u16			posted;
	u16			left;
	u32			clock;
};

/**
 * struct ored_hello - content of a HELLO
 * @epoch: run of the group
 * @session: what the receiver must put into its packets to the sender
 * @nranks: size of the group
 * @depth: ops in flight
 * @bucket_max: bytes
 * @limit: largest payload that the sender can use towards everybody, as far
 *	as it knows; with ORED_F_FINAL it knows
 * @seen: largest HELLO, in bytes of UDP payload, that has come from the
 *	receiver
 * @size: bytes of UDP payload of this HELLO; the rest is padding
 * @echo: size of the HELLO that this one answers, else 0
 */
struct ored_hello {
	u64	epoch;
	u32	session;
	u16	nranks;
	u16	depth;
	u32	bucket_max;
	u16	limit;
	u16	seen;
	u16	size;
	u16	echo;
};

#define ORED_HELLO_BYTES	28	/* of content, behind the header */

/**
 * struct ored_ack - content of an ACK
 * @echo: clock of the packet that caused it
 * @base: all chunks below it have arrived
 * @first: chunk of the first bit, a multiple of 64
 * @nbits: number of bits, a multiple of 64, may be 0
 * @bits: little-endian words on the wire: bit i of byte i / 8
 */
struct ored_ack {
	u32		echo;
	u32		base;
	u32		first;
	u32		nbits;
	const u8	*bits;
};

#define ORED_ACK_BYTES		8	/* of content before the bits */

/**
 * struct ored_failure - why an op has failed: content of a FAILURE
 * @field: enum ored_field, in which two ranks differ; or ORED_FAILURE_LEFT:
 *	rank[0] has left the group without posting it; or ORED_FAILURE_GONE: rank[0]
 *	has ended it and can't help with it any more
 * @rank: the two ranks
 * @value: their values
 */
struct ored_failure {
	u8	field;
	u8	rank[2];
	u64	value[2];
};

#define ORED_FAILURE_LEFT	255
#define ORED_FAILURE_GONE	254
#define ORED_FAILURE_BYTES	20

u16 ored_params_word(u8 dtype, u8 reduction, u8 kind, u8 mode);
u16 ored_params_broadcast(u8 root, u8 mode);
u8 ored_params_dtype(u16 word);
u8 ored_params_reduction(u16 word);
u8 ored_params_kind(u16 word);
u8 ored_params_mode(u16 word);
u8 ored_params_rotate(u16 word);
bool ored_params_possible(const struct ored_params *params);
u16 ored_params_rotated(u16 word, u8 rotate);
u8 ored_params_root(u16 word);
bool ored_params_equal(const struct ored_params *a, const struct ored_params *b);

/* Is what the op sends around Hadamard-transformed? */
static inline bool ored_params_is_rotated(u16 word)
{
	return ored_params_rotate(word) & ORED_ROTATE_ON;
}

u8 ored_params_differ(const struct ored_params *a, const struct ored_params *b,
		      u64 value[2]);

int ored_wire_parse(const void *data, size_t len, struct ored_packet *pkt);
void ored_wire_build(void *data, const struct ored_packet *pkt);

int ored_hello_parse(const void *data, size_t len, struct ored_hello *hello);
void ored_hello_build(void *data, const struct ored_hello *hello);
int ored_ack_parse(const void *data, size_t len, u32 first, struct ored_ack *ack);
void ored_ack_build(void *data, u32 echo, u32 base);
int ored_failure_parse(const void *data, size_t len, struct ored_failure *mm);
void ored_failure_build(void *data, const struct ored_failure *mm);

u64 ored_extend32(u64 near, u32 low);
u64 ored_extend16(u64 near, u16 low);

#endif /* ORED_CORE_WIRE_H */
