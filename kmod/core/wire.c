// SPDX-License-Identifier: GPL-2.0
/* Reading and writing packets. Nothing from the network is believed here. */

#include "../../uapi/linux/ored.h"
#include "bytes.h"
#include "reduce.h"
#include "area_wire.h"
#include "wire.h"

/**
 * ored_params_word() - packs the small parameters of an op into 12 bits
 * @dtype: enum ored_dtype, 3 bits
 * @reduction: enum ored_reduction, 2 bits
 * @kind: enum ored_kind, 3 bits
 * @mode: enum ored_mode, 2 bits
 *
 * Return: the word, for an op that isn't transformed
 */
u16 ored_params_word(u8 dtype, u8 reduction, u8 kind, u8 mode)
{
	return (u16)((dtype & 7) << 9 | (reduction & 3) << 5 |
		     (kind & 7) << 2 | (mode & 3));
}

/**
 * ored_params_rotated() - says in the parameters whether an op is transformed
 * @word: from ored_params_word()
 * @rotate: enum ored_rotate, 2 bits
 *
 * Return: the new word
 */
u16 ored_params_rotated(u16 word, u8 rotate)
{
	return (u16)((word & ~(3 << 7)) | (rotate & 3) << 7);
}

/* On the wire only: a broadcast from a rank that needs an eighth bit */
#define BROADCAST_HIGH	5

/**
 * ored_params_broadcast() - packs the small parameters of a broadcast
 * @root: rank that broadcasts
 * @mode: enum ored_mode
 */
u16 ored_params_broadcast(u8 root, u8 mode)
{
	u8 kind = root & 128 ? BROADCAST_HIGH : ORED_BROADCAST;

	return (u16)((root & 127) << 5 | kind << 2 | (mode & 3));
}

u8 ored_params_dtype(u16 word)
{
	return word >> 9 & 7;
}

u8 ored_params_reduction(u16 word)
{
	return word >> 5 & 3;
}

u8 ored_params_kind(u16 word)
{
	u8 kind = word >> 2 & 7;

	return kind == BROADCAST_HIGH ? ORED_BROADCAST : kind;
}

u8 ored_params_mode(u16 word)
{
	return word & 3;
}

u8 ored_params_rotate(u16 word)
{
	/* There it is a part of the root. */
	if (ored_params_kind(word) == ORED_BROADCAST)
		return ORED_ROTATE_OFF;
	return word >> 7 & 3;
}

/* As users know it; what the group has decided is no parameter of theirs. */
static u8 hadamard(u16 word)
{
	static const u8 wish[] = {
		[ORED_ROTATE_OFF] = ORED_HADAMARD_OFF,
		[ORED_ROTATE_ON] = ORED_HADAMARD_ON,
		[ORED_ROTATE_AUTO_OFF] = ORED_HADAMARD_AUTO,
		[ORED_ROTATE_AUTO_ON] = ORED_HADAMARD_AUTO,
	};

	return wish[ored_params_rotate(word)];
}

/**
 * ored_params_possible() - can an op have such parameters at all?
 * @params: from the network
 *
 * Return: whether dtype and mode exist, and the length is of whole elements.
 */
bool ored_params_possible(const struct ored_params *params)
{
	u32 size = ored_dtype_size(ored_params_dtype(params->word));
	u8 mode = ored_params_mode(params->word);

	return size && params->bytes && !(params->bytes % size) &&
	       (mode == ORED_MODE_BOUNDED || mode == ORED_MODE_RELIABLE);
}

/**
 * ored_params_root() - the rank that broadcasts
 * @word: of a broadcast
 */
u8 ored_params_root(u16 word)
{
	return (u8)(word >> 5 & 127) | ((word >> 2 & 7) == BROADCAST_HIGH ? 128 : 0);
}

bool ored_params_equal(const struct ored_params *a, const struct ored_params *b)
{
	return a->bytes == b->bytes && a->word == b->word;
}

static u8 part_of(u16 word, u8 field)
{
	switch (field) {
	case ORED_FIELD_KIND:
		return ored_params_kind(word);
	case ORED_FIELD_ROOT:
		return ored_params_root(word);
	case ORED_FIELD_DTYPE:
		return ored_params_dtype(word);
	case ORED_FIELD_REDUCTION:
		return ored_params_reduction(word);
	case ORED_FIELD_HADAMARD:
		return hadamard(word);
	default:
		return ored_params_mode(word);
	}
}

/**
 * ored_params_differ() - names the first parameter in which two ranks differ
 * @a: one rank's
 * @b: the other's
 * @value: receives both values of it
 *
 * The kind comes first: it says what the other bits mean.
 *
 * Return: enum ored_field; ORED_FIELD_NONE if they agree, in all but perhaps
 * whether the group has decided to transform it
 */
