// SPDX-License-Identifier: GPL-2.0
/*
 * Packets: every length, every type, every field, the bytes on the wire. All
 * input lies in a heap block of exactly its length, so that AddressSanitizer
 * sees a read beyond it.
 */

#include "tap.h"
#include "../../kmod/core/area_wire.h"
#include "../../kmod/core/reduce.h"
#include "../../kmod/core/wire.h"
#include "../../uapi/linux/ored.h"

static const struct { u8 type; u32 content; } types[] = {
	{ ORED_T_HELLO, ORED_HELLO_BYTES },
	{ ORED_T_SCATTER, 1 },
	{ ORED_T_GATHER, 1 },
	{ ORED_T_ACK, ORED_ACK_BYTES },
	{ ORED_T_POLL, 0 },
	{ ORED_T_MARK, 0 },
	{ ORED_T_BYE, 0 },
	{ ORED_T_FAILURE, ORED_FAILURE_BYTES },
	{ ORED_T_AREA, ORED_AREA_LEAST },
};

static void *exactly(const void *data, size_t len)
{
	void *p = malloc(len);

	if (!p)
		abort();
	if (data)
		memcpy(p, data, len);
	return p;
}

static int parse_cut(const void *data, size_t len, struct ored_packet *pkt)
{
	void *p = exactly(data, len);
	int rc = ored_wire_parse(p, len, pkt);

	free(p);
	return rc;
}

static struct ored_packet random_packet(u8 type)
{
	return (struct ored_packet){
		.type = type,
		.flags = (u8)tap_below(16),
		.src = (u8)tap_random(),
		.dst = (u8)tap_random(),
		.group = (u32)tap_random(),
		.session = (u32)tap_random(),
		.op = (u32)tap_random(),
		.params.bytes = (u32)tap_random(),
		.params.word = (u16)tap_below(1 << 12),
		.chunk = tap_below(1 << ORED_CHUNK_BITS),
		.posted = (u16)tap_random(),
		.left = (u16)tap_random(),
		.clock = (u32)tap_random(),
	};
}

static void check_same(const struct ored_packet *a, const struct ored_packet *b)
{
	CHECK_EQ(a->type, b->type);
	CHECK_EQ(a->flags, b->flags);
	CHECK_EQ(a->src, b->src);
	CHECK_EQ(a->dst, b->dst);
	CHECK_EQ(a->group, b->group);
	CHECK_EQ(a->session, b->session);
	CHECK_EQ(a->op, b->op);
	CHECK_EQ(a->params.bytes, b->params.bytes);
	CHECK_EQ(a->params.word, b->params.word);
	CHECK_EQ(a->chunk, b->chunk);
	CHECK_EQ(a->posted, b->posted);
	CHECK_EQ(a->left, b->left);
	CHECK_EQ(a->clock, b->clock);
}

/* The format is a contract between versions: these bytes never change. */
TEST(wire_build__bytes)
{
	static const struct ored_packet pkt = {
		.type = ORED_T_GATHER, .flags = ORED_F_REQUEST | ORED_F_RESENT,
		.src = 0x12, .dst = 0xff, .group = 0x01020304,
		.session = 0xa1a2a3a4, .op = 0xb1b2b3b4,
		.params = { .bytes = 0x3fffffff, .word = 0xabc },
		.chunk = 0xdef01, .posted = 0xc1c2, .left = 0xd1d2,
		.clock = 0xe1e2e3e4,
	};
	static const u8 want[ORED_WIRE_HEADER] = {
		0xe1, 0x33, 0x12, 0xff, 0x01, 0x02, 0x03, 0x04,
		0xa1, 0xa2, 0xa3, 0xa4, 0xb1, 0xb2, 0xb3, 0xb4,
		0x3f, 0xff, 0xff, 0xff, 0xab, 0xcd, 0xef, 0x01,
		0xc1, 0xc2, 0xd1, 0xd2, 0xe1, 0xe2, 0xe3, 0xe4,
	};
	u8 *out = exactly(NULL, ORED_WIRE_HEADER);

	ored_wire_build(out, &pkt);
	CHECK(!memcmp(out, want, sizeof(want)));
	free(out);
}

