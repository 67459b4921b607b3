// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

/* splitmix64 */
uint64_t rng_next(struct rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

struct rng rng_seeded(uint64_t seed, uint64_t stream)
{
	struct rng rng = { seed * 0x2545f4914f6cdd1d + stream };

	rng.state = rng_next(&rng);
	return rng;
}

void die(const char *format, ...)
{
	int error = errno;
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", strerror(error));
	_exit(1);
}

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

void sleep_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

uint64_t number(const char *option, const char *text)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = text ? strtoull(text, &end, 0) : 0;
	if (!text || !*text || *end || errno) {
		fprintf(stderr, "%s needs a number\n", option);
		exit(2);
	}
	return value;
}

/* The family's number, which stays as long as the module is loaded; -1 and errno */
static int family(void)
{
	static int known;
	char text[16] = "";
	int fd;

	if (known)
		return known;
	fd = open("/sys/module/ored/parameters/family", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) <= 0) {
		close(fd);
		errno = EAFNOSUPPORT;
		return -1;
	}
	close(fd);
	known = atoi(text);
	return known;
}

int ored_socket(void)
{
	int number = family();

	return number < 0 ? -1 : socket(number, SOCK_SEQPACKET, ORED_PROTO_REDUCE);
}

void set_limit(int fd, unsigned int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)))
		die("SO_RCVTIMEO, SO_SNDTIMEO");
}

void loopback_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &ifr))
		die("can't bring the loopback up");
	close(fd);
}

void new_namespace(void)
{
	if (unshare(CLONE_NEWNET))
		die("can't make a network namespace");
	loopback_up();
}

size_t join_value(const struct test_group *group, uint32_t rank, struct join_value *value)
{
	uint32_t r, addr;

	memset(value, 0, sizeof(*value));
	value->join = (struct ored_join) {
		.size = sizeof(value->join),
		.group = group->id,
		.rank = rank,
		.nranks = group->nranks,
		.depth = group->depth,
		.epoch = group->epoch,
		.bucket_max = group->bucket_max,
		.timeout_ms = group->timeout_ms,
		.payload_max = group->payload_max,
		.peer_size = sizeof(value->peers[0]),
	};
	for (r = 0; r < group->nranks; r++) {
		value->peers[r].family = AF_INET;
		value->peers[r].port = group->port[r];
		addr = htonl(group->addr[r]);
		memcpy(value->peers[r].addr, &addr, sizeof(addr));
	}
	return sizeof(value->join) + group->nranks * sizeof(value->peers[0]);
}

int join_start(const struct test_group *group, uint32_t rank, int fd)
{
	struct join_value value;
	struct ored_op op = { .mode = group->bounded ? ORED_MODE_BOUNDED : ORED_MODE_RELIABLE };
	size_t len = join_value(group, rank, &value);
	int flags = fcntl(fd, F_GETFL), error = 0;

	if (setsockopt(fd, SOL_ORED, ORED_OP, &op, sizeof(op)))
		return -errno;

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	if (setsockopt(fd, SOL_ORED, ORED_JOIN, &value, len) && errno != EINPROGRESS)
		error = -errno;
	fcntl(fd, F_SETFL, flags);
	return error;
}

int join_finish(int fd, unsigned int ms)
{
	struct pollfd poll_ = { .fd = fd, .events = POLLOUT };
	uint64_t end = now_ms() + ms;
	socklen_t len = sizeof(int);
	int error = 0, ready;

	do {
		ready = poll(&poll_, 1, 10);
		if (ready < 0 && errno != EINTR)
			return -errno;
		if (now_ms() > end)
			return -ETIME;
	} while (ready <= 0);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
		return -errno;
	return -error;
}

int join_all(const struct test_group *group, int *fd)
{
	uint32_t r, opened;
	int error = 0;

	for (opened = 0; opened < group->nranks && !error; opened++) {
		fd[opened] = ored_socket();
		if (fd[opened] < 0) {
			error = -errno;
			break;
		}
		error = join_start(group, opened, fd[opened]);
	}
	for (r = 0; r < opened && !error; r++)
		error = join_finish(fd[r], 2 * group->timeout_ms + 10000);
	for (r = 0; r < opened && error; r++)
		close(fd[r]);
	return error;
}

/* Numbers of many magnitudes, so that another order of adding shows. */
float contribution(uint32_t rank, uint64_t op, uint32_t i)
{
	struct rng rng = { op * 1000003 + i * 257 + rank };
	uint64_t bits = rng_next(&rng);
	float value = (float)(int32_t)bits / 2147483648.0f;

	return value * (float)(1 << (bits >> 32 & 15));
}

void fill(float *bucket, uint32_t count, uint32_t rank, uint64_t op)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		bucket[i] = contribution(rank, op, i);
}

long wrong_at(const float *bucket, uint32_t count, uint32_t nranks, uint64_t op)
{
	uint32_t i, r;

	for (i = 0; i < count; i++) {
		float sum = contribution(0, op, i);

		for (r = 1; r < nranks; r++)
			sum += contribution(r, op, i);
		if (memcmp(&sum, &bucket[i], sizeof(sum)))
			return i;
	}
	return -1;
}

static void show_file(pid_t pid, const char *task, const char *name)
{
	char path[128], text[2048];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/%s", pid, task, name);
	fd = open(path, O_RDONLY);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (n > 0)
		fprintf(stderr, "%s: %.*s\n", path, (int)n, text);
	if (fd >= 0)
		close(fd);
}

void show_tasks(pid_t pid)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		show_file(pid, entry->d_name, "stat");
		show_file(pid, entry->d_name, "syscall");
		show_file(pid, entry->d_name, "stack");
	}
	closedir(dir);
}
