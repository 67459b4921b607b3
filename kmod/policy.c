// SPDX-License-Identifier: GPL-2.0

#include "deadline.h"
#include "early.h"
#include "err.h"
#include "member.h"
#include "policy.h"

#define PPM ORED_PPM

static struct ored_bound_conf conf_of(const struct ored_policy *policy)
{
	return (struct ored_bound_conf){
		.policy = policy->deadline,
		.target_ppm = policy->loss_target,
		.floor_ppm = policy->floor,
		.ceiling_ppm = policy->ceiling,
		.floor_ns = policy->floor_us * (u64)NSEC_PER_USEC,
		.ceiling_ns = policy->ceiling_us * (u64)NSEC_PER_USEC,
		.ceiling_byte_ns = ORED_BOUND_CEILING_BYTE_NS,
		.warmup = policy->warmup,
		.wait_percent = policy->wait_ppm == ORED_WAIT_NONE ? 0 :
				policy->wait_ppm / 10000,
	};
}

/* Zeros become what they stand for. */
static void fill_in(struct ored_policy *policy, const struct ored_policy *otherwise)
{
	policy->loss_skip = policy->loss_skip ?: otherwise->loss_skip;
	policy->loss_halt = policy->loss_halt ?: otherwise->loss_halt;
	policy->min_ranks = policy->min_ranks ?: otherwise->min_ranks;
	policy->mode = policy->mode ?: otherwise->mode;
	policy->deadline = policy->deadline ?: otherwise->deadline;
	policy->incast = policy->incast ?: otherwise->incast;
	policy->hadamard = policy->hadamard ?: otherwise->hadamard;
	policy->loss_target = policy->loss_target ?: otherwise->loss_target;
	policy->floor = policy->floor ?: otherwise->floor;
	policy->ceiling = policy->ceiling ?: otherwise->ceiling;
	policy->warmup = policy->warmup ?: otherwise->warmup;
	policy->bound_us = policy->bound_us ?: otherwise->bound_us;
	policy->wait_ppm = policy->wait_ppm ?: otherwise->wait_ppm;
	policy->floor_us = policy->floor_us ?: otherwise->floor_us;
	policy->ceiling_us = policy->ceiling_us ?: otherwise->ceiling_us;
}

static int check_bound(const struct ored_policy *policy, char *why)
{
	struct ored_bound_conf conf = conf_of(policy);

	if (policy->wait_ppm > PPM / 2 && policy->wait_ppm != ORED_WAIT_NONE)
		return ored_refuse(why, EINVAL, "wait_ppm is %u: at most half of the bound, 500000",
				   policy->wait_ppm);
	if (policy->warmup < ORED_BOUND_MIN || policy->warmup > ORED_BOUND_SAMPLES)
		return ored_refuse(why, EINVAL, "warmup is %u ops, not %u to %u", policy->warmup,
				   ORED_BOUND_MIN, ORED_BOUND_SAMPLES);
	if (policy->floor > policy->ceiling || policy->floor_us > policy->ceiling_us)
		return ored_refuse(why, EINVAL, "a floor is above its ceiling: %u and %u ppm, %u and %u us",
				   policy->floor, policy->ceiling, policy->floor_us,
				   policy->ceiling_us);
	if (ored_bound_conf_check(&conf))
		return ored_refuse(why, EINVAL,
				   "loss_target %u (1 to 500000 ppm), floor %u (500000 at least), ceiling %u (100000000 at most) or ceiling_us %u (274877906 at most) is out of range",
				   policy->loss_target, policy->floor, policy->ceiling,
				   policy->ceiling_us);
	return 0;
}

/**
 * ored_policy_check() - is a policy sensible?
 * @policy: with all zeros filled in
 * @why: receives a sentence if it isn't
 *
 * Return: 0 or -EINVAL
 */