/* The struct, for those who read packets in place, says the same. */
TEST(wire_build__struct)
{
	struct ored_packet pkt = random_packet(ORED_T_ACK);
	struct ored_wire wire;

	ored_wire_build(&wire, &pkt);
	CHECK_EQ(wire.magic, ORED_WIRE_MAGIC);
	CHECK_EQ(wire.type_flags, ORED_T_ACK << 4 | pkt.flags);
	CHECK_EQ(wire.src, pkt.src);
	CHECK_EQ(wire.dst, pkt.dst);
	CHECK_EQ(be32_to_cpu(wire.group), pkt.group);
	CHECK_EQ(be32_to_cpu(wire.session), pkt.session);
	CHECK_EQ(be32_to_cpu(wire.op), pkt.op);
	CHECK_EQ(be32_to_cpu(wire.bytes), pkt.params.bytes);
	CHECK_EQ(be32_to_cpu(wire.params_chunk) >> ORED_CHUNK_BITS,
		 pkt.params.word);
	CHECK_EQ(be32_to_cpu(wire.params_chunk) & 0xfffff, pkt.chunk);
	CHECK_EQ(be16_to_cpu(wire.posted), pkt.posted);
	CHECK_EQ(be16_to_cpu(wire.left), pkt.left);
	CHECK_EQ(be32_to_cpu(wire.clock), pkt.clock);
}

TEST(wire_build__excess_bits_stay_out)
{
	struct ored_packet pkt = random_packet(ORED_T_SCATTER), back;
	u8 data[ORED_WIRE_HEADER + 1] = { 0 };

	pkt.chunk = 5;
	pkt.params.word = 6;
	pkt.flags = 0xf3;
	ored_wire_build(data, &pkt);
	CHECK_EQ(ored_wire_parse(data, sizeof(data), &back), 0);
	CHECK_EQ(back.type, ORED_T_SCATTER);
	CHECK_EQ(back.flags, 3);
	pkt.flags = 0;
	pkt.chunk = (1 << ORED_CHUNK_BITS) | 5;
	ored_wire_build(data, &pkt);
	CHECK_EQ(ored_wire_parse(data, sizeof(data), &back), 0);
	CHECK_EQ(back.params.word, 6);
	CHECK_EQ(back.chunk, 5);
}

TEST(wire_parse__round_trip)
{
	u8 *data = malloc(ORED_WIRE_HEADER + 64 + 3);
	struct ored_packet pkt, back;
	u32 i, t;

	for (i = 0; i < 2000; i++) {
		for (t = 0; t < ARRAY_SIZE(types); t++) {
			u8 *at = data + i % 4;	/* of any alignment */

			pkt = random_packet(types[t].type);
			memset(&back, 0x55, sizeof(back));
			ored_wire_build(at, &pkt);
			CHECK_EQ(ored_wire_parse(at, ORED_WIRE_HEADER + 64,
						 &back), 0);
			check_same(&pkt, &back);
		}
	}
	free(data);
}

TEST(wire_parse__every_length)
{
	u8 data[ORED_WIRE_HEADER + 64] = { 0 };
	struct ored_packet pkt;
	size_t len;
	u32 t;

	for (t = 0; t < ARRAY_SIZE(types); t++) {
		pkt = random_packet(types[t].type);
		ored_wire_build(data, &pkt);
		for (len = 0; len <= sizeof(data); len++) {
			bool enough = len >= ORED_WIRE_HEADER + types[t].content;

			CHECK_EQ(parse_cut(data, len, &pkt),
				 enough ? 0 : -EMSGSIZE);
		}
	}
}

/* Of a long datagram, only the header need be there. */
TEST(wire_parse__header_alone)
{
	struct ored_packet pkt = random_packet(ORED_T_SCATTER);
	u8 *data = exactly(NULL, ORED_WIRE_HEADER);

	ored_wire_build(data, &pkt);
	CHECK_EQ(ored_wire_parse(data, 65507, &pkt), 0);
	free(data);
}

TEST(wire_parse__every_magic)
{
	struct ored_packet pkt = random_packet(ORED_T_POLL);
	u8 data[ORED_WIRE_HEADER];
	u32 magic;

	ored_wire_build(data, &pkt);
	for (magic = 0; magic < 256; magic++) {
		data[0] = (u8)magic;
		CHECK_EQ(parse_cut(data, sizeof(data), &pkt),
			 magic == ORED_WIRE_MAGIC ? 0 : -EPROTONOSUPPORT);
	}
}

TEST(wire_parse__every_type)
{
	u8 data[ORED_WIRE_HEADER + 64] = { ORED_WIRE_MAGIC };
	struct ored_packet pkt;
	u32 type;

	for (type = 0; type < 16; type++) {
		bool known = type >= ORED_T_HELLO && type <= ORED_T_AREA;

		data[1] = (u8)(type << 4);
		CHECK_EQ(parse_cut(data, sizeof(data), &pkt),
			 known ? 0 : -EOPNOTSUPP);
		CHECK_EQ(parse_cut(data, ORED_WIRE_HEADER - 1, &pkt), -EMSGSIZE);
	}
}

