// SPDX-License-Identifier: GPL-2.0

#include "bound.h"
#include "../../uapi/linux/ored.h"

#define START_PPM	1500000	/* D / Tq after the warm-up */
#define GAIN_PPM	5000	/* of the exponent, per target's worth of loss */
#define RISE_PPM	139762	/* ln 1.15: longest step up */
#define OWED_PPM	(4 * RISE_PPM)	/* what of a rise may be left for the ops after it */
#define SEARCH_DOWN_PPM	900000	/* steps of a search, while nothing is lost by it */
#define SEARCH_UP_PPM	1500000	/* and once something was */
#define SEARCH_MIN_PPM	100	/* of the ceiling */
#define ELAPSED_MAX	274877906944ULL	/* ns, 2^38: keeps products in 64 bits */

static u64 scale(u64 value, u32 ppm)
{
	return div_u64(value, ORED_PPM) * ppm + div_u64(value % ORED_PPM * ppm, ORED_PPM);
}

/**
 * ored_line_at() - time of a bucket
 * @line: as learnt
 * @bytes: its length
 *
 * Return: ns
 */
u64 ored_line_at(const struct ored_line *line, u32 bytes)
{
	return line->base + mul_u64_u64_shr(line->slope, max(bytes, line->from),
					    ORED_LINE_SHIFT);
}

/* How badly a line fits as the percentile @ppm: the pinball loss. */
static u64 misfit(const struct ored_bound *b, const struct ored_line *line, u32 ppm)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < b->nsamples; i++) {
		u64 at = ored_line_at(line, b->bytes[i]);
		u64 t = b->elapsed[i];

		/* Below 2^38, and 2^6 samples: no overflow */
		if (t >= at)
			sum += (t - at) / 1000 * (ppm / 10000);
		else
			sum += min_t(u64, at - t, ELAPSED_MAX) / 1000 * ((ORED_PPM - ppm) / 10000);
	}
	return sum;
}

static void keep_better(const struct ored_bound *b, u32 ppm, struct ored_line *best, u64 *least,
			u64 base, u64 slope)
{
	struct ored_line line = { .base = base, .slope = slope };
	u64 fit = misfit(b, &line, ppm);

	if (fit >= *least)
		return;
	*least = fit;
	*best = line;
}

/* The line through two samples, unless it says what can't be. */
static bool through(const struct ored_bound *b, u32 i, u32 j, u64 *base, u64 *slope)
{
	u64 run, rest;

	if (b->bytes[i] >= b->bytes[j] || b->elapsed[i] > b->elapsed[j])
		return false;
	run = b->bytes[j] - b->bytes[i];
	*slope = div64_u64((b->elapsed[j] - b->elapsed[i]) << ORED_LINE_SHIFT, run);
	rest = mul_u64_u64_shr(*slope, b->bytes[i], ORED_LINE_SHIFT);
	if (rest > b->elapsed[i])
		return false;
	*base = b->elapsed[i] - rest;
	return true;
}

/*
 * The line that is the samples' percentile. The best one passes through two of
 * them, or through one and the origin, or is level: all of these are tried,
 * which for a few samples takes less than sorting cleverly. Of equals the
 * steepest is preferred: buckets longer than any of the warm-up must not be
 * thought short. Whoever is shorter than any is taken for the shortest.
 */
static struct ored_line percentile(const struct ored_bound *b, u32 ppm)
{
	struct ored_line best = {};
	u64 base, slope, least = ~0ULL;
	u32 i, j;

	for (i = 0; i < b->nsamples; i++)
		keep_better(b, ppm, &best, &least, 0,
			    div64_u64(b->elapsed[i] << ORED_LINE_SHIFT, max(b->bytes[i], 1U)) + 1);
	for (i = 0; i < b->nsamples; i++)
		for (j = 0; j < b->nsamples; j++)
			if (through(b, i, j, &base, &slope))
				keep_better(b, ppm, &best, &least, base, slope);
	for (i = 0; i < b->nsamples; i++)
		keep_better(b, ppm, &best, &least, b->elapsed[i], 0);
	best.from = ~0U;
	for (i = 0; i < b->nsamples; i++)
		best.from = min(best.from, b->bytes[i]);
	return best;
}

static void learn(struct ored_bound *b)
{
	b->quiet = percentile(b, 200000);
	b->p95 = percentile(b, 950000);
	b->factor = clamp_t(u32, START_PPM, b->conf.floor_ppm, b->conf.ceiling_ppm);
	b->excused = 0;
	b->owed = 0;
	b->phase = ORED_BOUND_LEARNT;
}

