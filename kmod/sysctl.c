// SPDX-License-Identifier: GPL-2.0

#include <linux/slab.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>

#include "area.h"
#include "net.h"
#include "policy.h"
#include "sysctl.h"

/* Fields of struct ored_policy, by the same names */
#define FIELD(field) {							\
	.procname = #field,						\
	.data = (void *)offsetof(struct ored_policy, field),		\
	.maxlen = sizeof_field(struct ored_policy, field),		\
}

static const struct ctl_table fields[] = {
	FIELD(loss_skip),
	FIELD(loss_halt),
	FIELD(min_ranks),
	FIELD(mode),
	FIELD(deadline),
	FIELD(incast),
	FIELD(hadamard),
	FIELD(loss_target),
	FIELD(floor),
	FIELD(ceiling),
	FIELD(warmup),
	FIELD(bound_us),
	FIELD(wait_ppm),
	FIELD(floor_us),
	FIELD(ceiling_us),
};

/*
 * Reads or writes a field. What is written must be sensible together with all
 * other fields; else nothing changes.
 */
static int handle(ORED_CTL_TABLE *table, int write, void *buffer, size_t *len, loff_t *pos)
{
	struct ored_net *on = table->extra1;
	struct ctl_table one = *table;
	struct ored_policy policy;
	char why[ORED_ERROR_MAX];
	int err;

	mutex_lock(&on->lock);
	policy = on->policy;
	one.data = (void *)&policy + (unsigned long)table->data;
	one.extra1 = NULL;
	if (one.maxlen == sizeof(u8))
		err = proc_dou8vec_minmax(&one, write, buffer, len, pos);
	else
		err = proc_douintvec(&one, write, buffer, len, pos);
	if (!err && write)
		err = ored_policy_check(&policy, why);
	if (!err && write)
		on->policy = policy;
	mutex_unlock(&on->lock);
	return err;
}

/**
 * ored_sysctl_begin() - a namespace gets its net.ored
 * @on: the namespace, its policy set
 *
 * Return: 0 or -ENOMEM
 */
int ored_sysctl_begin(struct ored_net *on)
{
	struct ctl_table *table;
	size_t i;

	/* The areas' cap, and an empty one for kernels that look for the end. */
	table = kcalloc(ARRAY_SIZE(fields) + 2, sizeof(*table), GFP_KERNEL_ACCOUNT);
	if (!table)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		table[i] = fields[i];
		table[i].mode = 0644;
		table[i].proc_handler = handle;
		table[i].extra1 = on;
	}
	ored_area_cap_begin(on, &table[i]);
	on->sysctl = register_net_sysctl_sz(on->net, "net/ored", table, ARRAY_SIZE(fields) + 1);
	if (!on->sysctl) {
		kfree(table);
		return -ENOMEM;
	}
	on->sysctl_table = table;
	return 0;
}

/**
 * ored_sysctl_end() - a namespace goes
 * @on: the namespace
 */
void ored_sysctl_end(struct ored_net *on)
{
	unregister_net_sysctl_table(on->sysctl);
	kfree(on->sysctl_table);
}
