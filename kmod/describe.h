/* SPDX-License-Identifier: GPL-2.0 */
/* What is known of peers, for socket options and netlink alike. */
#ifndef ORED_DESCRIBE_H
#define ORED_DESCRIBE_H

#include "member.h"

void ored_describe_peer(struct ored_member *m, struct ored_link *l,
			struct ored_peer_state *state);

#endif /* ORED_DESCRIBE_H */