/**
 * ored_bound_conf_check() - is a configuration sensible?
 * @conf: what to look at
 *
 * Return: 0 or -EINVAL
 */
int ored_bound_conf_check(const struct ored_bound_conf *conf)
{
	bool good = conf->policy <= ORED_DEADLINE_P95 &&
		    conf->target_ppm >= 1 && conf->target_ppm <= ORED_PPM / 2 &&
		    conf->floor_ppm >= ORED_PPM / 2 && conf->floor_ppm <= conf->ceiling_ppm &&
		    conf->ceiling_ppm <= 100 * ORED_PPM &&
		    conf->floor_ns && conf->floor_ns <= conf->ceiling_ns &&
		    conf->ceiling_ns <= ELAPSED_MAX && conf->ceiling_byte_ns <= 10000 &&
		    conf->warmup >= ORED_BOUND_MIN && conf->warmup <= ORED_BOUND_SAMPLES &&
		    conf->wait_percent <= 50;

	return good ? 0 : -EINVAL;
}

/**
 * ored_bound_init() - nothing is known
 * @b: what to fill in
 * @conf: one that ored_bound_conf_check() likes
 */
void ored_bound_init(struct ored_bound *b, const struct ored_bound_conf *conf)
{
	memset(b, 0, sizeof(*b));
	b->conf = *conf;
	b->excused = ORED_PPM;
}

/**
 * ored_bound_quiet() - Tq: what an undisturbed op takes
 * @b: the group's
 * @bytes: length of the bucket
 *
 * Return: ns; 0 if not known yet
 */
u64 ored_bound_quiet(const struct ored_bound *b, u32 bytes)
{
	return b->phase == ORED_BOUND_LEARNT ? max(ored_line_at(&b->quiet, bytes), 1ULL) : 0;
}

static u64 ceiling(const struct ored_bound *b, u32 bytes)
{
	return b->conf.ceiling_ns + (u64)bytes * b->conf.ceiling_byte_ns;
}

static u64 by_policy(const struct ored_bound *b, u32 bytes)
{
	u64 most = ceiling(b, bytes), quiet = ored_bound_quiet(b, bytes), d;

	if (b->phase == ORED_BOUND_WARMUP)
		return most;
	if (b->phase == ORED_BOUND_SEARCH)
		return max(scale(most, b->factor), b->conf.floor_ns);
	if (b->conf.policy == ORED_DEADLINE_P95)
		d = max(ored_line_at(&b->p95, bytes), scale(quiet, b->conf.floor_ppm));
	else
		d = scale(quiet, b->factor);
	return min(max(d, b->conf.floor_ns), most);
}

/*
 * The gather takes 0.55 Tq, and gets it: a later seal starves it when a rank is
 * dead, an earlier one starves the scatter, which takes 0.55 Tq too. Where
 * there isn't time for both, both lose the same part.
 */
static u64 seal_of(u64 bound, u64 quiet)
{
	u64 share = scale(quiet, 550000);
	u64 latest = min(scale(bound, 750000), bound - min(bound, share));

	return max(latest, min(share, scale(bound, 523810)));
}

/* Of a bound that is long whatever Tq may be, or of one given by the caller. */
static u64 seal_blindly(u64 bound, bool given)
{
	return scale(bound, given ? 600000 : 750000);
}

/**
 * ored_bound_limits() - how long an op may take
 * @b: the group's
 * @bytes: length of its bucket
 * @deadline: D as the caller of the op wants it, ns; 0: by policy
 * @wait: W likewise; ORED_WAIT_POLICY: by policy
 * @out: receives the limits
 */
void ored_bound_limits(const struct ored_bound *b, u32 bytes, u64 deadline, u64 wait,
		       struct ored_limits *out)
{
	u64 quiet = ored_bound_quiet(b, bytes);

	out->bound = deadline ? deadline : by_policy(b, bytes);
	out->seal = quiet ? seal_of(out->bound, quiet) : seal_blindly(out->bound, deadline);
	out->wait = wait == ORED_WAIT_POLICY ?
		    scale(out->bound, b->conf.wait_percent * (ORED_PPM / 100)) : wait;
	out->grace = quiet ? quiet / 10 : out->bound / 20;
}

/**
 * ored_bound_sample() - an op was complete
 * @b: the group's
 * @bytes: length of its bucket
 * @elapsed: what it took, ns
 *
 * For ops that had a deadline of their own, or none; ored_bound_ended() does it
 * for those under the policy. Matters until enough is known only.
 */
