// SPDX-License-Identifier: GPL-2.0
/* Reading and writing what packets say about areas. Nothing of it is believed here. */

#include "../../uapi/linux/ored.h"
#include "area_wire.h"
#include "bytes.h"
#include "pull.h"

static bool is_kind(const u8 *p, size_t len, u8 kind, size_t least)
{
	return len >= least && p[0] == kind;
}

/**
 * ored_offer_parse() - decodes an OFFER
 * @data: what follows the header; in one piece, and as long as @offer is used
 * @len: bytes of it
 * @offer: receives the fields
 *
 * Return: 0 or -EBADMSG
 */
int ored_offer_parse(const void *data, size_t len, struct ored_offer *offer)
{
	const u8 *p = data;

	if (!is_kind(p, len, ORED_AREA_OFFER, ORED_OFFER_BYTES))
		return -EBADMSG;
	offer->flags = p[1];
	offer->meta_len = ored_get16(p + 2);
	offer->digest = ored_get32(p + 4);
	offer->step = ored_get64(p + 8);
	offer->bytes = ored_get64(p + 16);
	offer->area_bytes = ored_get64(p + 24);
	offer->back_to = ored_get64(p + 32);
	offer->nranks = ored_get16(p + 40);
	offer->copies = ored_get16(p + 42);
	offer->jump = ored_get16(p + 44);
	offer->placement = p[46];
	offer->meta = p + ORED_OFFER_BYTES;
	if (offer->meta_len > ORED_AREA_META_MAX ||
	    len != (size_t)ORED_OFFER_BYTES + offer->meta_len)
		return -EBADMSG;
	if (!offer->bytes || offer->bytes > offer->area_bytes || offer->step == ORED_NO_STEP)
		return -EBADMSG;
	return 0;
}

/**
 * ored_offer_build() - writes an OFFER, but for its metadata
 * @data: room for ORED_OFFER_BYTES
 * @offer: the fields
 */
void ored_offer_build(void *data, const struct ored_offer *offer)
{
	u8 *p = data;

	p[0] = ORED_AREA_OFFER;
	p[1] = offer->flags;
	ored_put16(p + 2, offer->meta_len);
	ored_put32(p + 4, offer->digest);
	ored_put64(p + 8, offer->step);
	ored_put64(p + 16, offer->bytes);
	ored_put64(p + 24, offer->area_bytes);
	ored_put64(p + 32, offer->back_to);
	ored_put16(p + 40, offer->nranks);
	ored_put16(p + 42, offer->copies);
	ored_put16(p + 44, offer->jump);
	p[46] = offer->placement;
	p[47] = 0;
}

/**
 * ored_answer_parse() - decodes an ANSWER
 * @data: what follows the header
 * @len: bytes of it
 * @answer: receives the fields
 *
 * Return: 0 or -EBADMSG
 */
int ored_answer_parse(const void *data, size_t len, struct ored_answer *answer)
{
	const u8 *p = data;

	if (!is_kind(p, len, ORED_AREA_ANSWER, ORED_ANSWER_BYTES) || p[1] >= ORED_AREA_CODES)
		return -EBADMSG;
	answer->code = p[1];
	answer->digest = ored_get32(p + 4);
	answer->step = ored_get64(p + 8);
	answer->blocks = ored_get32(p + 16);
	return 0;
}

/**
 * ored_answer_build() - writes an ANSWER
 * @data: room for ORED_ANSWER_BYTES
 * @answer: the fields
 */
void ored_answer_build(void *data, const struct ored_answer *answer)
{
	u8 *p = data;

	memset(p, 0, ORED_ANSWER_BYTES);
	p[0] = ORED_AREA_ANSWER;
	p[1] = answer->code;
	ored_put32(p + 4, answer->digest);
	ored_put64(p + 8, answer->step);
	ored_put32(p + 16, answer->blocks);
}

/**
 * ored_ask_parse() - decodes an ASK
 * @data: what follows the header
 * @len: bytes of it
 * @ask: receives the fields; whether there is such a block isn't known here
 *
 * Return: 0, or -EBADMSG, also if no block can have such chunks
 */
