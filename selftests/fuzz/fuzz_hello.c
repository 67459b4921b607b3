// SPDX-License-Identifier: GPL-2.0
/*
 * Joining among peers of which all but one say what they like: the input is a
 * script of their HELLOs, as bytes. What is agreed must be a payload that
 * every path has been seen to carry.
 */

#include "fuzz.h"
#include "../../kmod/core/hello.h"

#define RANKS		4
#define OVERHEAD	60
#define FLOOR		512
#define TRY		8936

static void check(const struct ored_joining *joining)
{
	u16 payload = 0, limit = 0;
	u32 r;

	for (r = 0; r < RANKS; r++) {
		const struct ored_path *path = &joining->path[r];

		MUST(path->ok <= path->try);
		MUST(path->try >= FLOOR && path->try <= TRY);
		MUST(path->try % ORED_PAYLOAD_ALIGN == 0);
	}
	ored_joining_limit(joining, &limit);
	MUST(limit >= FLOOR && limit <= TRY);
	if (!ored_joining_done(joining, &payload))
		return;
	MUST(payload >= FLOOR && payload <= limit);
	MUST(payload % ORED_PAYLOAD_ALIGN == 0);
	for (r = 0; r < RANKS; r++)
		MUST(r == joining->rank || payload <= joining->path[r].ok);
}

static void hear(struct ored_joining *joining, struct fuzz_input *in)
{
	u32 from = 1 + fuzz_u8(in) % (RANKS - 1);
	u32 len = fuzz_u8(in), i;
	bool final = fuzz_u8(in) & 1;
	u8 *content = malloc(len);
	struct ored_hello hello;

	for (i = 0; i < len; i++)
		content[i] = (u8)fuzz_u8(in);
	/* Mostly let the size be true, or nothing would ever get further. */
	if (len >= ORED_HELLO_BYTES && final) {
		content[24] = 0;
		content[25] = (u8)(len + ORED_WIRE_HEADER);
	}
	if (!ored_hello_parse(content, len, &hello))
		ored_path_heard(&joining->path[from], &hello, final);
	free(content);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	struct fuzz_input in = { data, len };
	struct ored_path *path = calloc(RANKS, sizeof(*path));
	struct ored_joining joining = {
		.path = path, .nranks = RANKS, .rank = 0, .floor = FLOOR,
	};
	u32 r;

	for (r = 0; r < RANKS; r++)
		path[r].try = TRY;
	while (in.left) {
		u32 what = fuzz_u8(&in);

		if (what & 3)
			hear(&joining, &in);
		else
			ored_path_missed(&path[1 + (what >> 2) % (RANKS - 1)],
					 OVERHEAD, FLOOR);
		check(&joining);
	}
	free(path);
	return 0;
}
