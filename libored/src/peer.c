// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/* Addresses of peers: text and socket addresses to struct ored_peer, back. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/* A decimal number of at most @max that ends where the text ends */
static int parse_number(const char *text, unsigned long max,
			unsigned long *value)
{
	char *end;

	/* strtoul() takes signs and blanks, which no address has */
	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*value = strtoul(text, &end, 10);
	return *end || errno || *value > max ? -EINVAL : 0;
}

static int parse_scope(const char *text, __u32 *scope)
{
	unsigned long number;

	if (!parse_number(text, 0xffffffffUL, &number)) {
		*scope = number;
		return number ? 0 : -ENODEV;
	}
	*scope = if_nametoindex(text);
	return *scope ? 0 : -ENODEV;
}

static void set_ipv4(struct ored_peer *peer, const void *addr)
{
	peer->family = AF_INET;
	memcpy(peer->addr, addr, sizeof(struct in_addr));
}

static int set_ipv6(struct ored_peer *peer, const struct in6_addr *addr,
		    __u32 scope)
{
	if (IN6_IS_ADDR_V4MAPPED(addr)) {
		set_ipv4(peer, addr->s6_addr + 12);
		return 0;
	}
	/* The same link-local address may exist on every link */
	if (IN6_IS_ADDR_LINKLOCAL(addr) && !scope)
		return -EINVAL;
	peer->family = AF_INET6;
	peer->scope_id = IN6_IS_ADDR_LINKLOCAL(addr) ? scope : 0;
	memcpy(peer->addr, addr, sizeof(*addr));
	return 0;
}

static int parse_ipv6(char *text, struct ored_peer *peer)
{
	char *zone = strchr(text, '%');
	struct in6_addr addr;
	__u32 scope = 0;
	int ret;

	if (zone)
		*zone++ = '\0';
	if (inet_pton(AF_INET6, text, &addr) != 1)
		return -EINVAL;
	if (zone) {
		ret = parse_scope(zone, &scope);
		if (ret)
			return ret;
	}
	return set_ipv6(peer, &addr, scope);
}

/*
 * Cuts the port off: behind the bracket of "[addr]:port", or behind the only
 * colon of "addr:port". Returns the address, without brackets.
 */
static char *split_port(char *text, char **port)
{
	char *colon = strchr(text, ':');
	char *end;

	*port = NULL;
	if (*text == '[') {
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return NULL;
		if (end[1])
			*port = end + 2;
		*end = '\0';
		return text + 1;
	}
	if (colon && !strchr(colon + 1, ':')) {
		*colon = '\0';
		*port = colon + 1;
	}
	return text;
}

int ored_peer_parse(const char *text, struct ored_peer *peer)
{
	struct ored_peer out = { 0 };
	char copy[ORED_PEER_STRLEN];
	struct in_addr ipv4;
	unsigned long number;
	char *addr, *port;
	int ret;

	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, text);
	addr = split_port(copy, &port);
	if (!addr)
		return -EINVAL;
	if (port) {
		if (parse_number(port, 0xffff, &number) || !number)
			return -EINVAL;
		out.port = number;
	}
	/* Brackets are for IPv6 alone */
	if (*text != '[' && inet_pton(AF_INET, addr, &ipv4) == 1) {
		set_ipv4(&out, &ipv4);
	} else {
		ret = parse_ipv6(addr, &out);
		if (ret)
			return ret;
	}
	*peer = out;
	return 0;
}

int ored_peer_from_sockaddr(const struct sockaddr *addr,
			    struct ored_peer *peer)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_in *in = (const void *)addr;
	struct ored_peer out = { 0 };
	int ret = 0;

	if (addr->sa_family == AF_INET) {
		out.port = ntohs(in->sin_port);
		set_ipv4(&out, &in->sin_addr);
	} else if (addr->sa_family == AF_INET6) {
		out.port = ntohs(in6->sin6_port);
		ret = set_ipv6(&out, &in6->sin6_addr, in6->sin6_scope_id);
	} else {
		ret = -EAFNOSUPPORT;
	}
	if (!ret)
		*peer = out;
	return ret;
}

/* The interface's name where it has one here, else its number */
static void format_zone(__u32 scope, char *zone, size_t len)
{
	char name[IF_NAMESIZE];

	if (!scope)
		*zone = '\0';
	else if (if_indextoname(scope, name))
		snprintf(zone, len, "%%%s", name);
	else
		snprintf(zone, len, "%%%u", scope);
}

int ored_peer_format(const struct ored_peer *peer, char *buf, size_t len)
{
	char addr[INET6_ADDRSTRLEN], zone[IF_NAMESIZE + 1], port[8] = "";
	int n;

	if (peer->family != AF_INET && peer->family != AF_INET6)
		return -EAFNOSUPPORT;
	inet_ntop(peer->family, peer->addr, addr, sizeof(addr));
	format_zone(peer->scope_id, zone, sizeof(zone));
	if (peer->port)
		snprintf(port, sizeof(port), ":%u", peer->port);
	if (peer->port && peer->family == AF_INET6)
		n = snprintf(buf, len, "[%s%s]%s", addr, zone, port);
	else
		n = snprintf(buf, len, "%s%s%s", addr, zone, port);
	return (size_t)n < len ? n : -ENOSPC;
}
