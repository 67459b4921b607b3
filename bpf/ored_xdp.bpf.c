// SPDX-License-Identifier: GPL-2.0
/*
 * The earliest point of the host: drops what no group here wants, measures what the
 * others took, and may steer them. Each interface has a copy of its own, because a
 * program can't see cheaply which namespace its interface is in; the maps are shared.
 * Reads no structure of the kernel, so that it loads without the kernel's types too.
 */

#include "measure.h"
#include "parse.h"
#include "shield.h"
#include "steer.h"

/* Inode of the network namespace that this copy's interface is in */
const volatile __u32 ored_netns;

/* Neither ours nor readable: unless the module minds, it is somebody else's. */
static __always_inline int malformed(const struct ored_datagram *d, u32 flags)
{
	if (flags & ORED_X_SHIELD && ored_shield_refused(d, ored_netns, false))
		return XDP_DROP;
	return XDP_PASS;
}

/* No membership that we know of */
static __always_inline int unknown(const struct ored_datagram *d, u32 flags)
{
	if (flags & ORED_X_SHIELD && ored_shield_refused(d, ored_netns, true))
		return XDP_DROP;
	ored_x_count(ORED_X_UNKNOWN, 1);
	return XDP_PASS;
}

static __always_inline int member(const struct ored_datagram *d,
				  const struct ored_x_session *session,
				  struct ored_x_member *m, const struct ored_x_config *config)
{
	u32 wrong = ored_shield_member(d, m);
	u64 now;

	if (wrong) {
		if (!(config->flags & ORED_X_SHIELD))
			return XDP_PASS;
		ored_x_count(wrong, 1);
		return XDP_DROP;
	}
	now = bpf_ktime_get_ns();
	if (config->flags & ORED_X_SHIELD && ored_shield_sealed(d, m, now)) {
		ored_x_count(ORED_X_DROP_SEALED, 1);
		return XDP_DROP;
	}
	if (config->flags & ORED_X_MEASURE && m->peer[d->wire->src].known)
		ored_measure(d, session, m, now);
	if (config->flags & ORED_X_STEER)
		return ored_steer(d, config, session->session);
	return XDP_PASS;
}

static __always_inline int packet(const struct ored_datagram *d,
				  const struct ored_x_config *config)
{
	struct ored_x_session session = {
		.netns = ored_netns,
		.session = bpf_ntohl(d->wire->session),
	};
	struct ored_x_member *m;

	ored_x_count(ORED_X_PACKETS, 1);
	ored_x_count(ORED_X_BYTES, d->len);
	/* Who joins doesn't know sessions yet. */
	if (ored_wire_type(d->wire) == ORED_T_HELLO)
		return unknown(d, config->flags);
	m = bpf_map_lookup_elem(&ored_members, &session);
	/* With another port it is an accident, and not ours. */
	if (!m || m->port != d->port)
		return unknown(d, config->flags);
	return member(d, &session, m, config);
}

SEC("xdp.frags")
int ored_xdp(struct xdp_md *ctx)
{
	const void *data = (const void *)(long)ctx->data;
	const void *end = (const void *)(long)ctx->data_end;
	const struct ored_x_config *config;
	struct ored_datagram d = {};
	enum ored_found found;

	found = ored_parse(data, end, &d);
	if (found == ORED_FOUND_OTHER)
		return XDP_PASS;
	config = bpf_map_lookup_elem(&ored_config, &ored_zero);
	if (!config)
		return XDP_PASS;
	if (found != ORED_FOUND_PACKET)
		return malformed(&d, config->flags);
	return packet(&d, config);
}

char LICENSE[] SEC("license") = "GPL";
