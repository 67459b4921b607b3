// SPDX-License-Identifier: GPL-2.0

#include <linux/slab.h>
#include <net/netns/generic.h>

#include "area.h"
#include "lock.h"
#include "member.h"
#include "net.h"
#include "policy.h"
#include "setup.h"
#include "sysctl.h"

static unsigned int ored_net_id __read_mostly;
static bool unloading;

/**
 * ored_net() - ORED's part of a network namespace
 * @net: the namespace
 */
struct ored_net *ored_net(const struct net *net)
{
	return net_generic(net, ored_net_id);
}

/**
 * ored_net_changed() - a membership or setup comes or goes
 * @on: namespace; its lock is held
 *
 * Whoever reads the lists in several parts finds his place by numbers that only
 * grow, and by the generation that they have changed meanwhile.
 *
 * Return: the number for what comes, never given before
 */
u64 ored_net_changed(struct ored_net *on)
{
	lockdep_assert_held(&on->lock);
	if (!++on->generation)
		on->generation = 1;
	return ++on->serial;
}

/**
 * ored_net_by_session() - finds the membership that a packet is for
 * @on: namespace; under RCU or its lock
 * @session: from the packet
 *
 * Return: the membership, or NULL
 */
struct ored_member *ored_net_by_session(struct ored_net *on, u32 session)
{
	struct ored_member *m;

	hash_for_each_possible_rcu(on->sessions, m, hash, session,
				   lockdep_is_held(&on->lock)) {
		if (m->session == session)
			return m;
	}
	return NULL;
}

static int __net_init net_begin(struct net *net)
{
	struct ored_net *on = ored_net(net);
	int err;

	on->net = net;
	on->generation = 1;
	on->policy = (struct ored_policy)ORED_POLICY_DEFAULT;
	mutex_init(&on->lock);
	ored_lock_class(&on->lock, ORED_LOCK_NET);
	INIT_LIST_HEAD(&on->members);
	INIT_LIST_HEAD(&on->udps);
	INIT_LIST_HEAD(&on->setups);
	INIT_LIST_HEAD(&on->areas);
	INIT_LIST_HEAD(&on->shared);
	hash_init(on->sessions);
	ored_inject_begin(on);
	on->stats = ored_stats_alloc();
	if (!on->stats)
		return -ENOMEM;
	err = ored_sysctl_begin(on);
	if (err)
		free_percpu(on->stats);
	return err;
}

/*
 * Memberships hold the namespace, so there are some only when the module goes. Areas
 * hold the module, so there are some only when the namespace goes.
 */
static void __net_exit net_pre_end(struct net *net)
{
	ored_area_end(ored_net(net));
	if (READ_ONCE(unloading))
		ored_member_kill_all(ored_net(net));
}

static void __net_exit net_end(struct net *net)
{
	struct ored_net *on = ored_net(net);

	ored_sysctl_end(on);
	ored_inject_end(on);
	ored_setup_forget_all(on);
	free_percpu(on->stats);
}

static struct pernet_operations ored_net_ops = {
	.init = net_begin,
	.pre_exit = net_pre_end,
	.exit = net_end,
	.id = &ored_net_id,
	.size = sizeof(struct ored_net),
};

int ored_net_init(void)
{
	return register_pernet_subsys(&ored_net_ops);
}

void ored_net_exit(void)
{
	WRITE_ONCE(unloading, true);
	unregister_pernet_subsys(&ored_net_ops);
}
