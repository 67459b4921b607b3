// SPDX-License-Identifier: GPL-2.0
/*
 * Requests. Who asks finds memberships and setups under ored_net.lock, which keeps
 * them there; the family takes no lock of generic netlink's (parallel_ops).
 */

#include <linux/slab.h>
#include <net/genetlink.h>
#include <net/netlink.h>
#include <net/sock.h>
#include <linux/ored_netlink.h>

#include "attr.h"
#include "core/wire.h"
#include "event.h"
#include "net.h"
#include "netlink.h"
#include "policy.h"
#include "setup.h"

/* Not constant, because 6.1's policies don't take it. */
static struct netlink_range_validation bucket_range = { .min = 8, .max = ORED_MAX_BUCKET };
static struct netlink_range_validation payload_range = {
	.min = ORED_PAYLOAD_MIN, .max = U16_MAX
};

/* What is given of a peer when a group is set up */
static const struct nla_policy new_peer[ORED_A_PEER_SCOPE_ID + 1] = {
	[ORED_A_PEER_ADDR4] = { .type = NLA_U32 },
	[ORED_A_PEER_ADDR6] = NLA_POLICY_EXACT_LEN(sizeof(struct in6_addr)),
	[ORED_A_PEER_PORT] = NLA_POLICY_MIN(NLA_U16, 1),
	[ORED_A_PEER_SCOPE_ID] = NLA_POLICY_MIN(NLA_U32, 1),
};

static const struct nla_policy one_peer[ORED_A_PEER_RANK + 1] = {
	[ORED_A_PEER_RANK] = NLA_POLICY_MAX(NLA_U32, ORED_MAX_RANKS - 1),
};

static const struct nla_policy new_attrs[ORED_A_POLICY + 1] = {
	[ORED_A_GROUP] = { .type = NLA_U32 },
	[ORED_A_EPOCH] = { .type = NLA_U64 },
	[ORED_A_DEPTH] = NLA_POLICY_RANGE(NLA_U32, 1, ORED_MAX_DEPTH),
	[ORED_A_BUCKET_MAX] = NLA_POLICY_FULL_RANGE(NLA_U64, &bucket_range),
	[ORED_A_TIMEOUT_MS] = NLA_POLICY_MIN(NLA_U32, 1),
	[ORED_A_PORT] = NLA_POLICY_MIN(NLA_U16, 1),
	[ORED_A_PAYLOAD_MAX] = NLA_POLICY_FULL_RANGE(NLA_U16, &payload_range),
	[ORED_A_UID] = { .type = NLA_U32 },
	[ORED_A_PEER] = NLA_POLICY_NESTED(new_peer),
	[ORED_A_POLICY] = NLA_POLICY_NESTED(ored_policy_attrs),
};

static const struct nla_policy del_attrs[ORED_A_EPOCH + 1] = {
	[ORED_A_GROUP] = { .type = NLA_U32 },
	[ORED_A_EPOCH] = { .type = NLA_U64 },
};

static const struct nla_policy set_attrs[ORED_A_POLICY + 1] = {
	[ORED_A_GROUP] = { .type = NLA_U32 },
	[ORED_A_EPOCH] = { .type = NLA_U64 },
	[ORED_A_RANK] = NLA_POLICY_MAX(NLA_U32, ORED_MAX_RANKS - 1),
	[ORED_A_POLICY] = NLA_POLICY_NESTED(ored_policy_attrs),
};

static const struct nla_policy get_attrs[ORED_A_RANK + 1] = {
	[ORED_A_GROUP] = { .type = NLA_U32 },
	[ORED_A_EPOCH] = { .type = NLA_U64 },
	[ORED_A_RANK] = NLA_POLICY_MAX(NLA_U32, ORED_MAX_RANKS - 1),
};

