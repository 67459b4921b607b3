// SPDX-License-Identifier: GPL-2.0
// vm: virtual-time
/*
 * The ABI as a C compiler sees it, and two ranks in one process over it. The
 * same source makes a 64-bit and a 32-bit program: layouts must not differ.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <arpa/inet.h>

#include <linux/ored.h>

#define NRANKS	2
#define COUNT	5000
#define PORT	5000

struct value {
	struct ored_join join;
	struct ored_peer peers[NRANKS];
};

static int failures;
static int cases;

static void result(int good, const char *name)
{
	printf("%sok %d %s\n", good ? "" : "not ", ++cases, name);
	failures += !good;
}

static int complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("# ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	return 0;
}

static int same(const char *what, long long here, long long there)
{
	if (here == there)
		return 1;
	return complain("%s is %lld in the header, %lld in lib/abi.py", what,
			here, there);
}

#define SIZE(s, n) good &= same("size of " #s, sizeof(struct s), n);
#define FIELD(s, f, at, n) \
	good &= same("offset of " #s "." #f, offsetof(struct s, f), at); \
	good &= same("size of " #s "." #f, sizeof(((struct s *)0)->f), n);
#define NUMBER(c, n) good &= same(#c, c, n);

static int layout(void)
{
	int good = 1;

#include "abi_layout.h"
	return good;
}

static int family(void)
{
	FILE *file = fopen("/sys/module/ored/parameters/family", "re");
	int number = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%d", &number) != 1)
		number = -1;
	fclose(file);
	return number;
}

/* Everybody at 127.0.0.1, on ports from PORT on. */
static void describe(struct value *value, unsigned int rank)
{
	const struct in_addr local = { .s_addr = htonl(INADDR_LOOPBACK) };
	unsigned int r;

	memset(value, 0, sizeof(*value));
	value->join.size = sizeof(value->join);
	value->join.peer_size = sizeof(value->peers[0]);
	value->join.group = 32;
	value->join.epoch = 1ULL << 40;
	value->join.rank = rank;
	value->join.nranks = NRANKS;
	value->join.depth = 1;
	value->join.bucket_max = COUNT * sizeof(float);
	value->join.timeout_ms = 20000;
	value->join.port = (__u16)(PORT + rank);
	for (r = 0; r < NRANKS; r++) {
		value->peers[r].family = AF_INET;
		value->peers[r].port = (__u16)(PORT + r);
		memcpy(value->peers[r].addr, &local, sizeof(local));
	}
}

/* Without waiting, so that one thread can be all ranks. */
static int start(unsigned int rank)
{
	struct value value;
	int s = socket(family(), SOCK_SEQPACKET | SOCK_NONBLOCK, ORED_PROTO_REDUCE);

	if (s < 0) {
		complain("socket: %s", strerror(errno));
		return -1;
	}
	describe(&value, rank);
	if (!setsockopt(s, SOL_ORED, ORED_JOIN, &value, sizeof(value)) ||
	    errno == EINPROGRESS)
		return s;
	complain("ORED_JOIN: %s", strerror(errno));
	close(s);
	return -1;
}

static int finish(int s)
{
	struct pollfd wait = { .fd = s, .events = POLLOUT };
	socklen_t size = sizeof(int);
	int error = 0;

	if (poll(&wait, 1, 30000) != 1)
		return complain("joining has no end");
	if (getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &size) || error)
		return complain("joining: %s", strerror(error));
	fcntl(s, F_SETFL, 0);
	return 1;
}

static int joined(const int *s)
{
	unsigned int rank;

	for (rank = 0; rank < NRANKS; rank++) {
		struct ored_group group;
		socklen_t size = sizeof(group);

		if (s[rank] < 0 || !finish(s[rank]))
			return 0;
		if (getsockopt(s[rank], SOL_ORED, ORED_GROUP, &group, &size))
			return complain("ORED_GROUP: %s", strerror(errno));
		if (size != sizeof(group) || group.rank != rank ||
		    group.epoch != 1ULL << 40 || group.nranks != NRANKS ||
		    group.bucket_max != COUNT * sizeof(float))
			return complain("ORED_GROUP is wrong");
	}
	return 1;
}

