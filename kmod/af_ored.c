// SPDX-License-Identifier: GPL-2.0
/* System calls but for messages and options, and the family's registration. */

#include <linux/compat.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <asm/ioctls.h>

#include "af_ored.h"
#include "area.h"
#include "err.h"
#include "join.h"
#include "leave.h"
#include "lock.h"
#include "op.h"
#include "setup.h"

static int ored_family;

/**
 * ored_sock_refuse() - notes why a call is refused
 * @osk: the socket
 * @err: positive errno
 * @fmt: a sentence
 *
 * Return: -@err
 */
int ored_sock_refuse(struct ored_sock *osk, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	spin_lock(&osk->say);
	vscnprintf(osk->why, sizeof(osk->why), fmt, args);
	spin_unlock(&osk->say);
	va_end(args);
	return -err;
}

/**
 * ored_sock_say() - notes a sentence made elsewhere, if it goes with an error
 * @osk: the socket
 * @err: 0 or negative errno
 * @why: the sentence
 *
 * Return: @err
 */
int ored_sock_say(struct ored_sock *osk, int err, const char *why)
{
	if (err)
		ored_sock_refuse(osk, -err, "%s", why);
	return err;
}

/**
 * ored_sock_joined() - a socket's membership, if it has one that ops can use
 * @osk: the socket; the caller holds a reference to its file
 *
 * Return: the membership, which stays as long as the file, or NULL
 */
struct ored_member *ored_sock_joined(struct ored_sock *osk)
{
	struct ored_member *m;
	int state;

	rcu_read_lock();
	m = rcu_dereference(osk->m);
	/* Pairs with the release in try_finish(): the payload is set. */
	state = m ? smp_load_acquire(&m->state) : ORED_STATE_NEW;
	rcu_read_unlock();
	return state == ORED_STATE_JOINED || state == ORED_STATE_LEFT ? m : NULL;
}

static struct proto ored_proto = {
	.name = "ORED",
	.owner = THIS_MODULE,
	.obj_size = sizeof(struct ored_sock),
};

static int ored_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct ored_member *m;

	if (!sk)
		return 0;
	m = rcu_dereference_protected(ored_sk(sk)->m, 1);
	if (m)
		ored_leave_orphan(m);
	sock_prot_inuse_add(sock_net(sk), sk->sk_prot, -1);
	sock_orphan(sk);
	sock->sk = NULL;
	sock_put(sk);
	return 0;
}

/* Makes room for a new membership: one that has failed gives way. */
static int make_room(struct ored_sock *osk)
{
	struct ored_member *m = rcu_dereference_protected(osk->m,
							  lockdep_is_held(&osk->conf_mutex));

	if (!m)
		return 0;
	/* Whoever waits still looks at it, whatever its state. */
	if (osk->waiting || READ_ONCE(m->state) == ORED_STATE_JOINING)
		return ored_sock_refuse(osk, EALREADY, "this socket is joining a group");
	if (READ_ONCE(m->state) != ORED_STATE_FAILED)
		return ored_sock_refuse(osk, EISCONN,
					"this socket has joined group %u; take another socket",
					m->conf.group);
	rcu_assign_pointer(osk->m, NULL);
	WRITE_ONCE(osk->sk.sk_err, 0);
	ored_leave_orphan(m);
	return 0;
}

static int start_join(struct ored_sock *osk, const struct ored_join *conf,
		      const struct ored_peer *peers, const struct ored_policy *policy)
{
	struct sock *sk = &osk->sk;
	struct ored_member *m;
	char *why;
	int err;

	err = make_room(osk);
	if (err)
		return err;
	why = kmalloc(ORED_ERROR_MAX, GFP_KERNEL);
	if (!why)
		return ored_sock_refuse(osk, ENOMEM, "out of memory");
	m = ored_member_new(ored_net(sock_net(sk)), conf, peers, policy,
			    READ_ONCE(sk->sk_bound_dev_if), why);
	if (IS_ERR(m))
		err = PTR_ERR(m);
	else
		err = ored_member_start(m, sk, why);
	if (!err)
		rcu_assign_pointer(osk->m, m);
	ored_sock_say(osk, err, why);
	kfree(why);
	return err;
}