static const struct nla_policy peer_attrs[ORED_A_PEER + 1] = {
	[ORED_A_GROUP] = { .type = NLA_U32 },
	[ORED_A_EPOCH] = { .type = NLA_U64 },
	[ORED_A_RANK] = NLA_POLICY_MAX(NLA_U32, ORED_MAX_RANKS - 1),
	[ORED_A_PEER] = NLA_POLICY_NESTED(one_peer),
};

/* --- what is asked for -------------------------------------------------------- */

/* Which groups and ranks a request means; what isn't given fits all. */
struct query {
	const u32	*group;
	const u64	*epoch;
	const u32	*rank;
	u32		group_;
	u64		epoch_;
	u32		rank_;
};

static void read_query(struct nlattr *const attrs[], struct query *query)
{
	memset(query, 0, sizeof(*query));
	if (attrs[ORED_A_GROUP]) {
		query->group_ = nla_get_u32(attrs[ORED_A_GROUP]);
		query->group = &query->group_;
	}
	if (attrs[ORED_A_EPOCH]) {
		query->epoch_ = nla_get_u64(attrs[ORED_A_EPOCH]);
		query->epoch = &query->epoch_;
	}
	if (attrs[ORED_A_RANK]) {
		query->rank_ = nla_get_u32(attrs[ORED_A_RANK]);
		query->rank = &query->rank_;
	}
}

static bool fits_conf(const struct query *query, const struct ored_join *conf)
{
	return (!query->group || *query->group == conf->group) &&
	       (!query->epoch || *query->epoch == conf->epoch);
}

static bool fits_member(const struct query *query, const struct ored_member *m)
{
	return fits_conf(query, &m->conf) && (!query->rank || *query->rank == m->rank);
}

/* Where an epoch isn't given, that of the newest rank here is. */
static void fill_epoch(struct ored_net *on, struct query *query)
{
	struct ored_member *m;

	lockdep_assert_held(&on->lock);
	if (query->epoch)
		return;
	list_for_each_entry(m, &on->members, list) {
		if (!fits_member(query, m) || (query->epoch && m->conf.epoch < query->epoch_))
			continue;
		query->epoch_ = m->conf.epoch;
		query->epoch = &query->epoch_;
	}
}

/* The only rank here that is meant. */
static struct ored_member *find_member(struct ored_net *on, struct query *query,
				       struct netlink_ext_ack *extack)
{
	struct ored_member *m, *found = NULL;

	fill_epoch(on, query);
	list_for_each_entry(m, &on->members, list) {
		if (!fits_member(query, m))
			continue;
		if (found) {
			NL_SET_ERR_MSG(extack, "several ranks of this group run here: name one");
			return ERR_PTR(-EINVAL);
		}
		found = m;
	}
	if (found)
		return found;
	NL_SET_ERR_MSG(extack, "no such rank of this group runs here");
	return ERR_PTR(-ENOENT);
}

static struct ored_setup *find_setup(struct ored_net *on, const struct query *query,
				     struct netlink_ext_ack *extack)
{
	struct ored_setup *setup = ored_setup_get(on, *query->group, query->epoch);

	if (setup)
		return setup;
	NL_SET_ERR_MSG(extack, "this group and epoch are not set up");
	return ERR_PTR(-ENOENT);
}

static int need_group(struct genl_info *info)
{
	if (!GENL_REQ_ATTR_CHECK(info, ORED_A_GROUP))
		return 0;
	NL_SET_ERR_MSG(info->extack, "the group's id is missing");
	return -EINVAL;
}

/*
 * Tells a sentence that was made for this refusal, or, where the kernel has no room
 * for such, a @plain one.
 */
static void say(struct netlink_ext_ack *extack, const char *why, const char *plain)
{
#ifdef NETLINK_MAX_FMTMSG_LEN
	if (strlen(why) < NETLINK_MAX_FMTMSG_LEN) {
		NL_SET_ERR_MSG_FMT(extack, "%s", why);
		return;
	}
#endif
	extack->_msg = plain;
}

/* --- group-new, group-del ----------------------------------------------------- */

