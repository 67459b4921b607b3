// SPDX-License-Identifier: GPL-2.0
/*
 * sockfuzz: random calls on sockets of the family, valid ones and nonsense.
 *
 *   sockfuzz [--seed N] [--sequences N] [--user] [--first BATCH]
 *
 * A sequence is a dozen calls. A batch of sequences runs in a process and a
 * network namespace of its own, on a pool of sockets that join small groups, so
 * that the calls meet live ops; in one batch of three, several threads do it at
 * the same time, each its own sequences. With --user the calls are made by an
 * unprivileged user, who binds to groups that were set up for him. A batch is a
 * function of the seed and its number, but for what its threads and the network
 * do at the same time.
 *
 * Exits with 1 if a call doesn't end though a signal comes every few
 * milliseconds, if a batch's process dies, if a call returns what no call may,
 * or if a group that nobody touched doesn't sum any more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/sockios.h>

#include "common.h"

#define BATCH		100	/* sequences of each thread of a batch */
#define CALLS		12	/* of a sequence */
#define POOL		10	/* sockets */
#define THREADS		3
#define MAPPINGS	4	/* of a thread */
#define GROUPS		24	/* that are set up in a batch's namespace */
#define ERESTARTSYS	512	/* not for programs: no header has it */
#define AREA		(64 * 1024)
#define TICK_MS		5
#define HANG_MS		60000
#define NOBODY		65534

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* What the parent sees of a batch */
struct watch {
	volatile uint64_t calls;	/* made by this thread */
	volatile uint64_t mapped;	/* mappings of slots made */
	volatile uint64_t posted;	/* ops from slots */
	volatile bool slots;		/* it has tried to post one */
	const char *volatile name;	/* of the current one */
};

/* Of slots; @len is 0 if there is none */
struct mapping {
	uint8_t *at;
	size_t len;
	int protection;
};

/* A thread of a batch */
struct caller {
	struct rng rng;
	struct watch *watch;
	uint8_t *area;		/* AREA bytes of its own, then a hole */
	struct mapping mappings[MAPPINGS];
	struct iovec iov[UIO_MAXIOV + 1];	/* zeros but for the first few */
};

static struct watch *watch;
static int pool[POOL];		/* shared by a batch's threads; -1: closed */
static struct test_group groups[GROUPS];
static uint8_t *readonly, *unmapped;
static bool privileged;		/* may join without bind() */

/* Signals only end calls that wait. */
static void on_tick(int signal)
{
	(void)signal;
}

static void on_fault(int signal)
{
	(void)signal;
	fail("sockfuzz: a fault of its own");
}

static void tick_this_thread(void)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = SIGUSR1,
	};
	struct itimerspec spec = {
		.it_interval.tv_nsec = TICK_MS * 1000000,
		.it_value.tv_nsec = TICK_MS * 1000000,
	};
	timer_t timer;

	event.sigev_notify_thread_id = syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &spec, NULL))
		die("a thread's timer");
}

/* A pointer with room for @len bytes, or one of the many kinds without. */
static void *pointer(struct caller *c, size_t len)
{
	if (!rng_one_in(&c->rng, 8))
		return c->area + rng_below(&c->rng, AREA - (len < AREA ? len : 0) + 1) / 2;
	switch (rng_below(&c->rng, 9)) {
	case 0:
		return NULL;
	case 1:
		return (void *)1;
	case 2:
		return unmapped;
	case 3:
		return readonly;
	case 4:
		return (void *)0xffff888000100000;
	case 5:
		return (void *)0xffffffff81000000;
	case 6:
		return (void *)0x8000000000000000;
	case 7:
		return (void *)-1L;
	default:
		/* The end lies in the hole. */
		return c->area + AREA - rng_below(&c->rng, len + 1 < AREA ? len + 1 : AREA);
	}
}

/* A length near one that matters */
static size_t length(struct caller *c)
{
	static const size_t sizes[] = {
		0, 1, 4, 8, 24, 48, 104, 120, 128, 152, 176, 248, 256, 4096, 16384,
	};
	size_t size = sizes[rng_below(&c->rng, ARRAY_SIZE(sizes))];

	switch (rng_below(&c->rng, 8)) {
	case 0:
		return size + 1;
	case 1:
		return size - (size > 0);
	case 2:
		return rng_below(&c->rng, AREA);
	case 3:
		return rng_one_in(&c->rng, 4) ? rng_next(&c->rng) : size;
	default:
		return size;
	}
}

static uint32_t odd_number(struct caller *c)
{
	static const uint32_t numbers[] = {
		0, 1, 2, 3, 4, 15, 16, 17, 255, 256, 257, 65535, 0x7fffffff,
		0x80000000, 0xfffffffe, 0xffffffff,
	};

	if (rng_one_in(&c->rng, 3))
		return rng_next(&c->rng);
	return numbers[rng_below(&c->rng, ARRAY_SIZE(numbers))];
}

static int any_fd(struct caller *c)
{
	return __atomic_load_n(&pool[rng_below(&c->rng, POOL)], __ATOMIC_RELAXED);
}

