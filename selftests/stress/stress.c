// SPDX-License-Identifier: GPL-2.0
/*
 * stress: everything at the same time, for a while.
 *
 *   stress [--seed N] [--seconds N] [--only ACTOR]
 *
 * Actors, a process each, share a network namespace and repeat what they do
 * until the time is up: groups that are opened, used by several threads and
 * closed at any moment, sockets that are closed while they join, groups whose
 * processes are killed, sockets that forked children go on with, namespaces that
 * end under live ops, devices that are removed under a group, and attempts to
 * unload the module.
 *
 * A sum that is delivered must be right. Exits with 1 if one isn't, if a call
 * fails with an errno that it may not have, or if an actor stands still.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

#define STILL_MS	120000	/* an actor that does nothing for so long hangs */
#define LIMIT_MS	500	/* of a call */
#define MISSES		3	/* calls in vain before a thread gives up */
#define LARGEST		(48 * 1024)

extern char **environ;

struct shared {
	volatile bool over;
	volatile bool pause;		/* the module is to be free of sockets */
	uint64_t epoch;
	struct {
		volatile uint64_t steps, ops;
		volatile bool idle;
		const char *volatile what;
	} actor[16];
};

static struct shared *shared;
static unsigned int self;
static struct rng rng;

static void step(const char *what)
{
	shared->actor[self].what = what;
	shared->actor[self].steps++;
}

static void count_op(void)
{
	__atomic_fetch_add(&shared->actor[self].ops, 1, __ATOMIC_RELAXED);
}

/* Waits where no socket is open while the module is to go. */
static void let_unload(void)
{
	while (shared->pause && !shared->over) {
		shared->actor[self].idle = true;
		step("waiting for the module to come back");
		sleep_ms(5);
	}
	shared->actor[self].idle = false;
}

static struct test_group new_group(void)
{
	struct test_group group = {
		.id = 1 + rng_below(&rng, 3),
		.epoch = __atomic_add_fetch(&shared->epoch, 1, __ATOMIC_RELAXED),
		.nranks = 1 + rng_below(&rng, MAX_RANKS),
		.bounded = rng_one_in(&rng, 2),
		.depth = 1 + rng_below(&rng, 4),
		.bucket_max = LARGEST,
		.timeout_ms = 20000,
		.payload_max = rng_one_in(&rng, 2) ? 512 : 0,
	};
	uint32_t r;

	/* A few ports, so that groups of different actors share them. */
	for (r = 0; r < group.nranks; r++) {
		group.addr[r] = 0x7f000001 + r;
		group.port[r] = 5000 + rng_below(&rng, 2);
	}
	return group;
}

/* May an op of a group that is being torn down end like this? */
static bool tolerable(int error)
{
	switch (error) {
	case EAGAIN:
	case EINTR:
	case ECONNRESET:	/* a peer has left */
	case EPIPE:		/* we have */
	case EBADF:		/* closed by another thread */
	case ENOTCONN:
		return true;
	}
	return false;
}

static void tolerate(const char *what)
{
	if (!tolerable(errno))
		die("stress: %s", what);
}

/* No module, or one that comes or goes just now */
static bool no_module(int error)
{
	return error == -EAFNOSUPPORT || error == -ENOENT || error == -ENODEV;
}

static bool open_group(const struct test_group *group, int *fd)
{
	int error = join_all(group, fd);
	uint32_t r;

	if (error && !no_module(error))
		fail("stress: joining: %s", strerror(-error));
	for (r = 0; !error && r < group->nranks; r++)
		set_limit(fd[r], LIMIT_MS);
	return !error;
}

/* A rank that a thread runs; its peers' threads may stop at any op. */
struct rank {
	struct rng rng;
	const struct test_group *group;
	uint32_t rank;
	uint32_t ops;
	uint32_t count;
	int fd;
	bool receiver;
};

