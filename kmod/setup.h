/* SPDX-License-Identifier: GPL-2.0 */
/* Groups that an administrator has set up for users to bind() to. */
#ifndef ORED_SETUP_H
#define ORED_SETUP_H

#include <linux/uidgid.h>
#include <linux/ored.h>

#include "net.h"

struct sockaddr_ored;

/**
 * struct ored_setup - a group that can be joined by bind()
 * @list: in ored_net.setups, in the order of @serial
 * @serial: number among all memberships and setups of the namespace
 * @conf: as given to ORED_SETUP
 * @anyone: every user may bind
 * @uid: else who may
 * @policy: of whoever binds; zeros stand for the namespace's
 * @peers: by rank
 */
struct ored_setup {
	struct list_head	list;
	u64			serial;
	struct ored_join	conf;
	bool			anyone;
	kuid_t			uid;
	struct ored_policy	policy;
	struct ored_peer	peers[];
};

struct ored_setup *ored_setup_get(struct ored_net *on, u32 group, const u64 *epoch);
int ored_setup_add(struct ored_net *on, const struct ored_join *conf,
		   const struct ored_peer *peers, const struct ored_policy *policy, char *why);
int ored_setup_remove(struct ored_net *on, const struct ored_join *conf, char *why);
void ored_setup_forget_all(struct ored_net *on);
int ored_setup_find(struct ored_net *on, const struct sockaddr_ored *addr,
		    struct ored_join *conf, struct ored_peer **peers,
		    struct ored_policy *policy, char *why);

#endif /* ORED_SETUP_H */
