/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Faults on purpose, in builds with ORED_DEBUG only: module parameters make
 * one packet in N vanish, come twice, come damaged or come late, the FPU unusable,
 * the freeing of memberships slow, the clocks of ranks differ, and the timer that
 * keeps bounds late. Those of packets act on what is received, behind the last
 * checksum.
 */
#ifndef ORED_INJECT_H
#define ORED_INJECT_H

#include <linux/hrtimer.h>
#include <linux/skbuff.h>

struct ored_net;

/**
 * struct ored_held - a namespace's packets that come late
 * @list: in the order in which they came; its lock protects @at, too
 * @timer: hands on what is due
 * @at: when it fires, ns; U64_MAX: it doesn't
 */
struct ored_held {
#ifdef ORED_DEBUG
	struct sk_buff_head	list;
	struct hrtimer		timer;
	u64			at;
#endif
};

#ifdef ORED_DEBUG
extern bool ored_inject_fpu_taken;

bool ored_inject_drop(void);
bool ored_inject_duplicate(void);
void ored_inject_corrupt(struct sk_buff *skb);
bool ored_inject_delay(struct ored_net *on, struct sk_buff *skb);
void ored_inject_begin(struct ored_net *on);
void ored_inject_end(struct ored_net *on);
void ored_inject_slow_free(void);
u32 ored_inject_clock_us(u32 rank);
u64 ored_inject_timer_ns(void);

/**
 * ored_inject_no_fpu() - shall the reduction do without the FPU?
 */
static inline bool ored_inject_no_fpu(void)
{
	return READ_ONCE(ored_inject_fpu_taken);
}
#else
static inline bool ored_inject_drop(void)
{
	return false;
}

static inline bool ored_inject_duplicate(void)
{
	return false;
}

static inline void ored_inject_corrupt(struct sk_buff *skb)
{
}

static inline bool ored_inject_delay(struct ored_net *on, struct sk_buff *skb)
{
	return false;
}

static inline void ored_inject_begin(struct ored_net *on)
{
}

static inline void ored_inject_end(struct ored_net *on)
{
}

static inline void ored_inject_slow_free(void)
{
}

static inline u32 ored_inject_clock_us(u32 rank)
{
	return 0;
}

static inline u64 ored_inject_timer_ns(void)
{
	return 0;
}

static inline bool ored_inject_no_fpu(void)
{
	return false;
}
#endif

#endif /* ORED_INJECT_H */
