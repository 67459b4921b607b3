// SPDX-License-Identifier: GPL-2.0

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "genl.h"
#include "oredctl.h"

#define ANSWER_SIZE	65536	/* the kernel's messages are shorter */
#define DUMP_TRIES	16	/* until a list is printed that has changed under way */

/* What may come in answer to a request */
struct answer {
	genl_sink	sink;
	void		*arg;
	const char	*absent;	/* what ENOENT means, if it isn't the usual */
	bool		done;
	bool		interrupted;
};

/* Messages of a dump, one after the other, until it is known to be consistent */
struct dump {
	uint8_t	*bytes;
	size_t	used;
	size_t	room;
};

void genl_sort_nest(const struct nlattr *nest, const struct nlattr **table, uint16_t max)
{
	const struct nlattr *attr;

	memset(table, 0, (max + 1) * sizeof(*table));
	if (!nest)
		return;
	mnl_attr_for_each_nested(attr, nest) {
		if (mnl_attr_get_type(attr) <= max)
			table[mnl_attr_get_type(attr)] = attr;
	}
}

void genl_sort(const struct nlmsghdr *msg, const struct nlattr **table, uint16_t max)
{
	const struct nlattr *attr;

	memset(table, 0, (max + 1) * sizeof(*table));
	mnl_attr_for_each(attr, msg, GENL_HEADER) {
		if (mnl_attr_get_type(attr) <= max)
			table[mnl_attr_get_type(attr)] = attr;
	}
}

uint64_t attr_u64(const struct nlattr *attr)
{
	if (!attr)
		return 0;
	switch (mnl_attr_get_payload_len(attr)) {
	case sizeof(uint8_t):
		return mnl_attr_get_u8(attr);
	case sizeof(uint16_t):
		return mnl_attr_get_u16(attr);
	case sizeof(uint32_t):
		return mnl_attr_get_u32(attr);
	case sizeof(uint64_t):
		return mnl_attr_get_u64(attr);
	default:
		return 0;
	}
}

/* Ends the program with the sentence among @len bytes of attributes, or errno's. */
static void __attribute__((noreturn)) refused(int err, const void *attrs, size_t len)
{
	const struct nlattr *attr;

	mnl_attr_for_each_payload(attrs, len) {
		if (mnl_attr_get_type(attr) == NLMSGERR_ATTR_MSG &&
		    !mnl_attr_validate(attr, MNL_TYPE_NUL_STRING))
			fail(STATUS_KERNEL, "%s (%s)", mnl_attr_get_str(attr), strerror(err));
	}
	fail(STATUS_KERNEL, "%s", strerror(err));
}

/* An acknowledgment, or a refusal */
static void read_error(const struct nlmsghdr *msg, const char *absent)
{
	const struct nlmsgerr *error = mnl_nlmsg_get_payload(msg);
	size_t len = mnl_nlmsg_get_payload_len(msg), skip = sizeof(*error);

	if (len < skip)
		fail(STATUS_KERNEL, "the kernel's answer is cut off");
	if (!error->error)
		return;
	if (absent && error->error == -ENOENT)
		fail(STATUS_KERNEL, "%s", absent);
	/* Unless it was cut off as asked for, the request stands before the sentence. */
	if (!(msg->nlmsg_flags & NLM_F_CAPPED))
		skip += MNL_ALIGN(error->msg.nlmsg_len) - sizeof(error->msg);
	if (!(msg->nlmsg_flags & NLM_F_ACK_TLVS) || len < skip)
		skip = len;
	refused(-error->error, (const char *)error + skip, len - skip);
}

static void read_done(const struct nlmsghdr *msg)
{
	size_t len = mnl_nlmsg_get_payload_len(msg), skip = sizeof(int);
	const int *error = mnl_nlmsg_get_payload(msg);

	if (len >= skip && *error < 0)
		refused(-*error, error + 1, len - skip);
}

static void read_message(const struct nlmsghdr *msg, struct answer *answer)
{
	switch (msg->nlmsg_type) {
	case NLMSG_NOOP:
		return;
	case NLMSG_ERROR:
		read_error(msg, answer->absent);
		answer->done = true;
		return;
	case NLMSG_DONE:
		read_done(msg);
		answer->done = true;
		break;
	default:
		if (answer->sink && mnl_nlmsg_get_payload_len(msg) >= GENL_HEADER)
			answer->sink(msg, answer->arg);
	}
	answer->interrupted |= !!(msg->nlmsg_flags & NLM_F_DUMP_INTR);
}

/* Reads one datagram. */
static void receive(struct genl *genl, struct answer *answer, uint32_t seq)
{
	static uint8_t bytes[ANSWER_SIZE];
	ssize_t got = mnl_socket_recvfrom(genl->nl, bytes, sizeof(bytes));
	const struct nlmsghdr *msg = (const struct nlmsghdr *)bytes;
	int left = got;

	if (got < 0 && errno == ENOBUFS && !seq) {
		fputs("oredctl: events came faster than they could be printed, and some are lost\n",
		      stderr);
		return;
	}
	if (got < 0)
		fail(STATUS_KERNEL, "the kernel's answer can't be read: %s", strerror(errno));
	for (; mnl_nlmsg_ok(msg, left); msg = mnl_nlmsg_next(msg, &left)) {
		if (!seq || msg->nlmsg_seq == seq)
			read_message(msg, answer);
	}
}

static void send_request(struct genl *genl)
{
	struct nlmsghdr *msg = (struct nlmsghdr *)genl->request;

	msg->nlmsg_type = genl->family;
	msg->nlmsg_seq = ++genl->seq;
	if (mnl_socket_sendto(genl->nl, msg, msg->nlmsg_len) < 0)
		fail(STATUS_KERNEL, "the kernel can't be asked: %s", strerror(errno));
}

