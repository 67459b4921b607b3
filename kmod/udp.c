// SPDX-License-Identifier: GPL-2.0

#include <linux/err.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <net/udp.h>
#include <net/udp_tunnel.h>

#include "net.h"
#include "rx.h"
#include "udp.h"

static struct socket *open_socket(struct net *net, u16 family, u16 port)
{
	struct udp_port_cfg at = {
		.family = family,
		.local_udp_port = htons(port),
		.use_udp_checksums = true,
		.use_udp6_tx_checksums = true,
		.use_udp6_rx_checksums = true,
		.ipv6_v6only = true,
	};
	struct udp_tunnel_sock_cfg receive = {
		.sk_user_data = ored_net(net),
		.encap_type = 1,
		.encap_rcv = ored_rx,
	};
	struct socket *sock;
	int err;

	err = udp_sock_create(net, &at, &sock);
	/* Both are how making a socket says that there is no memory. */
	if (err == -ENFILE || err == -ENOBUFS)
		err = -ENOMEM;
	if (err)
		return ERR_PTR(err);
	sock->sk->sk_allocation = GFP_ATOMIC;
	sock->sk->sk_sndbuf = INT_MAX;
	setup_udp_tunnel_sock(net, sock, &receive);
	/*
	 * Tunnels ask for checksums to be converted for the inner packet. We
	 * have none, and with it the UDP layer would sum and copy every
	 * GSO packet that comes in over a virtual device.
	 */
	inet_dec_convert_csum(sock->sk);
	return sock;
}

/**
 * ored_udp_get() - the outer socket of a port, made if there is none
 * @on: namespace, its lock held
 * @family: AF_INET or AF_INET6
 * @port: host order
 *
 * Return: the socket, to be given to ored_udp_put(), or an ERR_PTR()
 */
struct ored_udp *ored_udp_get(struct ored_net *on, u16 family, u16 port)
{
	struct ored_udp *udp;
	struct socket *sock;

	lockdep_assert_held(&on->lock);
	list_for_each_entry(udp, &on->udps, list) {
		if (udp->family == family && udp->port == port) {
			udp->users++;
			return udp;
		}
	}
	udp = kzalloc(sizeof(*udp), GFP_KERNEL_ACCOUNT);
	if (!udp)
		return ERR_PTR(-ENOMEM);
	sock = open_socket(on->net, family, port);
	if (IS_ERR(sock)) {
		kfree(udp);
		return ERR_CAST(sock);
	}
	udp->sock = sock;
	udp->family = family;
	udp->port = port;
	udp->users = 1;
	list_add(&udp->list, &on->udps);
	return udp;
}

/**
 * ored_udp_put() - a membership is done with its outer socket
 * @on: namespace, its lock held
 * @udp: from ored_udp_get()
 *
 * The last one closes it, which sleeps.
 */
void ored_udp_put(struct ored_net *on, struct ored_udp *udp)
{
	lockdep_assert_held(&on->lock);
	if (--udp->users)
		return;
	list_del(&udp->list);
	udp_tunnel_sock_release(udp->sock);
	kfree(udp);
}