/*
 * No call may return what only the kernel's inside knows. Linux's recvmmsg() does:
 * if a signal interrupts it between two messages, it keeps ERESTARTSYS in sk_err
 * for the next call, whatever the family.
 */
static void check(const char *name, long ret, int error)
{
	if (ret == -1 && error == ERESTARTSYS && !strncmp(name, "recvmmsg", 8))
		return;
	if (ret < -1 || (ret < 0 && (error <= 0 || error > 133)))
		fail("sockfuzz: %s returned %ld with errno %d", name, ret, error);
}

#define CALL(c, what) ({						\
	long ret_;							\
	(c)->watch->name = #what;					\
	errno = 0;							\
	ret_ = (what);							\
	check(#what, ret_, errno);					\
	(c)->watch->calls++;						\
	ret_;								\
})

/* Puts @fd into the pool; what was there is closed. */
static void pool_put(struct caller *c, int fd)
{
	int old = __atomic_exchange_n(&pool[rng_below(&c->rng, POOL)], fd, __ATOMIC_RELAXED);

	if (old >= 0)
		CALL(c, close(old));
}

static void do_socket(struct caller *c)
{
	int fd = CALL(c, ored_socket());

	if (fd < 0)
		return;
	/* Most calls are to be refused or to work, not to wait. */
	set_limit(fd, 1 + rng_below(&c->rng, 8));
	if (rng_one_in(&c->rng, 2))
		fcntl(fd, F_SETFL, O_NONBLOCK);
	pool_put(c, fd);
}

static void do_odd_socket(struct caller *c)
{
	int fd = CALL(c, socket(ORED_FAMILY_DEFAULT, rng_below(&c->rng, 11) |
				(rng_one_in(&c->rng, 2) ? SOCK_NONBLOCK : 0),
				odd_number(c)));

	if (fd >= 0)
		pool_put(c, fd);
}

/* An op's parameters, more often right than not */
static struct ored_op op(struct caller *c)
{
	struct ored_op op = { .reduction = rng_below(&c->rng, 2) };
	uint8_t *bytes = (uint8_t *)&op;

	if (rng_one_in(&c->rng, 3)) {
		op.kind = rng_below(&c->rng, ORED_BARRIER + 1);
		op.root = op.kind == ORED_BROADCAST ? rng_below(&c->rng, MAX_RANKS) : 0;
		if (op.kind != ORED_REDUCE_SCATTER)
			op.reduction = 0;
	}
	if (rng_one_in(&c->rng, 4))
		bytes[rng_below(&c->rng, 4)] = rng_below(&c->rng, 8);
	if (rng_one_in(&c->rng, 8))
		bytes[rng_below(&c->rng, sizeof(op))] = odd_number(c);
	return op;
}

static int flags(struct caller *c)
{
	static const int some[] = {
		MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC, MSG_NOSIGNAL, MSG_EOR,
		MSG_WAITALL, MSG_CMSG_CLOEXEC,
	};
	int flags = rng_one_in(&c->rng, 2) ? MSG_DONTWAIT : 0;

	if (rng_one_in(&c->rng, 2))
		flags |= some[rng_below(&c->rng, ARRAY_SIZE(some))];
	if (rng_one_in(&c->rng, 16))
		flags |= odd_number(c);
	return flags;
}

/* A bucket's length that the groups take, mostly */
static size_t bucket(struct caller *c)
{
	static const size_t sizes[] = { 4, 8, 512, 1024, 4096, 16384 };

	return rng_one_in(&c->rng, 8) ? length(c) : sizes[rng_below(&c->rng, ARRAY_SIZE(sizes))];
}

/* An op from a slot, for which nothing is sent */
static void post_slot(struct caller *c, int fd)
{
	struct ored_op value = op(c);
	union {
		struct cmsghdr head;
		uint8_t bytes[CMSG_SPACE(sizeof(value))];
	} control = { .head = {
		.cmsg_level = SOL_ORED,
		.cmsg_type = ORED_OP,
		.cmsg_len = CMSG_LEN(sizeof(value)),
	} };
	struct msghdr msg = {
		.msg_control = &control, .msg_controllen = sizeof(control),
	};

	value.flags |= ORED_OP_SLOT;
	value.slot = rng_one_in(&c->rng, 8) ? odd_number(c) : rng_below(&c->rng, 4);
	value.length = bucket(c);
	memcpy(CMSG_DATA(&control.head), &value, sizeof(value));
	c->watch->slots = true;
	if (!CALL(c, sendmsg(fd, &msg, flags(c))))
		c->watch->posted++;
}

/* What has been mapped can be touched, whatever has become of its socket. */
static void touch(struct caller *c, volatile uint8_t *at, size_t len, int protection)
{
	size_t where = rng_below(&c->rng, len);

	if (protection & PROT_WRITE)
		at[where] = 1;
	if (protection & PROT_READ)
		(void)at[where];
}

