/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a peer may do with memory here, as with RDMA: a key names a window of
 * it, and every access is checked before a byte is placed or read.
 *
 * A key can't be guessed, since most of it is random, and it dies with what it
 * was given for: the slot's serial number is in it, which changes whenever the
 * slot is sealed or opened.
 */
#ifndef ORED_CORE_REMOTE_H
#define ORED_CORE_REMOTE_H

#include "shim.h"

/* Rights */
#define ORED_REMOTE_READ	1
#define ORED_REMOTE_WRITE	2

/**
 * struct ored_window - what one peer may reach
 * @key: drawn at random, never 0; 0: nothing may be done
 * @serial: of the slot, when the key was drawn
 * @rank: whose key it is
 * @rights: ORED_REMOTE_*
 * @bytes: from the slot's start on
 */
struct ored_window {
	u64	key;
	u32	serial;
	u32	rank;
	u32	rights;
	u64	bytes;
};

/**
 * struct ored_access - what a peer wants
 * @key: from its packet
 * @serial: likewise
 * @rank: who it is
 * @right: one of ORED_REMOTE_*
 * @offset: first byte
 * @length: bytes
 */
struct ored_access {
	u64	key;
	u32	serial;
	u32	rank;
	u32	right;
	u64	offset;
	u64	length;
};

/**
 * ored_span_inside() - is a range inside another that starts at 0?
 * @bytes: length of the outer one
 * @offset: first byte of the inner one
 * @length: its length
 *
 * No sum is formed, so none can overflow.
 */
static inline bool ored_span_inside(u64 bytes, u64 offset, u64 length)
{
	return length <= bytes && offset <= bytes - length;
}

int ored_window_check(const struct ored_window *window, const struct ored_access *access);

#endif /* ORED_CORE_REMOTE_H */