int ored_ask_parse(const void *data, size_t len, struct ored_ask *ask)
{
	const u8 *p = data;
	u32 chunks;

	if (!is_kind(p, len, ORED_AREA_ASK, ORED_ASK_BYTES))
		return -EBADMSG;
	ask->word = p[1];
	ask->chunk = ored_get16(p + 2);
	ask->block = ored_get32(p + 4);
	ask->key = ored_get64(p + 8);
	ask->mask = ored_get64(p + 16);
	ask->step = ored_get64(p + 24);
	ask->digest = ored_get32(p + 32);
	ask->serial = ored_get32(p + 36);
	ask->rank = ored_get16(p + 40);
	if (ask->chunk < ORED_PULL_CHUNK_MIN || !ask->mask)
		return -EBADMSG;
	chunks = DIV_ROUND_UP(ORED_AREA_BLOCK, ask->chunk);
	if (64U * ask->word + (u32)fls64(ask->mask) > chunks)
		return -EBADMSG;
	return 0;
}

/**
 * ored_ask_build() - writes an ASK
 * @data: room for ORED_ASK_BYTES
 * @ask: the fields
 */
void ored_ask_build(void *data, const struct ored_ask *ask)
{
	u8 *p = data;

	memset(p, 0, ORED_ASK_BYTES);
	p[0] = ORED_AREA_ASK;
	p[1] = ask->word;
	ored_put16(p + 2, ask->chunk);
	ored_put32(p + 4, ask->block);
	ored_put64(p + 8, ask->key);
	ored_put64(p + 16, ask->mask);
	ored_put64(p + 24, ask->step);
	ored_put32(p + 32, ask->digest);
	ored_put32(p + 36, ask->serial);
	ored_put16(p + 40, ask->rank);
}

/**
 * ored_write_parse() - decodes the header of a DATA
 * @data: what follows the packet's header, at least ORED_WRITE_BYTES or all of it
 * @len: bytes of it, the chunk included
 * @wr: receives the fields
 *
 * Return: 0 or -EBADMSG
 */
int ored_write_parse(const void *data, size_t len, struct ored_write *wr)
{
	const u8 *p = data;

	if (!is_kind(p, len, ORED_AREA_DATA, ORED_WRITE_BYTES + 1))
		return -EBADMSG;
	wr->index = ored_get16(p + 2);
	wr->block = ored_get32(p + 4);
	wr->key = ored_get64(p + 8);
	wr->crc = ored_get32(p + 16);
	wr->serial = ored_get32(p + 20);
	return 0;
}

/**
 * ored_write_build() - writes the header of a DATA
 * @data: room for ORED_WRITE_BYTES
 * @wr: the fields
 */
void ored_write_build(void *data, const struct ored_write *wr)
{
	u8 *p = data;

	p[0] = ORED_AREA_DATA;
	p[1] = 0;
	ored_put16(p + 2, wr->index);
	ored_put32(p + 4, wr->block);
	ored_put64(p + 8, wr->key);
	ored_put32(p + 16, wr->crc);
	ored_put32(p + 20, wr->serial);
}

/**
 * ored_refuse_parse() - decodes a REFUSE
 * @data: what follows the header
 * @len: bytes of it
 * @refusal: receives the fields
 *
 * Return: 0 or -EBADMSG
 */
int ored_refuse_parse(const void *data, size_t len, struct ored_refusal *refusal)
{
	const u8 *p = data;

	if (!is_kind(p, len, ORED_AREA_REFUSE, ORED_REFUSE_BYTES) || p[1] >= ORED_AREA_CODES)
		return -EBADMSG;
	refusal->code = p[1];
	refusal->block = ored_get32(p + 4);
	refusal->key = ored_get64(p + 8);
	return 0;
}

/**
 * ored_refuse_build() - writes a REFUSE
 * @data: room for ORED_REFUSE_BYTES
 * @refusal: the fields
 */
void ored_refuse_build(void *data, const struct ored_refusal *refusal)
{
	u8 *p = data;

	memset(p, 0, ORED_REFUSE_BYTES);
	p[0] = ORED_AREA_REFUSE;
	p[1] = refusal->code;
	ored_put32(p + 4, refusal->block);
	ored_put64(p + 8, refusal->key);
}

/**
 * ored_query_parse() - decodes a QUERY
 * @data: what follows the header
 * @len: bytes of it
 * @query: receives the fields
 *
 * Return: 0 or -EBADMSG
 */