/**
 * ored_sock_explain() - makes the sentence about a join that has failed, once
 * @osk: the socket
 * @m: its membership
 */
void ored_sock_explain(struct ored_sock *osk, struct ored_member *m)
{
	bool first;
	char *why;

	if (READ_ONCE(m->state) != ORED_STATE_FAILED)
		return;
	/* Without memory the next caller gets to explain. */
	why = kzalloc(ORED_ERROR_MAX, GFP_KERNEL);
	if (!why)
		return;
	spin_lock_bh(&m->lock);
	first = m->state == ORED_STATE_FAILED && !m->explained;
	m->explained |= first;
	spin_unlock_bh(&m->lock);
	if (first)
		ored_sock_say(osk, ored_join_why(m, m->failure, why), why);
	kfree(why);
}

/* The end of waiting for peers: 0, or the membership is marked as failed. */
static int end_join(struct ored_sock *osk, struct ored_member *m, int err)
{
	spin_lock_bh(&m->lock);
	if (m->state == ORED_STATE_JOINED || m->state == ORED_STATE_LEFT)
		err = 0;
	else if (m->state == ORED_STATE_FAILED && !err)
		err = m->failure;
	if (err) {
		WRITE_ONCE(m->state, ORED_STATE_FAILED);
		m->failure = err;
		m->failed_at = ktime_get_ns();
	}
	spin_unlock_bh(&m->lock);
	if (!err)
		return 0;
	/* Returned here, it isn't for SO_ERROR any more. */
	sock_error(&osk->sk);
	/* Some may have joined; let them not wait for us. */
	ored_leave_final(m);
	ored_sock_explain(osk, m);
	return err;
}

static int wait_join(struct ored_sock *osk, struct ored_member *m)
{
	struct sock *sk = &osk->sk;
	long left = sock_rcvtimeo(sk, false);

	left = wait_event_interruptible_timeout(*sk_sleep(sk),
						READ_ONCE(m->state) != ORED_STATE_JOINING, left);
	if (!left)
		return end_join(osk, m, -ETIMEDOUT);
	/* Started again it would find the group half joined: the caller decides. */
	return end_join(osk, m, left < 0 ? -EINTR : 0);
}

/**
 * ored_sock_join() - joins a group and waits for its peers
 * @sock: the socket
 * @conf: checked
 * @peers: one for each rank
 * @policy: that the group was set up with, or NULL
 *
 * Return: 0 or negative errno, with a sentence
 */
int ored_sock_join(struct socket *sock, const struct ored_join *conf,
		   const struct ored_peer *peers, const struct ored_policy *policy)
{
	struct ored_sock *osk = ored_sk(sock->sk);
	struct ored_member *m;
	int err;

	mutex_lock(&osk->conf_mutex);
	err = start_join(osk, conf, peers, policy);
	m = rcu_dereference_protected(osk->m, lockdep_is_held(&osk->conf_mutex));
	if (!err && sock->file && sock->file->f_flags & O_NONBLOCK &&
	    READ_ONCE(m->state) == ORED_STATE_JOINING)
		err = ored_sock_refuse(osk, EINPROGRESS, "joining goes on: wait for POLLOUT");
	osk->waiting |= !err;
	mutex_unlock(&osk->conf_mutex);
	if (err)
		return err;
	err = wait_join(osk, m);
	mutex_lock(&osk->conf_mutex);
	osk->waiting = false;
	mutex_unlock(&osk->conf_mutex);
	return err;
}