static int read_peer(const struct nlattr *nest, struct ored_peer *peer,
		     struct netlink_ext_ack *extack)
{
	struct nlattr *attrs[ORED_A_PEER_SCOPE_ID + 1];
	const struct nlattr *v4, *v6;
	int err;

	err = nla_parse_nested(attrs, ORED_A_PEER_SCOPE_ID, nest, new_peer, extack);
	if (err)
		return err;
	v4 = attrs[ORED_A_PEER_ADDR4];
	v6 = attrs[ORED_A_PEER_ADDR6];
	if (!v4 == !v6) {
		NL_SET_ERR_MSG_ATTR(extack, nest, "a peer has one address, IPv4 or IPv6");
		return -EINVAL;
	}
	peer->family = v4 ? AF_INET : AF_INET6;
	memcpy(peer->addr, nla_data(v4 ?: v6), nla_len(v4 ?: v6));
	if (attrs[ORED_A_PEER_PORT])
		peer->port = nla_get_u16(attrs[ORED_A_PEER_PORT]);
	if (attrs[ORED_A_PEER_SCOPE_ID])
		peer->scope_id = nla_get_u32(attrs[ORED_A_PEER_SCOPE_ID]);
	return 0;
}

/* Peers stand one behind the other among the other attributes. */
static int read_peers(struct genl_info *info, struct ored_peer *peers, u32 *n)
{
	const struct nlattr *attr;
	int rest, err;

	*n = 0;
	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rest) {
		if (nla_type(attr) != ORED_A_PEER)
			continue;
		if (*n == ORED_MAX_RANKS) {
			NL_SET_ERR_MSG_ATTR(info->extack, attr, "a group has at most 256 ranks");
			return -EINVAL;
		}
		err = read_peer(attr, &peers[*n], info->extack);
		if (err)
			return err;
		++*n;
	}
	if (*n)
		return 0;
	NL_SET_ERR_MSG(info->extack, "the peers are missing: a group has at least one rank");
	return -EINVAL;
}

static int read_conf(struct genl_info *info, struct ored_join *conf)
{
	struct nlattr **attrs = info->attrs;

	*conf = (struct ored_join){ .size = sizeof(*conf), .depth = 1, .uid = ORED_ANYONE,
		.port = ORED_PORT_DEFAULT, .timeout_ms = ORED_TIMEOUT_DEFAULT,
		.peer_size = sizeof(struct ored_peer) };
	if (GENL_REQ_ATTR_CHECK(info, ORED_A_BUCKET_MAX)) {
		NL_SET_ERR_MSG(info->extack, "bucket-max, the largest bucket's bytes, is missing");
		return -EINVAL;
	}
	conf->group = nla_get_u32(attrs[ORED_A_GROUP]);
	conf->bucket_max = nla_get_u64(attrs[ORED_A_BUCKET_MAX]);
	if (conf->bucket_max % 8) {
		NL_SET_ERR_MSG_ATTR(info->extack, attrs[ORED_A_BUCKET_MAX],
				    "bucket-max is no multiple of 8");
		return -EINVAL;
	}
	if (attrs[ORED_A_EPOCH])
		conf->epoch = nla_get_u64(attrs[ORED_A_EPOCH]);
	if (attrs[ORED_A_DEPTH])
		conf->depth = nla_get_u32(attrs[ORED_A_DEPTH]);
	if (attrs[ORED_A_TIMEOUT_MS])
		conf->timeout_ms = nla_get_u32(attrs[ORED_A_TIMEOUT_MS]);
	if (attrs[ORED_A_PORT])
		conf->port = nla_get_u16(attrs[ORED_A_PORT]);
	if (attrs[ORED_A_PAYLOAD_MAX])
		conf->payload_max = nla_get_u16(attrs[ORED_A_PAYLOAD_MAX]);
	if (attrs[ORED_A_UID])
		conf->uid = nla_get_u32(attrs[ORED_A_UID]);
	return 0;
}

