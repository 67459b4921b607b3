/* SPDX-License-Identifier: GPL-2.0 */
/* The messages of the module's family, as items of output. */
#ifndef OREDCTL_SHOW_H
#define OREDCTL_SHOW_H

#include "genl.h"
#include "oredctl.h"

/* Each is a genl_sink; @arg isn't used. */
void show_group(const struct nlmsghdr *msg, void *arg);
void show_peer(const struct nlmsghdr *msg, void *arg);
void show_stat(const struct nlmsghdr *msg, void *arg);
void show_event(const struct nlmsghdr *msg, void *arg);

/* Puts what is selected into a request. */
void put_selector(struct nlmsghdr *request, const struct selector *selector);

/**
 * struct policy_key - a field of a policy
 * @name: as it is written
 * @attr: ORED_A_POLICY_*
 * @words: names of its values from 0 on, ended by NULL; NULL: it is a number
 */
struct policy_key {
	const char		*name;
	uint16_t		attr;
	const char *const	*words;
};

extern const struct policy_key policy_keys[];

#endif /* OREDCTL_SHOW_H */
