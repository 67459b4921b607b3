/* SPDX-License-Identifier: GPL-2.0 */
/* genl_info_dump(): added in 6.6. */
#ifndef ORED_COMPAT_NET_GENETLINK_H
#define ORED_COMPAT_NET_GENETLINK_H

#include_next <net/genetlink.h>

static inline struct nlattr **ored_dump_attrs(struct netlink_callback *cb)
{
#ifdef ORED_LACKS_GENL_INFO_DUMP
	return genl_dumpit_info(cb)->attrs;
#else
	return genl_info_dump(cb)->attrs;
#endif
}

#endif