int ored_policy_check(const struct ored_policy *policy, char *why)
{
	if (policy->loss_skip > PPM || policy->loss_halt > PPM)
		return ored_refuse(why, EINVAL, "loss_skip %u and loss_halt %u are parts per million",
				   policy->loss_skip, policy->loss_halt);
	if (policy->min_ranks > ORED_MAX_RANKS)
		return ored_refuse(why, EINVAL, "min_ranks is %u, more than any group has",
				   policy->min_ranks);
	/* It is what ORED_MODE_DEFAULT stands for. */
	if (policy->mode != ORED_MODE_BOUNDED && policy->mode != ORED_MODE_RELIABLE)
		return ored_refuse(why, EINVAL, "mode %u is neither bounded nor reliable",
				   policy->mode);
	if (policy->deadline > ORED_DEADLINE_P95)
		return ored_refuse(why, EINVAL, "deadline policy %u doesn't exist",
				   policy->deadline);
	if (policy->incast > ORED_INCAST_ADAPT)
		return ored_refuse(why, EINVAL, "incast policy %u doesn't exist", policy->incast);
	/* Likewise of ORED_HADAMARD_DEFAULT */
	if (policy->hadamard < ORED_HADAMARD_AUTO || policy->hadamard > ORED_HADAMARD_OFF)
		return ored_refuse(why, EINVAL, "hadamard is %u, not auto (1), on (2) or off (3)",
				   policy->hadamard);
	return check_bound(policy, why);
}

static bool relearn(const struct ored_policy *a, const struct ored_policy *b)
{
	return a->deadline != b->deadline || a->warmup != b->warmup || a->floor != b->floor ||
	       a->ceiling != b->ceiling || a->floor_us != b->floor_us ||
	       a->ceiling_us != b->ceiling_us;
}

/**
 * ored_policy_complete() - puts defaults in the place of zeros
 * @on: namespace; its lock is held
 * @policy: from the user, unchecked; is filled in
 * @nranks: of the group
 * @why: receives a sentence if it isn't sensible
 *
 * Return: 0 or -EINVAL
 */
int ored_policy_complete(struct ored_net *on, struct ored_policy *policy, u32 nranks, char *why)
{
	int err;

	lockdep_assert_held(&on->lock);
	fill_in(policy, &on->policy);
	err = ored_policy_check(policy, why);
	if (!err && policy->min_ranks > nranks)
		err = ored_refuse(why, EINVAL, "min_ranks is %u, but the group has %u",
				  policy->min_ranks, nranks);
	return err;
}

/**
 * ored_policy_apply() - sets a membership's policy, from the next op on
 * @m: the membership; its namespace's lock is held
 * @policy: from the user, unchecked
 * @why: receives a sentence if it is refused
 *
 * Return: 0 or -EINVAL
 */
int ored_policy_apply(struct ored_member *m, const struct ored_policy *policy, char *why)
{
	struct ored_policy whole = *policy;
	struct ored_bound_conf conf;
	bool reincast;
	int err;

	err = ored_policy_complete(m->on, &whole, m->nranks, why);
	if (err)
		return err;
	conf = conf_of(&whole);
	spin_lock_bh(&m->lock);
	if (relearn(&m->policy, &whole))
		ored_bound_init(&m->bound, &conf);
	reincast = m->policy.incast != whole.incast;
	m->bound.conf = conf;
	m->policy = whole;
	if (reincast)
		ored_early_incast_init(m);
	spin_unlock_bh(&m->lock);
	return 0;
}

/**
 * ored_policy_set() - sets a membership's policy, from the next op on
 * @m: the membership; no lock held
 * @policy: from the user, unchecked
 * @why: receives a sentence if it is refused
 *
 * Return: 0 or -EINVAL
 */
int ored_policy_set(struct ored_member *m, const struct ored_policy *policy, char *why)
{
	int err;

	mutex_lock(&m->on->lock);
	err = ored_policy_apply(m, policy, why);
	mutex_unlock(&m->on->lock);
	return err;
}

/**
 * ored_policy_init() - gives a new membership its namespace's policy
 * @m: nobody can reach it yet
 */
void ored_policy_init(struct ored_member *m)
{
	struct ored_bound_conf conf;

	mutex_lock(&m->on->lock);
	m->policy = m->on->policy;
	mutex_unlock(&m->on->lock);
	m->policy.min_ranks = min(m->policy.min_ranks, m->nranks);
	conf = conf_of(&m->policy);
	ored_bound_init(&m->bound, &conf);
}
