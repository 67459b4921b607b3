/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sending all contributions to a chunk to one CPU, whatever the card's hash did.
 * A redirect loses the checksum's state and GRO, so it is off unless asked for.
 */
#ifndef ORED_BPF_STEER_H
#define ORED_BPF_STEER_H

#include "common.h"
#include "parse.h"

struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, ORED_X_CPUS);
	__type(key, __u32);
	__type(value, struct bpf_cpumap_val);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} ored_cpus SEC(".maps");

/* Return: XDP_REDIRECT, or XDP_PASS for what stays where it is */
static __always_inline int ored_steer(const struct ored_datagram *d,
				      const struct ored_x_config *config, u32 session)
{
	u32 type = ored_wire_type(d->wire), index, chunk;
	int verdict;

	if (type != ORED_T_SCATTER && type != ORED_T_GATHER)
		return XDP_PASS;
	if (!config->ncpus)
		return XDP_PASS;
	chunk = bpf_ntohl(d->wire->params_chunk) & ((1U << ORED_CHUNK_BITS) - 1);
	index = (chunk + session) % config->ncpus;
	if (index >= ORED_X_CPUS)
		return XDP_PASS;
	verdict = (int)bpf_redirect_map(&ored_cpus, config->cpu[index], XDP_PASS);
	ored_x_count(verdict == XDP_REDIRECT ? ORED_X_STEERED : ORED_X_UNSTEERED, 1);
	return verdict;
}

#endif /* ORED_BPF_STEER_H */
