// SPDX-License-Identifier: GPL-2.0

#include "lock.h"

#ifdef CONFIG_LOCKDEP
struct lock_class_key ored_lock_key[ORED_LOCKS];

const char *const ored_lock_name[ORED_LOCKS] = {
	[ORED_LOCK_SEND]	= "ored_sock.send_mutex",
	[ORED_LOCK_RECV]	= "ored_sock.recv_mutex",
	[ORED_LOCK_CONF]	= "ored_sock.conf_mutex",
	[ORED_LOCK_NET]		= "ored_net.lock",
	[ORED_LOCK_AREA]	= "ored_area.lock",
	[ORED_LOCK_MEMBER]	= "ored_member.lock",
	[ORED_LOCK_LINK]	= "ored_link.lock",
	[ORED_LOCK_KNOW]	= "ored_slot.know",
	[ORED_LOCK_TIMER]	= "ored_member.timer_lock",
	[ORED_LOCK_PACE]	= "ored_member.pace_lock",
	[ORED_LOCK_STATE]	= "ored_area.state",
	[ORED_LOCK_TAKE]	= "ored_take.lock",
	[ORED_LOCK_SAY]		= "ored_sock.say",
};
#endif
