// SPDX-License-Identifier: GPL-2.0
/*
 * Joining: HELLOs in rounds until all ranks have heard each other and know
 * what payload every path carries (core/hello.h), or until the time is up.
 * The same packets measure a path again that seems to have shrunk.
 */

#include <net/ip6_route.h>
#include <net/route.h>
#include <net/sock.h>

#include "area_share.h"
#include "err.h"
#include "event.h"
#include "join.h"
#include "leave.h"
#include "timer.h"
#include "tx.h"

#define ORED_HELLO_FIRST_NS	(10 * NSEC_PER_MSEC)
#define ORED_HELLO_BUSY_NS	(20 * NSEC_PER_MSEC)
#define ORED_HELLO_SPREAD	8	/* ranks for which those times are meant */
#define ORED_PROBES		6	/* rounds that must agree that a path has shrunk */
#define ORED_HELLO_MAX_NS	(200 * NSEC_PER_MSEC)

static u16 hello_size(u16 payload)
{
	return max_t(u32, ORED_WIRE_HEADER + payload, ORED_WIRE_HEADER + ORED_HELLO_BYTES);
}

static void send_hello(struct ored_link *l, u16 size, u16 echo, u8 flags)
{
	struct ored_member *m = l->m;
	struct ored_hello hello = {
		.epoch = m->conf.epoch,
		.session = m->session,
		.nranks = m->nranks,
		.depth = m->conf.depth,
		.bucket_max = m->conf.bucket_max,
		.size = size,
		.echo = echo,
	};
	u8 content[ORED_HELLO_BYTES];
	struct ored_packet pkt;

	spin_lock_bh(&m->lock);
	if (ored_joining_limit(&m->joining, &hello.limit))
		flags |= ORED_F_FINAL;
	hello.seen = l->path->got;
	spin_unlock_bh(&m->lock);

	ored_packet_init(l, &pkt, ORED_T_HELLO, flags);
	ored_hello_build(content, &hello);
	ored_send_packet(l, &pkt, content, sizeof(content),
			 size - ORED_WIRE_HEADER - ORED_HELLO_BYTES);
}

/* A short HELLO, and one as large as we hope the path carries. */
static void greet(struct ored_link *l)
{
	u16 try = READ_ONCE(l->path->try);

	send_hello(l, hello_size(0), 0, ORED_F_REQUEST);
	if (READ_ONCE(l->path->ok) < try)
		send_hello(l, hello_size(try), 0, ORED_F_REQUEST);
}

static void greet_all(struct ored_member *m, u8 flags)
{
	struct ored_link *l;

	ored_for_each_link(m, l)
		send_hello(l, hello_size(0), 0, flags);
}

static void fail(struct ored_member *m, int err)
	__must_hold(&m->lock)
{
	struct sock *sk;

	lockdep_assert_held(&m->lock);
	if (m->state != ORED_STATE_JOINING)
		return;
	rcu_read_lock();
	sk = rcu_dereference(m->sk);
	if (sk)
		WRITE_ONCE(sk->sk_err, -err);
	m->failure = err;
	m->failed_at = ktime_get_ns();
	WRITE_ONCE(m->state, ORED_STATE_FAILED);
	rcu_read_unlock();
	ored_member_wake(m, EPOLLERR | EPOLLIN | EPOLLOUT);
}

/* Do all agree? Then ops can run. Under the membership's lock. */
static void try_finish(struct ored_member *m)
	__must_hold(&m->lock)
{
	struct ored_link *l;
	u16 payload;

	lockdep_assert_held(&m->lock);
	if (m->state != ORED_STATE_JOINING || !ored_joining_done(&m->joining, &payload))
		return;
	ored_for_each_link(m, l) {
		if (l->status == ORED_PEER_HEARD)
			WRITE_ONCE(l->status, ORED_PEER_LIVE);
	}
	m->room = min(payload, m->payload_bound);
	/* A set of ranks shall fit behind it; where it can't, IP fragments. */
	WRITE_ONCE(m->payload, max(m->room - m->mask, ORED_PAYLOAD_MIN + 0U));
	ored_pace_init(&m->pace, m->payload + ored_overhead(m) + ORED_LINK_HEADER);
	/* Whoever sees the state sees the payload. */
	smp_store_release(&m->state, ORED_STATE_JOINED);
	ored_event_rank(m, ORED_CMD_RANK_JOINED_NTF);
	ored_share_joined(m);
	ored_member_wake(m, EPOLLOUT | EPOLLWRNORM);
}

