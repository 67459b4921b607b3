// SPDX-License-Identifier: GPL-2.0

#include <linux/cred.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "err.h"
#include "event.h"
#include "policy.h"
#include "setup.h"

#define ORED_SETUPS_MAX	256	/* per namespace */

static struct ored_setup *find(struct ored_net *on, u32 group, u64 epoch)
{
	struct ored_setup *setup;

	lockdep_assert_held(&on->lock);
	list_for_each_entry(setup, &on->setups, list) {
		if (setup->conf.group == group && setup->conf.epoch == epoch)
			return setup;
	}
	return NULL;
}

static struct ored_setup *find_newest(struct ored_net *on, u32 group)
{
	struct ored_setup *setup, *newest = NULL;

	lockdep_assert_held(&on->lock);
	list_for_each_entry(setup, &on->setups, list) {
		if (setup->conf.group != group)
			continue;
		if (!newest || setup->conf.epoch > newest->conf.epoch)
			newest = setup;
	}
	return newest;
}

/**
 * ored_setup_get() - a group that is set up
 * @on: namespace; its lock is held
 * @group: its id
 * @epoch: of which run; NULL: of the newest
 *
 * Return: it, or NULL
 */
struct ored_setup *ored_setup_get(struct ored_net *on, u32 group, const u64 *epoch)
{
	return epoch ? find(on, group, *epoch) : find_newest(on, group);
}

/* Puts it into the list, unless it is there or there are too many. */
static int insert(struct ored_net *on, struct ored_setup *setup, char *why)
{
	const struct ored_join *conf = &setup->conf;
	struct ored_policy policy = setup->policy;
	int err;

	lockdep_assert_held(&on->lock);
	if (find(on, conf->group, conf->epoch))
		return ored_refuse(why, EEXIST, "group %u, epoch %llu is set up already",
				   conf->group, (u64)conf->epoch);
	if (on->nsetups >= ORED_SETUPS_MAX)
		return ored_refuse(why, ENOSPC, "%u groups are set up, and that is the limit",
				   on->nsetups);
	err = ored_policy_complete(on, &policy, conf->nranks, why);
	if (err)
		return err;
	setup->serial = ored_net_changed(on);
	list_add_tail(&setup->list, &on->setups);
	on->nsetups++;
	return 0;
}

/**
 * ored_setup_add() - remembers a group
 * @on: namespace
 * @conf: checked
 * @peers: @conf->nranks of them; copied
 * @policy: of who binds, unchecked; NULL: the namespace's
 * @why: receives a sentence if it is refused
 *
 * Return: 0, -EINVAL, -EEXIST, -ENOSPC, -ENOMEM
 */
int ored_setup_add(struct ored_net *on, const struct ored_join *conf,
		   const struct ored_peer *peers, const struct ored_policy *policy, char *why)
{
	kuid_t uid = make_kuid(current_user_ns(), conf->uid);
	struct ored_setup *setup;
	int err;

	if (conf->uid != ORED_ANYONE && !uid_valid(uid))
		return ored_refuse(why, EINVAL, "uid %u doesn't exist in this user namespace",
				   conf->uid);
	setup = kvzalloc(struct_size(setup, peers, conf->nranks), GFP_KERNEL_ACCOUNT);
	if (!setup)
		return ored_refuse(why, ENOMEM, "out of memory");
	setup->conf = *conf;
	setup->anyone = conf->uid == ORED_ANYONE;
	setup->uid = uid;
	if (policy)
		setup->policy = *policy;
	memcpy(setup->peers, peers, conf->nranks * sizeof(*peers));

	mutex_lock(&on->lock);
	err = insert(on, setup, why);
	if (!err)
		ored_event_setup(on, setup, ORED_CMD_GROUP_NEW_NTF);
	mutex_unlock(&on->lock);
	if (err)
		kvfree(setup);
	return err;
}

/**
 * ored_setup_remove() - forgets a group; whoever has joined stays
 * @on: namespace
 * @conf: its group and epoch count
 * @why: receives a sentence if it is refused
 *
 * Return: 0 or -ENOENT
 */
int ored_setup_remove(struct ored_net *on, const struct ored_join *conf, char *why)
{
	struct ored_setup *setup;

	mutex_lock(&on->lock);
	setup = find(on, conf->group, conf->epoch);
	if (setup) {
		list_del(&setup->list);
		on->nsetups--;
		ored_net_changed(on);
		ored_event_setup(on, setup, ORED_CMD_GROUP_DEL_NTF);
	}
	mutex_unlock(&on->lock);
	if (!setup)
		return ored_refuse(why, ENOENT, "group %u, epoch %llu is not set up",
				   conf->group, (u64)conf->epoch);
	kvfree_sensitive(setup, struct_size(setup, peers, setup->conf.nranks));
	return 0;
}

/**
 * ored_setup_forget_all() - the namespace ends
 * @on: the namespace
 */
void ored_setup_forget_all(struct ored_net *on)
{
	struct ored_setup *setup, *next;

	list_for_each_entry_safe(setup, next, &on->setups, list)
		kvfree_sensitive(setup, struct_size(setup, peers, setup->conf.nranks));
}

static int copy_out(const struct ored_setup *setup, struct ored_join *conf,
		    struct ored_peer **peers, struct ored_policy *policy, char *why)
{
	if (!setup->anyone && !uid_eq(setup->uid, current_euid()))
		return ored_refuse(why, EPERM, "group %u was set up for another user",
				   setup->conf.group);
	*conf = setup->conf;
	*policy = setup->policy;
	*peers = kvmalloc_array(conf->nranks, sizeof(**peers), GFP_KERNEL_ACCOUNT);
	if (!*peers)
		return ored_refuse(why, ENOMEM, "out of memory");
	memcpy(*peers, setup->peers, conf->nranks * sizeof(**peers));
	return 0;
}

/**
 * ored_setup_find() - what an administrator has set up for bind()
 * @on: namespace
 * @addr: checked
 * @conf: receives the group, but for the rank
 * @peers: receives them; to be freed with kvfree()
 * @policy: receives it; zeros stand for the namespace's
 * @why: receives a sentence if it is refused
 *
 * Return: 0, -ENOENT, -EPERM, -ENOMEM
 */
int ored_setup_find(struct ored_net *on, const struct sockaddr_ored *addr,
		    struct ored_join *conf, struct ored_peer **peers,
		    struct ored_policy *policy, char *why)
{
	struct ored_setup *setup;
	u64 epoch;
	int err;

	mutex_lock(&on->lock);
	epoch = addr->sored_epoch;
	setup = ored_setup_get(on, addr->sored_group, epoch ? &epoch : NULL);
	if (setup)
		err = copy_out(setup, conf, peers, policy, why);
	else
		err = ored_refuse(why, ENOENT, "no such group is set up here: group %u, epoch %llu",
				  addr->sored_group, (u64)addr->sored_epoch);
	mutex_unlock(&on->lock);
	return err;
}
