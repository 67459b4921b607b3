// SPDX-License-Identifier: GPL-2.0
/*
 * A module with every bug that the debug kernels are there to find: the one
 * that is written to its parameter `bug` happens. selftests/vm/debug/check
 * loads it in ored's place, to see that each is found and told by name.
 */
#include <linux/delay.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <asm/fpu/api.h>

static DEFINE_SPINLOCK(lock);
static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static int zero;

static int none(void)
{
	return 0;
}

static int use_after_free(void)
{
	char *p = kmalloc(64, GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	kfree(p);
	return READ_ONCE(p[8]) & 0;
}

static int out_of_bounds(void)
{
	char *p = kmalloc(64, GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	WRITE_ONCE(p[64 + zero], 1);
	kfree(p);
	return 0;
}

static int use_after_vfree(void)
{
	char *p = vmalloc(PAGE_SIZE);

	if (!p)
		return -ENOMEM;
	vfree(p);
	return READ_ONCE(p[8]) & 0;
}

static int abba(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);
	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
	return 0;
}

static void take_lock(struct timer_list *timer)
{
	spin_lock(&lock);
	spin_unlock(&lock);
}

/* A lock that softirq takes is held with softirqs on. */
static int softirq_unsafe(void)
{
	struct timer_list timer;

	timer_setup_on_stack(&timer, take_lock, 0);
	mod_timer(&timer, jiffies);
	msleep(50);
	del_timer_sync(&timer);
	destroy_timer_on_stack(&timer);
	spin_lock(&lock);
	spin_unlock(&lock);
	return 0;
}

static int sleep_atomic(void)
{
	spin_lock_bh(&lock);
	msleep(1);
	spin_unlock_bh(&lock);
	return 0;
}

static int sleep_rcu(void)
{
	rcu_read_lock();
	mutex_lock(&first);
	mutex_unlock(&first);
	rcu_read_unlock();
	return 0;
}

static int rcu_unlocked(void)
{
	static void __rcu *pointer;

	return rcu_dereference(pointer) ? 1 : 0;
}

/* Which processor it is can change at any time. */
static int preempt_unsafe(void)
{
	return smp_processor_id() < 0;
}

/* What the FPU held for the outer user would be lost. */
static int fpu_twice(void)
{
	kernel_fpu_begin();
	kernel_fpu_begin();
	kernel_fpu_end();
	kernel_fpu_end();
	return 0;
}

static int bad_shift(void)
{
	return (1 << (READ_ONCE(zero) + 40)) & 0;
}

static int list_twice(void)
{
	LIST_HEAD(head);
	struct list_head entry;

	list_add(&entry, &head);
	list_add(&entry, &head);
	return 0;
}

static void nothing(struct timer_list *timer)
{
}

static int free_armed_timer(void)
{
	struct timer_list *timer = kmalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return -ENOMEM;
	timer_setup(timer, nothing, 0);
	mod_timer(timer, jiffies + 1000 * HZ);
	kfree(timer);
	return 0;
}

static int leak_memory(void)
{
	char *p = kmalloc(100, GFP_KERNEL);

	return p ? 0 : -ENOMEM;
}

static int leak_module(void)
{
	__module_get(THIS_MODULE);
	return 0;
}

static int leak_namespace(void)
{
	netns_tracker tracker;

	get_net_track(current->nsproxy->net_ns, &tracker, GFP_KERNEL);
	return 0;
}

static int leak_device(void)
{
	static netdevice_tracker tracker;
	struct net_device *dev;

	dev = dev_get_by_name(current->nsproxy->net_ns, "dummy0");
	if (!dev)
		return -ENODEV;
	netdev_tracker_alloc(dev, &tracker, GFP_KERNEL);
	return 0;
}

static int warn(void)
{
	WARN_ON(!zero);
	return 0;
}

static int null_pointer(void)
{
	int *p = (int *)(long)zero;

	return READ_ONCE(*p) & 0;
}

/* Waits without end, and so that no signal ends it. */
static int hang(void)
{
	mutex_lock(&first);
	mutex_lock_nested(&first, SINGLE_DEPTH_NESTING);
	return 0;
}

#define BUG_ENTRY(name) { #name, name }
static const struct {
	const char *name;
	int (*happen)(void);
} bugs[] = {
	BUG_ENTRY(none),
	BUG_ENTRY(use_after_free),
	BUG_ENTRY(out_of_bounds),
	BUG_ENTRY(use_after_vfree),
	BUG_ENTRY(abba),
	BUG_ENTRY(softirq_unsafe),
	BUG_ENTRY(sleep_atomic),
	BUG_ENTRY(sleep_rcu),
	BUG_ENTRY(rcu_unlocked),
	BUG_ENTRY(preempt_unsafe),
	BUG_ENTRY(fpu_twice),
	BUG_ENTRY(bad_shift),
	BUG_ENTRY(list_twice),
	BUG_ENTRY(free_armed_timer),
	BUG_ENTRY(leak_memory),
	BUG_ENTRY(leak_module),
	BUG_ENTRY(leak_namespace),
	BUG_ENTRY(leak_device),
	BUG_ENTRY(warn),
	BUG_ENTRY(null_pointer),
	BUG_ENTRY(hang),
};

static int set_bug(const char *value, const struct kernel_param *param)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bugs); i++)
		if (sysfs_streq(value, bugs[i].name))
			return bugs[i].happen();
	return -EINVAL;
}

static const struct kernel_param_ops bug_ops = { .set = set_bug };

module_param_cb(bug, &bug_ops, NULL, 0200);
MODULE_PARM_DESC(bug, "name of the bug that shall happen now");

MODULE_DESCRIPTION("Seeded bugs, for checking the checkers");
MODULE_LICENSE("GPL");

static int __init seeded_init(void)
{
	return 0;
}

static void __exit seeded_exit(void)
{
}

module_init(seeded_init);
module_exit(seeded_exit);
