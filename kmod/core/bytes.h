/* SPDX-License-Identifier: GPL-2.0 */
/* Numbers in network order, at any alignment. */
#ifndef ORED_CORE_BYTES_H
#define ORED_CORE_BYTES_H

#include "shim.h"

static inline u16 ored_get16(const u8 *p)
{
	return (u16)(p[0] << 8 | p[1]);
}

static inline u32 ored_get32(const u8 *p)
{
	return (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3];
}

static inline u64 ored_get64(const u8 *p)
{
	return (u64)ored_get32(p) << 32 | ored_get32(p + 4);
}

static inline void ored_put16(u8 *p, u16 v)
{
	p[0] = (u8)(v >> 8);
	p[1] = (u8)v;
}

static inline void ored_put32(u8 *p, u32 v)
{
	ored_put16(p, (u16)(v >> 16));
	ored_put16(p + 2, (u16)v);
}

static inline void ored_put64(u8 *p, u64 v)
{
	ored_put32(p, (u32)(v >> 32));
	ored_put32(p + 4, (u32)v);
}

#endif /* ORED_CORE_BYTES_H */
