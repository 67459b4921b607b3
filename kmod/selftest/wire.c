// SPDX-License-Identifier: GPL-2.0
/*
 * Packets at every alignment, in blocks that end where the packet ends. The
 * bytes are a contract between hosts of either endianness.
 */

#include <linux/init.h>
#include <linux/slab.h>
#include <linux/ored.h>

#include "../core/wire.h"
#include "selftest.h"

#define ALIGNMENTS	8

static const struct ored_packet packet __initconst = {
	.type = ORED_T_SCATTER, .flags = ORED_F_REQUEST, .src = 3, .dst = 254,
	.group = 0x01020304, .session = 0x05060708, .op = 0x090a0b0c,
	.params = { .bytes = 0x0d0e0f10, .word = 0xabc }, .chunk = 0xdef12,
	.posted = 0x1314, .left = 0x1516, .clock = 0x1718191a,
};

static const u8 packet_bytes[ORED_WIRE_HEADER] __initconst = {
	0xe1, 0x21, 3, 254, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
	13, 14, 15, 16, 0xab, 0xcd, 0xef, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a,
};

static const struct ored_hello hello __initconst = {
	.epoch = 0x0102030405060708, .session = 0x090a0b0c, .nranks = 0x0d0e,
	.depth = 0x0f10, .bucket_max = 0x11121314, .limit = 0x1516,
	.seen = 0x1718, .size = ORED_WIRE_HEADER + ORED_HELLO_BYTES, .echo = 0x1b1c,
};

static const u8 hello_bytes[ORED_HELLO_BYTES] __initconst = {
	1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
	21, 22, 23, 24, 0, ORED_WIRE_HEADER + ORED_HELLO_BYTES, 27, 28,
};

static const struct ored_failure mismatch __initconst = {
	.field = ORED_FIELD_DTYPE, .rank = { 7, 255 },
	.value = { 0x0102030405060708, 0xf1f2f3f4f5f6f7f8 },
};

static const u8 mismatch_bytes[ORED_FAILURE_BYTES] __initconst = {
	ORED_FIELD_DTYPE, 7, 255, 0, 1, 2, 3, 4, 5, 6, 7, 8,
	0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8,
};

static const u8 ack_bytes[ORED_ACK_BYTES] __initconst = { 1, 2, 3, 4, 5, 6, 7, 8 };

static bool __init test_header(u8 *at, size_t len)
{
	struct ored_packet got;
	bool ok;

	ored_wire_build(at, &packet);
	ok = ored_expect(!memcmp(at, packet_bytes, len));
	/* Whatever lies behind the header isn't looked at: all of it is payload. */
	if (!ored_expect(!ored_wire_parse(at, len + 1, &got)))
		return false;
	ok &= ored_expect(got.type == packet.type && got.flags == packet.flags);
	ok &= ored_expect(got.src == packet.src && got.dst == packet.dst);
	ok &= ored_expect(got.group == packet.group && got.session == packet.session);
	ok &= ored_expect(got.op == packet.op && got.chunk == packet.chunk);
	ok &= ored_expect(ored_params_equal(&got.params, &packet.params));
	ok &= ored_expect(got.posted == packet.posted && got.left == packet.left);
	return ok & ored_expect(got.clock == packet.clock);
}

static bool __init test_hello(u8 *at, size_t len)
{
	struct ored_hello got;
	bool ok;

	ored_hello_build(at, &hello);
	ok = ored_expect(!memcmp(at, hello_bytes, len));
	if (!ored_expect(!ored_hello_parse(at, len, &got)))
		return false;
	ok &= ored_expect(got.epoch == hello.epoch && got.session == hello.session);
	ok &= ored_expect(got.nranks == hello.nranks && got.depth == hello.depth);
	ok &= ored_expect(got.bucket_max == hello.bucket_max && got.limit == hello.limit);
	return ok & ored_expect(got.seen == hello.seen && got.echo == hello.echo);
}

static bool __init test_mismatch(u8 *at, size_t len)
{
	struct ored_failure got;
	bool ok;

	ored_failure_build(at, &mismatch);
	ok = ored_expect(!memcmp(at, mismatch_bytes, len));
	if (!ored_expect(!ored_failure_parse(at, len, &got)))
		return false;
	ok &= ored_expect(got.field == mismatch.field);
	ok &= ored_expect(!memcmp(got.rank, mismatch.rank, sizeof(got.rank)));
	return ok & ored_expect(!memcmp(got.value, mismatch.value, sizeof(got.value)));
}

static bool __init test_ack(u8 *at, size_t len)
{
	struct ored_ack got;
	bool ok;

	ored_ack_build(at, 0x01020304, 0x05060708);
	ok = ored_expect(!memcmp(at, ack_bytes, len));
	if (!ored_expect(!ored_ack_parse(at, len, 64, &got)))
		return false;
	ok &= ored_expect(got.echo == 0x01020304 && got.base == 0x05060708);
	return ok & ored_expect(got.first == 64 && !got.nbits);
}

/* Runs @test at all alignments on @len bytes that end with their block. */
static bool __init at_alignments(bool (*test)(u8 *at, size_t len), size_t len)
{
	bool ok = true;
	u32 by;

	for (by = 0; by < ALIGNMENTS; by++) {
		u8 *block = kmalloc(by + len, GFP_KERNEL);

		if (!ored_expect(block))
			return false;
		ok &= test(block + by, len);
		kfree(block);
	}
	return ok;
}

/* A shorter datagram is refused, and nothing behind its end is read. */
static bool __init test_short(void)
{
	struct ored_packet got;
	bool ok = true;
	size_t len;

	for (len = 0; len < ORED_WIRE_HEADER; len++) {
		u8 *block = kmemdup(packet_bytes, len, GFP_KERNEL);

		if (!ored_expect(block))
			return false;
		ok &= ored_expect(ored_wire_parse(block, len, &got) == -EMSGSIZE);
		kfree(block);
	}
	return ok;
}

static bool __init test_extend(void)
{
	bool ok = true;

	ok &= ored_expect(ored_extend32(0x1ffffffff, 0) == 0x200000000);
	ok &= ored_expect(ored_extend32(0x200000000, 0xffffffff) == 0x1ffffffff);
	ok &= ored_expect(ored_extend32(0, 0xffffffff) == 0xffffffff);
	ok &= ored_expect(ored_extend16(0x1ffff, 1) == 0x20001);
	return ok & ored_expect(ored_extend16(0x20001, 0xfffe) == 0x1fffe);
}

bool __init ored_selftest_wire(void)
{
	bool ok = true;

	ok &= at_alignments(test_header, ORED_WIRE_HEADER);
	ok &= at_alignments(test_hello, ORED_HELLO_BYTES);
	ok &= at_alignments(test_mismatch, ORED_FAILURE_BYTES);
	ok &= at_alignments(test_ack, ORED_ACK_BYTES);
	ok &= test_short();
	return ok & test_extend();
}
