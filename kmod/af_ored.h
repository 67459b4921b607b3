/* SPDX-License-Identifier: GPL-2.0 */
/* The socket family. */
#ifndef ORED_AF_ORED_H
#define ORED_AF_ORED_H

#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <net/sock.h>
#include <linux/ored.h>

#include "member.h"

/**
 * struct ored_sock - a socket of ours
 * @sk: its generic part; must be first
 * @send_mutex: one send() at a time
 * @recv_mutex: one recv() at a time
 * @conf_mutex: options, joining, leaving
 * @m: the membership; set under @conf_mutex, read under RCU; once joined it
 *	stays until the socket is released
 * @waiting: somebody waits for the membership to join; under @conf_mutex
 * @op: parameters of ops without their own; under @conf_mutex
 * @results: recv() attaches ORED_RESULT
 * @result_of: op that ORED_RESULT_OF reads, ORED_NO_OP: the last; under @say
 * @say: protects what follows
 * @why: last sentence
 * @past: results that recv() has returned, by op modulo ORED_MAX_DEPTH
 * @npast: ops in @past, or that were in it
 */
struct ored_sock {
	struct sock		sk;
	struct mutex		send_mutex;	/* one send() */
	struct mutex		recv_mutex;	/* one recv() */
	struct mutex		conf_mutex;	/* options, joining */
	struct ored_member __rcu *m;
	bool			waiting;
	struct ored_op		op;
	bool			results;
	spinlock_t		say;	/* what follows */
	char			why[ORED_ERROR_MAX];
	struct ored_result	past[ORED_MAX_DEPTH];
	u64			npast;
	u64			result_of;
};

static inline struct ored_sock *ored_sk(const struct sock *sk)
{
	return container_of(sk, struct ored_sock, sk);
}

/* af_ored.c */
int ored_af_init(int family);
void ored_af_exit(void);
struct ored_member *ored_sock_joined(struct ored_sock *osk);
void ored_sock_explain(struct ored_sock *osk, struct ored_member *m);
int ored_sock_join(struct socket *sock, const struct ored_join *conf,
		   const struct ored_peer *peers, const struct ored_policy *policy);

/* af_ored.c: sentences; all return -@err */
int __printf(3, 4) ored_sock_refuse(struct ored_sock *osk, int err, const char *fmt, ...);
int ored_sock_say(struct ored_sock *osk, int err, const char *why);

/* message.c */
int ored_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
int ored_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags);
bool ored_can_send(struct ored_sock *osk, struct ored_member *m);
bool ored_can_recv(struct ored_sock *osk, struct ored_member *m);

/* sockopt.c */
int ored_setsockopt(struct socket *sock, int level, int name, sockptr_t value,
		    unsigned int len);
int ored_getsockopt(struct socket *sock, int level, int name, char __user *value,
		    int __user *len);
int ored_op_check(struct ored_sock *osk, const struct ored_op *op);

#endif /* ORED_AF_ORED_H */
