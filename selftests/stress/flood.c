// SPDX-License-Identifier: GPL-2.0
/*
 * flood INTERFACE PORT RATE: a host that sends again what it has sent before.
 *
 * Listens to what leaves by INTERFACE for UDP port PORT and sends the newest of
 * these packets again and again, RATE packets a second, past the queue: right in
 * everything, and for ops that are going on, so that nothing but the receivers' own
 * book-keeping can tell that they are old. Until SIGTERM; then prints how many it
 * has sent.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

#define KEPT	16	/* of the newest packets */
#define LONGEST	2048

struct kept {
	size_t size;
	unsigned char data[LONGEST];
};

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static int open_interface(const char *name)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = if_nametoindex(name),
	};
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), on = 1;

	if (!at.sll_ifindex || fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)))
		die("can't listen to %s", name);
	if (setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)))
		die("PACKET_QDISC_BYPASS");
	return fd;
}

/* Is it one that this host has sent to the port? Ethernet and IPv4 without options */
static bool is_ours(const struct kept *kept, const struct sockaddr_ll *from, uint16_t port)
{
	const struct iphdr *ip = (const void *)(kept->data + sizeof(struct ether_header));
	const struct udphdr *udp = (const void *)(ip + 1);

	return from->sll_pkttype == PACKET_OUTGOING && from->sll_protocol == htons(ETH_P_IP) &&
	       kept->size > sizeof(struct ether_header) + sizeof(*ip) + sizeof(*udp) &&
	       ip->protocol == IPPROTO_UDP && udp->dest == htons(port);
}

/* Takes in what has been sent since the last call; returns how many are kept. */
static unsigned int listen_in(int fd, uint16_t port, struct kept *ring, unsigned int seen)
{
	for (;;) {
		struct kept *to = &ring[seen % KEPT], had = *to;
		struct sockaddr_ll from = {};
		socklen_t len = sizeof(from);
		ssize_t size = recvfrom(fd, to->data, sizeof(to->data), MSG_DONTWAIT,
					(struct sockaddr *)&from, &len);

		if (size < 0 && errno == EAGAIN)
			return seen;
		if (size < 0)
			die("can't listen");
		to->size = size;
		if (is_ours(to, &from, port))
			seen++;
		else
			*to = had;
	}
}

int main(int argc, char **argv)
{
	static struct kept ring[KEPT];
	unsigned int seen = 0, kept;
	struct timespec next;
	uint64_t gap, sent = 0;
	uint16_t port;
	int fd;

	if (argc != 4)
		fail("usage: flood INTERFACE PORT RATE");
	port = number("PORT", argv[2]);
	gap = 1000000000 / number("RATE", argv[3]);
	signal(SIGTERM, on_signal);
	fd = open_interface(argv[1]);
	clock_gettime(CLOCK_MONOTONIC, &next);
	while (!stopped) {
		next.tv_nsec += gap;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		/* Not for each packet: what is sent again needn't be the very newest. */
		if (sent % KEPT == 0)
			seen = listen_in(fd, port, ring, seen);
		kept = seen < KEPT ? seen : KEPT;
		if (!kept)
			continue;
		send(fd, ring[sent % kept].data, ring[sent % kept].size, 0);
		sent++;
	}
	printf("%llu\n", (unsigned long long)sent);
	return 0;
}
