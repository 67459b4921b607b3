// SPDX-License-Identifier: GPL-2.0

#include <linux/inetdevice.h>
#include <linux/poll.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/route.h>
#include <net/sock.h>

#include "deadline.h"
#include "early.h"
#include "err.h"
#include "inject.h"
#include "join.h"
#include "leave.h"
#include "lock.h"
#include "member.h"
#include "policy.h"
#include "tell.h"
#include "timer.h"
#include "tx.h"

/**
 * ored_addr_equal() - do two addresses name the same host?
 * @a: one
 * @b: the other; ports don't matter
 */
bool ored_addr_equal(const struct ored_addr *a, const struct ored_addr *b)
{
	if (a->family != b->family)
		return false;
	if (a->family == AF_INET)
		return a->v4 == b->v4;
	return ipv6_addr_equal(&a->v6, &b->v6) && a->scope_id == b->scope_id;
}

/**
 * ored_member_wake() - tells whoever waits on the socket
 * @m: the membership
 * @events: EPOLL*
 */
void ored_member_wake(struct ored_member *m, __poll_t events)
{
	struct socket_wq *wq;
	struct sock *sk;

	rcu_read_lock();
	sk = rcu_dereference(m->sk);
	wq = sk ? rcu_dereference(sk->sk_wq) : NULL;
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, events);
	rcu_read_unlock();
}

static int set_addr(struct ored_addr *addr, const struct ored_peer *peer, u16 port)
{
	const struct in6_addr *v6 = (const struct in6_addr *)peer->addr;

	addr->port = htons(peer->port ?: port);
	addr->family = peer->family;
	switch (peer->family) {
	case AF_INET:
		memcpy(&addr->v4, peer->addr, 4);
		if (memchr_inv(peer->addr + 4, 0, sizeof(peer->addr) - 4) || peer->scope_id)
			return -EINVAL;
		break;
	case AF_INET6:
		addr->v6 = *v6;
		if (ipv6_addr_v4mapped(v6)) {
			addr->family = AF_INET;
			addr->v4 = v6->s6_addr32[3];
		} else if (ipv6_addr_type(v6) & IPV6_ADDR_LINKLOCAL) {
			addr->scope_id = peer->scope_id;
		}
		/* Link-local addresses need an interface, no others have one. */
		if (!addr->scope_id != !peer->scope_id ||
		    (ipv6_addr_type(v6) & IPV6_ADDR_LINKLOCAL && !addr->scope_id))
			return -EINVAL;
		break;
	default:
		return -EAFNOSUPPORT;
	}
	return 0;
}

static bool usable(const struct ored_addr *addr)
{
	if (addr->family == AF_INET)
		return addr->v4 && !ipv4_is_multicast(addr->v4) && !ipv4_is_lbcast(addr->v4);
	return !ipv6_addr_any(&addr->v6) && !ipv6_addr_is_multicast(&addr->v6);
}

static int check_peer(struct ored_member *m, u32 r, const struct ored_peer *peer, char *why)
{
	struct ored_link *l = &m->links[r];
	int err;

	err = set_addr(&l->addr, peer, m->conf.port);
	if (err == -EAFNOSUPPORT)
		return ored_refuse(why, EAFNOSUPPORT,
				   "peer %u: family %u is neither AF_INET nor AF_INET6",
				   r, peer->family);
	if (err && peer->family == AF_INET)
		return ored_refuse(why, EINVAL,
				   "peer %u: behind an IPv4 address's 4 bytes all is zero, and so is its scope_id",
				   r);
	if (err)
		return ored_refuse(why, EINVAL,
				   "peer %u: scope_id is the interface of a link-local address, and zero for others",
				   r);
	if (!usable(&l->addr))
		return ored_refuse(why, EINVAL, "peer %u: the address is not one of a host", r);
	if (l->addr.family != m->links[0].addr.family)
		return ored_refuse(why, EAFNOSUPPORT,
				   "peer %u has an IPv%u address, peer 0 an IPv%u one; a group has one family",
				   r, l->addr.family == AF_INET ? 4 : 6,
				   l->addr.family == AF_INET ? 6 : 4);
	return 0;
}