static int ored_bind(struct socket *sock, struct sockaddr *uaddr, int len)
{
	struct sockaddr_ored *addr = (struct sockaddr_ored *)uaddr;
	struct ored_sock *osk = ored_sk(sock->sk);
	struct ored_policy policy;
	struct ored_peer *peers;
	struct ored_join conf;
	char why[ORED_ERROR_MAX];
	int err;

	if (len < (int)sizeof(*addr))
		return ored_sock_refuse(osk, EINVAL, "an address of this family has %zu bytes, not %d",
					sizeof(*addr), len);
	if (addr->sored_family != ored_family)
		return ored_sock_refuse(osk, EAFNOSUPPORT, "the address is of family %u, not %d",
					addr->sored_family, ored_family);
	if (addr->sored_flags || addr->sored_reserved)
		return ored_sock_refuse(osk, EINVAL, "sored_flags and sored_reserved must be zero");
	err = ored_setup_find(ored_net(sock_net(sock->sk)), addr, &conf, &peers, &policy,
			      why);
	if (err)
		return ored_sock_say(osk, err, why);
	conf.rank = addr->sored_rank;
	if (conf.rank < conf.nranks)
		err = ored_sock_join(sock, &conf, peers, &policy);
	else
		err = ored_sock_refuse(osk, EINVAL, "rank %u is not below %u, the size of the group",
				       conf.rank, conf.nranks);
	kvfree(peers);
	return err;
}

static int ored_getname(struct socket *sock, struct sockaddr *uaddr, int peer)
{
	struct sockaddr_ored *addr = (struct sockaddr_ored *)uaddr;
	struct ored_sock *osk = ored_sk(sock->sk);
	struct ored_member *m;

	if (peer)
		return ored_sock_refuse(osk, ENOTCONN, "a rank has many peers: see ORED_PEERS");
	memset(addr, 0, sizeof(*addr));
	addr->sored_family = ored_family;
	rcu_read_lock();
	m = rcu_dereference(osk->m);
	if (m) {
		addr->sored_group = m->conf.group;
		addr->sored_rank = m->rank;
		addr->sored_epoch = m->conf.epoch;
	}
	rcu_read_unlock();
	return sizeof(*addr);
}

static __poll_t ored_poll(struct file *file, struct socket *sock, poll_table *wait)
{
	struct sock *sk = sock->sk;
	struct ored_member *m;
	__poll_t events = 0;

	sock_poll_wait(file, sock, wait);
	if (READ_ONCE(sk->sk_err))
		events |= EPOLLERR;
	if (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
		events |= EPOLLRDHUP | EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(sk->sk_shutdown) == SHUTDOWN_MASK)
		events |= EPOLLHUP;
	m = ored_sock_joined(ored_sk(sk));
	if (!m)
		return events;
	if (ored_can_recv(ored_sk(sk), m))
		events |= EPOLLIN | EPOLLRDNORM;
	if (ored_can_send(ored_sk(sk), m))
		events |= EPOLLOUT | EPOLLWRNORM;
	return events;
}

static int next_result_bytes(struct ored_member *m)
{
	size_t bytes = 0;

	spin_lock_bh(&m->lock);
	if (m->received < m->finished)
		ored_op_result_at(ored_slot_of(m, m->received), &bytes);
	spin_unlock_bh(&m->lock);
	return bytes;
}

static int unfinished_bytes(struct ored_member *m)
{
	u64 op, bytes = 0;

	spin_lock_bh(&m->lock);
	for (op = m->finished; op < m->posted; op++) {
		if (ored_slot_of(m, op)->state == ORED_SLOT_POSTED)
			bytes += ored_slot_of(m, op)->mine.bytes;
	}
	spin_unlock_bh(&m->lock);
	return min_t(u64, bytes, INT_MAX);
}

static int ored_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	struct ored_member *m = ored_sock_joined(ored_sk(sock->sk));

	switch (cmd) {
	case SIOCINQ:
		return put_user(m ? next_result_bytes(m) : 0, (int __user *)arg);
	case SIOCOUTQ:
		return put_user(m ? unfinished_bytes(m) : 0, (int __user *)arg);
	default:
		return -ENOIOCTLCMD;
	}
}

#ifdef CONFIG_COMPAT
static int ored_compat_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	return ored_ioctl(sock, cmd, (unsigned long)compat_ptr(arg));
}
#endif