/* Changes what is given; 0 if there is nothing. */
static int read_policy(struct nlattr *nest, struct ored_policy *policy,
		       struct netlink_ext_ack *extack)
{
	struct nlattr *attrs[ORED_A_POLICY_MAX + 1];
	int err;

	if (!nest)
		return 0;
	err = nla_parse_nested(attrs, ORED_A_POLICY_MAX, nest, ored_policy_attrs, extack);
	if (!err)
		ored_read_policy(attrs, policy);
	return err;
}

/* Why a group can't be set up, for kernels that take no sentences made for it */
static const char *why_not(int err)
{
	switch (err) {
	case -EEXIST:
		return "this group and epoch are set up already";
	case -ENOSPC:
		return "as many groups are set up as a namespace may have";
	case -ENOMEM:
		return "out of memory";
	default:
		return "the policy makes no sense, or the user doesn't exist here";
	}
}

static int group_new(struct sk_buff *skb, struct genl_info *info)
{
	struct ored_policy policy = {};
	char why[ORED_ERROR_MAX];
	struct ored_peer *peers;
	struct ored_join conf;
	int err;

	err = need_group(info) ?: read_conf(info, &conf);
	if (!err)
		err = read_policy(info->attrs[ORED_A_POLICY], &policy, info->extack);
	if (err)
		return err;
	peers = kvcalloc(ORED_MAX_RANKS, sizeof(*peers), GFP_KERNEL_ACCOUNT);
	if (!peers)
		return -ENOMEM;
	err = read_peers(info, peers, &conf.nranks);
	if (!err) {
		err = ored_setup_add(ored_net(genl_info_net(info)), &conf, peers, &policy, why);
		if (err)
			say(info->extack, why, why_not(err));
	}
	kvfree(peers);
	return err;
}

static int group_del(struct sk_buff *skb, struct genl_info *info)
{
	struct ored_net *on = ored_net(genl_info_net(info));
	struct ored_join conf = {};
	char why[ORED_ERROR_MAX];
	int err;

	err = need_group(info);
	if (err)
		return err;
	conf.group = nla_get_u32(info->attrs[ORED_A_GROUP]);
	if (info->attrs[ORED_A_EPOCH])
		conf.epoch = nla_get_u64(info->attrs[ORED_A_EPOCH]);
	err = ored_setup_remove(on, &conf, why);
	if (err)
		say(info->extack, why, "this group and epoch are not set up");
	return err;
}

/* --- group-set ---------------------------------------------------------------- */

static void current_policy(struct ored_member *m, struct ored_policy *policy)
{
	spin_lock_bh(&m->lock);
	*policy = m->policy;
	spin_unlock_bh(&m->lock);
}

/* Changes, or only looks whether that can be done. */
static int set_member(struct ored_member *m, struct genl_info *info, bool look, char *why)
{
	struct ored_policy policy;
	int err;

	current_policy(m, &policy);
	err = read_policy(info->attrs[ORED_A_POLICY], &policy, info->extack);
	if (err || look)
		return err ?: ored_policy_complete(m->on, &policy, m->nranks, why);
	err = ored_policy_apply(m, &policy, why);
	spin_lock_bh(&m->lock);
	if (!err)
		ored_event_rank(m, ORED_CMD_POLICY_NTF);
	spin_unlock_bh(&m->lock);
	return err;
}

static int set_setup(struct ored_net *on, struct ored_setup *setup, struct genl_info *info,
		     bool look, char *why)
{
	struct ored_policy policy = setup->policy, whole;
	int err;

	err = read_policy(info->attrs[ORED_A_POLICY], &policy, info->extack);
	whole = policy;
	if (err || look)
		return err ?: ored_policy_complete(on, &whole, setup->conf.nranks, why);
	setup->policy = policy;
	ored_event_setup(on, setup, ORED_CMD_POLICY_NTF);
	return 0;
}