/* Receives with the result beside the bucket. */
static int receive(int s, float *bucket, struct ored_result *res)
{
	char control[CMSG_SPACE(sizeof(*res))];
	struct iovec part = { .iov_base = bucket, .iov_len = COUNT * sizeof(float) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	const int on = 1;
	struct cmsghdr *head;

	if (setsockopt(s, SOL_ORED, ORED_RESULTS, &on, sizeof(on)))
		return complain("ORED_RESULTS: %s", strerror(errno));
	if (recvmsg(s, &message, 0) != COUNT * (ssize_t)sizeof(float))
		return complain("recvmsg: %s", strerror(errno));
	head = CMSG_FIRSTHDR(&message);
	if (!head || head->cmsg_level != SOL_ORED || head->cmsg_type != ORED_RESULT ||
	    head->cmsg_len != CMSG_LEN(sizeof(*res)))
		return complain("no result beside the bucket");
	memcpy(res, CMSG_DATA(head), sizeof(*res));
	return 1;
}

/* An op whose parameters go in as ancillary data. */
static int post(int s, const float *bucket)
{
	char control[CMSG_SPACE(sizeof(struct ored_op))] = { 0 };
	struct iovec part = { .iov_base = (void *)bucket,
			      .iov_len = COUNT * sizeof(float) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	const struct ored_op op = { .reduction = ORED_MEAN };

	head->cmsg_level = SOL_ORED;
	head->cmsg_type = ORED_OP;
	head->cmsg_len = CMSG_LEN(sizeof(op));
	memcpy(CMSG_DATA(head), &op, sizeof(op));
	if (sendmsg(s, &message, 0) != COUNT * (ssize_t)sizeof(float))
		return complain("sendmsg: %s", strerror(errno));
	return 1;
}

static int mean(const int *s)
{
	static float bucket[NRANKS][COUNT];
	unsigned int rank, i;

	for (rank = 0; rank < NRANKS; rank++) {
		for (i = 0; i < COUNT; i++)
			bucket[rank][i] = (float)(i * (rank + 1));
		if (!post(s[rank], bucket[rank]))
			return 0;
	}
	for (rank = 0; rank < NRANKS; rank++) {
		struct ored_result res, asked = { .op = 0 };
		socklen_t size = sizeof(asked);

		if (!receive(s[rank], bucket[rank], &res))
			return 0;
		for (i = 0; i < COUNT; i++)
			if (bucket[rank][i] != (float)(i * 3) / 2)
				return complain("element %u is %f", i,
						(double)bucket[rank][i]);
		if (res.limit != ORED_LIMIT_COMPLETE || res.reduction != ORED_MEAN ||
		    res.contributed[0] != (1 << NRANKS) - 1)
			return complain("the result says something else");
		if (getsockopt(s[rank], SOL_ORED, ORED_RESULT, &asked, &size) ||
		    size != sizeof(asked) || memcmp(&asked, &res, sizeof(res)))
			return complain("ORED_RESULT differs from the ancillary data");
	}
	return 1;
}

int main(void)
{
	int s[NRANKS];
	unsigned int rank;

	if (system("modprobe ored"))
		return 1;
	printf("TAP version 13\n1..3\n");
	printf("# pointers of %zu bits\n", sizeof(void *) * 8);
	result(layout(), "layout");
	for (rank = 0; rank < NRANKS; rank++)
		s[rank] = start(rank);
	result(joined(s), "join");
	result(mean(s), "mean_with_ancillary_data");
	for (rank = 0; rank < NRANKS; rank++)
		close(s[rank]);
	return !!failures;
}
