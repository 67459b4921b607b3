/* SPDX-License-Identifier: GPL-2.0 */
/* proc_handler: its table is constant since 6.11. */
#ifndef ORED_COMPAT_LINUX_SYSCTL_H
#define ORED_COMPAT_LINUX_SYSCTL_H

#include_next <linux/sysctl.h>

#ifdef ORED_LACKS_CONST_CTL_TABLE
#define ORED_CTL_TABLE struct ctl_table
#else
#define ORED_CTL_TABLE const struct ctl_table
#endif

#endif
