// SPDX-License-Identifier: GPL-2.0

#include "incast.h"
#include "../../uapi/linux/ored.h"

/**
 * ored_incast_init() - before the first op
 * @in: what to fill in
 * @policy: enum ored_incast
 * @nranks: ranks of the group
 */
void ored_incast_init(struct ored_incast_state *in, u8 policy, u32 nranks)
{
	in->policy = policy;
	in->peers = max(nranks, 2U) - 1;
	in->own = policy == ORED_INCAST_ADAPT ? 1 : in->peers;
}

/**
 * ored_incast_ended() - an op has ended
 * @in: the rank's
 * @clean: nothing of what came to this rank was lost on the way, repaired or
 *	not, and the op didn't end by its bound
 */
void ored_incast_ended(struct ored_incast_state *in, bool clean)
{
	if (in->policy != ORED_INCAST_ADAPT)
		return;
	in->own = clean ? min(in->own + 1, in->peers) : max(in->own / 2, 1U);
}

/**
 * ored_incast_obeyed() - how many peers a rank serves at once
 * @in: its own
 * @advertised: by peer, what it has said last; 0: nothing yet, or it doesn't
 *	count
 * @n: how many numbers that is
 *
 * Return: the smallest of all, 1 to N - 1
 */
u32 ored_incast_obeyed(const struct ored_incast_state *in, const u32 *advertised, u32 n)
{
	u32 least = in->own, i;

	for (i = 0; i < n; i++)
		if (advertised[i])
			least = min(least, advertised[i]);
	return least;
}