void ored_bound_sample(struct ored_bound *b, u32 bytes, u64 elapsed)
{
	if (b->phase == ORED_BOUND_LEARNT)
		return;
	b->bytes[b->nsamples] = bytes;
	b->elapsed[b->nsamples] = min_t(u64, elapsed, ELAPSED_MAX - 1);
	b->nsamples++;
	if (b->nsamples >= b->conf.warmup ||
	    (b->phase == ORED_BOUND_SEARCH && b->nsamples >= ORED_BOUND_MIN))
		learn(b);
}

/* e^(@x / 1e6) * 1e6, for @x from -GAIN_PPM to RISE_PPM, to the 4th power */
static u32 exp_ppm(s32 x)
{
	s32 square = (s32)div_s64((s64)x * x, ORED_PPM);
	s32 cube = (s32)div_s64((s64)square * x, ORED_PPM);
	s32 fourth = (s32)div_s64((s64)cube * x, ORED_PPM);

	return (u32)((s32)ORED_PPM + x + square / 2 + cube / 6 + fourth / 24);
}

/*
 * Where buckets are a few packets long, an op loses nothing or very much. If what
 * its step is cut by were forgotten, the mean loss would settle far above the
 * target: at the part of ops that lose something, whatever they lose. So the rest
 * comes with the next ops, as far as the ceiling lets it.
 */
static void steer(struct ored_bound *b, u32 loss_ppm)
{
	u64 rise = b->owed + div_u64((u64)loss_ppm * GAIN_PPM, b->conf.target_ppm);
	u32 step = (u32)min_t(u64, rise, RISE_PPM + GAIN_PPM);
	s32 x = (s32)step - GAIN_PPM;

	b->owed = (u32)min_t(u64, rise - step, OWED_PPM);
	b->factor = (u32)clamp_t(u64, scale(b->factor, exp_ppm(x)), b->conf.floor_ppm,
				 b->conf.ceiling_ppm);
	if (b->factor == b->conf.ceiling_ppm)
		b->owed = 0;
}

/*
 * Down while that loses no more than the ceiling did; where it does, up again
 * by more than the last step: so the loss is held to what it must be plus the
 * target. Who loses most of everything has nothing to gain by being quick, but
 * would run away from its peers.
 */
static void search(struct ored_bound *b, u32 loss_ppm)
{
	bool more = loss_ppm > b->excused + b->conf.target_ppm || loss_ppm > ORED_PPM / 2;

	b->excused = min(b->excused, loss_ppm);
	b->factor = (u32)clamp_t(u64, scale(b->factor, more ? SEARCH_UP_PPM : SEARCH_DOWN_PPM),
				 SEARCH_MIN_PPM, ORED_PPM);
}

static void incomplete(struct ored_bound *b, u32 loss_ppm)
{
	if (b->phase == ORED_BOUND_SEARCH) {
		search(b, loss_ppm);
		return;
	}
	b->excused = min(b->excused, loss_ppm);
	if (++b->tries < b->conf.warmup)
		return;
	if (b->nsamples >= ORED_BOUND_MIN) {
		learn(b);
		return;
	}
	b->phase = ORED_BOUND_SEARCH;
	b->factor = ORED_PPM;
}

/**
 * ored_bound_behind() - an op ended because the group had left it
 * @b: the group's
 * @loss_ppm: as for ored_bound_ended(), and under the same condition
 *
 * Its loss is not the bound's fault, but it is one more that wasn't complete.
 */
void ored_bound_behind(struct ored_bound *b, u32 loss_ppm)
{
	if (b->phase != ORED_BOUND_LEARNT)
		incomplete(b, min(loss_ppm, ORED_PPM));
}

/**
 * ored_bound_ended() - an op whose bound was found by the policy has ended
 * @b: the group's
 * @bytes: length of its bucket
 * @elapsed: what it took, ns
 * @loss_ppm: what was missing in the end, of the bytes that were to come from
 *	ranks that count and have sent at least something in this op; parts per
 *	million
 * @complete: nothing was, and all that count have sent something
 *
 * Not for ops in which fewer than a quorum (ored_quorum(), the own rank is one)
 * have sent anything: what a rank loses that is cut off says nothing about the
 * bound. Ops that were left behind are for ored_bound_behind().
 */
void ored_bound_ended(struct ored_bound *b, u32 bytes, u64 elapsed, u32 loss_ppm,
		      bool complete)
{
	loss_ppm = min(loss_ppm, ORED_PPM);
	if (b->phase != ORED_BOUND_LEARNT && complete)
		ored_bound_sample(b, bytes, elapsed);
	else if (b->phase != ORED_BOUND_LEARNT)
		incomplete(b, loss_ppm);
	else if (b->conf.policy == ORED_DEADLINE_LOSS)
		steer(b, loss_ppm);
}