TEST(params_word__every_part)
{
	u32 i;

	for (i = 0; i < 1 << 12; i++) {
		u8 dtype = i & 7, reduction = i >> 3 & 3, rotate = i >> 5 & 3;
		u8 kind = i >> 7 & 7, mode = i >> 10 & 3;
		u16 plain = ored_params_word(dtype, reduction, kind, mode);
		u16 word = ored_params_rotated(plain, rotate);

		CHECK(word < 1 << 12);
		CHECK_EQ(ored_params_dtype(word), dtype);
		CHECK_EQ(ored_params_reduction(word), reduction);
		CHECK_EQ(ored_params_kind(word), kind == 5 ? ORED_BROADCAST : kind);
		CHECK_EQ(ored_params_mode(word), mode);
		if (ored_params_kind(word) == ORED_BROADCAST)
			rotate = ORED_ROTATE_OFF;
		CHECK_EQ(ored_params_rotate(word), rotate);
		CHECK_EQ(ored_params_is_rotated(word), rotate & 1);
		CHECK_EQ(ored_params_rotate(plain), ORED_ROTATE_OFF);
		CHECK_EQ(ored_params_rotated(word, ORED_ROTATE_OFF), plain);
	}
	CHECK_EQ(ored_params_word(0xff, 0, 0, 0) & 0x1ff, 0);
	CHECK_EQ(ored_params_word(0, 0xff, 0, 0) & 0xf9f, 0);
	CHECK_EQ(ored_params_rotated(0, 0xff) & 0xe7f, 0);
	CHECK_EQ(ored_params_word(0, 0, 0xff, 0) & 0xfe3, 0);
	CHECK_EQ(ored_params_word(0, 0, 0, 0xff) & 0xffc, 0);
}

/* The root of a broadcast has the place of dtype and reduction, and is a part too. */
TEST(params_broadcast__every_root)
{
	u32 root, other, mode;
	u64 value[2];

	for (root = 0; root < 256; root++) {
		for (mode = 0; mode < 4; mode++) {
			u16 word = ored_params_broadcast((u8)root, (u8)mode);

			CHECK(word < 1 << 12);
			CHECK_EQ(ored_params_kind(word), ORED_BROADCAST);
			CHECK_EQ(ored_params_root(word), root);
			CHECK_EQ(ored_params_mode(word), mode);
		}
		for (other = 0; other < 256; other++) {
			struct ored_params a = { 8, ored_params_broadcast((u8)root, 1) };
			struct ored_params b = { 8, ored_params_broadcast((u8)other, 1) };

			CHECK_EQ(ored_params_differ(&a, &b, value),
				 root == other ? ORED_FIELD_NONE : ORED_FIELD_ROOT);
			CHECK_EQ(ored_params_equal(&a, &b), root == other);
			CHECK(root == other || (value[0] == root && value[1] == other));
		}
	}
}

TEST(params_differ__names_the_field)
{
	static const struct {
		u8 field, dtype, reduction, kind, mode;
		u32 bytes;
		u64 value[2];
	} c[] = {
		{ ORED_FIELD_NONE,	1, 2, 2, 1, 4096, { 4096, 4096 } },
		{ ORED_FIELD_BYTES,	1, 2, 2, 1, 4100, { 4096, 4100 } },
		{ ORED_FIELD_DTYPE,	5, 2, 2, 1, 4096, { 1, 5 } },
		{ ORED_FIELD_REDUCTION,	1, 0, 2, 1, 4096, { 2, 0 } },
		{ ORED_FIELD_KIND,	1, 2, 4, 1, 4096, { 2, 4 } },
		{ ORED_FIELD_MODE,	1, 2, 2, 2, 4096, { 1, 2 } },
		/* the dtype explains other lengths */
		{ ORED_FIELD_DTYPE,	5, 2, 2, 1, 8192, { 1, 5 } },
		/* and the kind what the others mean */
		{ ORED_FIELD_KIND,	5, 0, 3, 2, 8192, { 2, 3 } },
	};
	struct ored_params a = { 4096, ored_params_word(1, 2, 2, 1) };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(c); i++) {
		struct ored_params b = {
			c[i].bytes,
			ored_params_word(c[i].dtype, c[i].reduction, c[i].kind,
					 c[i].mode),
		};
		u64 value[2];

		CHECK_EQ(ored_params_differ(&a, &b, value), c[i].field);
		CHECK_EQ(ored_params_equal(&a, &b), c[i].field == ORED_FIELD_NONE);
		CHECK_EQ(value[0], c[i].value[0]);
		CHECK_EQ(value[1], c[i].value[1]);
	}
}

