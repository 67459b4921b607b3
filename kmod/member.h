/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A membership: one rank of one group in this namespace.
 *
 * Contexts
 * ========
 * process context   system calls; the group's worker, a real-time kernel thread
 *	(deadline.h); ored_wq, for ends and what sleeps in them
 * softirq           packets, from the outer socket (rx.c); the retransmission
 *	timer (timer.c); packets held by debug builds (inject.c)
 * hard interrupt    the timer that keeps bounds (deadline.c)
 *
 * On the loopback and in the pump a system call runs what packets run, with bottom
 * halves off.
 *
 * Locking
 * =======
 * From the outside in; a lock may be taken while those above it are held:
 *
 *   ored_sock.send_mutex, ored_sock.recv_mutex   one send(), one recv() at a
 *	time; process context, held over copies from and to the user
 *   ored_sock.conf_mutex   options of a socket, its joining and leaving
 *   ored_net.lock          lists of the namespace, its outer sockets and its
 *	policy; process context, held while an outer socket is opened or closed
 *   ored_area.lock         a checkpoint area's generations (area.h); process context
 *   ored_member.lock       states of slots and of the membership, posted,
 *	finished, received, what peers have left, joining, policy, terms and
 *	bounds; BH off
 *   ored_link.lock         everything about one peer: its flows in all
 *	slots, its receivers' ACK state, window, path, counters; BH off
 *   ored_slot.know, ored_member.timer_lock, ored_member.pace_lock, ored_area.state,
 *	ored_take.lock   leaves; BH off
 *
 * Apart from these, within any of the mutexes, a leaf of process context:
 * ored_sock.say, for the sentence of the last error and results that were taken.
 * And in debug builds the queue of held packets has a lock, a leaf of softirq.
 * Whatever the kernel's own calls take comes last: a waiter is woken, a timer is
 * armed and work is queued under ored_member.lock.
 *
 * Requests by netlink take ored_net.lock first of all of these; generic netlink
 * holds its own cb_lock for reading around them, and no other lock, so nothing
 * here may register or unregister a family. Events are told under any of them,
 * down to ored_link.lock: a message is only queued, and whom it wakes runs later.
 *
 * Of links only one is locked at a time. No lock of these is held while a packet is
 * handed to IP: netfilter and queueing disciplines run there, and on the
 * loopback the receiver is ourselves.
 *
 * Lockdep knows them by these names (lock.h). Debug builds teach it the order
 * before the first lock is taken; what needs a lock, or none, asserts it.
 *
 * Gradients need no lock: chunks are claimed, placed and counted atomically,
 * and a slot isn't reset while anybody is inside (slot.h). Who takes the result
 * of an op that isn't whole, or describes it, waits until nobody writes into it
 * any more: it was sealed when the op ended. He spins, under ored_member.lock too,
 * so writers keep bottom halves off, and with them preemption, and take no lock.
 * A post from a mapped slot (mapped.h) changes the place that they write to: it keeps
 * them out by ORED_MOVING and waits likewise. Who takes such an op's result first has
 * trains be filled from the kernel's copy (ored_slot.from), and then waits until none
 * is being filled any more (ored_slot.readers).
 *
 * The timer that keeps bounds fires in hard interrupt context, where none of
 * these locks may be taken: it only wakes the waiter and the group's worker.
 *
 * Lifetime
 * ========
 * A socket owns its membership. When it is closed the membership becomes its
 * namespace's: it goes on serving what peers still want of the ops that were
 * posted, for a bounded time (leave.c), and is then killed. Killing unlinks it,
 * stops its timers and frees it after an RCU grace period, in a workqueue,
 * since the outer socket's release sleeps. Packets find memberships under RCU;
 * the timers are cancelled before the grace period begins, and the worker is
 * ended after it, when nobody can give it work any more. A membership holds its
 * namespace until it is freed, so that the end of a container's last process
 * doesn't cut its peers off. It doesn't hold the module: unloading kills what
 * is left, and waits until all that is being freed has been, since the last of it
 * still looks at the namespace's part of ours, which goes next.
 */
#ifndef ORED_MEMBER_H
#define ORED_MEMBER_H

#include <linux/hrtimer.h>
#include <linux/in6.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/ratelimit.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/dst_cache.h>
#include <linux/ored.h>

