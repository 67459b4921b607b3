// SPDX-License-Identifier: GPL-2.0
/*
 * oredctl's command line without a kernel: what a request holds that `group` makes
 * of its words, and what is said about words that make no sense.
 */

#include <linux/ored.h>
#include <linux/ored_netlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../../libored/test/tap.h"
#include "../oredctl/genl.h"
#include "../oredctl/oredctl.h"

struct options options;

static jmp_buf failed;
static char sentence[256];
static struct genl *asked;	/* the request that would have been sent */

/* In the place of the program's end */
void fail(enum status status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	longjmp(failed, status);
}

/* In the place of the kernel; the linker has group.c call these */
void __wrap_genl_open(struct genl *genl, const char *name);
void __wrap_genl_do(struct genl *genl, genl_sink sink, void *arg);
void __wrap_genl_close(struct genl *genl);

void __wrap_genl_open(struct genl *genl, const char *name)
{
	(void)genl;
	(void)name;
}

void __wrap_genl_do(struct genl *genl, genl_sink sink, void *arg)
{
	static struct genl kept;

	(void)sink;
	(void)arg;
	kept = *genl;
	asked = &kept;
}

void __wrap_genl_close(struct genl *genl)
{
	(void)genl;
}

/* Runs `oredctl group LINE`. Return: its exit status */
static int group(const char *line)
{
	static char copy[16384];
	static char *argv[1024];
	struct words words = { argv };
	int status, n = 0;
	char *word, *rest;

	snprintf(copy, sizeof(copy), "%s", line);
	for (word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[n++] = word;
	argv[n] = NULL;
	sentence[0] = '\0';
	asked = NULL;
	status = setjmp(failed);
	return status ?: do_group(&words);
}

static int refused(const char *line, const char *why)
{
	if (group(line) == STATUS_USAGE && strstr(sentence, why) && !asked)
		return 1;
	printf("# '%s': '%s'\n", line, sentence);
	return 0;
}

static uint8_t command(void)
{
	return *(const uint8_t *)mnl_nlmsg_get_payload((struct nlmsghdr *)asked->request);
}

/* The attributes of what was asked; peers counted */
static const struct nlattr *attr[ORED_A_MAX + 1];
static unsigned int peers;

static void sort(void)
{
	const struct nlmsghdr *msg = (struct nlmsghdr *)asked->request;
	const struct nlattr *one;

	genl_sort(msg, attr, ORED_A_MAX);
	peers = 0;
	mnl_attr_for_each(one, msg, GENL_HEADER)
		peers += mnl_attr_get_type(one) == ORED_A_PEER;
}

static void test_add(void)
{
	const struct nlattr *peer[ORED_A_PEER_MAX + 1], *policy[ORED_A_POLICY_MAX + 1];

	ok(!group("add 7 epoch 3 bucket 4M peers 10.0.0.1 [fd00::1]:99 policy mode reliable"),
	   "a group, and a policy");
	sort();
	genl_sort_nest(attr[ORED_A_POLICY], policy, ORED_A_POLICY_MAX);
	ok(command() == ORED_CMD_GROUP_NEW && attr_u64(attr[ORED_A_GROUP]) == 7 &&
	   attr_u64(attr[ORED_A_EPOCH]) == 3 && attr_u64(attr[ORED_A_BUCKET_MAX]) == 4 << 20 &&
	   attr_u64(policy[ORED_A_POLICY_MODE]) == ORED_MODE_RELIABLE &&
	   !policy[ORED_A_POLICY_WARMUP], "what was named, and no more");
	genl_sort_nest(attr[ORED_A_PEER], peer, ORED_A_PEER_MAX);
	ok(peers == 2 && attr_u64(peer[ORED_A_PEER_PORT]) == 99 && peer[ORED_A_PEER_ADDR6] &&
	   !peer[ORED_A_PEER_ADDR4], "peers, in their order");
	ok(!group("add 7 bucket 8 peers 1.1.1.1 depth 2 port 9 timeout-ms 5 payload-max 512 uid 3"),
	   "all other words");
	sort();
	ok(attr_u64(attr[ORED_A_DEPTH]) == 2 && attr_u64(attr[ORED_A_PORT]) == 9 &&
	   attr_u64(attr[ORED_A_TIMEOUT_MS]) == 5 &&
	   attr_u64(attr[ORED_A_PAYLOAD_MAX]) == 512 && attr_u64(attr[ORED_A_UID]) == 3,
	   "their values");
	ok(!group("a 7 b 1k p 10.0.0.1 p 10.0.0.2 10.0.0.3"), "abbreviations");
	sort();
	ok(peers == 3 && attr_u64(attr[ORED_A_BUCKET_MAX]) == 1024 && !attr[ORED_A_EPOCH] &&
	   !attr[ORED_A_UID], "what isn't given isn't asked for");
}

static void test_delete_and_set(void)
{
	ok(!group("delete group 4294967295 epoch 18446744073709551615"), "the largest numbers");
	sort();
	ok(command() == ORED_CMD_GROUP_DEL && attr_u64(attr[ORED_A_GROUP]) == UINT32_MAX &&
	   attr_u64(attr[ORED_A_EPOCH]) == UINT64_MAX, "their values");
	ok(!group("set 1 rank 255 policy wait-ppm 4294967295 incast adapt"), "set");
	sort();
	ok(command() == ORED_CMD_GROUP_SET && attr_u64(attr[ORED_A_RANK]) == 255 &&
	   attr[ORED_A_POLICY], "its values");
}

static void test_refusals(void)
{
	static char many[8192] = "add 1 bucket 8 peers";
	int i;

	ok(refused("add", "id is missing"), "no group");
	ok(refused("add 1 bucket 8", "peers are missing"), "no peers");
	ok(refused("add 1 peers 10.0.0.1", "size is missing"), "no bucket");
	ok(refused("add 1 bucket 8 peers", "address is missing"), "no address");
	ok(refused("add 1 bucket 8 peers 10.0.0.256", "no address"), "no such address");
	ok(refused("add 1 bucket 8 peers fe80::1", "no address"), "no interface");
	ok(refused("add 1 bucket 2G peers 10.0.0.1", "8 to 1073741824"), "a large bucket");
	ok(refused("add 1 bucket 99999999999999999999G", "number"), "a number without end");
	ok(refused("add 1 bucket G", "number"), "a unit alone");
	ok(refused("add 1 bucket 4T", "number"), "no unit of ours");
	ok(refused("add 1 bucket -8", "number"), "a sign");
	ok(refused("add 1 depth 17", "1 to 16"), "a deep group");
	ok(refused("add 1 port 65536", "1 to 65535"), "no port");
	ok(refused("add 1 rank 0 bucket 8 peers 10.0.0.1", "rank"), "a rank to set up");
	ok(refused("add 1 uid no-such-user", "no user"), "no user");
	ok(refused("add 1 policy", "missing"), "a policy without a key");
	ok(refused("add 1 policy los 1", "no key"), "keys aren't abbreviated");
	ok(refused("add 1 policy mode fast", "no mode"), "no value of a key");
	ok(refused("add 1 policy floor", "missing"), "no value at all");
	ok(refused("add 1 policy floor 4294967296", "0 to 4294967295"), "too large a value");
	ok(refused("add 4294967296", "0 to 4294967295"), "too large a group");
	ok(refused("set 1", "what to set"), "nothing to set");
	ok(refused("set 1 policy floor 1 policy floor 2", "not expected"), "two policies");
	ok(refused("delete 1 2", "not expected"), "two groups");
	ok(refused("delete 1 rank 1", "rank"), "a rank to forget");
	ok(refused("delete 1 bucket 8", "not expected"), "a word of another verb");
	ok(refused("forget", "unknown"), "no such verb");
	for (i = 0; i <= ORED_MAX_RANKS; i++)
		strcat(many, " 10.0.0.1");
	ok(refused(many, "at most 256"), "too many ranks");
}

static void test_most_peers(void)
{
	static char many[16384] = "add 1 bucket 8 peers";
	int i;

	for (i = 0; i < ORED_MAX_RANKS; i++)
		strcat(many, " [fe80::1%1]:65535");
	ok(!group(many), "a request has room for all ranks");
	sort();
	ok(peers == ORED_MAX_RANKS, "and holds them");
}

int main(void)
{
	test_add();
	test_delete_and_set();
	test_refusals();
	test_most_peers();
	return tap_done();
}
