// SPDX-License-Identifier: GPL-2.0

#include <linux/bottom_half.h>
#include <linux/netdevice.h>

#include "stats.h"

/**
 * ored_stats_alloc() - a set of counters, all zero
 *
 * Return: to be freed with free_percpu(), or NULL
 */
struct ored_stats __percpu *ored_stats_alloc(void)
{
	return netdev_alloc_pcpu_stats(struct ored_stats);
}

/**
 * ored_count_add() - counts, in process context or softirq
 * @stats: the set
 * @what: which counter
 * @n: how much
 */
void ored_count_add(struct ored_stats __percpu *stats, enum ored_counter what, u64 n)
{
	struct ored_stats *mine;

	local_bh_disable();
	mine = this_cpu_ptr(stats);
	u64_stats_update_begin(&mine->syncp);
	u64_stats_add(&mine->value[what], n);
	u64_stats_update_end(&mine->syncp);
	local_bh_enable();
}

/**
 * ored_stats_read() - adds a set to what the caller has
 * @stats: the set
 * @sum: is added to
 */
void ored_stats_read(struct ored_stats __percpu *stats, u64 sum[ORED_CNT_MAX])
{
	unsigned int start, i;
	u64 value;
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct ored_stats *one = per_cpu_ptr(stats, cpu);

		for (i = 0; i < ORED_CNT_MAX; i++) {
			do {
				start = u64_stats_fetch_begin(&one->syncp);
				value = u64_stats_read(&one->value[i]);
			} while (u64_stats_fetch_retry(&one->syncp, start));
			sum[i] += value;
		}
	}
}
