/* SPDX-License-Identifier: GPL-2.0 */
/* Policies: what a rank makes of loss, and how long its ops may take. */
#ifndef ORED_POLICY_H
#define ORED_POLICY_H

#include <linux/ored.h>

#include "core/bound.h"

struct ored_member;
struct ored_net;

/* What a zero stands for, unless a sysctl says something else */
#define ORED_POLICY_DEFAULT {			\
	.loss_skip = 100000,			\
	.loss_halt = 500000,			\
	.min_ranks = 0,				\
	.mode = ORED_MODE_BOUNDED,		\
	.deadline = ORED_DEADLINE_LOSS,		\
	.incast = ORED_INCAST_ALL,		\
	.hadamard = ORED_HADAMARD_AUTO,		\
	.loss_target = ORED_BOUND_TARGET_PPM,	\
	.floor = ORED_BOUND_FLOOR_PPM,		\
	.ceiling = ORED_BOUND_CEILING_PPM,	\
	.warmup = ORED_BOUND_WARMUP_OPS,	\
	.bound_us = 0,				\
	.wait_ppm = ORED_BOUND_WAIT_PERCENT * 10000,	\
	.floor_us = ORED_BOUND_FLOOR_NS / NSEC_PER_USEC,	\
	.ceiling_us = ORED_BOUND_CEILING_NS / NSEC_PER_USEC,	\
}

int ored_policy_check(const struct ored_policy *policy, char *why);
int ored_policy_complete(struct ored_net *on, struct ored_policy *policy, u32 nranks, char *why);
void ored_policy_init(struct ored_member *m);
int ored_policy_apply(struct ored_member *m, const struct ored_policy *policy, char *why);
int ored_policy_set(struct ored_member *m, const struct ored_policy *policy, char *why);

#endif /* ORED_POLICY_H */
