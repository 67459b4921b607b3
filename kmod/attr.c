// SPDX-License-Identifier: GPL-2.0

#include <linux/cred.h>

#include "attr.h"
#include "core/wire.h"
#include "describe.h"
#include "early.h"

#define PUT_U64(skb, space, name, value) \
	nla_put_u64_64bit(skb, space##_##name, value, space##_PAD)

/* Not constant, because 6.1's policies don't take it. */
static struct netlink_range_validation ppm_range = { .max = ORED_PPM };
static struct netlink_range_validation half_range = { .max = ORED_PPM / 2 };

/* What is no more than sensible by itself; ored_policy_check() looks at all of it. */
const struct nla_policy ored_policy_attrs[ORED_A_POLICY_MAX + 1] = {
	[ORED_A_POLICY_LOSS_SKIP] = NLA_POLICY_FULL_RANGE(NLA_U32, &ppm_range),
	[ORED_A_POLICY_LOSS_HALT] = NLA_POLICY_FULL_RANGE(NLA_U32, &ppm_range),
	[ORED_A_POLICY_MIN_RANKS] = NLA_POLICY_MAX(NLA_U32, ORED_MAX_RANKS),
	[ORED_A_POLICY_MODE] = NLA_POLICY_MAX(NLA_U32, ORED_MODE_RELIABLE),
	[ORED_A_POLICY_DEADLINE] = NLA_POLICY_MAX(NLA_U32, ORED_DEADLINE_P95),
	[ORED_A_POLICY_INCAST] = NLA_POLICY_MAX(NLA_U32, ORED_INCAST_ADAPT),
	[ORED_A_POLICY_HADAMARD] = NLA_POLICY_MAX(NLA_U32, ORED_HADAMARD_OFF),
	[ORED_A_POLICY_LOSS_TARGET] = NLA_POLICY_FULL_RANGE(NLA_U32, &half_range),
	[ORED_A_POLICY_FLOOR] = { .type = NLA_U32 },
	[ORED_A_POLICY_CEILING] = { .type = NLA_U32 },
	[ORED_A_POLICY_WARMUP] = NLA_POLICY_MAX(NLA_U32, ORED_BOUND_SAMPLES),
	[ORED_A_POLICY_BOUND_US] = { .type = NLA_U32 },
	[ORED_A_POLICY_WAIT_PPM] = { .type = NLA_U32 },
	[ORED_A_POLICY_FLOOR_US] = { .type = NLA_U32 },
	[ORED_A_POLICY_CEILING_US] = { .type = NLA_U32 },
};

#define FIELD(field) {							\
	.at = offsetof(struct ored_policy, field),			\
	.size = sizeof_field(struct ored_policy, field),		\
}

/* Where each attribute of a policy stands in the structure: a u8 or a u32 */
static const struct {
	u8	at;
	u8	size;
} fields[ORED_A_POLICY_MAX + 1] = {
	[ORED_A_POLICY_LOSS_SKIP] = FIELD(loss_skip),
	[ORED_A_POLICY_LOSS_HALT] = FIELD(loss_halt),
	[ORED_A_POLICY_MIN_RANKS] = FIELD(min_ranks),
	[ORED_A_POLICY_MODE] = FIELD(mode),
	[ORED_A_POLICY_DEADLINE] = FIELD(deadline),
	[ORED_A_POLICY_INCAST] = FIELD(incast),
	[ORED_A_POLICY_HADAMARD] = FIELD(hadamard),
	[ORED_A_POLICY_LOSS_TARGET] = FIELD(loss_target),
	[ORED_A_POLICY_FLOOR] = FIELD(floor),
	[ORED_A_POLICY_CEILING] = FIELD(ceiling),
	[ORED_A_POLICY_WARMUP] = FIELD(warmup),
	[ORED_A_POLICY_BOUND_US] = FIELD(bound_us),
	[ORED_A_POLICY_WAIT_PPM] = FIELD(wait_ppm),
	[ORED_A_POLICY_FLOOR_US] = FIELD(floor_us),
	[ORED_A_POLICY_CEILING_US] = FIELD(ceiling_us),
};