#include "charge.h"
#include "core/bound.h"
#include "core/early.h"
#include "core/hello.h"
#include "core/incast.h"
#include "core/pace.h"
#include "core/rate.h"
#include "core/rotation.h"
#include "core/standing.h"
#include "mapped.h"
#include "net.h"
#include "rotate.h"
#include "slot.h"
#include "udp.h"

struct sock;

/**
 * struct ored_addr - an address of a peer
 * @family: AF_INET or AF_INET6
 * @port: UDP port, network order
 * @scope_id: interface of a link-local address
 * @v4: IPv4
 * @v6: IPv6
 */
struct ored_addr {
	u16			family;
	__be16			port;
	u32			scope_id;
	union {
		__be32		v4;
		struct in6_addr	v6;
	};
};

/**
 * struct ored_link - a peer and the path to it
 * @m: the membership
 * @rank: the peer's
 * @addr: where it is
 * @dst: cached route
 * @lock: protects what follows
 * @status: enum ored_peer_status
 * @path: what joining knows of it, in @joining of the membership; changed under
 *	both locks
 * @standing: how far it is; read without the lock; what it has left grows only
 *	under the membership's lock too
 * @serves: with ORED_PEER_LEFT: it still reduces its shards of bounded ops
 * @advert: what its last control packet said of t_C and incast
 * @rotation_word: likewise, of the Hadamard transform
 * @told: the status that listeners to events were told last
 * @left_at: with ORED_PEER_LEFT: first op it doesn't take part in
 * @bye_known: it knows that we are leaving
 * @rate: window and round trip
 * @inflight: packets in flight, all flows
 * @unasked: packets sent since an ACK was asked for
 * @starved: something could not be sent for want of memory
 * @pto_at: when to ask about what is in flight, ns of the monotonic clock
 * @ask_at: when to ask what it has left
 * @asks: questions since it was last heard
 * @answer_at: not before this time another unsolicited answer
 * @stuck: rounds of full packets resent of which none arrived
 * @probes: rounds of probes since full packets began to vanish
 * @probe_ok: largest payload of a probe that got through since
 * @differ: with ORED_PEER_REFUSED: a static word for what differs, and
 * @ours: our value,
 * @theirs: its value
 * @sent: packets of gradients
 * @resent: of these, those that had been sent before
 * @received: packets of gradients
 * @duplicates: packets of gradients
 * @local_drops: packets that this host dropped on the way out
 */
struct ored_link {
	struct ored_member	*m;
	u32			rank;
	struct ored_addr	addr;
	struct dst_cache	dst;

	/* What follows, but for flows: those of all slots too */
	spinlock_t		lock ____cacheline_aligned_in_smp;
	u8			status;
	struct ored_path	*path;
	struct ored_standing	standing;
	u32			advert;
	u16			rotation_word;
	bool			serves;
	u8			told;
	u64			left_at;
	bool			bye_known;
	struct ored_rate	rate;
	u32			inflight;
	u32			unasked;
	bool			starved;
	u64			pto_at;
	u64			ask_at;
	u32			asks;
	u64			answer_at;
	u32			stuck;
	u32			probes;
	u16			probe_ok;
	const char		*differ;
	u64			ours;
	u64			theirs;
	u64			sent;
	u64			resent;
	u64			received;
	u64			duplicates;
	u64			local_drops;
};

