// SPDX-License-Identifier: GPL-2.0

#include "idle.h"

#define MILLION 1000000U

/**
 * ored_idle_init() - nothing is known yet
 * @idle: the profile
 */
void ored_idle_init(struct ored_idle *idle)
{
	memset(idle, 0, sizeof(*idle));
}

static u64 share(u64 ns, u32 ppm)
{
	/* In microseconds, so that hours don't overflow. */
	return div_u64(ns, 1000) * min(ppm, MILLION) / 1000;
}

/* How far off was what had been expected? */
static void learn_spread(struct ored_idle *idle, u64 expected, u64 length)
{
	u64 off = expected > length ? expected - length : length - expected;
	u64 ppm = expected ? div64_u64(min(off, 1ULL << 40) * MILLION, expected) : MILLION;

	idle->spread += (s32)((s64)min_t(u64, ppm, MILLION) - idle->spread) / 8;
}

static void learn(struct ored_idle *idle, u64 length)
{
	u64 *span = &idle->span[idle->at];

	if (idle->at >= idle->known) {
		*span = length;
		return;
	}
	learn_spread(idle, *span, length);
	if (length < *span)
		*span -= (*span - length) / 2;
	else
		*span += (length - *span) / 8;
}

/**
 * ored_idle_busy() - an op has been posted, and none was in flight
 * @idle: the profile
 * @now: ns
 */
void ored_idle_busy(struct ored_idle *idle, u64 now)
{
	u64 length = now > idle->since ? now - idle->since : 0;
	bool last;

	if (idle->busy)
		return;
	idle->busy = true;
	if (!idle->started || length >= ORED_IDLE_QUIET_NS) {
		/* Not a span of training but a pause. */
		idle->started = true;
		idle->at = 0;
		return;
	}
	/* What is at least half as long as the longest ends an iteration. */
	idle->longest -= idle->longest / 32;
	last = length >= idle->longest / 2;
	if (length > 2 * idle->longest) {
		/* What had been taken for iterations were parts of one. */
		idle->rounds = 0;
		idle->known = 0;
	}
	idle->longest = max(idle->longest, length);
	learn(idle, length);
	if (last || idle->at + 1 == ORED_IDLE_SPANS) {
		idle->known = idle->at + 1;
		idle->rounds += idle->rounds < ORED_IDLE_ROUNDS;
		idle->at = 0;
	} else {
		idle->at++;
	}
}

/**
 * ored_idle_free() - the last op in flight has ended
 * @idle: the profile
 * @now: ns
 */
void ored_idle_free(struct ored_idle *idle, u64 now)
{
	if (!idle->busy)
		return;
	idle->busy = false;
	idle->since = now;
}

/**
 * ored_idle_left() - for how long may checkpoints be sent?
 * @idle: the profile
 * @now: ns
 * @mu_ppm: share of a span that is trusted, ppm
 *
 * Return: ns from now, 0: not now, ORED_IDLE_FOREVER: nothing trains
 */
u64 ored_idle_left(const struct ored_idle *idle, u64 now, u32 mu_ppm)
{
	u64 gone = now > idle->since ? now - idle->since : 0, use;

	if (idle->busy)
		return 0;
	if (!idle->started || gone >= ORED_IDLE_QUIET_NS)
		return ORED_IDLE_FOREVER;
	if (idle->rounds < ORED_IDLE_ROUNDS || idle->at >= idle->known)
		return 0;
	use = share(idle->span[idle->at], mu_ppm);
	return use > gone ? use - gone : 0;
}

/**
 * ored_idle_rate() - a rate as plans use it
 * @bytes_per_second: below 2^40
 *
 * Return: bytes per ns, 32 bits of it behind the point
 */
u64 ored_idle_rate(u64 bytes_per_second)
{
	/* 10^9 is 2^9 * 1953125. */
	return max(div_u64(min(bytes_per_second, 1ULL << 40) << 23, 1953125), 1ULL);
}

static void enter(struct ored_idle_cursor *cursor)
{
	const struct ored_idle_job *job = cursor->job;

	if (cursor->at.span + 1 >= job->nspans)
		cursor->left = ORED_IDLE_FOREVER;
	else
		cursor->left = share(job->spans[cursor->at.span], job->mu_ppm);
}

/**
 * ored_idle_plan() - begins to lay a checkpoint into spans
 * @cursor: to read the plan with
 * @job: what is to be sent; must outlive @cursor
 */
void ored_idle_plan(struct ored_idle_cursor *cursor, const struct ored_idle_job *job)
{
	memset(cursor, 0, sizeof(*cursor));
	cursor->job = job;
	enter(cursor);
}

/* Bytes that can be sent in a time */
static u64 fits(const struct ored_idle_job *job, u64 ns)
{
	if (ns == ORED_IDLE_FOREVER)
		return job->part;
	if (ns <= job->startup)
		return 0;
	return mul_u64_u64_shr(ns - job->startup, job->rate, 32);
}

/* What it takes to send them */
static u64 cost(const struct ored_idle_job *job, u64 bytes)
{
	return job->startup + div64_u64((bytes << 32) + job->rate - 1, job->rate);
}

/**
 * ored_idle_next() - the next piece of a plan
 * @cursor: from ored_idle_plan()
 * @piece: receives it
 *
 * Return: false: the plan is complete, every byte goes to every holder once
 */
bool ored_idle_next(struct ored_idle_cursor *cursor, struct ored_idle_piece *piece)
{
	const struct ored_idle_job *job = cursor->job;
	u64 rest, size, spent;

	if (cursor->at.target >= job->targets || !job->bytes)
		return false;
	rest = job->bytes - cursor->at.offset;
	for (;;) {
		size = min_t(u64, fits(job, cursor->left), job->part);
		if (size < rest)
			size -= size % job->grain;
		size = min(size, rest);
		if (size)
			break;
		/* The last span is infinite: there always is one in which it fits. */
		cursor->at.span++;
		enter(cursor);
	}
	*piece = cursor->at;
	piece->bytes = size;
	spent = cost(job, size);
	if (cursor->left != ORED_IDLE_FOREVER)
		cursor->left -= min(cursor->left, spent);
	cursor->at.offset += size;
	if (cursor->at.offset == job->bytes) {
		cursor->at.offset = 0;
		cursor->at.target++;
	}
	return true;
}

/**
 * ored_idle_iterations() - how often can there be a checkpoint?
 * @job: what is to be sent in each of them; its last span counts as it is
 *
 * Return: one in so many iterations; ORED_IDLE_FOREVER if the spans have room for
 * nothing
 */
u64 ored_idle_iterations(const struct ored_idle_job *job)
{
	u64 room = 0;
	u32 i;

	for (i = 0; i < job->nspans; i++)
		room += fits(job, share(job->spans[i], job->mu_ppm));
	if (!room)
		return ORED_IDLE_FOREVER;
	return max(div64_u64(job->bytes * job->targets + room - 1, room), 1ULL);
}
