// SPDX-License-Identifier: GPL-2.0
/*
 * A datagram as it comes from the network, up to where its content would be
 * used: what parses must build the same bytes again.
 */

#include <stdlib.h>

#include "fuzz.h"
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
	return 0;
}
