// SPDX-License-Identifier: GPL-2.0
/*
 * Takes the locks once in the order that "Locking" in member.h tells. From then
 * on lockdep knows it, and the first code that takes two of them the other way
 * round is reported, whether the right way has ever been gone or not.
 *
 * That lockdep does find it, and that functions assert what they need, can be
 * seen by breaking a rule on purpose.
 */

#include <linux/init.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "../lock.h"
#include "../member.h"
#include "selftest.h"

static char *break_locking;
module_param(break_locking, charp, 0444);
MODULE_PARM_DESC(break_locking,
		 "Break a rule, to see it found: order, two_links, leaf, unlocked");

struct locks {
	struct mutex		send, recv, conf, net, area;
	spinlock_t		state;	/* an area's */
	spinlock_t		take;	/* what an area takes over */
	struct ored_member	m;
	struct ored_link	link[2];
	struct ored_slot	slot;
	spinlock_t		say;	/* a socket's */
};

static void __init init(struct locks *locks)
{
	u32 i;

	mutex_init(&locks->send);
	ored_lock_class(&locks->send, ORED_LOCK_SEND);
	mutex_init(&locks->recv);
	ored_lock_class(&locks->recv, ORED_LOCK_RECV);
	mutex_init(&locks->conf);
	ored_lock_class(&locks->conf, ORED_LOCK_CONF);
	mutex_init(&locks->net);
	ored_lock_class(&locks->net, ORED_LOCK_NET);
	mutex_init(&locks->area);
	ored_lock_class(&locks->area, ORED_LOCK_AREA);
	spin_lock_init(&locks->state);
	ored_lock_class(&locks->state, ORED_LOCK_STATE);
	spin_lock_init(&locks->take);
	ored_lock_class(&locks->take, ORED_LOCK_TAKE);
	spin_lock_init(&locks->m.lock);
	ored_lock_class(&locks->m.lock, ORED_LOCK_MEMBER);
	spin_lock_init(&locks->m.timer_lock);
	ored_lock_class(&locks->m.timer_lock, ORED_LOCK_TIMER);
	spin_lock_init(&locks->m.pace_lock);
	ored_lock_class(&locks->m.pace_lock, ORED_LOCK_PACE);
	for (i = 0; i < ARRAY_SIZE(locks->link); i++) {
		spin_lock_init(&locks->link[i].lock);
		ored_lock_class(&locks->link[i].lock, ORED_LOCK_LINK);
	}
	spin_lock_init(&locks->slot.know);
	ored_lock_class(&locks->slot.know, ORED_LOCK_KNOW);
	locks->slot.m = &locks->m;
	spin_lock_init(&locks->say);
	ored_lock_class(&locks->say, ORED_LOCK_SAY);
}

/* From a socket's options inwards */
static void __init walk(struct locks *locks)
{
	mutex_lock(&locks->conf);
	mutex_lock(&locks->net);
	mutex_lock(&locks->area);
	spin_lock_bh(&locks->m.lock);
	spin_lock(&locks->link[0].lock);
	spin_lock(&locks->slot.know);
	spin_unlock(&locks->slot.know);
	spin_lock(&locks->m.timer_lock);
	spin_unlock(&locks->m.timer_lock);
	spin_lock(&locks->m.pace_lock);
	spin_unlock(&locks->m.pace_lock);
	spin_lock(&locks->state);
	spin_unlock(&locks->state);
	spin_lock(&locks->take);
	spin_unlock(&locks->take);
	spin_unlock(&locks->link[0].lock);
	spin_unlock_bh(&locks->m.lock);
	mutex_unlock(&locks->area);
	mutex_unlock(&locks->net);
	mutex_unlock(&locks->conf);
}

/* What a socket says of its last error, in whatever call */
static void __init say(struct locks *locks)
{
	mutex_lock(&locks->conf);
	spin_lock(&locks->say);
	spin_unlock(&locks->say);
	mutex_unlock(&locks->conf);
}

static void __init teach(struct locks *locks)
{
	mutex_lock(&locks->send);
	walk(locks);
	say(locks);
	mutex_unlock(&locks->send);
	mutex_lock(&locks->recv);
	walk(locks);
	say(locks);
	mutex_unlock(&locks->recv);
}

static void __init nest(spinlock_t *outer, spinlock_t *inner)
{
	spin_lock_bh(outer);
	spin_lock(inner);
	spin_unlock(inner);
	spin_unlock_bh(outer);
}

static void __init break_rule(struct locks *locks, const char *rule)
{
	if (!strcmp(rule, "order"))
		nest(&locks->link[0].lock, &locks->m.lock);
	else if (!strcmp(rule, "two_links"))
		nest(&locks->link[0].lock, &locks->link[1].lock);
	else if (!strcmp(rule, "leaf"))
		nest(&locks->m.timer_lock, &locks->m.lock);
	else if (!strcmp(rule, "unlocked"))
		ored_slot_try_release(&locks->slot);
	else
		pr_err("ored: break_locking=%s is no rule\n", rule);
}

bool __init ored_selftest_lock(void)
{
	struct locks *locks = kzalloc(sizeof(*locks), GFP_KERNEL);

	if (!ored_expect(locks))
		return false;
	init(locks);
	teach(locks);
	if (break_locking)
		break_rule(locks, break_locking);
	kfree(locks);
	return true;
}
