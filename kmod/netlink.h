/* SPDX-License-Identifier: GPL-2.0 */
/* The generic netlink family: uapi/ored.yaml says what it takes and gives. */
#ifndef ORED_NETLINK_H
#define ORED_NETLINK_H

struct genl_family;

extern struct genl_family ored_genl;

int ored_netlink_init(void);
void ored_netlink_exit(void);

#endif /* ORED_NETLINK_H */
