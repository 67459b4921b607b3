/* SPDX-License-Identifier: GPL-2.0 */
/* Counters by cause; the causes are enum ored_counter of the ABI. */
#ifndef ORED_STATS_H
#define ORED_STATS_H

#include <linux/percpu.h>
#include <linux/u64_stats_sync.h>
#include <linux/ored.h>

struct ored_stats {
	u64_stats_t		value[ORED_CNT_MAX];
	struct u64_stats_sync	syncp;
};

struct ored_stats __percpu *ored_stats_alloc(void);
void ored_count_add(struct ored_stats __percpu *stats, enum ored_counter what, u64 n);
void ored_stats_read(struct ored_stats __percpu *stats, u64 sum[ORED_CNT_MAX]);

static inline void ored_count(struct ored_stats __percpu *stats, enum ored_counter what)
{
	ored_count_add(stats, what, 1);
}

#endif /* ORED_STATS_H */
