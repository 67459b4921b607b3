// SPDX-License-Identifier: GPL-2.0

#include <linux/bitmap.h>
#include <net/genetlink.h>

#include "attr.h"
#include "event.h"
#include "netlink.h"
#include "trace.h"

#define ORED_EVENTS 0	/* the family's only multicast group */

/* The family is registered; read under RCU. */
static bool live;

/* An event that is being told */
struct ored_message {
	struct net	*net;
	struct sk_buff	*skb;
	void		*head;
};

/*
 * Begins an event, under RCU, which end() leaves. In any context but hard
 * interrupts, and under any lock: nobody who is told runs before the locks are
 * released. Return: false if nobody listens, or there is no memory, which
 * listeners are told.
 */
static bool begin(struct ored_message *event, struct net *net, u8 command)
{
	if (!READ_ONCE(live) || !genl_has_listeners(&ored_genl, net, ORED_EVENTS))
		return false;
	event->net = net;
	event->skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_ATOMIC);
	if (!event->skb) {
		genl_set_err(&ored_genl, net, 0, ORED_EVENTS, ENOBUFS);
		return false;
	}
	event->head = genlmsg_put(event->skb, 0, 0, &ored_genl, 0, command);
	return true;
}

static void end(struct ored_message *event, int err)
{
	if (WARN_ON_ONCE(!event->head || err)) {
		nlmsg_free(event->skb);
		return;
	}
	genlmsg_end(event->skb, event->head);
	genlmsg_multicast_netns(&ored_genl, event->net, event->skb, 0, ORED_EVENTS, GFP_ATOMIC);
}

/**
 * ored_event_setup() - a group that an administrator set up comes, changes or goes
 * @on: namespace; its lock is held
 * @setup: the group
 * @command: ORED_CMD_*_NTF
 */
void ored_event_setup(struct ored_net *on, const struct ored_setup *setup, u8 command)
{
	struct ored_message event;

	lockdep_assert_held(&on->lock);
	rcu_read_lock();
	if (begin(&event, on->net, command))
		end(&event, ored_put_setup(event.skb, setup));
	rcu_read_unlock();
}

/**
 * ored_event_rank() - a rank that runs here has joined, left, or changed its policy
 * @m: the membership, locked
 * @command: ORED_CMD_*_NTF
 */
void ored_event_rank(struct ored_member *m, u8 command)
{
	struct ored_message event;

	lockdep_assert_held(&m->lock);
	rcu_read_lock();
	if (begin(&event, m->on->net, command))
		end(&event, ored_put_member(event.skb, m));
	rcu_read_unlock();
}

/**
 * ored_event_peer() - a peer is in another state
 * @l: the peer, locked
 * @status: enum ored_peer_status
 *
 * Told only once, and nothing any more after it has left.
 */
void ored_event_peer(struct ored_link *l, u8 status)
{
	struct ored_message event;

	lockdep_assert_held(&l->lock);
	trace_ored_peer(l, status);
	if (l->told == status || l->told == ORED_PEER_LEFT)
		return;
	l->told = status;
	rcu_read_lock();
	if (begin(&event, l->m->on->net, ORED_CMD_PEER_NTF))
		end(&event, ored_put_peer_status(event.skb, l, status));
	rcu_read_unlock();
}

static int put_op(struct sk_buff *skb, const struct ored_slot *slot, u32 loss_ppm,
		  const unsigned long *missing)
{
	u64 words[ORED_RANK_WORDS] = {};
	struct nlattr *nest;

	bitmap_to_arr64(words, missing, slot->m->nranks);
	if (ored_put_rank(skb, slot->m))
		return -EMSGSIZE;
	nest = nla_nest_start(skb, ORED_A_OP);
	if (!nest ||
	    nla_put_u64_64bit(skb, ORED_A_OP_OP, slot->op, ORED_A_OP_PAD) ||
	    nla_put_u32(skb, ORED_A_OP_LIMIT, slot->limit) ||
	    nla_put_u32(skb, ORED_A_OP_LOSS_PPM, loss_ppm) ||
	    nla_put_u64_64bit(skb, ORED_A_OP_ELAPSED_NS, slot->elapsed_ns, ORED_A_OP_PAD) ||
	    nla_put_u64_64bit(skb, ORED_A_OP_BOUND_NS, slot->published_ns, ORED_A_OP_PAD) ||
	    nla_put_u64_64bit(skb, ORED_A_OP_BYTES, slot->mine.bytes, ORED_A_OP_PAD) ||
	    nla_put(skb, ORED_A_OP_MISSING, sizeof(words), words))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * ored_event_op() - something is missing of an op's result
 * @slot: finished
 * @loss_ppm: how much
 * @missing: ranks of which something is
 *
 * The caller sees to it that there aren't too many of them.
 */
void ored_event_op(const struct ored_slot *slot, u32 loss_ppm, const unsigned long *missing)
{
	struct ored_message event;

	rcu_read_lock();
	if (begin(&event, slot->m->on->net, ORED_CMD_OP_NTF))
		end(&event, put_op(event.skb, slot, loss_ppm, missing));
	rcu_read_unlock();
}

/**
 * ored_event_begin() - the family is registered
 */
void ored_event_begin(void)
{
	WRITE_ONCE(live, true);
}

/**
 * ored_event_end() - the family will go; afterwards nobody uses it any more
 */
void ored_event_end(void)
{
	WRITE_ONCE(live, false);
	synchronize_rcu();
}