/**
 * struct ored_member - a rank of a group
 * @on: its namespace
 * @list: in ored_net.members, in the order of @serial
 * @serial: number among all memberships and setups of the namespace
 * @hash: in ored_net.sessions
 * @conf: as given to ORED_JOIN; key and peers elsewhere
 * @rank: shorthand of @conf
 * @nranks: shorthand of @conf
 * @nslots: 2 depth + 1
 * @family: AF_INET or AF_INET6
 * @session: what peers put into their packets to us
 * @ifindex: interface that all packets must leave by, or 0
 * @payload_bound: no payload can be larger, nor what follows it in a packet
 * @mask: bytes of a set of ranks in a packet
 * @udp: the outer socket
 * @links: by rank; the own one only holds the own address
 * @slots: @nslots of them
 * @uncounted: of the op whose result was received last, with its bitmap; under
 *	the socket's recv_mutex
 * @rotate: memory of the Hadamard transform
 * @mapped: slots that the user can map
 * @memory: bytes allocated
 * @charge: who is charged for them
 * @stats: counters
 * @lock: see "Locking"
 * @sk: the socket to wake, NULL when it is closed; written under @lock, read
 *	under RCU
 * @state: enum ored_state
 * @began: when joining began, ns
 * @failed_at: when it failed, ns
 * @failure: why joining failed, negative errno
 * @explained: the socket has a sentence about it
 * @payload: agreed; 0 until then
 * @room: bytes that all paths carry behind our header: @payload and @mask
 * @posted: ops posted here
 * @finished: all ops below it have ended here
 * @received: ops whose result recv() has taken
 * @last: with ORED_STATE_LEFT: ops below it were posted by the socket
 * @serves: with ORED_STATE_LEFT: the own shards of later ops are still reduced
 * @retained: all slots of ops below it have been reset
 * @want_left: peers that have left fewer ops are asked until they have
 * @failed_ops: an op has failed, and some peer may not know
 * @tell_at: when to tell them again, ns
 * @tell_gap: until the time after that, ns
 * @joining: what HELLO has told
 * @hello_at: next round of HELLOs, ns
 * @hello_gap: until the one after it, ns
 * @deadline: joining fails, or leaving ends, ns
 * @policy: what to make of loss
 * @bound: how long ops may take
 * @early: the early timeout
 * @incast: how many peers may send to us
 * @advert: what our control packets say of both
 * @rotation: whether the group transforms its buckets
 * @rotation_word: what our control packets say of it; written under @lock
 * @samples: room for the early timeout, by rank
 * @takes: room for what peers advertise
 * @promised: when the op that was posted last ends at the latest; ORED_NEVER: no
 *	such promise
 * @patience: longest bound that was published of late, ns; for groups that have
 *	only reliable ops, ORED_PATIENCE_NS
 * @fastest: shortest time from a complete op's post to its end, ns; 0: none yet
 * @resync: this rank was behind and missed a result; until a reliable op
 * @report: limits what is logged of ops that aren't whole
 * @due_timer: keeps bounds; fires in hard interrupt context
 * @due_at: when it does; read without the lock
 * @due_dead: it may not be started any more
 * @sweep: the worker shall look what can be reduced
 * @worker: the group's
 * @due_work: what it does
 * @pace_lock: protects @pace
 * @pace: how fast gradients leave
 * @turn: whose turn it is: peers are served from this rank on
 * @timer_lock: protects @timer_at and @dead
 * @timer: the only one
 * @timer_at: when it fires, ns; U64_MAX: it doesn't
 * @pump_at: when there will be tokens for what waits to be sent; U64_MAX: nothing
 *	waits for them; under @pace_lock, read without
 * @pump_again: there was more to send than one call may
 * @dead: the timer may not be started any more
 * @drained: work that kills a membership that has nothing left to do
 * @free: work that frees it
 */
struct ored_member {
	struct ored_net		*on;
	struct list_head	list;
	u64			serial;
	struct hlist_node	hash;
	struct ored_join	conf;
	u32			rank;
	u32			nranks;
	u32			nslots;
	u16			family;
	u32			session;
	int			ifindex;
	u16			payload_bound;
	u16			mask;
	struct ored_udp		*udp;
	struct ored_link	*links;
	struct ored_slot	*slots;
	struct ored_uncounted	*uncounted;
	struct ored_rotate_memory rotate;
	struct ored_mapped	mapped;
	u64			memory;
	struct ored_charge	charge;
	struct ored_stats __percpu *stats;