/**
 * ored_join_start() - begins to join
 * @m: reachable by packets, with @deadline set
 */
void ored_join_start(struct ored_member *m)
{
	spin_lock_bh(&m->lock);
	m->hello_gap = ORED_HELLO_FIRST_NS;
	m->hello_at = 0;
	try_finish(m);
	spin_unlock_bh(&m->lock);
	ored_timer_need(m, ktime_get_ns());
}

/* A route can have become narrower since the last round. */
static void limit_by_route(struct ored_link *l)
{
	struct ored_route route;
	u32 payload;

	/* What has got through is told to others: it stands. */
	if (READ_ONCE(l->path->ok) >= READ_ONCE(l->path->try))
		return;
	local_bh_disable();
	if (!ored_route_get(l, &route)) {
		payload = ored_route_payload(l->m, route.dst);
		dst_release(route.dst);
		spin_lock(&l->m->lock);
		spin_lock(&l->lock);
		if (payload >= l->m->joining.floor)
			ored_path_limit(l->path, payload);
		spin_unlock(&l->lock);
		spin_unlock(&l->m->lock);
	}
	local_bh_enable();
}

static bool hello_round(struct ored_member *m)
{
	struct ored_link *l;
	bool busy = false, fits;

	ored_for_each_link(m, l) {
		limit_by_route(l);
		spin_lock_bh(&m->lock);
		spin_lock(&l->lock);
		fits = ored_path_missed(l->path, ored_overhead(m), m->joining.floor);
		spin_unlock(&l->lock);
		if (!fits)
			fail(m, -EMSGSIZE);
		busy |= l->path->session && l->path->ok < l->path->try;
		spin_unlock_bh(&m->lock);
		if (!fits) {
			ored_leave_final(m);
			break;
		}
		if (!l->path->session || !l->path->final || l->path->ok < l->path->try)
			greet(l);
	}
	return busy;
}

/**
 * ored_join_tick() - the timer of a membership that is joining
 * @m: the membership
 * @now: ns of the monotonic clock
 *
 * Return: when to call again
 */
u64 ored_join_tick(struct ored_member *m, u64 now)
{
	bool busy;

	if (m->deadline <= now) {
		spin_lock_bh(&m->lock);
		fail(m, -ETIMEDOUT);
		spin_unlock_bh(&m->lock);
		ored_leave_final(m);
		return U64_MAX;
	}
	if (m->hello_at <= now) {
		busy = hello_round(m);
		/* A round of all ranks has nranks squared packets: spread it. */
		m->hello_at = now + m->hello_gap * (1 + m->nranks / ORED_HELLO_SPREAD);
		m->hello_gap = busy ? ORED_HELLO_BUSY_NS :
				      min_t(u64, 2 * m->hello_gap, ORED_HELLO_MAX_NS);
	}
	return min(m->hello_at, m->deadline);
}

/* What we disagree about, if anything. */
static const char *differ(const struct ored_member *m, const struct ored_hello *hello,
			  u64 *ours, u64 *theirs)
{
	if (hello->nranks != m->nranks) {
		*ours = m->nranks;
		*theirs = hello->nranks;
		return "ranks";
	}
	if (hello->depth != m->conf.depth) {
		*ours = m->conf.depth;
		*theirs = hello->depth;
		return "depth";
	}
	if (hello->bucket_max != m->conf.bucket_max) {
		*ours = m->conf.bucket_max;
		*theirs = hello->bucket_max;
		return "largest bucket";
	}
	return NULL;
}

static void refuse(struct ored_link *l, const char *what, u64 ours, u64 theirs)
{
	struct ored_member *m = l->m;
	bool first;

	spin_lock_bh(&m->lock);
	first = m->state == ORED_STATE_JOINING && l->status != ORED_PEER_REFUSED;
	if (first) {
		l->differ = what;
		l->ours = ours;
		l->theirs = theirs;
		WRITE_ONCE(l->status, ORED_PEER_REFUSED);
		fail(m, -EPROTO);
	}
	spin_unlock_bh(&m->lock);
	/* Let it find out too. */
	if (first)
		greet(l);
}

