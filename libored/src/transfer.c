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

int ored_allreduce(int fd, void *buf, size_t len, const struct ored_op *op,
		   struct ored_result *result)
{
	struct ored_group group;
	ssize_t ret;

	ret = ored_group(fd, &group);
	if (ret)
		return ret;
	/* recv() gives the oldest op's result, which must be this one's */
	if (group.posted != group.received)
		return -EBUSY;
	ret = ored_send(fd, buf, len, op);
	if (ret < 0)
		return ret;
	ret = ored_recv(fd, buf, len, result);
	if (ret < 0)
		return ret;
	/* 0 is end of file: the socket was shut down meanwhile */
	return (size_t)ret == len ? 0 : -EPIPE;
}