/* Slots, which are mapped for a while */
static void map_slots(struct caller *c, int fd)
{
	struct mapping *m = &c->mappings[rng_below(&c->rng, MAPPINGS)];
	int protection = rng_below(&c->rng, 4);
	size_t pages = 1 + rng_below(&c->rng, 8), other;
	int advice = rng_below(&c->rng, 26);
	uint8_t *at;

	if (m->len && rng_one_in(&c->rng, 2))
		touch(c, m->at, m->len, m->protection);
	if (m->len)
		CALL(c, munmap(m->at, m->len));
	m->len = 0;
	c->watch->name = "mmap";
	at = mmap(NULL, pages * 4096, protection | (rng_one_in(&c->rng, 16) ? PROT_EXEC : 0),
		  rng_one_in(&c->rng, 4) ? MAP_PRIVATE : MAP_SHARED, fd,
		  rng_one_in(&c->rng, 2) ? 0 : rng_below(&c->rng, 8) * 4096);
	c->watch->calls++;
	if (at == MAP_FAILED)
		return;
	c->watch->mapped++;
	*m = (struct mapping){ .at = at, .len = pages * 4096, .protection = protection };
	touch(c, at, m->len, protection);
	switch (rng_below(&c->rng, 5)) {
	case 0:
		m->protection = PROT_READ;
		if (CALL(c, mprotect(at, m->len, PROT_READ)))
			m->protection = protection;
		break;
	case 1:
		/* A child is to have it too. */
		CALL(c, madvise(at, m->len, advice == MADV_DONTFORK ? MADV_NORMAL : advice));
		break;
	case 2:
		other = (1 + rng_below(&c->rng, 8)) * 4096;
		at = mremap(at, m->len, other, MREMAP_MAYMOVE);
		if (at != MAP_FAILED)
			*m = (struct mapping){ .at = at, .len = other, .protection = protection };
		break;
	case 3:
		CALL(c, msync(at, m->len, MS_SYNC));
		break;
	}
}

static void do_slots(struct caller *c)
{
	if (rng_one_in(&c->rng, 2))
		map_slots(c, any_fd(c));
	else
		post_slot(c, any_fd(c));
}

