// SPDX-License-Identifier: GPL-2.0
/* Loading and unloading. */

#include <linux/module.h>
#include <linux/workqueue.h>
#include <linux/ored.h>

#include "af_ored.h"
#include "compute.h"
#include "core/wire.h"
#include "net.h"
#include "netlink.h"
#include "selftest/selftest.h"

static int family = ORED_FAMILY_DEFAULT;
module_param(family, int, 0444);
MODULE_PARM_DESC(family, "Number of the socket family to borrow (default 18)");

/* What takes time at the end of a membership; never a system workqueue, which
 * could not be flushed when the module goes.
 */
struct workqueue_struct *ored_wq;

/* The ABI is fixed: a compiler or an edit that moves a field must not pass. */
static void __init check_abi(void)
{
	BUILD_BUG_ON(sizeof(struct sockaddr_ored) != 24);
	BUILD_BUG_ON(sizeof(struct ored_peer) != 24);
	BUILD_BUG_ON(sizeof(struct ored_join) != 104);
	BUILD_BUG_ON(sizeof(struct ored_op) != 48);
	BUILD_BUG_ON(sizeof(struct ored_stage) != 32);
	BUILD_BUG_ON(sizeof(struct ored_result) != 248);
	BUILD_BUG_ON(sizeof(struct ored_group) != 120);
	BUILD_BUG_ON(sizeof(struct ored_peer_state) != 120);
	BUILD_BUG_ON(sizeof(struct ored_policy) != 48);
	BUILD_BUG_ON(sizeof(struct ored_uncounted) != 16);
	BUILD_BUG_ON(sizeof(struct ored_area_conf) != 136);
	BUILD_BUG_ON(sizeof(struct ored_commit) != 296);
	BUILD_BUG_ON(sizeof(struct ored_generation) != 312);
	BUILD_BUG_ON(sizeof(struct ored_area_status) != 144);
	BUILD_BUG_ON(sizeof(struct ored_area_entry) != 184);
	BUILD_BUG_ON(sizeof(struct ored_area_read) != 56);
	BUILD_BUG_ON(sizeof(struct ored_area_newest) != 56);
	BUILD_BUG_ON(offsetof(struct ored_join, epoch) != 24);
	BUILD_BUG_ON(offsetof(struct ored_join, key) != 56);
	BUILD_BUG_ON(offsetof(struct ored_result, error) != 152);
	BUILD_BUG_ON(offsetof(struct ored_result, value) != 184);
}

static int __init ored_init(void)
{
	int err;

	check_abi();
	ored_compute_init();
	err = ored_selftest_run();
	if (err)
		return err;
	ored_wq = alloc_workqueue("ored", WQ_UNBOUND, 0);
	if (!ored_wq)
		return -ENOMEM;
	err = ored_net_init();
	if (err)
		goto err_net;
	err = ored_netlink_init();
	if (err)
		goto err_netlink;
	err = ored_af_init(family);
	if (err)
		goto err_af;
	return 0;

err_af:
	ored_netlink_exit();
err_netlink:
	ored_net_exit();
err_net:
	destroy_workqueue(ored_wq);
	return err;
}

static void __exit ored_exit(void)
{
	ored_af_exit();
	ored_netlink_exit();
	ored_net_exit();
	/* Closed sockets are freed by RCU, by code of ours. */
	rcu_barrier();
	destroy_workqueue(ored_wq);
}

module_init(ored_init);
module_exit(ored_exit);

MODULE_DESCRIPTION("Bounded-time collectives and checkpoint areas for training over Ethernet");
MODULE_AUTHOR("The ORED maintainers");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1");
