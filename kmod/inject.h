/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Faults on purpose, in builds with ORED_DEBUG only: module parameters make
 * one packet in N vanish, come twice, come damaged or come late, as it leaves.
 */
#ifndef ORED_INJECT_H
#define ORED_INJECT_H

struct sk_buff;

#ifdef ORED_DEBUG
bool ored_inject_drop(void);
bool ored_inject_duplicate(void);
void ored_inject_corrupt(struct sk_buff *skb);
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
#endif

#endif /* ORED_INJECT_H */