/* All ranks of a group, in one go, so that ops can run. */
static void do_group(struct caller *c)
{
	const struct test_group *group = &groups[rng_below(&c->rng, GROUPS)];
	struct sockaddr_ored addr = {
		.sored_family = ORED_FAMILY_DEFAULT,
		.sored_group = group->id,
		.sored_epoch = rng_one_in(&c->rng, 3) ? 0 : group->epoch,
	};
	struct join_value value;
	int fds[MAX_RANKS];
	uint32_t r;
	size_t len;

	for (r = 0; r < group->nranks; r++) {
		int fd = CALL(c, ored_socket());

		if (fd < 0)
			return;
		fds[r] = fd;
		fcntl(fd, F_SETFL, O_NONBLOCK);
		addr.sored_rank = r;
		len = join_value(group, r, &value);
		value.join.flags = rng_one_in(&c->rng, 2) ? ORED_JOIN_SLOTS : 0;
		if (privileged && rng_one_in(&c->rng, 2))
			CALL(c, setsockopt(fd, SOL_ORED, ORED_JOIN, &value, len));
		else
			CALL(c, bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
		if (rng_one_in(&c->rng, 3))
			set_limit(fd, 1 + rng_below(&c->rng, 8));
		if (rng_one_in(&c->rng, 3))
			fcntl(fd, F_SETFL, 0);
		pool_put(c, fd);
	}
	/* They are joined by now, mostly, and may be closed. */
	for (r = 0; r < group->nranks && !rng_one_in(&c->rng, 3); r++) {
		map_slots(c, fds[r]);
		post_slot(c, fds[r]);
	}
}

static void do_close(struct caller *c)
{
	int fd = __atomic_exchange_n(&pool[rng_below(&c->rng, POOL)], -1, __ATOMIC_RELAXED);

	if (fd >= 0)
		CALL(c, close(fd));
}

static void do_dup(struct caller *c)
{
	int fd = CALL(c, dup(any_fd(c)));

	if (fd >= 0)
		pool_put(c, fd);
}

static void do_setup(struct caller *c)
{
	struct test_group group = groups[rng_below(&c->rng, GROUPS)];
	struct join_value value;
	uint8_t *bytes = (uint8_t *)&value;
	size_t len;
	int name;

	group.epoch += rng_below(&c->rng, 3);
	group.id += rng_below(&c->rng, 2);
	len = join_value(&group, rng_below(&c->rng, group.nranks), &value);
	/* One field, a few bytes, or nothing is wrong. */
	switch (rng_below(&c->rng, 3)) {
	case 0:
		((uint32_t *)bytes)[rng_below(&c->rng, sizeof(value) / 4)] = odd_number(c);
		break;
	case 1:
		bytes[rng_below(&c->rng, sizeof(value))] ^= 1 << rng_below(&c->rng, 8);
		len = rng_one_in(&c->rng, 2) ? len : length(c) % AREA;
		break;
	}
	/* What a machine of a test's size can't give takes minutes to refuse. */
	if (value.join.bucket_max > (4 << 20) && value.join.bucket_max <= ORED_MAX_BUCKET)
		value.join.bucket_max = 1 << 16;
	name = rng_one_in(&c->rng, 2) ? ORED_JOIN :
	       rng_one_in(&c->rng, 2) ? ORED_SETUP : ORED_TEARDOWN;
	if (len > sizeof(value) || rng_one_in(&c->rng, 8)) {
		memcpy(c->area, &value, sizeof(value));
		CALL(c, setsockopt(any_fd(c), SOL_ORED, name, pointer(c, len), len));
	} else {
		CALL(c, setsockopt(any_fd(c), SOL_ORED, name, &value, len));
	}
}

static void do_setsockopt(struct caller *c)
{
	struct ored_op value = op(c);
	int on = rng_below(&c->rng, 3);
	uint64_t which = rng_one_in(&c->rng, 2) ? rng_below(&c->rng, 20) : odd_number(c);
	size_t len = length(c);

	switch (rng_below(&c->rng, 5)) {
	case 0:
		CALL(c, setsockopt(any_fd(c), SOL_ORED, ORED_OP, &value, sizeof(value)));
		break;
	case 1:
		CALL(c, setsockopt(any_fd(c), SOL_ORED, ORED_RESULTS, &on, sizeof(on)));
		break;
	case 2:
		CALL(c, setsockopt(any_fd(c), SOL_ORED, ORED_RESULT_OF, &which, sizeof(which)));
		break;
	case 3:
		CALL(c, setsockopt(any_fd(c), SOL_ORED, rng_below(&c->rng, 44),
				   pointer(c, len), len));
		break;
	default:
		CALL(c, setsockopt(any_fd(c), odd_number(c), odd_number(c),
				   pointer(c, len), len));
	}
}

static void do_getsockopt(struct caller *c)
{
	static const int names[] = {
		ORED_OP, ORED_RESULT, ORED_RESULTS, ORED_ERROR, ORED_GROUP,
		ORED_PEERS, ORED_STATS, ORED_RESULT_OF,
	};
	int name = rng_one_in(&c->rng, 6) ? (int)rng_below(&c->rng, 44) :
		   names[rng_below(&c->rng, ARRAY_SIZE(names))];
	socklen_t room = length(c), len = room;
	socklen_t *at = rng_one_in(&c->rng, 16) ? pointer(c, sizeof(len)) : &len;
	void *to = pointer(c, room);
	long ret = CALL(c, getsockopt(any_fd(c), SOL_ORED, name, to, at));

	if (!ret && at == &len && len > room)
		fail("sockfuzz: option %d has filled %u bytes of %u", name, len, room);
}

/* The core's own options: any of them may work, none may hurt. */
static void do_core_option(struct caller *c)
{
	static const int names[] = {
		SO_DEBUG, SO_REUSEADDR, SO_TYPE, SO_ERROR, SO_DONTROUTE,
		SO_BROADCAST, SO_SNDBUF, SO_RCVBUF, SO_KEEPALIVE, SO_OOBINLINE,
		SO_PRIORITY, SO_LINGER, SO_REUSEPORT, SO_PASSCRED, SO_PEERCRED,
		SO_RCVLOWAT, SO_SNDLOWAT, SO_RCVTIMEO, SO_SNDTIMEO,
		SO_BINDTODEVICE, SO_ATTACH_FILTER, SO_DETACH_FILTER, SO_PEERNAME,
		SO_TIMESTAMP, SO_ACCEPTCONN, SO_PEERSEC, SO_MARK, SO_TIMESTAMPING,
		SO_PROTOCOL, SO_DOMAIN, SO_RXQ_OVFL, SO_PEEK_OFF, SO_NOFCS,
		SO_LOCK_FILTER, SO_BUSY_POLL, SO_MAX_PACING_RATE, SO_MEMINFO,
		SO_INCOMING_CPU, SO_COOKIE, SO_PEERGROUPS, SO_TXTIME,
		SO_BINDTOIFINDEX,
	};
	int name = names[rng_below(&c->rng, ARRAY_SIZE(names))];
	socklen_t len = length(c);
	uint32_t value[4] = { odd_number(c), odd_number(c) };
	void *at = rng_one_in(&c->rng, 4) ? pointer(c, len) : value;

	if (at == value)
		len = rng_below(&c->rng, sizeof(value) + 1);
	c->watch->name = "an option of the core";
	if (rng_one_in(&c->rng, 2))
		(void)!getsockopt(any_fd(c), SOL_SOCKET, name, at, &len);
	else
		(void)!setsockopt(any_fd(c), SOL_SOCKET, name, at, len);
	c->watch->calls++;
}

static void do_send(struct caller *c)
{
	size_t len = bucket(c);

	CALL(c, sendto(any_fd(c), pointer(c, len), len, flags(c), NULL, 0));
}

static bool slots_used(void)
{
	int i;

	for (i = 0; i < THREADS; i++)
		if (watch[i].slots)
			return true;
	return false;
}

static void do_recv(struct caller *c)
{
	size_t len = rng_one_in(&c->rng, 2) ? 16384 : bucket(c);
	int how = flags(c);
	long ret = CALL(c, recv(any_fd(c), pointer(c, len), len, how));

	/* Of a result in a slot it is that length, whatever room there is. */
	if (ret > 0 && !(how & MSG_TRUNC) && (size_t)ret > len && !slots_used())
		fail("sockfuzz: recv has returned %ld bytes for a buffer of %zu", ret, len);
}

/* Iovecs, some of which lie or are absurdly long */
static void iovecs(struct caller *c, struct msghdr *msg, struct iovec *iov, size_t count)
{
	static const size_t counts[] = { 0, 16, UIO_MAXIOV, UIO_MAXIOV + 1, INT32_MAX, -1UL };
	size_t i, left = bucket(c);

	for (i = 0; i < count; i++) {
		size_t len = i + 1 < count ? rng_below(&c->rng, left + 1) / 4 * 4 : left;

		iov[i].iov_base = pointer(c, len);
		iov[i].iov_len = rng_one_in(&c->rng, 32) ? rng_next(&c->rng) : len;
		left -= len;
	}
	msg->msg_iov = rng_one_in(&c->rng, 32) ? pointer(c, sizeof(*iov) * count) : iov;
	msg->msg_iovlen = count;
	/* What lies behind the array must not be taken for pointers to write to. */
	if (iov == c->iov && rng_one_in(&c->rng, 32))
		msg->msg_iovlen = counts[rng_below(&c->rng, ARRAY_SIZE(counts))];
}

/* Ancillary data: an op mostly, or something malformed */
static void control(struct caller *c, struct msghdr *msg, uint8_t *buffer, size_t room)
{
	struct cmsghdr *cmsg = (struct cmsghdr *)buffer;
	struct ored_op value = op(c);

	memset(buffer, 0, room);
	memcpy(CMSG_DATA(cmsg), &value, sizeof(value));
	cmsg->cmsg_level = SOL_ORED;
	cmsg->cmsg_type = ORED_OP;
	cmsg->cmsg_len = CMSG_LEN(sizeof(value));
	msg->msg_control = buffer;
	msg->msg_controllen = CMSG_SPACE(sizeof(value));
	switch (rng_below(&c->rng, 8)) {
	case 0:
		cmsg->cmsg_len = CMSG_LEN(rng_below(&c->rng, room));
		break;
	case 1:
		cmsg->cmsg_len = rng_next(&c->rng);
		break;
	case 2:
		cmsg->cmsg_level = rng_one_in(&c->rng, 2) ? SOL_SOCKET : (int)odd_number(c);
		cmsg->cmsg_type = odd_number(c);
		break;
	case 3:
		msg->msg_controllen = rng_below(&c->rng, room);
		break;
	case 4:
		msg->msg_control = pointer(c, msg->msg_controllen);
		break;
	case 5:
		msg->msg_controllen = rng_next(&c->rng);
		break;
	}
}

static void do_sendmsg(struct caller *c)
{
	struct msghdr msg = {};
	uint8_t buffer[256] __attribute__((aligned(8)));

	memset(c->iov, 0, 4 * sizeof(c->iov[0]));
	iovecs(c, &msg, c->iov, 1 + rng_below(&c->rng, 4));
	if (rng_one_in(&c->rng, 2))
		control(c, &msg, buffer, sizeof(buffer));
	if (rng_one_in(&c->rng, 16)) {
		msg.msg_name = pointer(c, 24);
		msg.msg_namelen = length(c);
	}
	CALL(c, sendmsg(any_fd(c), &msg, flags(c)));
}

static void do_recvmsg(struct caller *c)
{
	struct msghdr msg = {};
	uint8_t buffer[512];

	memset(c->iov, 0, 4 * sizeof(c->iov[0]));
	iovecs(c, &msg, c->iov, 1 + rng_below(&c->rng, 4));
	msg.msg_control = rng_one_in(&c->rng, 8) ? pointer(c, 300) : buffer;
	msg.msg_controllen = rng_below(&c->rng, sizeof(buffer));
	if (rng_one_in(&c->rng, 4)) {
		msg.msg_name = pointer(c, 128);
		msg.msg_namelen = rng_below(&c->rng, 128);
	}
	CALL(c, recvmsg(any_fd(c), &msg, flags(c)));
}

static void do_mmsg(struct caller *c)
{
	struct mmsghdr msgs[3] = {};
	struct iovec iov[3][2];
	struct timespec timeout = { 0, 1000000 };
	int i;

	for (i = 0; i < 3; i++)
		iovecs(c, &msgs[i].msg_hdr, iov[i], 2);
	if (rng_one_in(&c->rng, 2))
		CALL(c, sendmmsg(any_fd(c), msgs, 3, flags(c)));
	else
		CALL(c, recvmmsg(any_fd(c), msgs, 3, flags(c), &timeout));
}

static void do_poll(struct caller *c)
{
	struct pollfd fds[3];
	int i;

	for (i = 0; i < 3; i++) {
		fds[i].fd = any_fd(c);
		fds[i].events = rng_next(&c->rng);
	}
	CALL(c, poll(fds, 3, rng_below(&c->rng, 3)));
}

static void do_epoll(struct caller *c)
{
	struct epoll_event event = { .events = rng_next(&c->rng) }, out[2];
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0)
		return;
	CALL(c, epoll_ctl(fd, EPOLL_CTL_ADD, any_fd(c), &event));
	CALL(c, epoll_wait(fd, out, 2, rng_below(&c->rng, 2)));
	if (rng_one_in(&c->rng, 2))
		do_close(c);
	CALL(c, epoll_wait(fd, out, 2, 0));
	close(fd);
}

