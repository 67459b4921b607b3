/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What packets of type ORED_T_AREA say, behind the header that all packets have
 * (wire.h). All numbers are in network order.
 *
 * A generation travels at the pace of who wants it: he asks for a few chunks of a
 * block (ASK), with a key for the place that they shall go to, and they are written
 * there (DATA). Who has the generation keeps no state of it, so nobody can exhaust
 * him, and loss is repaired by who suffers from it. An owner only says what there is
 * (OFFER) until each holder says that he has it (ANSWER). Who looks for generations
 * asks what there is (QUERY), and is told so many as fit a packet (TELL).
 */
#ifndef ORED_CORE_AREA_WIRE_H
#define ORED_CORE_AREA_WIRE_H

#include "shim.h"

/* enum ored_area_kind - first byte */
enum ored_area_kind {
	ORED_AREA_OFFER		= 1,
	ORED_AREA_ANSWER	= 2,
	ORED_AREA_ASK		= 3,
	ORED_AREA_DATA		= 4,
	ORED_AREA_REFUSE	= 5,
	ORED_AREA_QUERY		= 6,
	ORED_AREA_TELL		= 7,
};

/* enum ored_area_code - of an ANSWER or a REFUSE */
enum ored_area_code {
	ORED_AREA_HAVE		= 0,	/* the generation is whole here */
	ORED_AREA_TAKING	= 1,	/* it is on its way */
	ORED_AREA_NO_AREA	= 2,	/* no area of that group */
	ORED_AREA_DIFFERS	= 3,	/* an area, but of another shape */
	ORED_AREA_NO_HOLDER	= 4,	/* this rank isn't a holder of that one's */
	ORED_AREA_NEWER		= 5,	/* what is here is newer */
	ORED_AREA_DAMAGED	= 6,	/* what came isn't what was sealed */
	ORED_AREA_NONE		= 7,	/* no such generation */
	ORED_AREA_BAD_KEY	= 8,
	ORED_AREA_STALE		= 9,	/* a key of what was there before */
	ORED_AREA_RIGHTS	= 10,	/* a key of somebody else's, or not for that */
	ORED_AREA_RANGE		= 11,	/* beyond the end */
	ORED_AREA_BUSY		= 12,	/* gradients come first */
	ORED_AREA_CODES
};

/* Flags of an OFFER */
#define ORED_OFFER_ROLLED	1	/* @back_to counts */

/**
 * struct ored_offer - a generation that its owner has sealed
 * @flags: ORED_OFFER_*
 * @step: which
 * @bytes: its length, at least 1
 * @digest: CRC32C over all of it
 * @area_bytes: of the owner's area
 * @back_to: what is newer than this step has been given up by the owner
 * @nranks: of the area
 * @copies: of the area
 * @jump: of the area
 * @placement: of the area
 * @meta_len: bytes of @meta
 * @meta: points into the packet
 */
struct ored_offer {
	u8		flags;
	u64		step;
	u64		bytes;
	u32		digest;
	u64		area_bytes;
	u64		back_to;
	u16		nranks;
	u16		copies;
	u16		jump;
	u8		placement;
	u16		meta_len;
	const u8	*meta;
};

/**
 * struct ored_answer - how far a holder is with it
 * @code: enum ored_area_code
 * @digest: as offered
 * @step: as offered
 * @blocks: that are whole
 */
struct ored_answer {
	u8	code;
	u32	digest;
	u64	step;
	u32	blocks;
};

/**
 * struct ored_ask - which chunks are wanted
 * @word: chunk @word * 64 is the mask's first
 * @chunk: length of a chunk
 * @block: in which block
 * @key: for the place where they shall go
 * @serial: likewise
 * @mask: the chunks, not 0
 * @step: of which generation
 * @digest: likewise
 * @rank: of whose state
 */
struct ored_ask {
	u8	word;
	u16	chunk;
	u32	block;
	u64	key;
	u32	serial;
	u64	mask;
	u64	step;
	u32	digest;
	u16	rank;
};

/**
 * struct ored_write - a chunk, and where it goes
 * @index: of the chunk in its block
 * @block: of the block
 * @key: as in the ASK
 * @serial: likewise
 * @crc: CRC32C of the whole block
 */
struct ored_write {
	u16	index;
	u32	block;
	u64	key;
	u32	serial;
	u32	crc;
};

/**
 * struct ored_refusal - an ASK or a DATA was in vain
 * @code: enum ored_area_code
 * @block: as there
 * @key: as there
 */
struct ored_refusal {
	u8	code;
	u32	block;
	u64	key;
};

/* Flags of a QUERY */
#define ORED_QUERY_META	1	/* one generation, with its metadata */

#define ORED_ANY_RANK	0xffff	/* ored_query.rank */

/**
 * struct ored_query - what generations are there?
 * @flags: ORED_QUERY_*
 * @first: so many have been told already
 * @id: comes back in the TELL
 * @step: only of this step; ORED_NO_STEP: of any
 * @rank: only of this rank's state; ORED_ANY_RANK: of any
 */
struct ored_query {
	u8	flags;
	u16	first;
	u32	id;
	u64	step;
	u16	rank;
};

/**
 * struct ored_tell - which of them follow
 * @first: number of the first of them
 * @id: of the QUERY
 * @total: how many there are in all
 * @n: how many follow
 * @meta_len: bytes of metadata behind them
 */
struct ored_tell {
	u16	first;
	u32	id;
	u16	total;
	u16	n;
	u16	meta_len;
};

/**
 * struct ored_told - a generation that is whole there
 * @step: which
 * @bytes: its length
 * @digest: CRC32C over all of it
 * @rank: of whose state
 * @digest_only: it has been committed so
 */
struct ored_told {
	u64	step;
	u64	bytes;
	u32	digest;
	u16	rank;
	bool	digest_only;
};

#define ORED_OFFER_BYTES	48	/* and @meta_len */
#define ORED_ANSWER_BYTES	24
#define ORED_ASK_BYTES		48
#define ORED_WRITE_BYTES	24	/* and the chunk */
#define ORED_REFUSE_BYTES	16
#define ORED_QUERY_BYTES	24
#define ORED_TELL_BYTES		16	/* and @n of the next, and @meta_len */
#define ORED_TOLD_BYTES		24
#define ORED_AREA_LEAST		8	/* bytes of any */

static inline u8 ored_area_kind(const void *data)
{
	return *(const u8 *)data;
}

int ored_offer_parse(const void *data, size_t len, struct ored_offer *offer);
void ored_offer_build(void *data, const struct ored_offer *offer);
int ored_answer_parse(const void *data, size_t len, struct ored_answer *answer);
void ored_answer_build(void *data, const struct ored_answer *answer);
int ored_ask_parse(const void *data, size_t len, struct ored_ask *ask);
void ored_ask_build(void *data, const struct ored_ask *ask);
int ored_write_parse(const void *data, size_t len, struct ored_write *wr);
void ored_write_build(void *data, const struct ored_write *wr);
int ored_refuse_parse(const void *data, size_t len, struct ored_refusal *refusal);
void ored_refuse_build(void *data, const struct ored_refusal *refusal);
int ored_query_parse(const void *data, size_t len, struct ored_query *query);
void ored_query_build(void *data, const struct ored_query *query);
int ored_tell_parse(const void *data, size_t len, struct ored_tell *tell);
void ored_tell_build(void *data, const struct ored_tell *tell);
int ored_told_parse(const void *data, struct ored_told *told);
void ored_told_build(void *data, const struct ored_told *told);

#endif /* ORED_CORE_AREA_WIRE_H */
