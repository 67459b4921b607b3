/* SPDX-License-Identifier: GPL-2.0 */
/* What ORED keeps per network namespace. */
#ifndef ORED_NET_H
#define ORED_NET_H

#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <net/net_namespace.h>

#include "inject.h"
#include "stats.h"

struct ctl_table;
struct ctl_table_header;
struct ored_member;

#define ORED_SESSION_BITS	8

/**
 * struct ored_net - ORED in one network namespace
 * @net: the namespace
 * @lock: serialises changes of all lists here; never taken in softirq
 * @members: all memberships; read under RCU
 * @sessions: the same by session; read under RCU
 * @udps: outer sockets, under @lock
 * @setups: groups that an administrator has set up, under @lock
 * @nsetups: how many
 * @serial: what the next membership or setup is numbered with; under @lock
 * @generation: changes with the lists of both, never 0; under @lock
 * @told: events of memberships, for tell.c; under @lock
 * @stats: counters of packets that no membership can be charged with
 * @areas: checkpoint areas, under @lock
 * @shared: those of ranks that have peers, changed under @lock; read under RCU
 * @area_bytes: their memory
 * @area_cap: net.ored.ckpt_max_bytes
 * @policy: of new memberships, and what zeros in theirs stand for; under @lock
 * @sysctl: net.ored
 * @sysctl_table: its entries
 * @held: packets that debug builds hold back
 */
struct ored_net {
	struct net		*net;
	struct mutex		lock;	/* all lists here */
	struct list_head	members;
	DECLARE_HASHTABLE(sessions, ORED_SESSION_BITS);
	struct list_head	udps;
	struct list_head	setups;
	u32			nsetups;
	u64			serial;
	u32			generation;
	u32			told;
	struct ored_stats __percpu *stats;
	struct list_head	areas;
	struct list_head	shared;
	u64			area_bytes;
	u64			area_cap;
	struct ored_policy	policy;
	struct ctl_table_header	*sysctl;
	struct ctl_table	*sysctl_table;
	struct ored_held	held;
};

struct ored_net *ored_net(const struct net *net);
u64 ored_net_changed(struct ored_net *on);
struct ored_member *ored_net_by_session(struct ored_net *on, u32 session);

int ored_net_init(void);
void ored_net_exit(void);

#endif /* ORED_NET_H */