static void do_ioctl(struct caller *c)
{
	static const unsigned int commands[] = {
		FIONREAD, TIOCOUTQ, SIOCINQ, SIOCOUTQ, FIOASYNC,
		SIOCGPGRP, 0x8906, 0x8907, SIOCGIFNAME, SIOCGIFCONF,
	};
	unsigned int command = commands[rng_below(&c->rng, ARRAY_SIZE(commands))];

	c->watch->name = "ioctl";
	if (rng_one_in(&c->rng, 4))
		ioctl(any_fd(c), rng_next(&c->rng), unmapped);
	else
		ioctl(any_fd(c), command, pointer(c, 8));
	c->watch->calls++;
}

static void do_name(struct caller *c)
{
	uint8_t buffer[128];
	socklen_t len = rng_one_in(&c->rng, 8) ? odd_number(c) : rng_below(&c->rng, 129);
	void *at = len > sizeof(buffer) || rng_one_in(&c->rng, 4) ? pointer(c, len) : buffer;

	if (rng_one_in(&c->rng, 4))
		CALL(c, getpeername(any_fd(c), at, &len));
	else
		CALL(c, getsockname(any_fd(c), at, &len));
}

static void do_bind(struct caller *c)
{
	const struct test_group *group = &groups[rng_below(&c->rng, GROUPS)];
	struct sockaddr_ored addr = {
		.sored_family = ORED_FAMILY_DEFAULT,
		.sored_group = group->id,
		.sored_rank = rng_below(&c->rng, group->nranks),
		.sored_epoch = group->epoch,
	};
	socklen_t len = rng_one_in(&c->rng, 4) ? length(c) : sizeof(addr);
	int fd = any_fd(c);

	if (rng_one_in(&c->rng, 3))
		((uint32_t *)&addr)[rng_below(&c->rng, sizeof(addr) / 4)] = odd_number(c);
	if (len > sizeof(addr))
		CALL(c, bind(fd, pointer(c, len), len));
	else
		CALL(c, bind(fd, (struct sockaddr *)&addr, len));
}

