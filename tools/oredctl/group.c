// SPDX-License-Identifier: GPL-2.0

#include <errno.h>
#include <inttypes.h>
#include <linux/ored.h>
#include <linux/ored_netlink.h>
#include <netinet/in.h>
#include <ored.h>
#include <pwd.h>
#include <string.h>

#include "list.h"

static const char usage[] =
	"Usage: oredctl group [show] [GROUP] [epoch EPOCH] [rank RANK]\n"
	"       oredctl group add GROUP [epoch EPOCH] bucket BYTES peers ADDRESS[:PORT]...\n"
	"               [depth OPS] [port PORT] [timeout-ms MS] [payload-max BYTES]\n"
	"               [uid USER] [policy KEY VALUE...]\n"
	"       oredctl group delete GROUP [epoch EPOCH]\n"
	"       oredctl group set GROUP [epoch EPOCH] [rank RANK] policy KEY VALUE...\n"
	"\n"
	"BYTES may end in k, M or G. `peers` takes all ranks' addresses, in their order.\n"
	"KEY: loss-skip loss-halt min-ranks mode deadline incast hadamard loss-target floor\n"
	"     ceiling warmup bound-us wait-ppm floor-us ceiling-us\n";

static int show(struct words *words)
{
	return list(words, ORED_CMD_GROUP_GET, show_group);
}

/* A number of bytes with a unit, all of them powers of 1024. */
static uint64_t take_bytes(struct words *words, const char *what, uint64_t least, uint64_t most)
{
	static const char units[] = "kMG";
	const char *word = peek(words);
	char digits[32], *digits_at = digits;
	size_t len = word ? strlen(word) : 0;
	struct words inner = { &digits_at };
	const char *unit;
	uint64_t value;
	int shift;

	unit = len ? strchr(units, word[len - 1]) : NULL;
	if (!unit || len >= sizeof(digits))
		return take_number(words, what, least, most);
	shift = 10 * (1 + (unit - units));
	memcpy(digits, word, len - 1);
	digits[len - 1] = '\0';
	words->at++;
	value = take_number(&inner, what, 0, UINT64_MAX >> shift) << shift;
	if (value < least || value > most)
		fail(STATUS_USAGE, "%s is %" PRIu64 " to %" PRIu64 " bytes, not %s", what, least,
		     most, word);
	return value;
}

static uint32_t take_user(struct words *words)
{
	const char *word = peek(words);
	const struct passwd *entry;

	if (word && word[0] >= '0' && word[0] <= '9')
		return take_number(words, "the user", 0, UINT32_MAX - 1);
	word = take(words, "the user");
	entry = getpwnam(word);
	if (!entry)
		fail(STATUS_USAGE, "there is no user '%s'", word);
	return entry->pw_uid;
}

static void put_peer(struct nlmsghdr *request, const char *word)
{
	struct ored_peer peer;
	struct nlattr *nest;
	int err = ored_peer_parse(word, &peer);

	if (err)
		fail(STATUS_USAGE, "'%s' is no address: %s", word,
		     err == -ENODEV ? "it names no interface" :
				      "10.0.0.1, 10.0.0.1:4741, fd00::1, [fe80::1%eth0]:4741");
	nest = mnl_attr_nest_start(request, ORED_A_PEER);
	if (peer.family == AF_INET)
		mnl_attr_put(request, ORED_A_PEER_ADDR4, 4, peer.addr);
	else
		mnl_attr_put(request, ORED_A_PEER_ADDR6, sizeof(peer.addr), peer.addr);
	if (peer.port)
		mnl_attr_put_u16(request, ORED_A_PEER_PORT, peer.port);
	if (peer.scope_id)
		mnl_attr_put_u32(request, ORED_A_PEER_SCOPE_ID, peer.scope_id);
	mnl_attr_nest_end(request, nest);
}

static bool is_address(const char *word)
{
	return word && strpbrk(word, ".:");
}

/* All words that are addresses. Return: how many */
static unsigned int take_peers(struct words *words, struct nlmsghdr *request, unsigned int before)
{
	unsigned int n = before;

	do {
		if (++n > ORED_MAX_RANKS)
			fail(STATUS_USAGE, "a group has at most %d ranks", ORED_MAX_RANKS);
		put_peer(request, take(words, "a peer's address"));
	} while (is_address(peek(words)));
	return n;
}

static uint32_t take_policy_value(struct words *words, const struct policy_key *key)
{
	const char *word = peek(words);
	uint32_t value;

	if (!word || !key->words || (word[0] >= '0' && word[0] <= '9'))
		return take_number(words, key->name, 0, UINT32_MAX);
	for (value = 0; key->words[value]; value++) {
		if (take_if(words, key->words[value]))
			return value;
	}
	fail(STATUS_USAGE, "'%s' is no %s", word, key->name);
}