static void send_all(struct rank *rank)
{
	static __thread float bucket[LARGEST / 4];
	uint64_t op = 0;
	int misses = 0;

	while (op < rank->ops && misses < MISSES && !shared->over) {
		fill(bucket, rank->count, rank->rank, op);
		if (send(rank->fd, bucket, rank->count * 4, 0) == rank->count * 4) {
			op++;
			continue;
		}
		tolerate("send");
		if (errno != EAGAIN && errno != EINTR)
			return;
		/* Where a peer has stopped to receive, nothing goes on. */
		misses += errno == EAGAIN;
	}
}

/* Of a bounded op only a whole result is known beforehand. */
static bool is_whole(const struct rank *rank, uint64_t op)
{
	struct ored_result result = { .op = op };
	socklen_t len = sizeof(result);

	if (!rank->group->bounded)
		return true;
	return !getsockopt(rank->fd, SOL_ORED, ORED_RESULT, &result, &len) &&
	       result.verdict == ORED_VERDICT_OK &&
	       result.contributed[0] == (1ULL << rank->group->nranks) - 1;
}

static void recv_all(struct rank *rank)
{
	static __thread float bucket[LARGEST / 4];
	uint64_t op = 0;
	int misses = 0;

	while (op < rank->ops && misses < MISSES && !shared->over) {
		ssize_t n = recv(rank->fd, bucket, sizeof(bucket), 0);

		if (n == 0)
			return;
		if (n < 0) {
			tolerate("recv");
			if (errno != EAGAIN && errno != EINTR && errno != ECONNRESET)
				return;
			/* A failed op is an op; one without a result isn't. */
			op += errno == ECONNRESET;
			misses += errno == EAGAIN;
			continue;
		}
		if (n != rank->count * 4 ||
		    (is_whole(rank, op) &&
		     wrong_at(bucket, rank->count, rank->group->nranks, op) >= 0))
			fail("stress: group %u, epoch %lu, rank %u of %u: op %lu is wrong: %zd bytes, number %ld",
			     rank->group->id, rank->group->epoch, rank->rank,
			     rank->group->nranks, op, n,
			     wrong_at(bucket, rank->count, rank->group->nranks, op));
		op++;
		count_op();
	}
}

static void *run_rank(void *argument)
{
	struct rank *rank = argument;

	if (rank->receiver)
		recv_all(rank);
	else
		send_all(rank);
	return NULL;
}

/* Somebody who looks at everything all the time */
static void look(const struct test_group *group, const int *fd)
{
	static const int names[] = {
		ORED_GROUP, ORED_PEERS, ORED_STATS, ORED_ERROR, ORED_RESULT, ORED_OP,
	};
	uint8_t value[1024] = {};
	struct pollfd poll_ = {
		.fd = fd[rng_below(&rng, group->nranks)],
		.events = POLLIN | POLLOUT,
	};
	int name = names[rng_below(&rng, ARRAY_SIZE(names))];
	socklen_t len = sizeof(value);

	poll(&poll_, 1, rng_below(&rng, 3));
	(void)!getsockopt(poll_.fd, SOL_ORED, name, value, &len);
}

