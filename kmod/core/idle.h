/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When checkpoints may travel: in the gaps that training leaves.
 *
 * The profile learns the idle spans of an iteration, that is, the times between
 * ops, in their order. An iteration ends with its longest span. What it foretells
 * is pessimistic (a shorter span counts at once, a longer one slowly) and is
 * trusted by a coefficient only, mu; an op that starts all the same ends the span.
 *
 * The plan is GEMINI's Algorithm 2 without its errata: a piece costs f(its size),
 * copies - 1 are sent, and a span too short to start in is passed over. It tells
 * what will go where, and whether a checkpoint fits into an iteration at all.
 */
#ifndef ORED_CORE_IDLE_H
#define ORED_CORE_IDLE_H

#include "shim.h"

#define ORED_IDLE_SPANS		64		/* that an iteration may have */
#define ORED_IDLE_ROUNDS	5		/* iterations before the profile counts */
#define ORED_IDLE_QUIET_NS	1000000000ULL	/* without an op nothing trains */
#define ORED_IDLE_FOREVER	(~0ULL)

/**
 * struct ored_idle - the profile of a group's idle spans
 * @span: what is expected of each, ns
 * @known: spans of an iteration
 * @at: the span that is, or the one that comes when ops have ended
 * @longest: of all, decaying, ns
 * @since: when the last op ended
 * @rounds: iterations seen
 * @spread: how far spans are from what was expected, ppm, smoothed
 * @busy: an op is in flight
 * @started: there has been one
 */
struct ored_idle {
	u64	span[ORED_IDLE_SPANS];
	u32	known;
	u32	at;
	u64	longest;
	u64	since;
	u32	rounds;
	u32	spread;
	bool	busy;
	bool	started;
};

void ored_idle_init(struct ored_idle *idle);
void ored_idle_busy(struct ored_idle *idle, u64 now);
void ored_idle_free(struct ored_idle *idle, u64 now);
u64 ored_idle_left(const struct ored_idle *idle, u64 now, u32 mu_ppm);

/**
 * struct ored_idle_job - what is to be sent into which spans
 * @spans: lengths in ns, in order; the last counts as infinite
 * @nspans: how many, at least 1
 * @bytes: of a checkpoint
 * @targets: to how many holders it goes: copies - 1
 * @part: largest piece, at most 1 GiB
 * @grain: pieces are multiples of it, but for a copy's last
 * @rate: from ored_idle_rate()
 * @startup: what starting a transfer costs, ns
 * @mu_ppm: share of each span that may be used, ppm
 */
struct ored_idle_job {
	const u64	*spans;
	u32		nspans;
	u64		bytes;
	u32		targets;
	u32		part;
	u32		grain;
	u64		rate;
	u64		startup;
	u32		mu_ppm;
};

/**
 * struct ored_idle_piece - what goes at once
 * @span: into which span
 * @target: to which holder
 * @offset: first byte
 * @bytes: how many
 */
struct ored_idle_piece {
	u32	span;
	u32	target;
	u64	offset;
	u64	bytes;
};

/**
 * struct ored_idle_cursor - how far a plan has been read
 * @job: what is planned
 * @at: the next piece, but for its length
 * @left: of the span, ns
 */
struct ored_idle_cursor {
	const struct ored_idle_job	*job;
	struct ored_idle_piece		at;
	u64				left;
};

u64 ored_idle_rate(u64 bytes_per_second);
void ored_idle_plan(struct ored_idle_cursor *cursor, const struct ored_idle_job *job);
bool ored_idle_next(struct ored_idle_cursor *cursor, struct ored_idle_piece *piece);
u64 ored_idle_iterations(const struct ored_idle_job *job);

#endif /* ORED_CORE_IDLE_H */