/* One of our probes has got through. */
static void probed(struct ored_link *l, u16 size)
{
	u32 payload = size - min_t(u32, size, ORED_WIRE_HEADER);

	spin_lock_bh(&l->lock);
	if (payload >= l->m->room) {
		/* It is only loss. */
		l->probes = 0;
		l->stuck = 0;
	}
	l->probe_ok = max_t(u32, l->probe_ok, payload);
	spin_unlock_bh(&l->lock);
}

static void hear(struct ored_link *l, const struct ored_packet *pkt,
		 const struct ored_hello *hello)
{
	struct ored_member *m = l->m;
	bool first, news, final, was_final;
	u16 limit;

	spin_lock_bh(&m->lock);
	if (m->state == ORED_STATE_FAILED ||
	    (m->state != ORED_STATE_JOINING && l->path->session != hello->session)) {
		/* It has started again, or we have failed: no run has both of us. */
		spin_unlock_bh(&m->lock);
		ored_count(m->stats, ORED_CNT_BAD_CONTROL);
		return;
	}
	was_final = ored_joining_limit(&m->joining, &limit);
	first = l->path->session != hello->session;
	spin_lock(&l->lock);
	news = ored_path_heard(l->path, hello, pkt->flags & ORED_F_FINAL);
	l->standing.heard = ktime_get_ns();
	if (l->status == ORED_PEER_UNKNOWN)
		WRITE_ONCE(l->status, ORED_PEER_HEARD);
	spin_unlock(&l->lock);
	final = ored_joining_limit(&m->joining, &limit);
	if (news)
		try_finish(m);
	spin_unlock_bh(&m->lock);

	if (first)
		greet(l);
	else if (pkt->flags & ORED_F_REQUEST)
		send_hello(l, hello_size(0), hello->size, 0);
	if (final && !was_final)
		greet_all(m, 0);
	if (hello->echo)
		probed(l, hello->echo);
}

/* The membership that a HELLO is for; one of another epoch if there is no better. */
static struct ored_member *find(struct ored_net *on, const struct ored_packet *pkt)
{
	struct ored_member *m;

	list_for_each_entry_rcu(m, &on->members, list) {
		if (m->conf.group == pkt->group && m->rank == pkt->dst)
			return m;
	}
	return NULL;
}

static struct ored_member *find_epoch(struct ored_net *on, const struct ored_packet *pkt,
				      u64 epoch)
{
	struct ored_member *m;

	list_for_each_entry_rcu(m, &on->members, list) {
		if (m->conf.group == pkt->group && m->rank == pkt->dst && m->conf.epoch == epoch)
			return m;
	}
	return NULL;
}

/**
 * ored_join_rx() - takes in a HELLO
 * @on: namespace; under RCU
 * @pkt: its header
 * @from: who sent it
 * @hello: its content
 *
 * Return: enum ored_counter: why neither it nor another like it is wanted, which has
 * been counted; ORED_CNT_MAX: it has been dealt with
 */
enum ored_counter ored_join_rx(struct ored_net *on, const struct ored_packet *pkt,
			       const struct ored_addr *from, const struct ored_hello *hello)
{
	struct ored_member *m = find_epoch(on, pkt, hello->epoch);
	struct ored_link *l;
	enum ored_counter cause;
	const char *what;
	u64 ours, theirs;

	if (!m) {
		m = find(on, pkt);
		cause = m ? ORED_CNT_NS_EPOCH : ORED_CNT_NS_GROUP;
		ored_count(on->stats, cause);
		return cause;
	}
	ored_count(m->stats, ORED_CNT_RX_PACKETS);
	if (pkt->src >= m->nranks || pkt->src == m->rank) {
		ored_count(m->stats, ORED_CNT_BAD_SOURCE);
		return ORED_CNT_BAD_SOURCE;
	}
	l = &m->links[pkt->src];
	if (!ored_addr_equal(&l->addr, from)) {
		ored_count(m->stats, ORED_CNT_BAD_SOURCE);
		return ORED_CNT_BAD_SOURCE;
	}
	what = differ(m, hello, &ours, &theirs);
	if (what) {
		ored_count(m->stats, ORED_CNT_MISMATCH);
		refuse(l, what, ours, theirs);
		return ORED_CNT_MAX;
	}
	hear(l, pkt, hello);
	return ORED_CNT_MAX;
}