/* Runs ops on all ranks, a sender and a receiver each. */
static void use_group(const struct test_group *group, const int *fd, bool disturb)
{
	struct rank ranks[2 * MAX_RANKS];
	pthread_t threads[2 * MAX_RANKS];
	uint32_t i, n = 2 * group->nranks, ops = 1 + rng_below(&rng, 20);
	uint32_t count = 1 + rng_below(&rng, LARGEST / 4);

	for (i = 0; i < n; i++) {
		ranks[i] = (struct rank) {
			.group = group, .rank = i / 2, .ops = ops, .count = count,
			.fd = fd[i / 2], .receiver = i % 2,
		};
		if (pthread_create(&threads[i], NULL, run_rank, &ranks[i]))
			die("pthread_create");
	}
	for (i = rng_below(&rng, 20); i; i--)
		look(group, fd);
	if (disturb)
		shutdown(fd[rng_below(&rng, group->nranks)], rng_below(&rng, 3));
	for (i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void close_all(const struct test_group *group, const int *fd)
{
	uint32_t r;

	for (r = 0; r < group->nranks; r++)
		close(fd[r]);
}

static void act_use(void)
{
	struct test_group group = new_group();
	int fd[MAX_RANKS];

	step("joining");
	if (!open_group(&group, fd))
		return;
	step("running ops");
	use_group(&group, fd, rng_one_in(&rng, 3));
	step("closing");
	close_all(&group, fd);
}

/* Ranks of which some never come, and the others don't wait for them */
static void act_abandon(void)
{
	struct test_group group = new_group();
	uint32_t r, opened, some = 1 + rng_below(&rng, group.nranks);
	int fd[MAX_RANKS], error;

	step("joining in vain");
	for (opened = 0; opened < some; opened++) {
		fd[opened] = ored_socket();
		if (fd[opened] < 0) {
			if (!no_module(-errno))
				die("stress: opening a socket");
			break;
		}
		error = join_start(&group, opened, fd[opened]);
		if (error)
			fail("stress: beginning to join: %s", strerror(-error));
	}
	sleep_ms(rng_below(&rng, 30));
	step("closing while joining");
	for (r = 0; r < opened; r++) {
		if (rng_one_in(&rng, 3))
			shutdown(fd[r], rng_below(&rng, 3));
		close(fd[r]);
	}
}

/* Waits for a child, whatever it died of but our own complaints. */
static void reap(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			die("waitpid");
	}
	if (WIFEXITED(status) && WEXITSTATUS(status))
		_exit(1);
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		fail("stress: a child has died of signal %d", WTERMSIG(status));
}

static pid_t start_child(void)
{
	uint64_t seed = rng_next(&rng);
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rng = rng_seeded(seed, self);
	}
	return pid;
}

/* Returns when this actor has done so many more ops, or the time is up. */
static void wait_ops(uint64_t more, unsigned int ms)
{
	uint64_t begun = shared->actor[self].ops, end = now_ms() + ms;

	while (shared->actor[self].ops - begun < more && now_ms() < end)
		sleep_ms(1);
}

static void act_kill(void)
{
	pid_t pid = start_child();

	step("running ops until killed");
	if (pid == 0) {
		for (;;)
			act_use();
	}
	wait_ops(rng_below(&rng, 60), 500);
	kill(pid, SIGKILL);
	step("waiting for the killed");
	reap(pid);
}

/* A socket joined by us and used by a child, or by both in turn */
static void act_fork(void)
{
	struct test_group group = new_group();
	int fd[MAX_RANKS];
	pid_t pid;

	step("joining");
	if (!open_group(&group, fd))
		return;
	pid = start_child();
	if (pid == 0) {
		use_group(&group, fd, false);
		_exit(0);
	}
	step("closing what a child uses");
	if (rng_one_in(&rng, 2)) {
		close_all(&group, fd);
		reap(pid);
	} else {
		sleep_ms(rng_below(&rng, 20));
		kill(pid, SIGKILL);
		reap(pid);
		close_all(&group, fd);
	}
}

/* A namespace that ends with whatever goes on in it */
static void act_namespace(void)
{
	pid_t pid = start_child();

	step("a namespace");
	if (pid == 0) {
		uint32_t left = 1 + rng_below(&rng, 3);

		new_namespace();
		while (left--) {
			struct test_group group = new_group();
			int fd[MAX_RANKS];

			if (!open_group(&group, fd))
				_exit(0);
			if (rng_one_in(&rng, 2))
				use_group(&group, fd, false);
			/* Left open: exiting closes them. */
		}
		_exit(0);
	}
	if (rng_one_in(&rng, 2)) {
		wait_ops(rng_below(&rng, 30), 500);
		kill(pid, SIGKILL);
	}
	reap(pid);
}

/* ip(8) with the given arguments; false if it failed */
static bool ip(const char *batch)
{
	char name[] = "ip", option[] = "-batch", from[] = "-";
	char *argv[4] = { name, option, from };
	posix_spawn_file_actions_t actions;
	int pipes[2], status, null = open("/dev/null", O_WRONLY);
	pid_t pid;

	if (pipe(pipes) || write(pipes[1], batch, strlen(batch)) != (ssize_t)strlen(batch))
		die("pipe");
	close(pipes[1]);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pipes[0], 0);
	posix_spawn_file_actions_adddup2(&actions, null, 2);
	if (posix_spawn(&pid, "/usr/sbin/ip", &actions, NULL, argv, environ))
		die("can't start ip");
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[0]);
	close(null);
	while (waitpid(pid, &status, 0) < 0)
		;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static void *keep_using(void *argument)
{
	struct rank *rank = argument;

	send_all(rank);
	return NULL;
}

