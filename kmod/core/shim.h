/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The one door between the pure core and its surroundings. In the kernel it
 * brings the kernel's own types and helpers; elsewhere (unit tests, fuzzers,
 * simulators) the few of them that the core uses.
 */
#ifndef ORED_CORE_SHIM_H
#define ORED_CORE_SHIM_H

#ifdef __KERNEL__

#include <linux/bitops.h>
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/unaligned.h>
#include <asm/byteorder.h>

#else

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <endian.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define S32_MAX			0x7fffffff
#define S64_MAX			0x7fffffffffffffffLL
#define S64_MIN			(-S64_MAX - 1)
#define BIT_ULL(n)		(1ULL << (n))
#define BITS_PER_LONG		((unsigned int)(8 * sizeof(long)))
#define BITS_TO_LONGS(n)	(((n) + BITS_PER_LONG - 1) / BITS_PER_LONG)
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define BUILD_BUG_ON(cond)	_Static_assert(!(cond), #cond)
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#ifndef __always_inline
#define __always_inline		inline __attribute__((__always_inline__))
#endif
#define __aligned(n)		__attribute__((__aligned__(n)))
#define noinline		__attribute__((__noinline__))
#define fallthrough		__attribute__((__fallthrough__))
#define READ_ONCE(x)		__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v)	__atomic_store_n(&(x), (v), __ATOMIC_RELAXED)

#define min(a, b) ({ typeof(a) _a = (a); typeof(b) _b = (b); _a < _b ? _a : _b; })
#define max(a, b) ({ typeof(a) _a = (a); typeof(b) _b = (b); _a > _b ? _a : _b; })
#define min_t(t, a, b)		min((t)(a), (t)(b))
#define max_t(t, a, b)		max((t)(a), (t)(b))
#define clamp_t(t, v, lo, hi)	min_t(t, max_t(t, v, lo), hi)

#define cpu_to_be16(x)		htobe16(x)
#define cpu_to_be32(x)		htobe32(x)
#define cpu_to_be64(x)		htobe64(x)
#define be16_to_cpu(x)		be16toh(x)
#define be32_to_cpu(x)		be32toh(x)
#define be64_to_cpu(x)		be64toh(x)

static inline unsigned int hweight_long(unsigned long w)
{
	return (unsigned int)__builtin_popcountl(w);
}

static inline unsigned int hweight64(u64 w)
{
	return (unsigned int)__builtin_popcountll(w);
}

static inline unsigned long __ffs(unsigned long w)
{
	return (unsigned long)__builtin_ctzl(w);
}

static inline int fls64(u64 v)
{
	return v ? 64 - __builtin_clzll(v) : 0;
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline u64 div_u64_rem(u64 dividend, u32 divisor, u32 *remainder)
{
	*remainder = (u32)(dividend % divisor);
	return dividend / divisor;
}

static inline s64 div_s64(s64 dividend, s32 divisor)
{
	return dividend / divisor;
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return (u64)((__uint128_t)a * b >> shift);
}

static inline bool test_bit(unsigned long n, const unsigned long *map)
{
	return __atomic_load_n(&map[n / BITS_PER_LONG], __ATOMIC_RELAXED) >>
	       (n % BITS_PER_LONG) & 1;
}

static inline bool test_and_set_bit(unsigned long n, unsigned long *map)
{
	unsigned long bit = 1UL << (n % BITS_PER_LONG);

	return __atomic_fetch_or(&map[n / BITS_PER_LONG], bit,
				 __ATOMIC_SEQ_CST) & bit;
}

static inline void __set_bit(unsigned long n, unsigned long *map)
{
	map[n / BITS_PER_LONG] |= 1UL << (n % BITS_PER_LONG);
}

static inline void __clear_bit(unsigned long n, unsigned long *map)
{
	map[n / BITS_PER_LONG] &= ~(1UL << (n % BITS_PER_LONG));
}

/* For types that aren't smaller than an int */
#define get_unaligned(p) ({ \
	typeof(*(p) + 0) _v; \
	memcpy(&_v, (p), sizeof(_v)); \
	_v; \
})

#define put_unaligned(v, p) ({ \
	typeof(*(p)) _v = (typeof(*(p)))(v); \
	memcpy((p), &_v, sizeof(_v)); \
})

static inline u32 get_unaligned_le32(const void *p)
{
	u32 v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static inline void put_unaligned_le32(u32 v, void *p)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

#endif /* __KERNEL__ */

#endif /* ORED_CORE_SHIM_H */