static int check_own(struct ored_member *m, char *why)
{
	struct ored_addr *addr = &m->links[m->rank].addr;
	bool here;

	if (addr->family == AF_INET)
		here = inet_addr_type(m->on->net, addr->v4) == RTN_LOCAL;
	else
		here = ipv6_chk_addr(m->on->net, &addr->v6, NULL, 0);
	if (here)
		return 0;
	if (addr->family == AF_INET)
		return ored_refuse(why, EADDRNOTAVAIL, "%pI4, the address of rank %u, is not on this host",
				   &addr->v4, m->rank);
	return ored_refuse(why, EADDRNOTAVAIL, "%pI6c, the address of rank %u, is not on this host",
			   &addr->v6, m->rank);
}

static int links_init(struct ored_member *m, const struct ored_peer *peers, char *why)
{
	u32 r;
	int err;

	m->links = kvcalloc(m->nranks, sizeof(*m->links), GFP_KERNEL_ACCOUNT);
	m->joining.path = kvcalloc(m->nranks, sizeof(*m->joining.path), GFP_KERNEL_ACCOUNT);
	if (!m->links || !m->joining.path)
		return -ENOMEM;
	for (r = 0; r < m->nranks; r++) {
		struct ored_link *l = &m->links[r];

		l->m = m;
		l->rank = r;
		l->path = &m->joining.path[r];
		spin_lock_init(&l->lock);
		ored_lock_class(&l->lock, ORED_LOCK_LINK);
		l->pto_at = U64_MAX;
		l->ask_at = U64_MAX;
		ored_rate_init(&l->rate, m->nranks - 1);
		ored_standing_init(&l->standing, ktime_get_ns());
		/* That it has come is told by rank-joined. */
		l->told = ORED_PEER_LIVE;
		err = check_peer(m, r, &peers[r], why);
		if (!err)
			err = dst_cache_init(&l->dst, GFP_KERNEL_ACCOUNT);
		if (err)
			return err;
	}
	m->family = m->links[0].addr.family;
	return check_own(m, why);
}

/* The most that any route of the group allows. */
static void bound_payload(struct ored_member *m)
{
	u32 bound = m->conf.payload_max ? m->conf.payload_max + m->mask :
					  ored_payload_round(65535 - ored_overhead(m));
	struct ored_route route;
	struct ored_link *l;
	u32 payload;

	bound = min_t(u32, ored_payload_round(bound), ored_payload_round(65535 - ored_overhead(m)));
	ored_for_each_link(m, l) {
		local_bh_disable();
		payload = 0;
		if (!ored_route_get(l, &route)) {
			payload = ored_route_payload(m, route.dst);
			dst_release(route.dst);
		}
		local_bh_enable();
		if (payload >= ORED_PAYLOAD_MIN)
			bound = min(bound, payload);
	}
	m->payload_bound = bound;
	m->joining.floor = ORED_PAYLOAD_MIN;
	ored_for_each_link(m, l)
		l->path->try = bound;
}

static void free_work(struct work_struct *work)
{
	struct ored_member *m = container_of(to_rcu_work(work), struct ored_member, free);
	u32 r;

	/* The timer is stopped, so it can't be queued again. */
	cancel_work_sync(&m->drained);
	ored_deadline_free(m);
	ored_slots_free(m);
	for (r = 0; m->links && r < m->nranks; r++)
		dst_cache_destroy(&m->links[r].dst);
	if (m->udp) {
		mutex_lock(&m->on->lock);
		ored_udp_put(m->on, m->udp);
		mutex_unlock(&m->on->lock);
	}
	ored_inject_slow_free();
	/* Routes and the outer socket hold none, so this is the last. */
	put_net(m->on->net);
	kvfree(m->links);
	kvfree(m->joining.path);
	ored_early_free(m);
	free_percpu(m->stats);
	memzero_explicit(&m->conf, sizeof(m->conf));
	kfree(m);
}