TEST(params_possible__every_word)
{
	u32 word, bytes;

	for (word = 0; word < 1 << 12; word++) {
		u32 size = ored_dtype_size(ored_params_dtype((u16)word));
		u8 mode = ored_params_mode((u16)word);
		bool known = size && mode >= ORED_MODE_BOUNDED && mode <= ORED_MODE_RELIABLE;

		for (bytes = 0; bytes <= 16; bytes++) {
			struct ored_params params = { bytes, (u16)word };

			CHECK_EQ(ored_params_possible(&params),
				 known && bytes && bytes % size == 0);
		}
	}
}

/* The group's decision is no difference, the user's wish is. */
TEST(params_differ__hadamard)
{
	static const u64 wish[] = {
		ORED_HADAMARD_OFF, ORED_HADAMARD_ON, ORED_HADAMARD_AUTO, ORED_HADAMARD_AUTO,
	};
	u8 i, j;

	for (i = ORED_ROTATE_OFF; i <= ORED_ROTATE_AUTO_ON; i++) {
		for (j = ORED_ROTATE_OFF; j <= ORED_ROTATE_AUTO_ON; j++) {
			struct ored_params a = { 64, ored_params_rotated(0, i) };
			struct ored_params b = { 64, ored_params_rotated(0, j) };
			bool differ = wish[i] != wish[j];
			u64 value[2];

			CHECK_EQ(ored_params_differ(&a, &b, value),
				 differ ? ORED_FIELD_HADAMARD : ORED_FIELD_NONE);
			CHECK_EQ(ored_params_equal(&a, &b), i == j);
			CHECK(!differ || (value[0] == wish[i] && value[1] == wish[j]));
		}
	}
}

static int hello_cut(const void *data, size_t len, struct ored_hello *hello)
{
	void *p = exactly(data, len);
	int rc = ored_hello_parse(p, len, hello);

	free(p);
	return rc;
}

TEST(hello_parse__round_trip)
{
	struct ored_hello in, out;
	u8 data[200] = { 0 };
	u32 i;

	for (i = 0; i < 2000; i++) {
		u32 len = ORED_HELLO_BYTES + tap_below(sizeof(data) -
						       ORED_HELLO_BYTES + 1);

		in = (struct ored_hello){
			.epoch = tap_random(),
			.session = (u32)tap_random() | 1,
			.nranks = (u16)tap_random(),
			.depth = (u16)tap_random(),
			.bucket_max = (u32)tap_random(),
			.limit = (u16)tap_random(),
			.seen = (u16)tap_random(),
			.size = (u16)(len + ORED_WIRE_HEADER),
			.echo = (u16)tap_random(),
		};
		ored_hello_build(data, &in);
		CHECK_EQ(hello_cut(data, len, &out), 0);
		CHECK_EQ(in.epoch, out.epoch);
		CHECK_EQ(in.session, out.session);
		CHECK_EQ(in.nranks, out.nranks);
		CHECK_EQ(in.depth, out.depth);
		CHECK_EQ(in.bucket_max, out.bucket_max);
		CHECK_EQ(in.limit, out.limit);
		CHECK_EQ(in.seen, out.seen);
		CHECK_EQ(in.size, out.size);
		CHECK_EQ(in.echo, out.echo);
	}
}

/* Cut by the way or padded on it: either way it isn't the one that was sent. */
TEST(hello_parse__every_length)
{
	struct ored_hello in = { .session = 7 }, out;
	u8 data[160] = { 0 };
	size_t len, says;

	for (says = 0; says < 192; says++) {
		in.size = (u16)says;
		ored_hello_build(data, &in);
		for (len = 0; len <= sizeof(data); len++) {
			bool good = len >= ORED_HELLO_BYTES &&
				    says == len + ORED_WIRE_HEADER;

			CHECK_EQ(hello_cut(data, len, &out), good ? 0 : -EBADMSG);
		}
	}
}

/* 65536 + n isn't n. */
TEST(hello_parse__size_does_not_wrap)
{
	struct ored_hello in = { .session = 7, .size = 100 }, out;
	u8 *data = calloc(1, 65636);

	ored_hello_build(data, &in);
	CHECK_EQ(ored_hello_parse(data, 65636 - ORED_WIRE_HEADER, &out), -EBADMSG);
	free(data);
}