u8 ored_params_differ(const struct ored_params *a, const struct ored_params *b,
		      u64 value[2])
{
	static const u8 sums[] = {
		ORED_FIELD_KIND, ORED_FIELD_DTYPE, ORED_FIELD_REDUCTION, ORED_FIELD_MODE,
		ORED_FIELD_HADAMARD,
	};
	static const u8 broadcasts[] = { ORED_FIELD_KIND, ORED_FIELD_ROOT, ORED_FIELD_MODE };
	bool roots = ored_params_kind(a->word) == ORED_BROADCAST;
	const u8 *fields = roots ? broadcasts : sums;
	u32 i, n = roots ? ARRAY_SIZE(broadcasts) : ARRAY_SIZE(sums);

	for (i = 0; i < n; i++) {
		value[0] = part_of(a->word, fields[i]);
		value[1] = part_of(b->word, fields[i]);
		if (value[0] != value[1])
			return fields[i];
	}
	value[0] = a->bytes;
	value[1] = b->bytes;
	return value[0] != value[1] ? ORED_FIELD_BYTES : ORED_FIELD_NONE;
}

/**
 * ored_wire_parse() - decodes and checks a header
 * @data: at least the first ORED_WIRE_HEADER bytes of the datagram, or all
 *	of it if it is shorter
 * @len: length of the whole datagram
 * @pkt: receives the fields
 *
 * Return: 0; -EMSGSIZE: too short for a header, or for anything of its type;
 * -EPROTONOSUPPORT: not our magic or version; -EOPNOTSUPP: unknown type
 */
int ored_wire_parse(const void *data, size_t len, struct ored_packet *pkt)
{
	static const u8 content[] = {
		[ORED_T_HELLO] = ORED_HELLO_BYTES,
		[ORED_T_SCATTER] = 1,
		[ORED_T_GATHER] = 1,
		[ORED_T_ACK] = ORED_ACK_BYTES,
		[ORED_T_POLL] = 0,
		[ORED_T_MARK] = 0,
		[ORED_T_BYE] = 0,
		[ORED_T_FAILURE] = ORED_FAILURE_BYTES,
		[ORED_T_AREA] = ORED_AREA_LEAST,
	};
	const u8 *p = data;
	u32 pc;

	BUILD_BUG_ON(sizeof(struct ored_wire) != ORED_WIRE_HEADER);

	if (len < ORED_WIRE_HEADER)
		return -EMSGSIZE;
	if (p[0] != ORED_WIRE_MAGIC)
		return -EPROTONOSUPPORT;
	pkt->type = p[1] >> 4;
	if (pkt->type < ORED_T_HELLO || pkt->type > ORED_T_AREA)
		return -EOPNOTSUPP;
	if (len < (size_t)ORED_WIRE_HEADER + content[pkt->type])
		return -EMSGSIZE;
	pkt->flags = p[1] & 15;
	pkt->src = p[2];
	pkt->dst = p[3];
	pkt->group = ored_get32(p + 4);
	pkt->session = ored_get32(p + 8);
	pkt->op = ored_get32(p + 12);
	pkt->params.bytes = ored_get32(p + 16);
	pc = ored_get32(p + 20);
	pkt->params.word = (u16)(pc >> ORED_CHUNK_BITS);
	pkt->chunk = pc & ((1U << ORED_CHUNK_BITS) - 1);
	pkt->posted = ored_get16(p + 24);
	pkt->left = ored_get16(p + 26);
	pkt->clock = ored_get32(p + 28);
	return 0;
}

/**
 * ored_wire_build() - writes a header
 * @data: room for ORED_WIRE_HEADER bytes, of any alignment
 * @pkt: the fields
 */
void ored_wire_build(void *data, const struct ored_packet *pkt)
{
	u8 *p = data;

	p[0] = ORED_WIRE_MAGIC;
	p[1] = (u8)(pkt->type << 4 | (pkt->flags & 15));
	p[2] = pkt->src;
	p[3] = pkt->dst;
	ored_put32(p + 4, pkt->group);
	ored_put32(p + 8, pkt->session);
	ored_put32(p + 12, pkt->op);
	ored_put32(p + 16, pkt->params.bytes);
	ored_put32(p + 20, (u32)pkt->params.word << ORED_CHUNK_BITS |
		      (pkt->chunk & ((1U << ORED_CHUNK_BITS) - 1)));
	ored_put16(p + 24, pkt->posted);
	ored_put16(p + 26, pkt->left);
	ored_put32(p + 28, pkt->clock);
}

/**
 * ored_hello_parse() - decodes a HELLO's content
 * @data: what follows the header
 * @len: bytes of it
 * @hello: receives the fields
 *
 * Return: 0, or -EBADMSG if it is too short or says a size that it hasn't
 */