struct nlmsghdr *genl_request(struct genl *genl, uint8_t command, uint16_t flags)
{
	struct nlmsghdr *msg = mnl_nlmsg_put_header(genl->request);
	struct genlmsghdr *head;

	msg->nlmsg_flags = NLM_F_REQUEST | flags;
	head = mnl_nlmsg_put_extra_header(msg, sizeof(*head));
	head->cmd = command;
	head->version = 1;
	return msg;
}

static void ask(struct genl *genl, struct answer *answer)
{
	struct nlmsghdr *msg = (struct nlmsghdr *)genl->request;

	msg->nlmsg_flags |= NLM_F_ACK;
	send_request(genl);
	while (!answer->done)
		receive(genl, answer, genl->seq);
}

void genl_do(struct genl *genl, genl_sink sink, void *arg)
{
	struct answer answer = { .sink = sink, .arg = arg };

	ask(genl, &answer);
}

static void keep(const struct nlmsghdr *msg, void *arg)
{
	struct dump *dump = arg;
	size_t len = MNL_ALIGN(msg->nlmsg_len);

	if (dump->room - dump->used < len) {
		dump->room = 2 * dump->room + ANSWER_SIZE;
		dump->bytes = realloc(dump->bytes, dump->room);
		if (!dump->bytes)
			fail(STATUS_KERNEL, "out of memory");
	}
	memcpy(dump->bytes + dump->used, msg, msg->nlmsg_len);
	dump->used += len;
}

/* Return: whether what was read is one state */
static bool read_dump(struct genl *genl, struct dump *dump)
{
	struct answer answer = { .sink = keep, .arg = dump };

	dump->used = 0;
	send_request(genl);
	while (!answer.done)
		receive(genl, &answer, genl->seq);
	return !answer.interrupted;
}

void genl_dump(struct genl *genl, genl_sink sink, void *arg)
{
	struct nlmsghdr *request = (struct nlmsghdr *)genl->request;
	const struct nlmsghdr *msg;
	struct dump dump = {};
	int tries, left;

	request->nlmsg_flags |= NLM_F_DUMP;
	for (tries = 0; !read_dump(genl, &dump); tries++) {
		if (tries < DUMP_TRIES)
			continue;
		fputs("oredctl: it changes all the time: this list is of no one moment\n", stderr);
		break;
	}
	msg = (const struct nlmsghdr *)dump.bytes;
	left = dump.used;
	for (; left && mnl_nlmsg_ok(msg, left); msg = mnl_nlmsg_next(msg, &left))
		sink(msg, arg);
	free(dump.bytes);
}

void genl_listen(struct genl *genl, genl_sink sink, void *arg)
{
	struct answer answer = { .sink = sink, .arg = arg };

	if (!genl->events ||
	    mnl_socket_setsockopt(genl->nl, NETLINK_ADD_MEMBERSHIP, &genl->events,
				  sizeof(genl->events)) < 0)
		fail(STATUS_KERNEL, "can't listen to events: %s", strerror(errno));
	for (;;)
		receive(genl, &answer, 0);
}

static void take_group(struct genl *genl, const struct nlattr *group)
{
	const struct nlattr *attr[CTRL_ATTR_MCAST_GRP_MAX + 1];

	genl_sort_nest(group, attr, CTRL_ATTR_MCAST_GRP_MAX);
	if (attr[CTRL_ATTR_MCAST_GRP_NAME] &&
	    !mnl_attr_validate(attr[CTRL_ATTR_MCAST_GRP_NAME], MNL_TYPE_NUL_STRING) &&
	    !strcmp(mnl_attr_get_str(attr[CTRL_ATTR_MCAST_GRP_NAME]), "events"))
		genl->events = attr_u64(attr[CTRL_ATTR_MCAST_GRP_ID]);
}

static void take_family(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *attr[CTRL_ATTR_MAX + 1], *group;
	struct genl *genl = arg;

	genl_sort(msg, attr, CTRL_ATTR_MAX);
	genl->family = attr_u64(attr[CTRL_ATTR_FAMILY_ID]);
	if (!attr[CTRL_ATTR_MCAST_GROUPS])
		return;
	mnl_attr_for_each_nested(group, attr[CTRL_ATTR_MCAST_GROUPS])
		take_group(genl, group);
}

/* Options that may fail on old kernels, which then say less. */
static void set_options(struct genl *genl)
{
	static const int wanted[] = { NETLINK_EXT_ACK, NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK };
	size_t i;
	int on = 1;

	for (i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		mnl_socket_setsockopt(genl->nl, wanted[i], &on, sizeof(on));
}

/* Asks the controller, with a connection of its own shape: @genl has its request. */
static void find_family(struct genl *genl, const char *name)
{
	struct answer answer = {
		.sink = take_family,
		.arg = genl,
		.absent = "the module isn't loaded: try `modprobe ored`",
	};
	static struct genl control;

	control.nl = genl->nl;
	control.family = GENL_ID_CTRL;
	mnl_attr_put_strz(genl_request(&control, CTRL_CMD_GETFAMILY, 0), CTRL_ATTR_FAMILY_NAME,
			  name);
	ask(&control, &answer);
	genl->seq = control.seq;
}

void genl_open(struct genl *genl, const char *name)
{
	genl->nl = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!genl->nl || mnl_socket_bind(genl->nl, 0, MNL_SOCKET_AUTOPID) < 0)
		fail(STATUS_KERNEL, "no netlink socket: %s", strerror(errno));
	set_options(genl);
	find_family(genl, name);
}

void genl_close(struct genl *genl)
{
	mnl_socket_close(genl->nl);
}
