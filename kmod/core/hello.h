/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Joining: who has been heard, how much each path carries, and what payload
 * the whole group can therefore use.
 *
 * Each rank sends every peer a short HELLO and one padded to the size that it
 * hopes the path carries; the peer says in its own HELLOs the largest that
 * has come. Where short ones are answered and padded ones don't come, the
 * next smaller usual size is tried. When all paths of a rank are measured its
 * limit is final; when all limits are final, the smallest is the payload.
 *
 * Pure bookkeeping; the caller serialises it, sends the packets and keeps the
 * time.
 */
#ifndef ORED_CORE_HELLO_H
#define ORED_CORE_HELLO_H

#include "shim.h"
#include "wire.h"

#define ORED_HELLO_TRIES	3	/* padded HELLOs until a smaller one is tried */

/**
 * struct ored_path - what is known of one peer and the path to it
 * @session: what to put into packets to it; 0: it has not been heard
 * @try: payload that is being tried
 * @ok: largest payload that has got through to it
 * @got: largest HELLO, in bytes of UDP payload, that came from it
 * @limit: its own limit, as last heard
 * @tries: padded HELLOs of size @try that were sent since it has been heard
 * @final: its limit is final
 */
struct ored_path {
	u32	session;
	u16	try;
	u16	ok;
	u16	got;
	u16	limit;
	u8	tries;
	bool	final;
};

/**
 * struct ored_joining - a rank's view of the group while it joins
 * @path: by rank; its own entry isn't used
 * @nranks: ranks
 * @rank: its own
 * @floor: smallest payload that is acceptable
 */
struct ored_joining {
	struct ored_path	*path;
	u32			nranks;
	u32			rank;
	u16			floor;
};

u16 ored_path_smaller(u16 payload, u16 overhead);
void ored_path_limit(struct ored_path *path, u16 payload);
bool ored_path_missed(struct ored_path *path, u16 overhead, u16 floor);
bool ored_path_heard(struct ored_path *path, const struct ored_hello *hello,
		     bool final);

bool ored_joining_limit(const struct ored_joining *joining, u16 *limit);
bool ored_joining_done(const struct ored_joining *joining, u16 *payload);

/* A payload that holds whole elements */
static inline u16 ored_payload_round(u32 payload)
{
	return (u16)(min(payload, 65535U) / ORED_PAYLOAD_ALIGN * ORED_PAYLOAD_ALIGN);
}

#endif /* ORED_CORE_HELLO_H */
