/* SPDX-License-Identifier: GPL-2.0 */
/* Moved here from asm/ in 6.12. */
#ifndef ORED_COMPAT_LINUX_UNALIGNED_H
#define ORED_COMPAT_LINUX_UNALIGNED_H

#ifdef ORED_LACKS_LINUX_UNALIGNED
#include <asm/unaligned.h>
#else
#include_next <linux/unaligned.h>
#endif

#endif