/* Changes all that is meant, or looks. Return: how many, or what is wrong */
static int set_all(struct ored_net *on, const struct query *query, struct genl_info *info,
		   bool look, char *why)
{
	struct query newest = *query;
	struct ored_setup *setup;
	struct ored_member *m;
	int err = 0, n = 0;

	fill_epoch(on, &newest);
	list_for_each_entry(m, &on->members, list) {
		if (!fits_member(&newest, m) || !rcu_access_pointer(m->sk))
			continue;
		err = set_member(m, info, look, why);
		if (err)
			return err;
		n++;
	}
	if (query->rank)
		return n;
	setup = ored_setup_get(on, *query->group, query->epoch);
	if (!setup)
		return n;
	err = set_setup(on, setup, info, look, why);
	return err ?: n + 1;
}

static int group_set(struct sk_buff *skb, struct genl_info *info)
{
	struct ored_net *on = ored_net(genl_info_net(info));
	char why[ORED_ERROR_MAX] = "";
	struct query query;
	int n;

	if (need_group(info))
		return -EINVAL;
	if (GENL_REQ_ATTR_CHECK(info, ORED_A_POLICY)) {
		NL_SET_ERR_MSG(info->extack, "what to set is missing: only policies can be");
		return -EINVAL;
	}
	read_query(info->attrs, &query);
	mutex_lock(&on->lock);
	/* All or none: what the first look finds good can't fail. */
	n = set_all(on, &query, info, true, why);
	if (n > 0)
		n = set_all(on, &query, info, false, why);
	mutex_unlock(&on->lock);
	if (!n) {
		NL_SET_ERR_MSG(info->extack, "no such rank of this group runs here, nor is it set up");
		return -ENOENT;
	}
	if (n < 0 && *why)
		say(info->extack, why, "the policy makes no sense as a whole");
	return min(n, 0);
}

/* --- get: one ----------------------------------------------------------------- */

/* An answer of one message */
struct reply {
	struct sk_buff	*skb;
	void		*head;
};

static int begin_reply(struct reply *reply, struct genl_info *info)
{
	reply->skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!reply->skb)
		return -ENOMEM;
	reply->head = genlmsg_put_reply(reply->skb, info, &ored_genl, 0, info->genlhdr->cmd);
	if (reply->head)
		return 0;
	nlmsg_free(reply->skb);
	return -EMSGSIZE;
}

static int end_reply(struct reply *reply, struct genl_info *info, int err)
{
	if (err) {
		nlmsg_free(reply->skb);
		return err;
	}
	genlmsg_end(reply->skb, reply->head);
	return genlmsg_reply(reply->skb, info);
}

static int put_member(struct sk_buff *skb, const struct sk_buff *request, struct ored_member *m)
{
	int err;

	spin_lock_bh(&m->lock);
	err = ored_put_member(skb, m);
	spin_unlock_bh(&m->lock);
	if (!err && netlink_ns_capable(request, m->on->net->user_ns, CAP_NET_ADMIN))
		err = ored_put_session(skb, m);
	return err;
}

static int put_group(struct ored_net *on, struct sk_buff *skb, const struct sk_buff *request,
		     struct query *query, struct netlink_ext_ack *extack)
{
	struct ored_setup *setup;
	struct ored_member *m;

	if (query->rank) {
		m = find_member(on, query, extack);
		return IS_ERR(m) ? PTR_ERR(m) : put_member(skb, request, m);
	}
	setup = find_setup(on, query, extack);
	return IS_ERR(setup) ? PTR_ERR(setup) : ored_put_setup(skb, setup);
}

static int group_get(struct sk_buff *skb, struct genl_info *info)
{
	struct ored_net *on = ored_net(genl_info_net(info));
	struct reply reply;
	struct query query;
	int err;

	err = need_group(info) ?: begin_reply(&reply, info);
	if (err)
		return err;
	read_query(info->attrs, &query);
	mutex_lock(&on->lock);
	err = put_group(on, reply.skb, skb, &query, info->extack);
	mutex_unlock(&on->lock);
	return end_reply(&reply, info, err);
}

