/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What fuzzers share. Input is also read as a script: struct fuzz_input gives
 * out its bytes, and zeros when they are used up.
 */
#ifndef ORED_FUZZ_H
#define ORED_FUZZ_H

#include <stdio.h>
#include <stdlib.h>

#include "../../kmod/core/shim.h"

#define MUST(cond) do {							\
	if (!(cond)) {							\
		fprintf(stderr, "%s:%d: not so: %s\n", __FILE__,	\
			__LINE__, #cond);				\
		abort();						\
	}								\
} while (0)

struct fuzz_input {
	const u8 *at;
	size_t left;
};

static inline u32 fuzz_u8(struct fuzz_input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

static inline u32 fuzz_u16(struct fuzz_input *in)
{
	return fuzz_u8(in) << 8 | fuzz_u8(in);
}

static inline u32 fuzz_u32(struct fuzz_input *in)
{
	return fuzz_u16(in) << 16 | fuzz_u16(in);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len);

#endif /* ORED_FUZZ_H */