int ored_query_parse(const void *data, size_t len, struct ored_query *query)
{
	const u8 *p = data;

	if (!is_kind(p, len, ORED_AREA_QUERY, ORED_QUERY_BYTES))
		return -EBADMSG;
	query->flags = p[1];
	query->first = ored_get16(p + 2);
	query->id = ored_get32(p + 4);
	query->step = ored_get64(p + 8);
	query->rank = ored_get16(p + 16);
	return 0;
}

/**
 * ored_query_build() - writes a QUERY
 * @data: room for ORED_QUERY_BYTES
 * @query: the fields
 */
void ored_query_build(void *data, const struct ored_query *query)
{
	u8 *p = data;

	memset(p, 0, ORED_QUERY_BYTES);
	p[0] = ORED_AREA_QUERY;
	p[1] = query->flags;
	ored_put16(p + 2, query->first);
	ored_put32(p + 4, query->id);
	ored_put64(p + 8, query->step);
	ored_put16(p + 16, query->rank);
}

/**
 * ored_tell_parse() - decodes what stands before the generations that are told
 * @data: what follows the header, at least ORED_TELL_BYTES or all of it
 * @len: bytes of it, the generations and the metadata included
 * @tell: receives the fields
 *
 * Return: 0, or -EBADMSG, also if it is of another length than it says
 */
int ored_tell_parse(const void *data, size_t len, struct ored_tell *tell)
{
	const u8 *p = data;

	if (!is_kind(p, len, ORED_AREA_TELL, ORED_TELL_BYTES))
		return -EBADMSG;
	tell->first = ored_get16(p + 2);
	tell->id = ored_get32(p + 4);
	tell->total = ored_get16(p + 8);
	tell->n = ored_get16(p + 10);
	tell->meta_len = ored_get16(p + 12);
	if (tell->first > tell->total || tell->n > tell->total - tell->first)
		return -EBADMSG;
	/* Who tells nothing of what there is would be asked forever. */
	if (!tell->n && tell->first < tell->total)
		return -EBADMSG;
	if (tell->meta_len > ORED_AREA_META_MAX || (tell->meta_len && tell->n != 1))
		return -EBADMSG;
	return len == ORED_TELL_BYTES + (size_t)tell->n * ORED_TOLD_BYTES + tell->meta_len ?
	       0 : -EBADMSG;
}

/**
 * ored_tell_build() - writes what stands before them
 * @data: room for ORED_TELL_BYTES
 * @tell: the fields
 */
void ored_tell_build(void *data, const struct ored_tell *tell)
{
	u8 *p = data;

	memset(p, 0, ORED_TELL_BYTES);
	p[0] = ORED_AREA_TELL;
	ored_put16(p + 2, tell->first);
	ored_put32(p + 4, tell->id);
	ored_put16(p + 8, tell->total);
	ored_put16(p + 10, tell->n);
	ored_put16(p + 12, tell->meta_len);
}

/**
 * ored_told_parse() - decodes one of them
 * @data: ORED_TOLD_BYTES
 * @told: receives the fields
 *
 * Return: 0, or -EBADMSG: there can be no such generation
 */
int ored_told_parse(const void *data, struct ored_told *told)
{
	const u8 *p = data;

	told->step = ored_get64(p);
	told->bytes = ored_get64(p + 8);
	told->digest = ored_get32(p + 16);
	told->rank = ored_get16(p + 20);
	told->digest_only = p[22] & 1;
	return told->bytes && told->bytes <= ORED_AREA_BYTES_MAX &&
	       told->step != ORED_NO_STEP && told->rank < ORED_MAX_RANKS ? 0 : -EBADMSG;
}

/**
 * ored_told_build() - writes one of them
 * @data: room for ORED_TOLD_BYTES
 * @told: the fields
 */
void ored_told_build(void *data, const struct ored_told *told)
{
	u8 *p = data;

	memset(p, 0, ORED_TOLD_BYTES);
	ored_put64(p, told->step);
	ored_put64(p + 8, told->bytes);
	ored_put32(p + 16, told->digest);
	ored_put16(p + 20, told->rank);
	p[22] = told->digest_only;
}