static void drained_work(struct work_struct *work)
{
	ored_member_kill(container_of(work, struct ored_member, drained));
}

static int fill(struct ored_member *m, const struct ored_peer *peers, char *why)
{
	int err;

	m->stats = ored_stats_alloc();
	if (!m->stats)
		return -ENOMEM;
	err = links_init(m, peers, why);
	if (err)
		return err;
	mutex_lock(&m->on->lock);
	m->udp = ored_udp_get(m->on, m->family, ntohs(m->links[m->rank].addr.port));
	mutex_unlock(&m->on->lock);
	if (IS_ERR(m->udp)) {
		err = PTR_ERR(m->udp);
		m->udp = NULL;
		if (err == -EADDRINUSE)
			return ored_refuse(why, EADDRINUSE, "UDP port %u is in use by another program",
					   ntohs(m->links[m->rank].addr.port));
		if (err == -ENOMEM)
			return ored_refuse(why, ENOMEM, "no memory for the outer UDP socket");
		return ored_refuse(why, -err, "the outer UDP socket can't be had (error %d)", -err);
	}
	bound_payload(m);
	return ored_slots_alloc(m, why);
}

/**
 * ored_member_new() - a membership that nobody can reach yet
 * @on: namespace
 * @conf: checked; port and timeout are set
 * @peers: one for each rank, unchecked
 * @policy: zeros stand for the namespace's; NULL: all do
 * @ifindex: interface to use, or 0
 * @why: receives a sentence if it is refused
 *
 * Return: it, to be given to ored_member_start(), or an ERR_PTR()
 */
struct ored_member *ored_member_new(struct ored_net *on, const struct ored_join *conf,
				    const struct ored_peer *peers,
				    const struct ored_policy *policy, int ifindex, char *why)
{
	struct ored_member *m;
	int err;

	scnprintf(why, ORED_ERROR_MAX, "out of memory");
	m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	if (!m)
		return ERR_PTR(-ENOMEM);
	m->on = on;
	get_net(on->net);
	m->conf = *conf;
	m->rank = conf->rank;
	m->nranks = conf->nranks;
	m->nslots = 2 * conf->depth + 1;
	m->mask = BITS_TO_LONGS(m->nranks) * sizeof(long);
	ored_policy_init(m);
	m->ifindex = ifindex;
	m->state = ORED_STATE_JOINING;
	m->tell_at = U64_MAX;
	m->tell_gap = ORED_TELL_FIRST_NS;
	m->joining.nranks = m->nranks;
	m->joining.rank = m->rank;
	spin_lock_init(&m->lock);
	ored_lock_class(&m->lock, ORED_LOCK_MEMBER);
	spin_lock_init(&m->pace_lock);
	ored_lock_class(&m->pace_lock, ORED_LOCK_PACE);
	m->pump_at = U64_MAX;
	m->patience = ORED_PATIENCE_NS;
	ratelimit_state_init(&m->report, 5 * HZ, 10);
	/* What was left out is no news. */
	ratelimit_set_flags(&m->report, RATELIMIT_MSG_ON_RELEASE);
	INIT_LIST_HEAD(&m->list);
	INIT_WORK(&m->drained, drained_work);
	INIT_RCU_WORK(&m->free, free_work);
	ored_timer_init(m);
	err = policy ? ored_policy_set(m, policy, why) : 0;
	if (!err)
		err = ored_early_alloc(m);
	if (!err)
		err = ored_deadline_init(m, why);
	if (!err)
		err = fill(m, peers, why);
	if (err) {
		free_work(&m->free.work);
		return ERR_PTR(err);
	}
	return m;
}

