// SPDX-License-Identifier: GPL-2.0
/*
 * A datagram as it comes from the network, up to where its content would be
 * used: what parses must build the same bytes again.
 */

#include <stdlib.h>

#include "fuzz.h"
#include "../../kmod/core/area_wire.h"
#include "../../kmod/core/pull.h"
#include "../../kmod/core/wire.h"
#include "../../uapi/linux/ored.h"

static void try_hello(const u8 *content, size_t len)
{
	u8 again[ORED_HELLO_BYTES];
	struct ored_hello hello;

	if (ored_hello_parse(content, len, &hello))
		return;
	ored_hello_build(again, &hello);
	MUST(!memcmp(again, content, sizeof(again)));
	MUST(hello.session);
	MUST(hello.size == len + ORED_WIRE_HEADER);
}

static void try_ack(const u8 *content, size_t len, u32 first)
{
	u8 again[ORED_ACK_BYTES];
	struct ored_ack ack;
	u32 i, sum = 0;

	if (ored_ack_parse(content, len, first, &ack))
		return;
	ored_ack_build(again, ack.echo, ack.base);
	MUST(!memcmp(again, content, sizeof(again)));
	MUST(ack.first % 64 == 0 && ack.nbits % 64 == 0);
	MUST(ack.nbits <= ORED_ACK_BITS);
	/* All of the bits may be read. */
	for (i = 0; i < ack.nbits / 8; i++)
		sum += ack.bits[i];
	MUST(sum <= 255 * ORED_ACK_BITS / 8);
}

static void try_mismatch(const u8 *content, size_t len)
{
	u8 again[ORED_FAILURE_BYTES];
	struct ored_failure mm;

	if (ored_failure_parse(content, len, &mm))
		return;
	MUST(mm.field != ORED_FIELD_NONE);
	ored_failure_build(again, &mm);
	MUST(!memcmp(again, content, 3));
	MUST(!memcmp(again + 4, content + 4, sizeof(again) - 4));
}

/* What is written again is what was read, but for what has no meaning. */
static void try_area(const u8 *content, size_t len)
{
	u8 again[ORED_OFFER_BYTES] = { 0 };
	struct ored_refusal refusal;
	struct ored_answer answer;
	struct ored_offer offer;
	struct ored_write wr;
	struct ored_query query;
	struct ored_tell tell;
	struct ored_told told;
	struct ored_ask ask;
	u32 i, sum = 0;

	if (!ored_offer_parse(content, len, &offer)) {
		MUST(offer.bytes && offer.bytes <= offer.area_bytes);
		for (i = 0; i < offer.meta_len; i++)
			sum += offer.meta[i];
		MUST(sum <= 255 * ORED_AREA_META_MAX);
		ored_offer_build(again, &offer);
		MUST(!memcmp(again, content, 47));
	}
	if (!ored_answer_parse(content, len, &answer))
		MUST(answer.code < ORED_AREA_CODES);
	if (!ored_ask_parse(content, len, &ask)) {
		MUST(ask.mask && ask.chunk >= ORED_PULL_CHUNK_MIN);
		MUST(64U * ask.word + (u32)fls64(ask.mask) <= 64 * ORED_PULL_WORDS);
		ored_ask_build(again, &ask);
		MUST(!memcmp(again, content, 42));
	}
	if (!ored_write_parse(content, len, &wr)) {
		ored_write_build(again, &wr);
		MUST(!memcmp(again + 2, content + 2, ORED_WRITE_BYTES - 2));
	}
	if (!ored_refuse_parse(content, len, &refusal))
		MUST(refusal.code < ORED_AREA_CODES);
	if (!ored_query_parse(content, len, &query)) {
		ored_query_build(again, &query);
		MUST(!memcmp(again, content, 18));
	}
	if (!ored_tell_parse(content, len, &tell)) {
		MUST(tell.first + tell.n <= tell.total);
		for (i = 0; i < tell.n; i++) {
			const u8 *at = content + ORED_TELL_BYTES + i * ORED_TOLD_BYTES;

			if (!ored_told_parse(at, &told))
				MUST(told.bytes && told.rank < ORED_MAX_RANKS);
		}
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	u8 again[ORED_WIRE_HEADER];
	struct ored_packet pkt;
	int rc = ored_wire_parse(data, len, &pkt);

	if (rc) {
		MUST(rc == -EMSGSIZE || rc == -EPROTONOSUPPORT ||
		     rc == -EOPNOTSUPP);
		return 0;
	}
	ored_wire_build(again, &pkt);
	MUST(!memcmp(again, data, sizeof(again)));
	MUST(pkt.chunk < 1U << ORED_CHUNK_BITS);

	data += ORED_WIRE_HEADER;
	len -= ORED_WIRE_HEADER;
	if (pkt.type == ORED_T_HELLO)
		try_hello(data, len);
	else if (pkt.type == ORED_T_ACK)
		try_ack(data, len, pkt.chunk);
	else if (pkt.type == ORED_T_FAILURE)
		try_mismatch(data, len);
	else if (pkt.type == ORED_T_AREA)
		try_area(data, len);
	return 0;
}