static void do_shutdown(struct caller *c)
{
	CALL(c, shutdown(any_fd(c), rng_one_in(&c->rng, 4) ? (int)odd_number(c) :
			 (int)rng_below(&c->rng, 3)));
}

/* What this family hasn't got */
static void do_refused(struct caller *c)
{
	struct sockaddr_ored addr = { .sored_family = ORED_FAMILY_DEFAULT };
	int pair[2];

	switch (rng_below(&c->rng, 4)) {
	case 0:
		CALL(c, connect(any_fd(c), (struct sockaddr *)&addr, sizeof(addr)));
		break;
	case 1:
		CALL(c, listen(any_fd(c), 1));
		break;
	case 2:
		CALL(c, accept4(any_fd(c), NULL, NULL, 0));
		break;
	default:
		CALL(c, socketpair(ORED_FAMILY_DEFAULT, SOCK_SEQPACKET, 0, pair));
	}
}

/* The calls of files */
static void do_file(struct caller *c)
{
	struct iovec iov[2] = {};
	size_t len = bucket(c);

	switch (rng_below(&c->rng, 5)) {
	case 0:
		CALL(c, write(any_fd(c), pointer(c, len), len));
		break;
	case 1:
		CALL(c, read(any_fd(c), pointer(c, len), len));
		break;
	case 2:
		iov[0].iov_base = pointer(c, len);
		iov[0].iov_len = len;
		CALL(c, writev(any_fd(c), iov, 2));
		break;
	case 3:
		CALL(c, lseek(any_fd(c), 0, SEEK_SET));
		break;
	default:
		CALL(c, fcntl(any_fd(c), F_SETFL, rng_one_in(&c->rng, 2) ? O_NONBLOCK : 0));
	}
}

/* A descriptor in flight, which is received or dropped */
static void do_pass(struct caller *c)
{
	union {
		struct cmsghdr head;
		uint8_t bytes[CMSG_SPACE(sizeof(int))];
	} control = { .head = {
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof(int)),
	} };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	int pair[2], fd = any_fd(c);

	if (fd < 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		return;
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	if (CALL(c, sendmsg(pair[0], &msg, MSG_DONTWAIT)) == 1) {
		if (rng_one_in(&c->rng, 2))
			do_close(c);
		if (rng_one_in(&c->rng, 2) && CALL(c, recvmsg(pair[1], &msg, MSG_DONTWAIT)) == 1 &&
		    !(msg.msg_flags & MSG_CTRUNC)) {
			memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
			pool_put(c, fd);
		}
	}
	close(pair[0]);
	close(pair[1]);
}

