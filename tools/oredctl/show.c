// SPDX-License-Identifier: GPL-2.0

#include <linux/genetlink.h>
#include <linux/ored.h>
#include <linux/ored_netlink.h>
#include <netinet/in.h>
#include <ored.h>
#include <stdio.h>
#include <string.h>

#include "output.h"
#include "show.h"

static const char *const states[] = { "new", "joining", "joined", "failed", "left", NULL };
static const char *const statuses[] = { "unknown", "heard", "live", "silent", "left", "refused",
					"stalled", NULL };
static const char *const limits[] = { "failed", "complete", "early", "hard", "behind", NULL };
static const char *const modes[] = { "default", "bounded", "reliable", NULL };
static const char *const deadlines[] = { "loss", "p95", NULL };
static const char *const hadamards[] = { "default", "auto", "on", "off", NULL };
static const char *const incasts[] = { "all", "adapt", NULL };

const struct policy_key policy_keys[] = {
	{ "loss-skip", ORED_A_POLICY_LOSS_SKIP, NULL },
	{ "loss-halt", ORED_A_POLICY_LOSS_HALT, NULL },
	{ "min-ranks", ORED_A_POLICY_MIN_RANKS, NULL },
	{ "mode", ORED_A_POLICY_MODE, modes },
	{ "deadline", ORED_A_POLICY_DEADLINE, deadlines },
	{ "incast", ORED_A_POLICY_INCAST, incasts },
	{ "hadamard", ORED_A_POLICY_HADAMARD, hadamards },
	{ "loss-target", ORED_A_POLICY_LOSS_TARGET, NULL },
	{ "floor", ORED_A_POLICY_FLOOR, NULL },
	{ "ceiling", ORED_A_POLICY_CEILING, NULL },
	{ "warmup", ORED_A_POLICY_WARMUP, NULL },
	{ "bound-us", ORED_A_POLICY_BOUND_US, NULL },
	{ "wait-ppm", ORED_A_POLICY_WAIT_PPM, NULL },
	{ "floor-us", ORED_A_POLICY_FLOOR_US, NULL },
	{ "ceiling-us", ORED_A_POLICY_CEILING_US, NULL },
	{}
};

/* Counters by enum ored_counter, whose attributes are in the same order */
static const char *const counters[] = {
	"rx_packets", "rx_data", "tx_packets", "tx_trains", "tx_dropped", "resent",
	"duplicate", "late", "ahead", "mismatch", "bad_source", "bad_chunk", "bad_control",
	"path_shrunk", "nomem", "ns_short", "ns_version", "ns_type", "ns_session",
	"ns_group", "ns_epoch",
};

_Static_assert(sizeof(counters) / sizeof(*counters) == ORED_CNT_MAX, "a counter has no name");

/* What a newer module says may have no name yet. */
static const char *name_of(const char *const *names, uint64_t value)
{
	while (value && *names) {
		names++;
		value--;
	}
	return *names ?: "?";
}

void put_selector(struct nlmsghdr *request, const struct selector *selector)
{
	if (selector->has_group)
		mnl_attr_put_u32(request, ORED_A_GROUP, selector->group);
	if (selector->has_epoch)
		mnl_attr_put_u64(request, ORED_A_EPOCH, selector->epoch);
	if (selector->has_rank)
		mnl_attr_put_u32(request, ORED_A_RANK, selector->rank);
}

/* Shown if the message has it */
static void number(const struct nlattr *attr, const char *key, const char *label)
{
	if (attr)
		out_u64(key, attr_u64(attr), label);
}

static void head(const struct nlattr **attr)
{
	number(attr[ORED_A_GROUP], "group", "group ");
	number(attr[ORED_A_EPOCH], "epoch", " epoch ");
	number(attr[ORED_A_RANK], "rank", " rank ");
}

static void show_policy(const struct nlattr *nest)
{
	const struct nlattr *attr[ORED_A_POLICY_MAX + 1];
	const struct policy_key *key;
	char label[32];

	if (!nest)
		return;
	genl_sort_nest(nest, attr, ORED_A_POLICY_MAX);
	out_open("policy");
	if (options.details)
		out_text("\n    policy");
	for (key = policy_keys; key->name; key++) {
		if (!attr[key->attr])
			continue;
		snprintf(label, sizeof(label), " %s ", key->name);
		if (key->words)
			out_string(key->name, name_of(key->words, attr_u64(attr[key->attr])),
				   options.details ? label : NULL);
		else
			out_u64(key->name, attr_u64(attr[key->attr]),
				options.details ? label : NULL);
	}
	out_close();
}