static int read_rank(struct genl_info *info, u32 *rank)
{
	struct nlattr *attrs[ORED_A_PEER_RANK + 1] = {};
	int err = 0;

	if (info->attrs[ORED_A_PEER])
		err = nla_parse_nested(attrs, ORED_A_PEER_RANK, info->attrs[ORED_A_PEER], one_peer,
				       info->extack);
	if (err)
		return err;
	if (!attrs[ORED_A_PEER_RANK]) {
		NL_SET_ERR_MSG(info->extack, "which peer is missing: peer, with its rank");
		return -EINVAL;
	}
	*rank = nla_get_u32(attrs[ORED_A_PEER_RANK]);
	return 0;
}

static int put_peer(struct ored_net *on, struct sk_buff *skb, struct query *query, u32 rank,
		    struct netlink_ext_ack *extack)
{
	struct ored_member *m = find_member(on, query, extack);

	if (IS_ERR(m))
		return PTR_ERR(m);
	if (rank < m->nranks)
		return ored_put_peer(skb, m, &m->links[rank]);
	NL_SET_ERR_MSG(extack, "the group has no such rank");
	return -ENOENT;
}

static int peer_get(struct sk_buff *skb, struct genl_info *info)
{
	struct ored_net *on = ored_net(genl_info_net(info));
	struct reply reply;
	struct query query;
	u32 rank;
	int err;

	err = need_group(info) ?: read_rank(info, &rank);
	err = err ?: begin_reply(&reply, info);
	if (err)
		return err;
	read_query(info->attrs, &query);
	mutex_lock(&on->lock);
	err = put_peer(on, reply.skb, &query, rank, info->extack);
	mutex_unlock(&on->lock);
	return end_reply(&reply, info, err);
}

static int put_member_stats(struct sk_buff *skb, const struct ored_member *m)
{
	return ored_put_rank(skb, m) ?: ored_put_stats(skb, m->stats, 0, ORED_CNT_NS_SHORT);
}

static int put_net_stats(struct sk_buff *skb, const struct ored_net *on)
{
	return ored_put_stats(skb, on->stats, ORED_CNT_NS_SHORT, ORED_CNT_MAX);
}

static int stat_get(struct sk_buff *skb, struct genl_info *info)
{
	struct ored_net *on = ored_net(genl_info_net(info));
	struct ored_member *m;
	struct reply reply;
	struct query query;
	int err;

	read_query(info->attrs, &query);
	if (!query.group && (query.epoch || query.rank))
		return need_group(info);
	err = begin_reply(&reply, info);
	if (err)
		return err;
	mutex_lock(&on->lock);
	if (query.group) {
		m = find_member(on, &query, info->extack);
		err = IS_ERR(m) ? PTR_ERR(m) : put_member_stats(reply.skb, m);
	} else {
		err = put_net_stats(reply.skb, on);
	}
	mutex_unlock(&on->lock);
	return end_reply(&reply, info, err);
}

/* --- get: all ----------------------------------------------------------------- */

enum phase {
	PHASE_NET,
	PHASE_SETUPS,
	PHASE_MEMBERS,
	PHASE_OVER,
};

/*
 * A dump, which goes on in the next call where this one had no room left. What it
 * lists is numbered, so whatever comes and goes meanwhile, nothing else is left out
 * or told twice; that something did, NLM_F_DUMP_INTR tells.
 */
struct dump {
	struct sk_buff		*skb;
	struct netlink_callback	*cb;
	struct ored_net		*on;
	struct query		query;
};

/* In netlink_callback.ctx */
struct cursor {
	u32	phase;
	u32	rank;
	u64	serial;	/* go on with this one, or what comes behind it */
};

static struct cursor *cursor_of(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct cursor) > sizeof(cb->ctx));
	return (struct cursor *)cb->ctx;
}

static void begin_dump(struct dump *dump, struct sk_buff *skb, struct netlink_callback *cb)
{
	dump->skb = skb;
	dump->cb = cb;
	dump->on = ored_net(sock_net(cb->skb->sk));
	read_query(ored_dump_attrs(cb), &dump->query);
	mutex_lock(&dump->on->lock);
	cb->seq = dump->on->generation;
}