static int ored_shutdown(struct socket *sock, int how)
{
	struct sock *sk = sock->sk;
	struct ored_member *m = ored_sock_joined(ored_sk(sk));

	if (how < SHUT_RD || how > SHUT_RDWR)
		return ored_sock_refuse(ored_sk(sk), EINVAL,
					"shutdown: %d is none of its kinds", how);
	if (!m)
		return ored_sock_refuse(ored_sk(sk), ENOTCONN, "this socket has joined no group");
	mutex_lock(&ored_sk(sk)->conf_mutex);
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | (how + 1));
	mutex_unlock(&ored_sk(sk)->conf_mutex);
	if (how != SHUT_RD)
		ored_leave(m);
	ored_member_wake(m, EPOLLIN | EPOLLRDNORM | EPOLLRDHUP | EPOLLHUP);
	return 0;
}

static const struct proto_ops ored_ops = {
	.owner = THIS_MODULE,
	.release = ored_release,
	.bind = ored_bind,
	.connect = sock_no_connect,
	.socketpair = sock_no_socketpair,
	.accept = sock_no_accept,
	.getname = ored_getname,
	.poll = ored_poll,
	.ioctl = ored_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl = ored_compat_ioctl,
#endif
	.gettstamp = sock_gettstamp,
	.listen = sock_no_listen,
	.shutdown = ored_shutdown,
	.setsockopt = ored_setsockopt,
	.getsockopt = ored_getsockopt,
	.sendmsg = ored_sendmsg,
	.recvmsg = ored_recvmsg,
	.mmap = ored_mapped_mmap,
};

static int ored_create(struct net *net, struct socket *sock, int protocol, int kern)
{
	struct ored_sock *osk;
	struct sock *sk;

	if (sock->type != SOCK_SEQPACKET)
		return -ESOCKTNOSUPPORT;
	if (protocol == ORED_PROTO_CKPT)
		return ored_area_sock_create(net, sock, ored_family, kern);
	if (protocol != ORED_PROTO_REDUCE)
		return -EPROTONOSUPPORT;
	sk = sk_alloc(net, ored_family, GFP_KERNEL, &ored_proto, kern);
	if (!sk)
		return -ENOMEM;
	sock->ops = &ored_ops;
	sock_init_data(sock, sk);
	/* Packets look at it under RCU. */
	sock_set_flag(sk, SOCK_RCU_FREE);
	osk = ored_sk(sk);
	mutex_init(&osk->send_mutex);
	ored_lock_class(&osk->send_mutex, ORED_LOCK_SEND);
	mutex_init(&osk->recv_mutex);
	ored_lock_class(&osk->recv_mutex, ORED_LOCK_RECV);
	mutex_init(&osk->conf_mutex);
	ored_lock_class(&osk->conf_mutex, ORED_LOCK_CONF);
	spin_lock_init(&osk->say);
	ored_lock_class(&osk->say, ORED_LOCK_SAY);
	osk->result_of = ORED_NO_OP;
	sock_prot_inuse_add(net, sk->sk_prot, 1);
	return 0;
}

static struct net_proto_family ored_proto_family = {
	.create = ored_create,
	.owner = THIS_MODULE,
};

/**
 * ored_af_init() - registers the family
 * @family: number to borrow
 *
 * Return: 0; -EINVAL or -EEXIST, said in the log with what to do
 */
int __init ored_af_init(int family)
{
	int err;

	if (family <= AF_UNSPEC || family >= AF_MAX) {
		pr_err("ored: family=%d is not between 1 and %d\n", family, AF_MAX - 1);
		return -EINVAL;
	}
	ored_family = family;
	ored_proto_family.family = family;
	err = proto_register(&ored_proto, 0);
	if (err)
		return err;
	err = ored_area_sock_init();
	if (err)
		goto err_area;
	err = sock_register(&ored_proto_family);
	if (err) {
		pr_err("ored: family %d is taken: load with another one, as in family=22\n",
		       family);
		goto err_sock;
	}
	return 0;

err_sock:
	ored_area_sock_exit();
err_area:
	proto_unregister(&ored_proto);
	return err;
}

/**
 * ored_af_exit() - the opposite; no socket is left
 */
void ored_af_exit(void)
{
	sock_unregister(ored_family);
	ored_area_sock_exit();
	proto_unregister(&ored_proto);
}