static void show_progress(const struct nlattr **attr)
{
	const char *detail = options.details ? " memory " : NULL;

	out_string("state", name_of(states, attr_u64(attr[ORED_A_STATE])), " ");
	out_bool("orphan", attr[ORED_A_ORPHAN], " orphan");
	number(attr[ORED_A_PAYLOAD], "payload", " payload ");
	number(attr[ORED_A_POSTED], "posted", " posted ");
	number(attr[ORED_A_FINISHED], "finished", " finished ");
	number(attr[ORED_A_RECEIVED], "received", " received ");
	number(attr[ORED_A_PACE], "pace", " pace ");
	number(attr[ORED_A_TAKES], "takes", " takes ");
	number(attr[ORED_A_MEMORY], "memory", detail);
	number(attr[ORED_A_HEADER], "header", options.details ? " header " : NULL);
	number(attr[ORED_A_IFINDEX], "ifindex", " ifindex ");
	number(attr[ORED_A_SESSION], "session", options.details ? " session " : NULL);
	if (attr[ORED_A_FAMILY])
		out_u64("ip", attr_u64(attr[ORED_A_FAMILY]) == AF_INET6 ? 6 : 4,
			options.details ? " ip " : NULL);
}

static void group_values(const struct nlattr **attr)
{
	head(attr);
	out_bool("setup", attr[ORED_A_SETUP], " setup");
	number(attr[ORED_A_NRANKS], "nranks", " nranks ");
	if (attr[ORED_A_STATE])
		show_progress(attr);
	number(attr[ORED_A_DEPTH], "depth", " depth ");
	number(attr[ORED_A_BUCKET_MAX], "bucket", " bucket ");
	number(attr[ORED_A_PORT], "port", " port ");
	number(attr[ORED_A_PAYLOAD_MAX], "payload-max", " payload-max ");
	number(attr[ORED_A_TIMEOUT_MS], "timeout-ms", options.details ? " timeout-ms " : NULL);
	number(attr[ORED_A_UID], "uid", " uid ");
	show_policy(attr[ORED_A_POLICY]);
}

void show_group(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *attr[ORED_A_MAX + 1];

	(void)arg;
	genl_sort(msg, attr, ORED_A_MAX);
	out_item();
	group_values(attr);
	out_item_end();
}

static void show_address(const struct nlattr **attr)
{
	const struct nlattr *v4 = attr[ORED_A_PEER_ADDR4], *v6 = attr[ORED_A_PEER_ADDR6];
	struct ored_peer peer = {
		.family = v4 ? AF_INET : AF_INET6,
		.port = attr_u64(attr[ORED_A_PEER_PORT]),
		.scope_id = attr_u64(attr[ORED_A_PEER_SCOPE_ID]),
	};
	const struct nlattr *addr = v4 ?: v6;
	char text[ORED_PEER_STRLEN];

	if (!addr || mnl_attr_get_payload_len(addr) > sizeof(peer.addr))
		return;
	memcpy(peer.addr, mnl_attr_get_payload(addr), mnl_attr_get_payload_len(addr));
	if (ored_peer_format(&peer, text, sizeof(text)) >= 0)
		out_string("address", text, " ");
}

static void peer_values(const struct nlattr *nest)
{
	const struct nlattr *attr[ORED_A_PEER_MAX + 1];

	genl_sort_nest(nest, attr, ORED_A_PEER_MAX);
	number(attr[ORED_A_PEER_RANK], "peer", " peer ");
	show_address(attr);
	if (attr[ORED_A_PEER_STATUS])
		out_string("status", name_of(statuses, attr_u64(attr[ORED_A_PEER_STATUS])), " ");
	number(attr[ORED_A_PEER_POSTED], "posted", " posted ");
	number(attr[ORED_A_PEER_FINISHED], "finished", " finished ");
	number(attr[ORED_A_PEER_SRTT_US], "srtt-us", " srtt-us ");
	number(attr[ORED_A_PEER_RTTVAR_US], "rttvar-us", options.details ? " rttvar-us " : NULL);
	number(attr[ORED_A_PEER_HEARD_US], "heard-us", options.details ? " heard-us " : NULL);
	number(attr[ORED_A_PEER_WINDOW], "window", " window ");
	number(attr[ORED_A_PEER_INFLIGHT], "inflight", " inflight ");
	number(attr[ORED_A_PEER_PATH_PAYLOAD], "path-payload",
	       options.details ? " path-payload " : NULL);
	number(attr[ORED_A_PEER_TAKES], "takes", options.details ? " takes " : NULL);
	number(attr[ORED_A_PEER_SENT], "sent", " sent ");
	number(attr[ORED_A_PEER_RESENT], "resent", " resent ");
	number(attr[ORED_A_PEER_RECEIVED], "received", " received ");
	number(attr[ORED_A_PEER_DUPLICATES], "duplicates", " duplicates ");
	number(attr[ORED_A_PEER_LOCAL_DROPS], "local-drops", " local-drops ");
}

