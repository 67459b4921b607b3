// SPDX-License-Identifier: GPL-2.0
/* Part of builds with ORED_DEBUG only. */

#include <linux/moduleparam.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <linux/udp.h>

#include "core/wire.h"
#include "inject.h"

static unsigned int inject_drop;
module_param(inject_drop, uint, 0644);
MODULE_PARM_DESC(inject_drop, "Drop one packet in N that is received (0: none)");

static unsigned int inject_duplicate;
module_param(inject_duplicate, uint, 0644);
MODULE_PARM_DESC(inject_duplicate, "Take in one packet in N twice (0: none)");

static unsigned int inject_corrupt;
module_param(inject_corrupt, uint, 0644);
MODULE_PARM_DESC(inject_corrupt, "Damage one header in N that is received (0: none)");

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