int ored_hello_parse(const void *data, size_t len, struct ored_hello *hello)
{
	const u8 *p = data;

	if (len < ORED_HELLO_BYTES)
		return -EBADMSG;
	hello->epoch = ored_get64(p);
	hello->session = ored_get32(p + 8);
	hello->nranks = ored_get16(p + 12);
	hello->depth = ored_get16(p + 14);
	hello->bucket_max = ored_get32(p + 16);
	hello->limit = ored_get16(p + 20);
	hello->seen = ored_get16(p + 22);
	hello->size = ored_get16(p + 24);
	hello->echo = ored_get16(p + 26);
	if (!hello->session || hello->size != len + ORED_WIRE_HEADER)
		return -EBADMSG;
	return 0;
}

/**
 * ored_hello_build() - writes a HELLO's content
 * @data: room for ORED_HELLO_BYTES
 * @hello: the fields
 */
void ored_hello_build(void *data, const struct ored_hello *hello)
{
	u8 *p = data;

	ored_put64(p, hello->epoch);
	ored_put32(p + 8, hello->session);
	ored_put16(p + 12, hello->nranks);
	ored_put16(p + 14, hello->depth);
	ored_put32(p + 16, hello->bucket_max);
	ored_put16(p + 20, hello->limit);
	ored_put16(p + 22, hello->seen);
	ored_put16(p + 24, hello->size);
	ored_put16(p + 26, hello->echo);
}

/**
 * ored_ack_parse() - decodes an ACK's content
 * @data: what follows the header; must outlive @ack
 * @len: bytes of it
 * @first: the header's chunk
 * @ack: receives the fields
 *
 * Return: 0, or -EBADMSG
 */
int ored_ack_parse(const void *data, size_t len, u32 first, struct ored_ack *ack)
{
	const u8 *p = data;

	if (len < ORED_ACK_BYTES || len > ORED_ACK_BYTES + ORED_ACK_BITS / 8)
		return -EBADMSG;
	if ((len - ORED_ACK_BYTES) % 8 || first % 64)
		return -EBADMSG;
	ack->echo = ored_get32(p);
	ack->base = ored_get32(p + 4);
	ack->first = first;
	ack->nbits = (u32)(len - ORED_ACK_BYTES) * 8;
	ack->bits = p + ORED_ACK_BYTES;
	return 0;
}

/**
 * ored_ack_build() - writes the fixed part of an ACK's content
 * @data: room for ORED_ACK_BYTES
 * @echo: see struct ored_ack
 * @base: see struct ored_ack
 */
void ored_ack_build(void *data, u32 echo, u32 base)
{
	u8 *p = data;

	ored_put32(p, echo);
	ored_put32(p + 4, base);
}

/**
 * ored_failure_parse() - decodes a FAILURE's content
 * @data: what follows the header
 * @len: bytes of it
 * @mm: receives the fields
 *
 * Return: 0, or -EBADMSG if it is too short or names no field
 */
int ored_failure_parse(const void *data, size_t len, struct ored_failure *mm)
{
	const u8 *p = data;

	if (len < ORED_FAILURE_BYTES)
		return -EBADMSG;
	if (p[0] == ORED_FIELD_NONE || (p[0] > ORED_FIELD_ROOT && p[0] < ORED_FAILURE_GONE))
		return -EBADMSG;
	mm->field = p[0];
	mm->rank[0] = p[1];
	mm->rank[1] = p[2];
	mm->value[0] = ored_get64(p + 4);
	mm->value[1] = ored_get64(p + 12);
	return 0;
}

/**
 * ored_failure_build() - writes a FAILURE's content
 * @data: room for ORED_FAILURE_BYTES
 * @mm: the fields
 */
void ored_failure_build(void *data, const struct ored_failure *mm)
{
	u8 *p = data;

	p[0] = mm->field;
	p[1] = mm->rank[0];
	p[2] = mm->rank[1];
	p[3] = 0;
	ored_put64(p + 4, mm->value[0]);
	ored_put64(p + 12, mm->value[1]);
}

/**
 * ored_extend32() - the 64-bit number with the given low bits that is nearest
 * @near: a number known to be close
 * @low: low 32 bits of the one wanted
 *
 * Return: the number; never below zero: then it is taken from above
 */
u64 ored_extend32(u64 near, u32 low)
{
	s64 delta = (s32)(low - (u32)near);

	if (delta < 0 && (u64)-delta > near)
		delta += 1LL << 32;
	return near + (u64)delta;
}

/**
 * ored_extend16() - as ored_extend32(), from 16 bits
 * @near: a number known to be close
 * @low: low 16 bits of the one wanted
 */
u64 ored_extend16(u64 near, u16 low)
{
	s64 delta = (s16)(low - (u16)near);

	if (delta < 0 && (u64)-delta > near)
		delta += 1LL << 16;
	return near + (u64)delta;
}