/**
 * ored_join_bye() - a peer says BYE while this rank still joins
 * @l: the peer; no lock held
 *
 * Its own joining has failed: it must be heard anew.
 */
void ored_join_bye(struct ored_link *l)
{
	struct ored_member *m = l->m;

	spin_lock_bh(&m->lock);
	spin_lock(&l->lock);
	if (m->state == ORED_STATE_JOINING) {
		l->path->session = 0;
		l->path->ok = 0;
		l->path->final = false;
	}
	spin_unlock(&l->lock);
	spin_unlock_bh(&m->lock);
}

/**
 * ored_join_probe() - measures a path again
 * @l: the peer; no lock held
 *
 * Called while full packets vanish and short ones are answered. One HELLO of
 * each usual size goes out, from the agreed one down. Only when several rounds
 * of them have told the same is it the path and not bad luck. Then the routing
 * is told, and larger packets to this peer are fragmented.
 */
void ored_join_probe(struct ored_link *l)
{
	u16 payload = l->m->room;
	u16 carries = 0;

	spin_lock_bh(&l->lock);
	if (!l->probes)
		l->probe_ok = 0;
	if (l->probes++ >= ORED_PROBES && l->probe_ok >= ORED_PAYLOAD_MIN) {
		carries = l->probe_ok;
		l->probes = 0;
		l->stuck = 0;
	}
	spin_unlock_bh(&l->lock);
	if (carries) {
		ored_route_shrink(l, carries + ored_overhead(l->m));
		return;
	}
	while (payload >= ORED_PAYLOAD_MIN) {
		send_hello(l, hello_size(payload), 0, ORED_F_REQUEST);
		payload = ored_path_smaller(payload, ored_overhead(l->m));
	}
}

static int name_link(const struct ored_link *l, char *text, int room)
{
	if (l->addr.family == AF_INET)
		return scnprintf(text, room, "rank %u (%pI4)", l->rank, &l->addr.v4);
	return scnprintf(text, room, "rank %u (%pI6c)", l->rank, &l->addr.v6);
}

static bool to_blame(const struct ored_link *l, int err)
{
	switch (err) {
	case -EPROTO:
		return l->status == ORED_PEER_REFUSED;
	case -EMSGSIZE:
		return l->path->session && l->path->ok < l->path->try;
	default:
		return !l->standing.heard;
	}
}

/* Names the peers that joining failed for, as far as there is room. */
static int name_all(const struct ored_member *m, int err, char *text, int room)
{
	const struct ored_link *l;
	int n = 0;

	ored_for_each_link(m, l) {
		if (!to_blame(l, err))
			continue;
		if (n > room - 80)
			return n + scnprintf(text + n, room - n, " and others");
		if (n)
			n += scnprintf(text + n, room - n, ", ");
		n += name_link(l, text + n, room - n);
	}
	return n;
}

/**
 * ored_join_why() - the sentence about why joining failed
 * @m: the membership
 * @err: with what, negative
 * @why: receives it, ORED_ERROR_MAX bytes
 *
 * Return: @err
 */
int ored_join_why(struct ored_member *m, int err, char *why)
{
	const struct ored_link *l;
	int n;

	spin_lock_bh(&m->lock);
	n = name_all(m, err, why, ORED_ERROR_MAX - 100);
	if (err == -ETIMEDOUT && !n) {
		scnprintf(why, ORED_ERROR_MAX,
			  "all peers answered, but not all of them have heard each other in time");
	} else if (err == -ETIMEDOUT) {
		scnprintf(why + n, ORED_ERROR_MAX - n, " did not answer within %llu ms",
			  div_u64(m->failed_at - m->began, NSEC_PER_MSEC));
	} else if (err == -EMSGSIZE) {
		scnprintf(why + n, ORED_ERROR_MAX - n,
			  ": the path carries no packet with %u bytes of payload",
			  m->joining.floor);
	} else if (err == -EPROTO) {
		ored_for_each_link(m, l) {
			if (l->status != ORED_PEER_REFUSED)
				continue;
			scnprintf(why + n, ORED_ERROR_MAX - n,
				  " disagrees about the %s: it says %llu, here it is %llu",
				  l->differ, l->theirs, l->ours);
			break;
		}
	} else {
		scnprintf(why, ORED_ERROR_MAX, "interrupted while waiting for %s",
			  n ? "peers" : "the group");
	}
	spin_unlock_bh(&m->lock);
	return err;
}
