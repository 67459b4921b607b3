// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/* Buckets in and out. */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include "internal.h"

/* Room for one piece of ancillary data each, aligned as cmsg wants it */
union op_control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(struct ored_op))];
};

union result_control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(struct ored_result))];
};

ssize_t ored_send(int fd, const void *buf, size_t len,
		  const struct ored_op *op)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union op_control control = { 0 };
	ssize_t ret;

	/* The kernel would cut it silently at 2 GiB */
	if (len > ORED_MAX_BUCKET)
		return -EMSGSIZE;
	if (op) {
		control.header.cmsg_level = SOL_ORED;
		control.header.cmsg_type = ORED_OP;
		control.header.cmsg_len = CMSG_LEN(sizeof(*op));
		memcpy(CMSG_DATA(&control.header), op, sizeof(*op));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.space);
	}
	ret = sendmsg(fd, &msg, MSG_NOSIGNAL);
	return ret < 0 ? -errno : ret;
}

/* Copies the ORED_RESULT out of @msg, shorter or longer as it may be */
static int take_result(struct msghdr *msg, struct ored_result *result)
{
	struct cmsghdr *c;
	size_t len;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_ORED || c->cmsg_type != ORED_RESULT)
			continue;
		len = c->cmsg_len - CMSG_LEN(0);
		if (len > sizeof(*result))
			len = sizeof(*result);
		memcpy(result, CMSG_DATA(c), len);
		return 0;
	}
	return -ENOMSG;
}

/* A failed recvmsg() carries no ancillary data: asks for the last op's */
static void failed_result(int fd, int error, struct ored_result *result)
{
	struct ored_group group;

	if (ored_group(fd, &group) || !group.received ||
	    ored_result(fd, group.received - 1, result) ||
	    result->error != (__u32)error)
		*result = (struct ored_result){ .error = error };
}

static int leaves_op(int error)
{
	return error == EAGAIN || error == EINTR || error == EMSGSIZE;
}

static ssize_t recv_result(int fd, void *buf, size_t len,
			   struct ored_result *result)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	union result_control control;
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.space),
	};
	int error, on = 1;
	ssize_t ret;

	*result = (struct ored_result){ 0 };
	/* Stateless on purpose: @fd may come from anywhere */
	ret = ored_set(fd, ORED_RESULTS, &on, sizeof(on));
	if (ret)
		return ret;
	ret = recvmsg(fd, &msg, 0);
	if (ret < 0) {
		error = errno;
		if (leaves_op(error))
			result->error = error;
		else
			failed_result(fd, error, result);
		return -error;
	}
	if (ret > 0 && take_result(&msg, result))
		return -ENOMSG;
	return ret;
}

ssize_t ored_recv(int fd, void *buf, size_t len, struct ored_result *result)
{
	ssize_t ret;

	/* A bucket is never longer, and longer I/O would be cut */
	if (len > ORED_MAX_BUCKET)
		len = ORED_MAX_BUCKET;
	if (result)
		return recv_result(fd, buf, len, result);
	ret = recv(fd, buf, len, 0);
	return ret < 0 ? -errno : ret;
}

/* One op from its post to its result, of which the length is returned */
static ssize_t whole_op(int fd, const void *in, size_t in_len, void *out, size_t out_len,
			const struct ored_op *op, struct ored_result *result)
{
	struct ored_group group;
	ssize_t ret;

	ret = ored_group(fd, &group);
	if (ret)
		return ret;
	/* recv() gives the oldest op's result, which must be this one's */
	if (group.posted != group.received)
		return -EBUSY;
	ret = ored_send(fd, in, in_len, op);
	if (ret < 0)
		return ret;
	ret = ored_recv(fd, out, out_len, result);
	/* 0 is end of file: the socket was shut down meanwhile */
	return ret ? ret : -EPIPE;
}

/* Parameters of a kind: what the caller wants, and what the call says itself */
static struct ored_op op_of(const struct ored_op *op, enum ored_kind kind)
{
	struct ored_op all = op ? *op : (struct ored_op){ 0 };

	all.kind = kind;
	return all;
}

/* Of an op whose result must have a length that is known */
static int length_is(ssize_t ret, size_t len)
{
	if (ret < 0)
		return ret;
	return (size_t)ret == len ? 0 : -EPIPE;
}

int ored_allreduce(int fd, void *buf, size_t len, const struct ored_op *op,
		   struct ored_result *result)
{
	return length_is(whole_op(fd, buf, len, buf, len, op, result), len);
}

ssize_t ored_reduce_scatter(int fd, const void *bucket, size_t len, void *shard, size_t room,
			    const struct ored_op *op, struct ored_result *result)
{
	struct ored_op all = op_of(op, ORED_REDUCE_SCATTER);

	return whole_op(fd, bucket, len, shard, room, &all, result);
}

int ored_all_gather(int fd, const void *shard, size_t shard_len, void *bucket, size_t len,
		    const struct ored_op *op, struct ored_result *result)
{
	struct ored_op all = op_of(op, ORED_ALL_GATHER);

	all.length = len;
	return length_is(whole_op(fd, shard, shard_len, bucket, len, &all, result), len);
}

int ored_broadcast(int fd, void *buf, size_t len, uint32_t root, const struct ored_op *op,
		   struct ored_result *result)
{
	struct ored_op all = op_of(op, ORED_BROADCAST);

	all.root = root;
	return length_is(whole_op(fd, buf, len, buf, len, &all, result), len);
}

int ored_barrier(int fd, const struct ored_op *op, struct ored_result *result)
{
	struct ored_op all = op_of(op, ORED_BARRIER);
	uint64_t number;

	return length_is(whole_op(fd, NULL, 0, &number, sizeof(number), &all, result),
			 sizeof(number));
}