/* Keys are written in full: many begin alike, and more may come. */
static const struct policy_key *find_key(const char *word)
{
	const struct policy_key *key;

	for (key = policy_keys; key->name; key++) {
		if (word && !strcmp(word, key->name))
			return key;
	}
	return NULL;
}

static void take_policy(struct words *words, struct nlmsghdr *request)
{
	struct nlattr *nest = mnl_attr_nest_start(request, ORED_A_POLICY);
	const struct policy_key *key = find_key(peek(words));

	if (!key)
		fail(STATUS_USAGE, "'%s' is no key of a policy",
		     take(words, "a key of the policy"));
	for (; key; key = find_key(peek(words))) {
		take(words, key->name);
		mnl_attr_put_u32(request, key->attr, take_policy_value(words, key));
	}
	mnl_attr_nest_end(request, nest);
}

static void need_group(const struct selector *selector)
{
	if (!selector->has_group)
		fail(STATUS_USAGE, "the group's id is missing");
}

/* What a group has besides its identity. Return: false if the next word is none */
static bool take_new(struct words *words, struct nlmsghdr *request, unsigned int *npeers,
		     bool *has_bucket)
{
	if (take_if(words, "bucket")) {
		mnl_attr_put_u64(request, ORED_A_BUCKET_MAX,
				 take_bytes(words, "the bucket's size", 8, ORED_MAX_BUCKET));
		*has_bucket = true;
	} else if (take_if(words, "peers")) {
		*npeers = take_peers(words, request, *npeers);
	} else if (take_if(words, "depth")) {
		mnl_attr_put_u32(request, ORED_A_DEPTH,
				 take_number(words, "the depth", 1, ORED_MAX_DEPTH));
	} else if (take_if(words, "port")) {
		mnl_attr_put_u16(request, ORED_A_PORT, take_number(words, "the port", 1, 65535));
	} else if (take_if(words, "timeout-ms")) {
		mnl_attr_put_u32(request, ORED_A_TIMEOUT_MS,
				 take_number(words, "the timeout", 1, UINT32_MAX));
	} else if (take_if(words, "payload-max")) {
		mnl_attr_put_u16(request, ORED_A_PAYLOAD_MAX,
				 take_number(words, "the payload", 512, 65535));
	} else if (take_if(words, "uid") || take_if(words, "user")) {
		mnl_attr_put_u32(request, ORED_A_UID, take_user(words));
	} else {
		return false;
	}
	return true;
}

/*
 * Reads a command's words into the request before anything is asked of the kernel,
 * and sends it.
 */
static int change(struct words *words, uint8_t command)
{
	bool has_bucket = false, has_policy = false;
	struct selector selector = {};
	struct nlmsghdr *request;
	unsigned int npeers = 0;
	struct genl genl = {};

	request = genl_request(&genl, command, 0);
	while (peek(words)) {
		if (take_selector(words, &selector))
			continue;
		if (command == ORED_CMD_GROUP_NEW && take_new(words, request, &npeers, &has_bucket))
			continue;
		if (command == ORED_CMD_GROUP_DEL || has_policy || !take_if(words, "policy"))
			break;
		take_policy(words, request);
		has_policy = true;
	}
	take_end(words);
	need_group(&selector);
	if (selector.has_rank && command != ORED_CMD_GROUP_SET)
		fail(STATUS_USAGE, "a rank has no meaning here");
	if (command == ORED_CMD_GROUP_NEW && (!npeers || !has_bucket))
		fail(STATUS_USAGE, "%s missing", npeers ? "the bucket's size is" : "peers are");
	if (command == ORED_CMD_GROUP_SET && !has_policy)
		fail(STATUS_USAGE, "what to set is missing: `policy KEY VALUE...`");
	put_selector(request, &selector);
	genl_open(&genl, ORED_FAMILY_NAME);
	genl_do(&genl, NULL, NULL);
	genl_close(&genl);
	return STATUS_OK;
}

static int add(struct words *words)
{
	return change(words, ORED_CMD_GROUP_NEW);
}

static int delete(struct words *words)
{
	return change(words, ORED_CMD_GROUP_DEL);
}

static int set(struct words *words)
{
	return change(words, ORED_CMD_GROUP_SET);
}

static const struct command commands[] = {
	{ "show", show },
	{ "list", show },
	{ "add", add },
	{ "new", add },
	{ "delete", delete },
	{ "set", set },
	{}
};

int do_group(struct words *words)
{
	return run_command(commands, words, usage);
}