void show_peer(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *attr[ORED_A_MAX + 1];

	(void)arg;
	genl_sort(msg, attr, ORED_A_MAX);
	out_item();
	head(attr);
	out_bool("setup", attr[ORED_A_SETUP], " setup");
	if (attr[ORED_A_PEER])
		peer_values(attr[ORED_A_PEER]);
	out_item_end();
}

/* In text, only what has been counted */
static void stat_values(const struct nlattr *nest)
{
	const struct nlattr *attr[ORED_A_STAT_MAX + 1];
	char label[32];
	uint64_t value;
	int i;

	genl_sort_nest(nest, attr, ORED_A_STAT_MAX);
	out_open("stats");
	for (i = 0; i < ORED_CNT_MAX; i++) {
		const struct nlattr *one = attr[ORED_A_STAT_RX_PACKETS + i];

		if (!one)
			continue;
		value = attr_u64(one);
		snprintf(label, sizeof(label), " %s ", counters[i]);
		out_u64(counters[i], value, value || options.details ? label : NULL);
	}
	out_close();
}

void show_stat(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *attr[ORED_A_MAX + 1];

	(void)arg;
	genl_sort(msg, attr, ORED_A_MAX);
	out_item();
	if (attr[ORED_A_GROUP])
		head(attr);
	else
		out_text("namespace");
	if (attr[ORED_A_STATS])
		stat_values(attr[ORED_A_STATS]);
	out_item_end();
}

static void show_missing(const struct nlattr *attr)
{
	uint64_t words[ORED_RANK_WORDS];
	char separator[] = " missing ";
	unsigned int rank;

	if (!attr || mnl_attr_get_payload_len(attr) != sizeof(words))
		return;
	memcpy(words, mnl_attr_get_payload(attr), sizeof(words));
	out_array("missing");
	for (rank = 0; rank < ORED_MAX_RANKS; rank++) {
		if (!(words[rank / 64] >> rank % 64 & 1))
			continue;
		out_u64(NULL, rank, separator);
		strcpy(separator, ",");
	}
	out_array_end();
}

static void op_values(const struct nlattr *nest)
{
	const struct nlattr *attr[ORED_A_OP_MAX + 1];

	genl_sort_nest(nest, attr, ORED_A_OP_MAX);
	number(attr[ORED_A_OP_OP], "op", " op ");
	out_string("limit", name_of(limits, attr_u64(attr[ORED_A_OP_LIMIT])), " ");
	number(attr[ORED_A_OP_BYTES], "bytes", " bytes ");
	number(attr[ORED_A_OP_ELAPSED_NS], "elapsed-ns", " elapsed-ns ");
	number(attr[ORED_A_OP_BOUND_NS], "bound-ns", " bound-ns ");
	number(attr[ORED_A_OP_LOSS_PPM], "loss-ppm", " loss-ppm ");
	show_missing(attr[ORED_A_OP_MISSING]);
}

static const char *const events[] = {
	[ORED_CMD_GROUP_NEW_NTF] = "group-new",
	[ORED_CMD_GROUP_DEL_NTF] = "group-del",
	[ORED_CMD_RANK_JOINED_NTF] = "rank-joined",
	[ORED_CMD_RANK_LEFT_NTF] = "rank-left",
	[ORED_CMD_POLICY_NTF] = "policy",
	[ORED_CMD_PEER_NTF] = "peer",
	[ORED_CMD_OP_NTF] = "op",
};

void show_event(const struct nlmsghdr *msg, void *arg)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(msg);
	const struct nlattr *attr[ORED_A_MAX + 1];

	(void)arg;
	if (genl->cmd >= sizeof(events) / sizeof(*events) || !events[genl->cmd])
		return;
	genl_sort(msg, attr, ORED_A_MAX);
	out_item();
	out_string("event", events[genl->cmd], "");
	out_text(" ");
	if (genl->cmd == ORED_CMD_PEER_NTF || genl->cmd == ORED_CMD_OP_NTF)
		head(attr);
	else
		group_values(attr);
	if (attr[ORED_A_PEER])
		peer_values(attr[ORED_A_PEER]);
	if (attr[ORED_A_OP])
		op_values(attr[ORED_A_OP]);
	out_item_end();
	/* A reader at the other end of a pipe wants it now. */
	if (fflush(stdout))
		fail(STATUS_KERNEL, "the output can't be written");
}