	/* What follows, up to @timer_lock, and the states of slots */
	spinlock_t		lock ____cacheline_aligned_in_smp;
	struct sock __rcu	*sk;
	int			state;
	u64			began;
	u64			failed_at;
	int			failure;
	bool			explained;
	u32			payload;
	u32			room;
	u64			posted;
	u64			finished;
	u64			received;
	u64			last;
	bool			serves;
	u64			retained;
	u64			want_left;
	bool			failed_ops;
	u64			tell_at;
	u64			tell_gap;
	struct ored_joining	joining;
	u64			hello_at;
	u64			hello_gap;
	u64			deadline;
	struct ored_policy	policy;
	struct ored_bound	bound;
	struct ored_early	early;
	struct ored_incast_state incast;
	u32			advert;
	struct ored_rotation	rotation;
	u16			rotation_word;
	u64			*samples;
	u32			*takes;
	u64			promised;
	u64			patience;
	u64			fastest;
	bool			resync;
	struct ratelimit_state	report;
	struct hrtimer		due_timer;
	u64			due_at;
	bool			due_dead;
	bool			sweep;
	struct kthread_worker	*worker;
	struct kthread_work	due_work;

	spinlock_t		pace_lock;	/* @pace */
	struct ored_pace	pace;
	u32			turn;

	spinlock_t		timer_lock;	/* @timer_at, @dead */
	struct hrtimer		timer;
	u64			timer_at;
	u64			pump_at;
	bool			pump_again;
	bool			dead;
	struct work_struct	drained;
	struct rcu_work		free;
};

extern struct workqueue_struct *ored_wq;

struct ored_member *ored_member_new(struct ored_net *on, const struct ored_join *conf,
				    const struct ored_peer *peers,
				    const struct ored_policy *policy, int ifindex,
				    char *why);
int ored_member_start(struct ored_member *m, struct sock *sk, char *why);
void ored_member_kill(struct ored_member *m);
void ored_member_kill_all(struct ored_net *on);
void ored_member_wake(struct ored_member *m, __poll_t events);

bool ored_addr_equal(const struct ored_addr *a, const struct ored_addr *b);

#define ORED_TELL_FIRST_NS	(10 * NSEC_PER_MSEC)
#define ORED_PATIENCE_NS	(5 * NSEC_PER_SEC)
#define ORED_SILENT_AFTER	3	/* questions to a peer without an answer */

/* Has a peer left the group before an op, and said so? */
static inline bool ored_link_left_by(const struct ored_link *l, u64 op)
{
	return READ_ONCE(l->status) == ORED_PEER_LEFT && READ_ONCE(l->left_at) <= op;
}

/**
 * ored_link_needs() - may a peer still want our data of an op?
 * @l: the peer; either its lock or its membership's is held, or the answer
 *	may be late
 * @op: the op
 */
static inline bool ored_link_needs(const struct ored_link *l, u64 op)
{
	if (READ_ONCE(l->standing.gone) || READ_ONCE(l->standing.left) > op)
		return false;
	return READ_ONCE(l->serves) || !ored_link_left_by(l, op);
}

/* The longest that a round trip commonly takes; without its lock, roughly */
static inline u64 ored_link_round_trip_ns(const struct ored_link *l)
{
	return ((u64)READ_ONCE(l->rate.srtt_us) + 4ULL * READ_ONCE(l->rate.rttvar_us)) *
	       NSEC_PER_USEC;
}

/* The longest until a peer has noticed a loss, asked about it and repaired it */
static inline u64 ored_link_repair_ns(const struct ored_link *l)
{
	return ored_rate_asks_within(&l->rate) * (u64)NSEC_PER_USEC +
	       2 * ored_link_round_trip_ns(l);
}

/* A peer has slots for so many ops from the first on that it hasn't left. */
static inline u32 ored_slots_open(const struct ored_member *m)
{
	return m->conf.depth + 1;
}

/* Microseconds, which peers only send back */
static inline u32 ored_now_us(void)
{
	return (u32)(ktime_get_ns() / NSEC_PER_USEC);
}

/* Microseconds, as peers see them in our packets */
static inline u32 ored_clock(const struct ored_member *m)
{
	return ored_now_us() + ored_inject_clock_us(m->rank);
}

/* The first link that is a peer's, after @l if there is one */
static inline struct ored_link *ored_link_next(const struct ored_member *m,
					       const struct ored_link *l)
{
	u32 r = l ? l->rank + 1 : 0;

	r += r == m->rank;
	return r < m->nranks ? &m->links[r] : NULL;
}

/* All peers of @m: every link but its own */
#define ored_for_each_link(m, l)			\
	for ((l) = ored_link_next((m), NULL); (l);	\
	     (l) = ored_link_next((m), (l)))

#endif /* ORED_MEMBER_H */
