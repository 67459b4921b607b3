// SPDX-License-Identifier: GPL-2.0
/*
 * Ops that io_uring drives, by liburing: uring MODE FD FD. The descriptors
 * are those of the two ranks of a group, joined, their ops reliable sums of F32.
 *
 *   messages  SENDMSG and RECVMSG of both ranks, receives first, all in one ring
 *   poll      POLL_ADD tells that there is a result, once and again
 *   slots     SENDMSG that names a mapped slot; the result is in it
 *   fixed     slots as registered buffers; a file is read into one of them
 *
 * Ends with 0 if all was right; with 2 if the kernel registers no such buffers.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <liburing.h>
#include <linux/ored.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COUNT	5000		/* floats of a bucket */
#define BYTES	(COUNT * sizeof(float))
#define OPS	8
#define RANKS	2
#define CANNOT	2		/* exit status */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

struct message {
	struct msghdr head;
	struct iovec vector;
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct ored_op))];
	} control;
	float bucket[COUNT];
};

static struct io_uring ring;
static struct message in[RANKS], out[RANKS];
static struct { char *base; size_t stride; } slots[RANKS];

static void fill(float *bucket, int rank, int op)
{
	for (int i = 0; i < COUNT; i++)
		bucket[i] = i % 100 + 100 * rank + op;
}

static void check(const float *bucket, int op)
{
	for (int i = 0; i < COUNT; i++)
		if (bucket[i] != 2 * (i % 100) + 100 + 2 * op)
			errx(1, "op %d, element %d is %g", op, i, bucket[i]);
}

static struct msghdr *with_bucket(struct message *m)
{
	m->vector = (struct iovec){ m->bucket, BYTES };
	m->head = (struct msghdr){ .msg_iov = &m->vector, .msg_iovlen = 1 };
	return &m->head;
}

static struct msghdr *with_slot(struct message *m, unsigned int slot)
{
	struct ored_op op = { .mode = ORED_MODE_RELIABLE, .flags = ORED_OP_SLOT,
			      .slot = slot, .length = BYTES };

	m->control.align = (struct cmsghdr){ CMSG_LEN(sizeof(op)), SOL_ORED, ORED_OP };
	memcpy(CMSG_DATA(&m->control.align), &op, sizeof(op));
	m->head = (struct msghdr){ .msg_control = m->control.space,
				   .msg_controllen = sizeof(m->control.space) };
	return &m->head;
}

static void submit(void)
{
	int n = io_uring_submit(&ring);

	if (n < 0)
		errx(1, "io_uring_submit: %s", strerror(-n));
}

/* Each completion has what its request was given, and succeeded with that. */
static void reap(int n)
{
	struct io_uring_cqe *cqe;

	while (n--) {
		int ret = io_uring_wait_cqe(&ring, &cqe);

		if (ret)
			errx(1, "io_uring_wait_cqe: %s", strerror(-ret));
		if (cqe->res != (int)cqe->user_data)
			errx(1, "a request ended with %d, not %d", cqe->res,
			     (int)cqe->user_data);
		io_uring_cqe_seen(&ring, cqe);
	}
}

static void queue_send(int fd, struct msghdr *head, int result)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	io_uring_prep_sendmsg(sqe, fd, head, 0);
	sqe->user_data = result;
}

static void queue_recv(int fd, struct msghdr *head, int result)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	io_uring_prep_recvmsg(sqe, fd, head, 0);
	sqe->user_data = result;
}

static void messages(const int *fd)
{
	for (int op = 0; op < OPS; op++) {
		for (int r = 0; r < RANKS; r++)
			queue_recv(fd[r], with_bucket(&in[r]), BYTES);
		submit();
		for (int r = 0; r < RANKS; r++) {
			fill(out[r].bucket, r, op);
			queue_send(fd[r], with_bucket(&out[r]), BYTES);
		}
		submit();
		reap(2 * RANKS);
		for (int r = 0; r < RANKS; r++)
			check(in[r].bucket, op);
	}
}

static void polls(const int *fd)
{
	for (int op = 0; op < OPS; op++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		io_uring_prep_poll_add(sqe, fd[0], POLLIN);
		sqe->user_data = POLLIN;
		submit();
		for (int r = 0; r < RANKS; r++) {
			fill(out[r].bucket, r, op);
			if (send(fd[r], out[r].bucket, BYTES, 0) != BYTES)
				err(1, "send");
		}
		reap(1);
		for (int r = 0; r < RANKS; r++) {
			queue_recv(fd[r], with_bucket(&in[r]), BYTES);
			submit();
			reap(1);
			check(in[r].bucket, op);
		}
	}
}

static void map(const int *fd)
{
	struct ored_group group = { 0 };
	socklen_t len = sizeof(group);

	for (int r = 0; r < RANKS; r++) {
		if (getsockopt(fd[r], SOL_ORED, ORED_GROUP, &group, &len))
			err(1, "ORED_GROUP");
		slots[r].stride = group.slot_stride;
		slots[r].base = mmap(NULL, group.slots * group.slot_stride,
				     PROT_READ | PROT_WRITE, MAP_SHARED, fd[r], 0);
		if (slots[r].base == MAP_FAILED)
			err(1, "mmap");
	}
}

static float *slot(int rank, unsigned int index)
{
	return (float *)(slots[rank].base + index * slots[rank].stride);
}

static void reduce_slots(const int *fd, int op)
{
	static struct msghdr empty[RANKS];

	for (int r = 0; r < RANKS; r++)
		queue_send(fd[r], with_slot(&out[r], op % 2), 0);
	submit();
	reap(RANKS);
	for (int r = 0; r < RANKS; r++)
		queue_recv(fd[r], &empty[r], BYTES);
	submit();
	reap(RANKS);
	for (int r = 0; r < RANKS; r++)
		check(slot(r, op % 2), op);
}

static void in_slots(const int *fd)
{
	map(fd);
	for (int op = 0; op < OPS; op++) {
		for (int r = 0; r < RANKS; r++)
			fill(slot(r, op % 2), r, op);
		reduce_slots(fd, op);
	}
}

static void fixed(const int *fd)
{
	int ret, file = memfd_create("bucket", 0);
	struct io_uring_sqe *sqe;
	struct iovec vector;

	map(fd);
	fill(out[0].bucket, 0, 0);
	fill(slot(1, 0), 1, 0);
	if (file < 0 || write(file, out[0].bucket, BYTES) != BYTES)
		err(1, "memfd");
	vector = (struct iovec){ slot(0, 0), slots[0].stride };
	ret = io_uring_register_buffers(&ring, &vector, 1);
	if (ret == -EOPNOTSUPP)
		exit(CANNOT);
	if (ret)
		errx(1, "io_uring_register_buffers: %s", strerror(-ret));
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_read_fixed(sqe, file, slot(0, 0), BYTES, 0, 0);
	sqe->user_data = BYTES;
	submit();
	reap(1);
	reduce_slots(fd, 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const int *fd);
	} modes[] = {
		{ "messages", messages }, { "poll", polls }, { "slots", in_slots },
		{ "fixed", fixed },
	};
	int fd[RANKS], ret;

	if (argc != 2 + RANKS)
		errx(1, "usage: uring MODE FD FD");
	for (int r = 0; r < RANKS; r++)
		fd[r] = atoi(argv[2 + r]);
	ret = io_uring_queue_init(16, &ring, 0);
	if (ret)
		errx(1, "io_uring_queue_init: %s", strerror(-ret));
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (strcmp(modes[i].name, argv[1]))
			continue;
		modes[i].run(fd);
		return 0;
	}
	errx(1, "%s is no mode", argv[1]);
}