/* One end of a veth: joins and runs ops until they fail or are done. */
static void use_end(uint32_t rank, const struct test_group *group, int ready)
{
	struct rank me = { .group = group, .rank = rank, .ops = 200, .count = LARGEST / 4 };
	pthread_t thread;
	char byte;
	int error;

	if (read(ready, &byte, 1) != 1)
		_exit(0);
	me.fd = ored_socket();
	if (me.fd < 0)
		_exit(0);
	error = join_start(group, rank, me.fd) ?: join_finish(me.fd, 30000);
	/* The device may be gone by now, and with it the address. */
	if (error) {
		if (error != -EADDRNOTAVAIL && error != -ETIMEDOUT && error != -EMSGSIZE &&
		    error != -EINVAL)
			fail("stress: joining over a veth: %s", strerror(-error));
		_exit(0);
	}
	set_limit(me.fd, LIMIT_MS / 4);
	if (pthread_create(&thread, NULL, keep_using, &me))
		die("pthread_create");
	recv_all(&me);
	/* The sender may wait for a device that is gone. */
	shutdown(me.fd, SHUT_RDWR);
	pthread_join(thread, NULL);
	_exit(0);
}

/* A group over a device that is taken away under it */
static void act_device(void)
{
	struct test_group group = {
		.id = 9, .nranks = 2, .depth = 2, .bucket_max = LARGEST,
		.epoch = __atomic_add_fetch(&shared->epoch, 1, __ATOMIC_RELAXED),
		.addr = { 0x0a4d0001, 0x0a4d0002 }, .port = { 4741, 4741 },
		.timeout_ms = 5000,
	};
	pid_t pid = start_child(), ends[2];
	int pipes[2][2], i;
	char batch[512];

	step("a group over a device that goes");
	if (pid) {
		reap(pid);
		return;
	}
	if (unshare(CLONE_NEWNET))
		die("unshare");
	for (i = 0; i < 2; i++) {
		if (pipe(pipes[i]))
			die("pipe");
		ends[i] = start_child();
		if (ends[i] == 0) {
			close(pipes[i][1]);
			if (i == 1) {
				char byte;

				if (unshare(CLONE_NEWNET) || read(pipes[i][0], &byte, 1) != 1)
					_exit(0);
				ip("addr add 10.77.0.2/24 dev v1\nlink set v1 up\n");
			}
			use_end(i, &group, pipes[i][0]);
		}
	}
	/* Until the second is in its namespace, moving fails or does no harm. */
	sleep_ms(20);
	snprintf(batch, sizeof(batch),
		 "link add v0 type veth peer name v1 netns %d\n"
		 "addr add 10.77.0.1/24 dev v0\nlink set v0 up\n", ends[1]);
	if (ip(batch)) {
		(void)!write(pipes[1][1], "aa", 2);
		(void)!write(pipes[0][1], "a", 1);
		wait_ops(rng_below(&rng, 40), 8000);
		ip("link del v0\n");
	}
	for (i = 0; i < 2; i++)
		close(pipes[i][1]);
	for (i = 0; i < 2; i++)
		reap(ends[i]);
	_exit(0);
}

static void modprobe(void)
{
	char name[] = "modprobe", module[] = "ored";
	char *argv[3] = { name, module };
	int status;
	pid_t pid;

	if (posix_spawn(&pid, "/usr/sbin/modprobe", NULL, NULL, argv, environ))
		die("can't start modprobe");
	while (waitpid(pid, &status, 0) < 0)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail("stress: the module can't be loaded again");
}

/* True if the module is gone. With sockets open it must be refused. */
static bool unload(void)
{
	if (!syscall(SYS_delete_module, "ored", O_NONBLOCK))
		return true;
	if (errno != EAGAIN && errno != EBUSY)
		die("stress: unloading");
	return false;
}