static void make_calls(struct caller *c, int n);

/* A child uses what it has inherited, and dies of this or that. */
static void do_fork(struct caller *c)
{
	int status;
	pid_t pid;

	if (!rng_one_in(&c->rng, 20))
		return;
	c->watch->name = "fork";
	pid = fork();
	if (pid < 0)
		return;
	if (pid == 0) {
		/* The parent's random numbers go on where ours do. */
		c->rng.state ^= 0x5555;
		tick_this_thread();
		make_calls(c, 5);
		if (rng_one_in(&c->rng, 2))
			raise(SIGKILL);
		_exit(0);
	}
	if (rng_one_in(&c->rng, 2))
		make_calls(c, 3);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		c->watch->calls++;
	if (WIFEXITED(status) && WEXITSTATUS(status))
		_exit(1);
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		fail("sockfuzz: a forked child has died of signal %d", WTERMSIG(status));
}

static void make_calls(struct caller *c, int n)
{
	static void (* const kinds[])(struct caller *c) = {
		do_socket, do_odd_socket, do_group, do_close, do_dup, do_setup,
		do_setsockopt, do_getsockopt, do_core_option, do_send, do_recv,
		do_sendmsg, do_recvmsg, do_mmsg, do_poll, do_epoll, do_ioctl,
		do_name, do_bind, do_shutdown, do_refused, do_file, do_pass,
		do_fork, do_slots,
		/* More often */
		do_send, do_recv, do_send, do_recv, do_getsockopt, do_getsockopt,
		do_sendmsg, do_recvmsg, do_setup,
	};

	while (n--)
		kinds[rng_below(&c->rng, ARRAY_SIZE(kinds))](c);
}