/**
 * ored_read_policy() - changes those fields of a policy that are given
 * @attrs: by ORED_A_POLICY_*, each in range
 * @policy: is changed
 */
void ored_read_policy(struct nlattr *const attrs[], struct ored_policy *policy)
{
	u32 i, value;

	for (i = 1; i <= ORED_A_POLICY_MAX; i++) {
		void *field = (void *)policy + fields[i].at;

		if (!attrs[i])
			continue;
		value = nla_get_u32(attrs[i]);
		if (fields[i].size == sizeof(u8))
			*(u8 *)field = value;
		else
			*(u32 *)field = value;
	}
}

static int put_policy(struct sk_buff *skb, const struct ored_policy *policy)
{
	struct nlattr *nest = nla_nest_start(skb, ORED_A_POLICY);
	u32 i, value;

	if (!nest)
		return -EMSGSIZE;
	for (i = 1; i <= ORED_A_POLICY_MAX; i++) {
		const void *field = (const void *)policy + fields[i].at;

		value = fields[i].size == sizeof(u8) ? *(const u8 *)field : *(const u32 *)field;
		if (nla_put_u32(skb, i, value))
			return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

/* What a group is, the same on all ranks */
static int put_conf(struct sk_buff *skb, const struct ored_join *conf)
{
	if (nla_put_u32(skb, ORED_A_GROUP, conf->group) ||
	    PUT_U64(skb, ORED_A, EPOCH, conf->epoch) ||
	    nla_put_u32(skb, ORED_A_NRANKS, conf->nranks) ||
	    nla_put_u32(skb, ORED_A_DEPTH, conf->depth) ||
	    PUT_U64(skb, ORED_A, BUCKET_MAX, conf->bucket_max) ||
	    nla_put_u32(skb, ORED_A_TIMEOUT_MS, conf->timeout_ms) ||
	    nla_put_u16(skb, ORED_A_PORT, conf->port))
		return -EMSGSIZE;
	return conf->payload_max ? nla_put_u16(skb, ORED_A_PAYLOAD_MAX, conf->payload_max) : 0;
}

/**
 * ored_put_setup() - a group that is set up
 * @skb: message
 * @setup: the group; the namespace's lock is held
 */
int ored_put_setup(struct sk_buff *skb, const struct ored_setup *setup)
{
	uid_t uid = from_kuid_munged(current_user_ns(), setup->uid);

	if (put_conf(skb, &setup->conf) || nla_put_flag(skb, ORED_A_SETUP) ||
	    (!setup->anyone && nla_put_u32(skb, ORED_A_UID, uid)))
		return -EMSGSIZE;
	return put_policy(skb, &setup->policy);
}

static int put_progress(struct sk_buff *skb, struct ored_member *m)
{
	u64 pace;

	spin_lock(&m->pace_lock);
	pace = m->pace.rate;
	spin_unlock(&m->pace_lock);
	if (nla_put_u32(skb, ORED_A_STATE, m->state) ||
	    nla_put_u32(skb, ORED_A_PAYLOAD, m->payload) ||
	    PUT_U64(skb, ORED_A, POSTED, m->posted) ||
	    PUT_U64(skb, ORED_A, FINISHED, m->finished) ||
	    PUT_U64(skb, ORED_A, RECEIVED, m->received) ||
	    PUT_U64(skb, ORED_A, PACE, pace) ||
	    nla_put_u32(skb, ORED_A_TAKES, m->incast.own))
		return -EMSGSIZE;
	return rcu_access_pointer(m->sk) ? 0 : nla_put_flag(skb, ORED_A_ORPHAN);
}

/**
 * ored_put_member() - a rank that runs here
 * @skb: message
 * @m: its membership, locked
 */
int ored_put_member(struct sk_buff *skb, struct ored_member *m)
{
	lockdep_assert_held(&m->lock);
	if (put_conf(skb, &m->conf) ||
	    nla_put_u32(skb, ORED_A_RANK, m->rank) ||
	    nla_put_u32(skb, ORED_A_HEADER, ORED_WIRE_HEADER) ||
	    nla_put_u32(skb, ORED_A_FAMILY, m->family) ||
	    (m->ifindex && nla_put_u32(skb, ORED_A_IFINDEX, m->ifindex)) ||
	    PUT_U64(skb, ORED_A, MEMORY, m->memory) ||
	    put_progress(skb, m))
		return -EMSGSIZE;
	return put_policy(skb, &m->policy);
}

/**
 * ored_put_session() - what packets to a rank carry
 * @skb: message, to somebody who may know
 * @m: the membership
 */
int ored_put_session(struct sk_buff *skb, const struct ored_member *m)
{
	return nla_put_u32(skb, ORED_A_SESSION, m->session);
}

/**
 * ored_put_rank() - which rank that runs here a message is about
 * @skb: message
 * @m: its membership
 */
int ored_put_rank(struct sk_buff *skb, const struct ored_member *m)
{
	if (nla_put_u32(skb, ORED_A_GROUP, m->conf.group) ||
	    PUT_U64(skb, ORED_A, EPOCH, m->conf.epoch))
		return -EMSGSIZE;
	return nla_put_u32(skb, ORED_A_RANK, m->rank);
}

static int put_addr(struct sk_buff *skb, const struct ored_addr *addr)
{
	int err;

	if (addr->family == AF_INET)
		err = nla_put_in_addr(skb, ORED_A_PEER_ADDR4, addr->v4);
	else
		err = nla_put_in6_addr(skb, ORED_A_PEER_ADDR6, &addr->v6);
	if (!err && addr->scope_id)
		err = nla_put_u32(skb, ORED_A_PEER_SCOPE_ID, addr->scope_id);
	return err ?: nla_put_u16(skb, ORED_A_PEER_PORT, ntohs(addr->port));
}

static int put_state(struct sk_buff *skb, const struct ored_peer_state *state)
{
	if (nla_put_u32(skb, ORED_A_PEER_STATUS, state->status) ||
	    PUT_U64(skb, ORED_A_PEER, POSTED, state->posted) ||
	    PUT_U64(skb, ORED_A_PEER, FINISHED, state->finished))
		return -EMSGSIZE;
	return 0;
}

static int put_path(struct sk_buff *skb, const struct ored_link *l,
		    const struct ored_peer_state *state)
{
	if (state->heard_us != ~0ULL &&
	    PUT_U64(skb, ORED_A_PEER, HEARD_US, state->heard_us))
		return -EMSGSIZE;
	if (nla_put_u32(skb, ORED_A_PEER_SRTT_US, state->srtt_us) ||
	    nla_put_u32(skb, ORED_A_PEER_RTTVAR_US, READ_ONCE(l->rate.rttvar_us)) ||
	    nla_put_u32(skb, ORED_A_PEER_WINDOW, state->window) ||
	    nla_put_u32(skb, ORED_A_PEER_INFLIGHT, state->inflight) ||
	    nla_put_u32(skb, ORED_A_PEER_PATH_PAYLOAD, state->path_payload) ||
	    nla_put_u32(skb, ORED_A_PEER_TAKES, ored_early_takes(l)) ||
	    PUT_U64(skb, ORED_A_PEER, SENT, state->sent) ||
	    PUT_U64(skb, ORED_A_PEER, RESENT, state->resent) ||
	    PUT_U64(skb, ORED_A_PEER, RECEIVED, state->received) ||
	    PUT_U64(skb, ORED_A_PEER, DUPLICATES, state->duplicates) ||
	    PUT_U64(skb, ORED_A_PEER, LOCAL_DROPS, state->local_drops))
		return -EMSGSIZE;
	return 0;
}

/**
 * ored_put_peer() - a peer of a rank that runs here, or the rank itself
 * @skb: message
 * @m: the membership; no spinlock held
 * @l: the peer
 */
int ored_put_peer(struct sk_buff *skb, struct ored_member *m, struct ored_link *l)
{
	struct ored_peer_state state;
	struct nlattr *nest;

	ored_describe_peer(m, l, &state);
	if (ored_put_rank(skb, m))
		return -EMSGSIZE;
	nest = nla_nest_start(skb, ORED_A_PEER);
	if (!nest || nla_put_u32(skb, ORED_A_PEER_RANK, l->rank) || put_addr(skb, &l->addr) ||
	    put_state(skb, &state) || (l->rank != m->rank && put_path(skb, l, &state)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * ored_put_peer_status() - a peer's new status
 * @skb: message
 * @l: the peer, locked
 * @status: enum ored_peer_status
 */
int ored_put_peer_status(struct sk_buff *skb, const struct ored_link *l, u8 status)
{
	struct ored_peer_state state = {
		.status = status,
		.posted = l->standing.posted,
		.finished = l->standing.left,
	};
	struct nlattr *nest;

	lockdep_assert_held(&l->lock);
	if (ored_put_rank(skb, l->m))
		return -EMSGSIZE;
	nest = nla_nest_start(skb, ORED_A_PEER);
	if (!nest || nla_put_u32(skb, ORED_A_PEER_RANK, l->rank) || put_addr(skb, &l->addr) ||
	    put_state(skb, &state))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * ored_put_setup_peer() - a rank of a group that is set up
 * @skb: message
 * @setup: the group; the namespace's lock is held
 * @rank: which
 */
int ored_put_setup_peer(struct sk_buff *skb, const struct ored_setup *setup, u32 rank)
{
	const struct ored_peer *peer = &setup->peers[rank];
	struct ored_addr addr = {
		.family = peer->family,
		.port = htons(peer->port ?: setup->conf.port),
		.scope_id = peer->scope_id,
	};
	struct nlattr *nest;

	if (peer->family == AF_INET)
		memcpy(&addr.v4, peer->addr, sizeof(addr.v4));
	else
		memcpy(&addr.v6, peer->addr, sizeof(addr.v6));
	if (nla_put_u32(skb, ORED_A_GROUP, setup->conf.group) ||
	    PUT_U64(skb, ORED_A, EPOCH, setup->conf.epoch) ||
	    nla_put_flag(skb, ORED_A_SETUP))
		return -EMSGSIZE;
	nest = nla_nest_start(skb, ORED_A_PEER);
	if (!nest || nla_put_u32(skb, ORED_A_PEER_RANK, rank) || put_addr(skb, &addr))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * ored_put_stats() - counters
 * @skb: message
 * @stats: the set
 * @from: first of enum ored_counter
 * @end: one behind the last
 */
int ored_put_stats(struct sk_buff *skb, struct ored_stats __percpu *stats, u32 from, u32 end)
{
	u64 sum[ORED_CNT_MAX] = {};
	struct nlattr *nest;
	u32 i;

	BUILD_BUG_ON(ORED_A_STAT_RX_PACKETS - ORED_CNT_RX_PACKETS != 2);
	BUILD_BUG_ON(ORED_A_STAT_NS_SHORT - ORED_CNT_NS_SHORT != 2);
	BUILD_BUG_ON(ORED_A_STAT_MAX - ORED_CNT_MAX != 1);
	ored_stats_read(stats, sum);
	nest = nla_nest_start(skb, ORED_A_STATS);
	if (!nest)
		return -EMSGSIZE;
	for (i = from; i < end; i++) {
		if (nla_put_u64_64bit(skb, i + 2, sum[i], ORED_A_STAT_PAD))
			return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}