TEST(hello_parse__session_is_never_zero)
{
	struct ored_hello in = { .size = ORED_HELLO_BYTES + ORED_WIRE_HEADER };
	u8 data[ORED_HELLO_BYTES];

	ored_hello_build(data, &in);
	CHECK_EQ(hello_cut(data, sizeof(data), &in), -EBADMSG);
}

TEST(ack_parse__every_length)
{
	u8 data[ORED_ACK_BYTES + ORED_ACK_BITS / 8 + 16] = { 0 };
	struct ored_ack ack;
	size_t len, bits;

	ored_ack_build(data, 0x01020304, 0xa1a2a3a4);
	for (len = 0; len <= sizeof(data); len++) {
		u8 *p = exactly(data, len);
		int rc = ored_ack_parse(p, len, 128, &ack);

		bits = len - ORED_ACK_BYTES;
		if (len < ORED_ACK_BYTES || bits % 8 || bits > ORED_ACK_BITS / 8) {
			CHECK_EQ(rc, -EBADMSG);
		} else {
			CHECK_EQ(rc, 0);
			CHECK_EQ(ack.echo, 0x01020304);
			CHECK_EQ(ack.base, 0xa1a2a3a4);
			CHECK_EQ(ack.first, 128);
			CHECK_EQ(ack.nbits, bits * 8);
			CHECK(ack.bits == p + ORED_ACK_BYTES);
		}
		free(p);
	}
}

TEST(ack_parse__first_is_aligned)
{
	u8 data[ORED_ACK_BYTES + 8] = { 0 };
	struct ored_ack ack;
	u32 first;

	for (first = 0; first < 1000; first++)
		CHECK_EQ(ored_ack_parse(data, sizeof(data), first, &ack),
			 first % 64 ? -EBADMSG : 0);
}

TEST(failure_parse__every_length_and_field)
{
	struct ored_failure in = {
		.rank = { 3, 255 }, .value = { 1ULL << 63 | 5, 77 },
	}, out;
	u8 data[ORED_FAILURE_BYTES + 4] = { 0 };
	size_t len;
	u32 field;

	for (field = 0; field < 256; field++) {
		in.field = (u8)field;
		ored_failure_build(data, &in);
		for (len = 0; len <= sizeof(data); len++) {
			u8 *p = exactly(data, len);
			bool good = len >= ORED_FAILURE_BYTES && field &&
				    (field <= ORED_FIELD_ROOT || field == ORED_FAILURE_LEFT ||
				     field == ORED_FAILURE_GONE);

			CHECK_EQ(ored_failure_parse(p, len, &out),
				 good ? 0 : -EBADMSG);
			if (good) {
				CHECK_EQ(out.field, field);
				CHECK_EQ(out.rank[0], 3);
				CHECK_EQ(out.rank[1], 255);
				CHECK_EQ(out.value[0], in.value[0]);
				CHECK_EQ(out.value[1], 77);
			}
			free(p);
		}
	}
}

TEST(extend32__both_ways)
{
	u32 i;

	CHECK_EQ(ored_extend32(0, 0), 0);
	CHECK_EQ(ored_extend32(0, 5), 5);
	CHECK_EQ(ored_extend32(5, 0), 0);
	CHECK_EQ(ored_extend32(0, 0xffffffff), 0xffffffff);
	CHECK_EQ(ored_extend32(4, 0xffffffff), 0xffffffff);
	CHECK_EQ(ored_extend32(0x100000000, 0xffffffff), 0xffffffff);
	CHECK_EQ(ored_extend32(0xffffffff, 0), 0x100000000);
	for (i = 0; i < 100000; i++) {
		u64 at = tap_random() >> (1 + tap_below(62));
		s64 delta = (s32)tap_random();

		if (delta < 0 && (u64)-delta > at)
			continue;
		CHECK_EQ(ored_extend32(at, (u32)(at + (u64)delta)),
			 at + (u64)delta);
	}
}

TEST(extend16__both_ways)
{
	u64 at;
	s32 delta;

	for (at = 0; at < 70000; at += 997) {
		for (delta = -32768; delta < 32768; delta += 13) {
			u64 want = at + (u64)(s64)delta;

			if (delta < 0 && (u64)-delta > at)
				want += 65536;
			CHECK_EQ(ored_extend16(at, (u16)want), want);
		}
	}
	CHECK_EQ(ored_extend16(5, 0), 0);
	CHECK_EQ(ored_extend16(0x1234567890001, 0xffff), 0x123456788ffff);
}

TAP_MAIN