/* Nobody finds it any more. Return: false if that was so already. */
static bool unlink(struct ored_member *m)
{
	lockdep_assert_held(&m->on->lock);
	if (hlist_unhashed(&m->hash))
		return false;
	hlist_del_init_rcu(&m->hash);
	list_del_rcu(&m->list);
	ored_net_changed(m->on);
	ored_tell_gone(m);
	return true;
}

static void bury(struct ored_member *m)
{
	ored_leave_final(m);
	ored_timer_stop(m);
	ored_deadline_stop(m);
	queue_rcu_work(ored_wq, &m->free);
}

/*
 * Is there a membership of the same rank already? One without a socket gives
 * way, or its HELLOs would be taken for ours.
 */
static bool taken(struct ored_net *on, const struct ored_member *m, struct ored_member **old)
{
	struct ored_member *other;

	lockdep_assert_held(&on->lock);
	*old = NULL;
	list_for_each_entry(other, &on->members, list) {
		if (other->conf.group != m->conf.group || other->conf.epoch != m->conf.epoch ||
		    other->rank != m->rank)
			continue;
		*old = other;
		return rcu_access_pointer(other->sk);
	}
	return false;
}

static void publish(struct ored_net *on, struct ored_member *m)
{
	lockdep_assert_held(&on->lock);
	do {
		m->session = get_random_u32();
	} while (!m->session || ored_net_by_session(on, m->session));
	m->serial = ored_net_changed(on);
	list_add_tail_rcu(&m->list, &on->members);
	/* Before anybody else can know the session, let alone send with it. */
	ored_tell_made(m);
	hash_add_rcu(on->sessions, &m->hash, m->session);
}

/**
 * ored_member_start() - makes a membership reachable and begins to join
 * @m: from ored_member_new()
 * @sk: the socket to wake
 * @why: receives a sentence if it is refused
 *
 * Return: 0; -EADDRINUSE if the rank is taken here: @m is freed
 */
int ored_member_start(struct ored_member *m, struct sock *sk, char *why)
{
	struct ored_net *on = m->on;
	struct ored_member *old;

	rcu_assign_pointer(m->sk, sk);
	m->began = ktime_get_ns();
	m->deadline = m->began + (u64)m->conf.timeout_ms * NSEC_PER_MSEC;
	mutex_lock(&on->lock);
	if (taken(on, m, &old)) {
		mutex_unlock(&on->lock);
		ored_refuse(why, EADDRINUSE, "rank %u of group %u, epoch %llu is taken on this host",
			    m->rank, m->conf.group, (u64)m->conf.epoch);
		free_work(&m->free.work);
		return -EADDRINUSE;
	}
	if (old)
		unlink(old);
	publish(on, m);
	mutex_unlock(&on->lock);
	if (old)
		bury(old);
	ored_join_start(m);
	return 0;
}

/**
 * ored_member_kill() - ends a membership; it frees itself later
 * @m: the caller's use of it ends here; process context
 *
 * A worker, a new membership of the same rank and the end of the module may all
 * try; one does it.
 */
void ored_member_kill(struct ored_member *m)
{
	struct ored_net *on = m->on;
	bool mine;

	mutex_lock(&on->lock);
	mine = unlink(m);
	mutex_unlock(&on->lock);
	if (mine)
		bury(m);
}

/**
 * ored_member_kill_all() - ends what closed sockets have left behind
 * @on: a namespace; the module goes, and no socket is open any more
 *
 * When it returns, all memberships are freed and all outer sockets closed. Nothing
 * tells whether somebody is freeing one still: it is out of all lists by then.
 */
void ored_member_kill_all(struct ored_net *on)
{
	struct ored_member *m;

	do {
		mutex_lock(&on->lock);
		m = list_first_entry_or_null(&on->members, struct ored_member, list);
		if (m)
			unlink(m);
		mutex_unlock(&on->lock);
		if (m)
			bury(m);
	} while (m);

	/* Workers that bury, then the grace periods, then what frees. */
	flush_workqueue(ored_wq);
	rcu_barrier();
	flush_workqueue(ored_wq);
}