static void *map(size_t len, int protection)
{
	void *p = mmap(NULL, len, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static void *run_thread(void *argument)
{
	struct caller *c = argument;

	tick_this_thread();
	c->area = map(AREA + 65536, PROT_READ | PROT_WRITE);
	mprotect(c->area + AREA, 65536, PROT_NONE);
	make_calls(c, BATCH * CALLS);
	c->watch->name = "the end of a thread";
	return NULL;
}

/* Groups for bind(). Where no user is mapped, anyone may. */
static void set_up(struct rng *rng, bool mapped)
{
	struct join_value value;
	int fd = ored_socket();
	uint32_t i, r;
	size_t len;

	if (fd < 0)
		die("no socket of the family");
	for (i = 0; i < GROUPS; i++) {
		struct test_group *group = &groups[i];

		*group = (struct test_group) {
			.id = 1 + i / 2,
			.epoch = 1 + i,
			.nranks = 1 + rng_below(rng, MAX_RANKS),
			.depth = 1 + rng_below(rng, 3),
			.bucket_max = 8 << rng_below(rng, 12),
			.timeout_ms = 1 + rng_below(rng, 60),
		};
		for (r = 0; r < group->nranks; r++) {
			group->addr[r] = 0x7f000001 + rng_below(rng, 4);
			group->port[r] = 5000 + rng_below(rng, 3);
		}
		len = join_value(group, 0, &value);
		value.join.uid = rng_one_in(rng, 2) ? NOBODY : ORED_ANYONE;
		/* Once in a while for root alone */
		if (rng_one_in(rng, 8))
			value.join.uid = 0;
		value.join.flags = rng_one_in(rng, 2) ? ORED_JOIN_SLOTS : 0;
		if (!mapped)
			value.join.uid = ORED_ANYONE;
		if (setsockopt(fd, SOL_ORED, ORED_SETUP, &value, len))
			die("ORED_SETUP");
	}
	close(fd);
}

/* A group that is left alone: it must work before and after. */
static const struct test_group bystander = {
	.id = 77, .epoch = 77, .nranks = 2, .depth = 2, .bucket_max = 8192,
	.addr = { 0x7f000101, 0x7f000102 }, .port = { 6000, 6001 }, .timeout_ms = 20000,
};

static void sum_once(const int *fd, uint64_t op)
{
	float in[2048], out[2048];
	uint32_t r;
	ssize_t n;

	for (r = 0; r < bystander.nranks; r++) {
		fill(in, ARRAY_SIZE(in), r, op);
		do {
			n = send(fd[r], in, sizeof(in), 0);
		} while (n < 0 && errno == EINTR);
		if (n != sizeof(in))
			die("sockfuzz: the untouched group's op %lu isn't sent", op);
	}
	for (r = 0; r < bystander.nranks; r++) {
		do {
			n = recv(fd[r], out, sizeof(out), 0);
		} while (n < 0 && errno == EINTR);
		if (n != sizeof(out))
			die("sockfuzz: the untouched group's op %lu has no result", op);
		if (wrong_at(out, ARRAY_SIZE(out), bystander.nranks, op) >= 0)
			fail("sockfuzz: the untouched group's op %lu is wrong", op);
	}
}

static void drop_privileges(struct rng *rng)
{
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		die("can't become user %d", NOBODY);
	/* In containers one is root in a namespace of one's own. */
	if (rng_one_in(rng, 4) && !unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		loopback_up();
		privileged = true;
		set_up(rng, false);
	}
}

static void handle_signals(void)
{
	struct sigaction tick = { .sa_handler = on_tick };
	struct sigaction fault = { .sa_handler = on_fault };

	sigaction(SIGUSR1, &tick, NULL);
	sigaction(SIGSEGV, &fault, NULL);
	sigaction(SIGBUS, &fault, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGIO, SIG_IGN);
	signal(SIGURG, SIG_IGN);
}

/* Draws how many threads a batch has: the first that is drawn of it. */
static int draw_threads(struct rng *rng)
{
	return rng_one_in(rng, 3) ? THREADS : 1;
}

static void run_batch(uint64_t seed, uint64_t batch, bool user)
{
	struct rng rng = rng_seeded(seed, batch);
	static struct caller callers[THREADS];
	pthread_t threads[THREADS];
	int i, error, quiet[MAX_RANKS];
	int n = draw_threads(&rng);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	handle_signals();
	new_namespace();
	privileged = !user;
	set_up(&rng, true);
	error = join_all(&bystander, quiet);
	if (error)
		fail("sockfuzz: the group to be left alone can't be joined: %s", strerror(-error));
	/* Out of reach: its descriptors are beyond what is guessed. */
	for (i = 0; i < (int)bystander.nranks; i++)
		set_limit(quiet[i], 20000);
	sum_once(quiet, 0);
	if (user)
		drop_privileges(&rng);
	memset(pool, -1, sizeof(pool));
	for (i = 0; i < n; i++) {
		callers[i].rng.state = rng_next(&rng);
		callers[i].watch = &watch[i];
		if (pthread_create(&threads[i], NULL, run_thread, &callers[i]))
			die("pthread_create");
	}
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	watch[0].name = "the untouched group's ops";
	sum_once(quiet, 1);
	sum_once(quiet, 2);
	watch[0].name = "exit";
	_exit(0);
}

/* Adds what a batch's threads have done. */
static void add_batch(struct watch *sum)
{
	int i;

	for (i = 0; i < THREADS; i++) {
		sum->calls += watch[i].calls;
		sum->mapped += watch[i].mapped;
		sum->posted += watch[i].posted;
	}
}

/* False if any thread stands still, or the process failed. */
static bool watch_batch(pid_t pid)
{
	uint64_t last[THREADS] = {}, since[THREADS], now;
	int i, status;

	for (i = 0; i < THREADS; i++)
		since[i] = now_ms();
	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got < 0)
			die("waitpid");
		if (got == pid)
			break;
		sleep_ms(2);
		now = now_ms();
		for (i = 0; i < THREADS; i++) {
			/* One that has ended waits for the others. */
			if (last[i] != watch[i].calls || !watch[i].name ||
			    !strcmp(watch[i].name, "the end of a thread"))
				since[i] = now;
			last[i] = watch[i].calls;
			if (now - since[i] < HANG_MS)
				continue;
			fprintf(stderr, "sockfuzz: a call hangs: %s\n", watch[i].name);
			show_tasks(pid);
			kill(pid, SIGKILL);
			return false;
		}
	}
	if (WIFSIGNALED(status))
		fprintf(stderr, "sockfuzz: a batch has died of signal %d in %s\n",
			WTERMSIG(status), watch[0].name);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, sequences = 1000, batch = 0, done = 0;
	struct watch sum = {};
	bool user = false;
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--seed")) {
			seed = number(argv[i], argv[i + 1]);
			i++;
		} else if (!strcmp(argv[i], "--sequences")) {
			sequences = number(argv[i], argv[i + 1]);
			i++;
		} else if (!strcmp(argv[i], "--first")) {
			batch = number(argv[i], argv[i + 1]);
			i++;
		} else if (!strcmp(argv[i], "--user")) {
			user = true;
		} else {
			fprintf(stderr, "usage: sockfuzz [--seed N] [--sequences N] [--user] [--first BATCH]\n");
			return 2;
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("# sockfuzz: seed %lu, %lu sequences%s\n", seed, sequences,
	       user ? ", unprivileged" : "");
	watch = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (watch == MAP_FAILED)
		die("mmap");
	readonly = map(AREA, PROT_READ);
	unmapped = map(1 << 20, PROT_NONE);
	for (; done < sequences; batch++) {
		struct rng rng = rng_seeded(seed, batch);
		pid_t pid;

		done += draw_threads(&rng) * BATCH;
		memset(watch, 0, 4096);
		pid = fork();
		if (pid < 0)
			die("fork");
		if (pid == 0)
			run_batch(seed, batch, user);
		if (!watch_batch(pid)) {
			fprintf(stderr, "sockfuzz: repeat with --seed %lu --first %lu --sequences %d%s\n",
				seed, batch, BATCH, user ? " --user" : "");
			return 1;
		}
		add_batch(&sum);
	}
	printf("# sockfuzz: %lu sequences, %lu calls, none hung; %lu mappings of slots, %lu ops from them\n",
	       done, sum.calls, sum.mapped, sum.posted);
	return 0;
}
