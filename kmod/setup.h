/* SPDX-License-Identifier: GPL-2.0 */
/* Groups that an administrator has set up for users to bind() to. */
#ifndef ORED_SETUP_H
#define ORED_SETUP_H

#include <linux/ored.h>

#include "net.h"

struct sockaddr_ored;

int ored_setup_add(struct ored_net *on, const struct ored_join *conf,
		   const struct ored_peer *peers, char *why);
int ored_setup_remove(struct ored_net *on, const struct ored_join *conf, char *why);
void ored_setup_forget_all(struct ored_net *on);
int ored_setup_find(struct ored_net *on, const struct sockaddr_ored *addr,
		    struct ored_join *conf, struct ored_peer **peers, char *why);

#endif /* ORED_SETUP_H */
