// SPDX-License-Identifier: GPL-2.0
/*
 * Part of builds with ORED_DEBUG only.
 *
 * A packet that is delayed waits in its namespace, in a queue with a timer of
 * its own, and those that come meanwhile overtake it. The queue is bounded: what
 * it can't take isn't delayed.
 */

#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/moduleparam.h>
#include <linux/netfilter.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/dst.h>

#include "core/wire.h"
#include "inject.h"
#include "net.h"
#include "rx.h"

#define HELD_MAX	1024	/* packets of a namespace */

static unsigned int inject_drop;
module_param(inject_drop, uint, 0644);
MODULE_PARM_DESC(inject_drop, "Drop one packet in N that is received (0: none)");

static unsigned int inject_duplicate;
module_param(inject_duplicate, uint, 0644);
MODULE_PARM_DESC(inject_duplicate, "Take in one packet in N twice (0: none)");

static unsigned int inject_corrupt;
module_param(inject_corrupt, uint, 0644);
MODULE_PARM_DESC(inject_corrupt, "Damage one header in N that is received (0: none)");

static unsigned int inject_delay;
module_param(inject_delay, uint, 0644);
MODULE_PARM_DESC(inject_delay, "Hold one packet in N that is received for some time (0: none)");

static unsigned int inject_delay_us = 1000;
module_param(inject_delay_us, uint, 0644);
MODULE_PARM_DESC(inject_delay_us, "How long at the most, in microseconds");

bool ored_inject_fpu_taken;
module_param_named(inject_no_fpu, ored_inject_fpu_taken, bool, 0644);
MODULE_PARM_DESC(inject_no_fpu, "Reduce as if the FPU could never be used");

static unsigned int inject_clock_us;
module_param(inject_clock_us, uint, 0644);
MODULE_PARM_DESC(inject_clock_us,
		 "Put each rank's clock in packets so many microseconds ahead of the rank's before it");

static unsigned int inject_timer_us;
module_param(inject_timer_us, uint, 0644);
MODULE_PARM_DESC(inject_timer_us,
		 "Let the timer that keeps bounds fire so many microseconds late");

static unsigned int inject_free_ms;
module_param(inject_free_ms, uint, 0644);
MODULE_PARM_DESC(inject_free_ms,
		 "Pause in the midst of freeing a membership, in milliseconds (0: don't)");

/* When a held packet is due, ns of the monotonic clock */
struct held {
	u64	due;
};

static struct held *held(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct held) > sizeof(skb->cb));
	return (struct held *)skb->cb;
}

/**
 * ored_inject_clock_us() - how far ahead is a rank's clock?
 * @rank: whose
 *
 * Ranks on one host share a clock, those of different hosts don't. It may wrap.
 */
u32 ored_inject_clock_us(u32 rank)
{
	return rank * READ_ONCE(inject_clock_us);
}

/**
 * ored_inject_timer_ns() - how late does the timer fire that keeps bounds?
 */
u64 ored_inject_timer_ns(void)
{
	return (u64)READ_ONCE(inject_timer_us) * NSEC_PER_USEC;
}

static bool one_in(unsigned int n)
{
	return n && get_random_u32() % n == 0;
}

/**
 * ored_inject_drop() - shall this packet vanish?
 */
bool ored_inject_drop(void)
{
	return one_in(READ_ONCE(inject_drop));
}

/**
 * ored_inject_duplicate() - shall this packet come twice?
 */
bool ored_inject_duplicate(void)
{
	return one_in(READ_ONCE(inject_duplicate));
}

/**
 * ored_inject_corrupt() - damages a packet's header, or doesn't
 * @skb: from the UDP header on
 *
 * Of what would pass every checksum: one random byte of our header but for the
 * session, since whoever knows that can sum whatever he likes anyway.
 */
void ored_inject_corrupt(struct sk_buff *skb)
{
	u32 at = get_random_u32() % ORED_WIRE_HEADER;
	u8 byte = (u8)get_random_u32();

	if (!one_in(READ_ONCE(inject_corrupt)))
		return;
	if (skb_ensure_writable(skb, sizeof(struct udphdr) + ORED_WIRE_HEADER))
		return;
	skb->data[sizeof(struct udphdr) + at] ^= byte;
}

static void arm(struct ored_held *queue, u64 at)
	__must_hold(&queue->list.lock)
{
	lockdep_assert_held(&queue->list.lock);
	if (at >= queue->at)
		return;
	queue->at = at;
	hrtimer_start(&queue->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

/**
 * ored_inject_delay() - holds a packet back, or doesn't
 * @on: namespace that it has come to
 * @skb: from the UDP header on
 *
 * Return: whether it is held: ored_rx_packet() gets it when it is due
 */
bool ored_inject_delay(struct ored_net *on, struct sk_buff *skb)
{
	struct ored_held *queue = &on->held;
	u32 most = READ_ONCE(inject_delay_us);
	bool hold;

	if (!most || !one_in(READ_ONCE(inject_delay)))
		return false;
	/* It may outlive whatever else it points to. */
	skb_orphan(skb);
	skb_dst_drop(skb);
	skb_ext_reset(skb);
	nf_reset_ct(skb);
	skb->dev = NULL;
	held(skb)->due = ktime_get_ns() + (u64)(1 + get_random_u32() % most) * NSEC_PER_USEC;
	spin_lock(&queue->list.lock);
	hold = skb_queue_len(&queue->list) < HELD_MAX;
	if (hold) {
		__skb_queue_tail(&queue->list, skb);
		arm(queue, held(skb)->due);
	}
	spin_unlock(&queue->list.lock);
	return hold;
}

/* Takes out one that is due; else sets the timer for the next. */
static struct sk_buff *next_due(struct ored_held *queue)
{
	u64 now = ktime_get_ns(), next = U64_MAX;
	struct sk_buff *skb;

	spin_lock(&queue->list.lock);
	queue->at = U64_MAX;
	skb_queue_walk(&queue->list, skb) {
		if (held(skb)->due <= now) {
			__skb_unlink(skb, &queue->list);
			spin_unlock(&queue->list.lock);
			return skb;
		}
		next = min(next, held(skb)->due);
	}
	arm(queue, next);
	spin_unlock(&queue->list.lock);
	return NULL;
}

static enum hrtimer_restart fire(struct hrtimer *timer)
{
	struct ored_held *queue = container_of(timer, struct ored_held, timer);
	struct ored_net *on = container_of(queue, struct ored_net, held);
	struct sk_buff *skb;

	rcu_read_lock();
	while ((skb = next_due(queue)))
		ored_rx_packet(on, skb);
	rcu_read_unlock();
	return HRTIMER_NORESTART;
}

/**
 * ored_inject_begin() - a namespace can hold packets from now on
 * @on: the namespace
 */
void ored_inject_begin(struct ored_net *on)
{
	skb_queue_head_init(&on->held.list);
	on->held.at = U64_MAX;
	hrtimer_setup(&on->held.timer, fire, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

/**
 * ored_inject_end() - frees the packets that a namespace holds
 * @on: the namespace; no packet comes to it any more
 */
void ored_inject_end(struct ored_net *on)
{
	hrtimer_cancel(&on->held.timer);
	skb_queue_purge(&on->held.list);
}

/**
 * ored_inject_slow_free() - pauses where a membership is freed, or doesn't
 */
void ored_inject_slow_free(void)
{
	unsigned int ms = READ_ONCE(inject_free_ms);

	if (ms)
		msleep(ms);
}