/* Return: what a dump's call returns: bytes, or an error where nothing fits at all */
static int end_dump(struct dump *dump, int err)
{
	mutex_unlock(&dump->on->lock);
	return err && !dump->skb->len ? err : dump->skb->len;
}

static void *begin_entry(struct dump *dump, u8 command)
{
	void *head = genlmsg_put(dump->skb, NETLINK_CB(dump->cb->skb).portid,
				 dump->cb->nlh->nlmsg_seq, &ored_genl, NLM_F_MULTI, command);

	if (head)
		genl_dump_check_consistent(dump->cb, head);
	return head;
}

static int end_entry(struct dump *dump, void *head, int err)
{
	if (err)
		genlmsg_cancel(dump->skb, head);
	else
		genlmsg_end(dump->skb, head);
	return err;
}

/* Calls @one for each setup that is still to be told. Return: 0 if that was all */
static int dump_setups(struct dump *dump, int (*one)(struct dump *, struct ored_setup *))
{
	struct cursor *cursor = cursor_of(dump->cb);
	struct ored_setup *setup;
	int err;

	if (cursor->phase > PHASE_SETUPS)
		return 0;
	/* One who asks for a rank wants those that run. */
	list_for_each_entry(setup, &dump->on->setups, list) {
		if (setup->serial < cursor->serial || dump->query.rank ||
		    !fits_conf(&dump->query, &setup->conf))
			continue;
		if (setup->serial > cursor->serial)
			cursor->rank = 0;
		cursor->serial = setup->serial;
		err = one(dump, setup);
		if (err)
			return err;
		cursor->serial++;
		cursor->rank = 0;
	}
	*cursor = (struct cursor){ .phase = PHASE_MEMBERS };
	return 0;
}

static int dump_members(struct dump *dump, int (*one)(struct dump *, struct ored_member *))
{
	struct cursor *cursor = cursor_of(dump->cb);
	struct ored_member *m;
	int err;

	if (cursor->phase > PHASE_MEMBERS)
		return 0;
	list_for_each_entry(m, &dump->on->members, list) {
		if (m->serial < cursor->serial || !fits_member(&dump->query, m))
			continue;
		if (m->serial > cursor->serial)
			cursor->rank = 0;
		cursor->serial = m->serial;
		err = one(dump, m);
		if (err)
			return err;
		cursor->serial++;
		cursor->rank = 0;
	}
	*cursor = (struct cursor){ .phase = PHASE_OVER };
	return 0;
}

static int dump_setup(struct dump *dump, struct ored_setup *setup)
{
	void *head = begin_entry(dump, ORED_CMD_GROUP_GET);

	return head ? end_entry(dump, head, ored_put_setup(dump->skb, setup)) : -EMSGSIZE;
}

static int dump_member(struct dump *dump, struct ored_member *m)
{
	void *head = begin_entry(dump, ORED_CMD_GROUP_GET);

	return head ? end_entry(dump, head, put_member(dump->skb, dump->cb->skb, m)) : -EMSGSIZE;
}

static int group_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump dump;
	int err;

	begin_dump(&dump, skb, cb);
	err = dump_setups(&dump, dump_setup) ?: dump_members(&dump, dump_member);
	return end_dump(&dump, err);
}

static int dump_setup_peers(struct dump *dump, struct ored_setup *setup)
{
	struct cursor *cursor = cursor_of(dump->cb);
	void *head;
	int err;

	for (; cursor->rank < setup->conf.nranks; cursor->rank++) {
		head = begin_entry(dump, ORED_CMD_PEER_GET);
		if (!head)
			return -EMSGSIZE;
		err = end_entry(dump, head, ored_put_setup_peer(dump->skb, setup, cursor->rank));
		if (err)
			return err;
	}
	return 0;
}