/* Tries against live ops, and now and then has all others close for a moment. */
static void act_unload(void)
{
	bool gone = false;
	int tries;

	step("unloading under ops");
	sleep_ms(rng_below(&rng, 300));
	if (!rng_one_in(&rng, 16)) {
		gone = unload();
	} else {
		shared->pause = true;
		for (tries = 0; tries < 3000 && !gone && !shared->over; tries++) {
			step("unloading when all is closed");
			gone = unload();
			sleep_ms(10);
		}
		if (!gone && !shared->over)
			fail("stress: all sockets are closed, but the module doesn't go");
	}
	if (gone)
		modprobe();
	shared->pause = false;
}

static const struct {
	const char *name;
	void (*act)(void);
} actors[] = {
	{ "use", act_use },
	{ "use", act_use },
	{ "abandon", act_abandon },
	{ "kill", act_kill },
	{ "fork", act_fork },
	{ "namespace", act_namespace },
	{ "device", act_device },
	{ "unload", act_unload },
};

static void run_actor(uint64_t seed, const char *only)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	rng = rng_seeded(seed, self);
	if (only && strcmp(only, actors[self].name))
		_exit(0);
	while (!shared->over) {
		if (actors[self].act != act_unload)
			let_unload();
		actors[self].act();
		step("between");
	}
	_exit(0);
}

/* True as long as all actors move. */
static bool moving(const pid_t *pids, uint64_t *steps, uint64_t *since)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(actors); i++) {
		uint64_t now = shared->actor[i].steps + shared->actor[i].ops;

		if (now != steps[i] || kill(pids[i], 0)) {
			steps[i] = now;
			since[i] = now_ms();
		} else if (now_ms() - since[i] > STILL_MS) {
			fprintf(stderr, "stress: actor '%s' stands still: %s\n",
				actors[i].name, shared->actor[i].what);
			show_tasks(pids[i]);
			return false;
		}
	}
	return true;
}

static bool supervise(pid_t *pids, uint64_t seconds)
{
	uint64_t steps[ARRAY_SIZE(actors)], since[ARRAY_SIZE(actors)];
	uint64_t end = now_ms() + seconds * 1000;
	unsigned int i, left = ARRAY_SIZE(actors);
	int status;

	for (i = 0; i < ARRAY_SIZE(actors); i++) {
		steps[i] = 0;
		since[i] = now_ms();
	}
	while (left) {
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid > 0) {
			left--;
			if (!WIFEXITED(status) || WEXITSTATUS(status)) {
				fprintf(stderr, "stress: an actor ended with status %#x\n", status);
				return false;
			}
			continue;
		}
		if (now_ms() > end)
			shared->over = true;
		if (!moving(pids, steps, since))
			return false;
		sleep_ms(20);
	}
	return true;
}

int main(int argc, char **argv)
{
	pid_t pids[ARRAY_SIZE(actors)];
	uint64_t seed = 1, seconds = 20;
	const char *only = NULL;
	bool good;
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--seed") && i + 1 < argc) {
			seed = number(argv[i], argv[i + 1]);
			i++;
		} else if (!strcmp(argv[i], "--seconds") && i + 1 < argc) {
			seconds = number(argv[i], argv[i + 1]);
			i++;
		} else if (!strcmp(argv[i], "--only") && i + 1 < argc) {
			only = argv[++i];
		} else {
			fprintf(stderr, "usage: stress [--seed N] [--seconds N] [--only ACTOR]\n");
			return 2;
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("# stress: seed %lu, %lu s\n", seed, seconds);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	new_namespace();
	for (self = 0; self < ARRAY_SIZE(actors); self++) {
		pids[self] = fork();
		if (pids[self] < 0)
			die("fork");
		if (pids[self] == 0)
			run_actor(seed, only);
	}
	good = supervise(pids, seconds);
	for (self = 0; self < ARRAY_SIZE(actors); self++) {
		printf("# stress: %s: %lu steps, %lu ops\n", actors[self].name,
		       shared->actor[self].steps, shared->actor[self].ops);
		if (!good)
			kill(pids[self], SIGKILL);
	}
	return !good;
}
