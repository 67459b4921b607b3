/* SPDX-License-Identifier: GPL-2.0 */
/* register_net_sysctl_sz(): added in 6.6; before, an empty entry ends a table. */
#ifndef ORED_COMPAT_NET_NET_NAMESPACE_H
#define ORED_COMPAT_NET_NET_NAMESPACE_H

#include_next <net/net_namespace.h>

#ifdef ORED_LACKS_REGISTER_NET_SYSCTL_SZ
static inline struct ctl_table_header *
register_net_sysctl_sz(struct net *net, const char *path, struct ctl_table *table, size_t size)
{
	return register_net_sysctl(net, path, table);
}
#endif

#endif