static int dump_peers(struct dump *dump, struct ored_member *m)
{
	struct cursor *cursor = cursor_of(dump->cb);
	void *head;
	int err;

	for (; cursor->rank < m->nranks; cursor->rank++) {
		head = begin_entry(dump, ORED_CMD_PEER_GET);
		if (!head)
			return -EMSGSIZE;
		err = end_entry(dump, head,
				ored_put_peer(dump->skb, m, &m->links[cursor->rank]));
		if (err)
			return err;
	}
	return 0;
}

static int peer_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump dump;
	int err;

	begin_dump(&dump, skb, cb);
	err = dump_setups(&dump, dump_setup_peers) ?: dump_members(&dump, dump_peers);
	return end_dump(&dump, err);
}

static int dump_net_stats(struct dump *dump)
{
	struct cursor *cursor = cursor_of(dump->cb);
	void *head;
	int err = 0;

	if (cursor->phase > PHASE_NET)
		return 0;
	/* Who names a group doesn't mean the namespace. */
	if (!dump->query.group && !dump->query.epoch && !dump->query.rank) {
		head = begin_entry(dump, ORED_CMD_STAT_GET);
		if (!head)
			return -EMSGSIZE;
		err = end_entry(dump, head, put_net_stats(dump->skb, dump->on));
	}
	if (!err)
		cursor->phase = PHASE_MEMBERS;
	return err;
}

static int dump_stats(struct dump *dump, struct ored_member *m)
{
	void *head = begin_entry(dump, ORED_CMD_STAT_GET);

	return head ? end_entry(dump, head, put_member_stats(dump->skb, m)) : -EMSGSIZE;
}

static int stat_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump dump;
	int err;

	begin_dump(&dump, skb, cb);
	err = dump_net_stats(&dump) ?: dump_members(&dump, dump_stats);
	return end_dump(&dump, err);
}

/* --- the family --------------------------------------------------------------- */

#define TAKES(table) .policy = (table), .maxattr = ARRAY_SIZE(table) - 1

static const struct genl_ops ops[] = {
	{
		.cmd = ORED_CMD_GROUP_NEW,
		.doit = group_new,
		.flags = GENL_UNS_ADMIN_PERM,
		TAKES(new_attrs),
	}, {
		.cmd = ORED_CMD_GROUP_DEL,
		.doit = group_del,
		.flags = GENL_UNS_ADMIN_PERM,
		TAKES(del_attrs),
	}, {
		.cmd = ORED_CMD_GROUP_SET,
		.doit = group_set,
		.flags = GENL_UNS_ADMIN_PERM,
		TAKES(set_attrs),
	}, {
		.cmd = ORED_CMD_GROUP_GET,
		.doit = group_get,
		.dumpit = group_dump,
		TAKES(get_attrs),
	}, {
		.cmd = ORED_CMD_PEER_GET,
		.doit = peer_get,
		.dumpit = peer_dump,
		TAKES(peer_attrs),
	}, {
		.cmd = ORED_CMD_STAT_GET,
		.doit = stat_get,
		.dumpit = stat_dump,
		TAKES(get_attrs),
	},
};

static const struct genl_multicast_group groups[] = {
	{ .name = ORED_MCGRP_EVENTS },
};

struct genl_family ored_genl __ro_after_init = {
	.name = ORED_FAMILY_NAME,
	.version = ORED_FAMILY_VERSION,
	.netnsok = true,
	.parallel_ops = true,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
	.mcgrps = groups,
	.n_mcgrps = ARRAY_SIZE(groups),
	.module = THIS_MODULE,
};

/**
 * ored_netlink_init() - registers the family; namespaces are ready
 *
 * Return: 0 or negative errno
 */
int __init ored_netlink_init(void)
{
	int err = genl_register_family(&ored_genl);

	if (!err)
		ored_event_begin();
	return err;
}

/**
 * ored_netlink_exit() - the opposite: no request runs any more, and none comes
 */
void ored_netlink_exit(void)
{
	ored_event_end();
	genl_unregister_family(&ored_genl);
}
