/* SPDX-License-Identifier: GPL-2.0 */
/* Outer sockets: the kernel's own UDP sockets that carry ORED's packets. */
#ifndef ORED_UDP_H
#define ORED_UDP_H

#include <linux/list.h>
#include <linux/types.h>

struct ored_net;
struct sock;
struct socket;

/**
 * struct ored_udp - one port of one address family in one namespace
 * @list: in ored_net.udps
 * @sock: the socket; without a reference to the namespace
 * @family: AF_INET or AF_INET6
 * @port: host order
 * @users: memberships on it, under ored_net.lock
 */
struct ored_udp {
	struct list_head	list;
	struct socket		*sock;
	u16			family;
	u16			port;
	u32			users;
};

struct ored_udp *ored_udp_get(struct ored_net *on, u16 family, u16 port);
void ored_udp_put(struct ored_net *on, struct ored_udp *udp);

#endif /* ORED_UDP_H */
