// SPDX-License-Identifier: GPL-2.0

#include "hello.h"

/*
 * Path MTUs that are met: loopback and IPv4's largest, jumbo frames of
 * clouds, FDDI's, Ethernet and what tunnels, PPPoE and cloud networks leave
 * of it (GCP 1460), IPv6's least, and the least that we live with.
 */
static const u16 usual[] = {
	65535, 16384, 9216, 9001, 9000, 8950, 8896, 8500, 7935, 4352, 3520,
	2002, 1500, 1492, 1480, 1472, 1460, 1450, 1440, 1420, 1400, 1380, 1350,
	1300, 1280, 1240, 1006, 640, 600,
};

/**
 * ored_path_smaller() - the next smaller payload to try
 * @payload: what didn't get through
 * @overhead: bytes of all headers, IP's included
 *
 * Return: a payload of a usual MTU, or 0 if there is none
 */
u16 ored_path_smaller(u16 payload, u16 overhead)
{
	u32 i, next;

	for (i = 0; i < ARRAY_SIZE(usual); i++) {
		if (usual[i] <= overhead)
			break;
		next = ored_payload_round(usual[i] - overhead);
		if (next < payload)
			return (u16)next;
	}
	return 0;
}

/**
 * ored_path_limit() - more than this makes no sense to try
 * @path: a peer's
 * @payload: what the route, the user or the peer itself allows
 */
void ored_path_limit(struct ored_path *path, u16 payload)
{
	if (path->try <= payload)
		return;
	path->try = payload;
	path->tries = 0;
	path->ok = min(path->ok, payload);
}

/**
 * ored_path_missed() - a padded HELLO is about to be sent again
 * @path: a peer's
 * @overhead: see ored_path_smaller()
 * @floor: smallest payload that is acceptable
 *
 * Counts the tries of one that answers, and steps down after the last.
 *
 * Return: false if even @floor doesn't get through
 */
bool ored_path_missed(struct ored_path *path, u16 overhead, u16 floor)
{
	u16 next;

	/* One that has got nothing at all of us says nothing about sizes. */
	if (!path->session || !path->ok || path->ok >= path->try)
		return true;
	if (path->tries < ORED_HELLO_TRIES) {
		path->tries++;
		return true;
	}
	next = max(ored_path_smaller(path->try, overhead), path->ok);
	if (next < floor) {
		if (path->try <= floor)
			return false;
		next = floor;
	}
	path->try = next;
	path->tries = 1;
	return true;
}

/**
 * ored_path_heard() - takes in a peer's HELLO
 * @path: the peer's
 * @hello: parsed, and found to be of this group, epoch and rank
 * @final: its limit is final
 *
 * Return: whether anything in it is news
 */
bool ored_path_heard(struct ored_path *path, const struct ored_hello *hello,
		     bool final)
{
	struct ored_path old = *path;
	u16 limit = ored_payload_round(hello->limit);
	u16 through;

	if (path->session != hello->session) {
		/* It has started again: what it had got is gone with it. */
		path->session = hello->session;
		path->ok = 0;
		path->tries = 0;
		path->final = false;
	}
	path->got = max(path->got, hello->size);
	if (limit >= ORED_PAYLOAD_MIN) {
		path->limit = limit;
		path->final = final;
		ored_path_limit(path, limit);
	}
	if (hello->seen > ORED_WIRE_HEADER) {
		through = ored_payload_round(hello->seen - ORED_WIRE_HEADER);
		path->ok = max(path->ok, min(through, path->try));
	}
	return path->session != old.session || path->ok != old.ok ||
	       path->got != old.got || path->limit != old.limit ||
	       path->final != old.final;
}

/**
 * ored_joining_limit() - the largest payload that reaches everybody
 * @joining: a rank's view
 * @limit: receives it; while it isn't final, the most that it can become
 *
 * Return: whether it is final
 */
bool ored_joining_limit(const struct ored_joining *joining, u16 *limit)
{
	bool final = true;
	u32 r;

	*limit = 65528;
	for (r = 0; r < joining->nranks; r++) {
		const struct ored_path *path = &joining->path[r];

		if (r == joining->rank)
			continue;
		*limit = min(*limit, path->try);
		if (!path->session || path->ok < path->try)
			final = false;
	}
	return final;
}

/**
 * ored_joining_done() - have all ranks agreed?
 * @joining: a rank's view
 * @payload: receives the group's payload
 *
 * Return: false as long as a limit isn't final
 */
bool ored_joining_done(const struct ored_joining *joining, u16 *payload)
{
	u32 r;

	if (!ored_joining_limit(joining, payload))
		return false;
	for (r = 0; r < joining->nranks; r++) {
		const struct ored_path *path = &joining->path[r];

		if (r == joining->rank)
			continue;
		if (!path->final)
			return false;
		*payload = min(*payload, path->limit);
	}
	return true;
}
