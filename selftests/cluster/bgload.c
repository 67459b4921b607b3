// SPDX-License-Identifier: GPL-2.0
/*
 * bgload SEED MBPS ON_MS OFF_MS ADDRESS...: bursts of UDP cross traffic.
 *
 * Pauses are exponential with mean OFF_MS; bursts are Pareto (shape 1.5) with
 * mean ON_MS, cut at 20 times that, so that rare long ones make the tail. Each
 * goes to one ADDRESS at MBPS. What it does is a function of SEED and the clock.
 * Runs until SIGTERM, then prints what it has sent.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAYLOAD		1400
#define WIRE		(PAYLOAD + 28 + 14)	/* with UDP, IP and Ethernet */
#define SLICE_NS	500000
#define PORT		"4742"
#define SHAPE		1.5
#define LONGEST		20			/* means */

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_until(int64_t when)
{
	struct timespec t = { when / 1000000000, when % 1000000000 };

	while (!stopped && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}

/* splitmix64: the same numbers with every C library */
static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Uniform in (0, 1] */
static double uniform(uint64_t *state)
{
	return ldexp((next(state) >> 11) + 1, -53);
}

static int64_t pause_ns(uint64_t *state, double mean)
{
	return -mean * log(uniform(state));
}

static int64_t burst_ns(uint64_t *state, double mean)
{
	/* A Pareto variable's mean is SHAPE / (SHAPE - 1) times its least value. */
	double least = mean * (SHAPE - 1) / SHAPE;
	double length = least * pow(uniform(state), -1 / SHAPE);

	return fmin(length, LONGEST * mean);
}

static struct addrinfo *resolve(const char *host, int flags)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM,
				  .ai_flags = AI_NUMERICHOST | flags };
	struct addrinfo *found;
	int error = getaddrinfo(host, PORT, &hints, &found);

	if (error)
		errx(2, "%s: %s", host, gai_strerror(error));
	return found;
}

/* A port that nobody reads: what arrives is dropped without an ICMP error. */
static void open_sink(int family)
{
	const char *any = family == AF_INET6 ? "::" : "0.0.0.0";
	struct addrinfo *own = resolve(any, AI_PASSIVE);
	int least = 0, fd = socket(family, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, own->ai_addr, own->ai_addrlen))
		err(1, "can't bind to port " PORT);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)))
		err(1, "SO_RCVBUF");
	freeaddrinfo(own);
}

/* Sends at a constant rate until the end of the burst; returns packets. */
static uint64_t burst(int fd, const struct addrinfo *to, int64_t start,
		      int64_t length, double bytes_per_ns)
{
	static const char payload[PAYLOAD];
	uint64_t sent = 0;
	int64_t now = start;

	while (!stopped && now - start < length) {
		uint64_t due = (now - start) * bytes_per_ns / WIRE;

		for (; sent < due && !stopped; sent++) {
			if (sendto(fd, payload, sizeof(payload), 0, to->ai_addr,
				   to->ai_addrlen) < 0 &&
			    errno != ENOBUFS && errno != EINTR)
				err(1, "can't send");
		}
		sleep_until(now + SLICE_NS);
		now = now_ns();
	}
	return sent;
}

static double number(const char *text, const char *what)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value > 0))
		errx(2, "%s is a positive number, not '%s'", what, text);
	return value;
}

int main(int argc, char **argv)
{
	struct sigaction stop = { .sa_handler = on_signal };
	uint64_t state, packets = 0, bursts = 0;
	double rate, on, off;
	int i, fd, peers = argc - 5;
	struct addrinfo **peer;

	if (peers < 1)
		errx(2, "usage: bgload SEED MBPS ON_MS OFF_MS ADDRESS...");
	state = strtoull(argv[1], NULL, 0);
	rate = number(argv[2], "MBPS") / 8e3;	/* bytes in a nanosecond */
	on = number(argv[3], "ON_MS") * 1e6;
	off = number(argv[4], "OFF_MS") * 1e6;
	peer = calloc(peers, sizeof(*peer));
	if (!peer)
		err(1, "no memory");
	for (i = 0; i < peers; i++) {
		peer[i] = resolve(argv[5 + i], 0);
		if (peer[i]->ai_family != peer[0]->ai_family)
			errx(2, "%s is of another family", argv[5 + i]);
	}
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	open_sink(peer[0]->ai_family);
	fd = socket(peer[0]->ai_family, SOCK_DGRAM, 0);
	if (fd < 0)
		err(1, "no socket");
	while (!stopped) {
		sleep_until(now_ns() + pause_ns(&state, off));
		if (stopped)
			break;
		packets += burst(fd, peer[next(&state) % peers], now_ns(),
				 burst_ns(&state, on), rate);
		bursts++;
	}
	printf("%llu packets in %llu bursts\n", (unsigned long long)packets,
	       (unsigned long long)bursts);
	return 0;
}
