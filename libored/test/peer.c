// SPDX-License-Identifier: GPL-2.0
/* Addresses: what is taken, as what, and what is refused. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <ored.h>
#include "tap.h"

/* Text in, what it is taken for and how it is written */
static const struct {
	const char *text;
	const char *canonical;
	int family;
	unsigned int port;
} good[] = {
	{ "10.0.0.1", "10.0.0.1", AF_INET, 0 },
	{ "10.0.0.1:5000", "10.0.0.1:5000", AF_INET, 5000 },
	{ "10.0.0.1:65535", "10.0.0.1:65535", AF_INET, 65535 },
	{ "::1", "::1", AF_INET6, 0 },
	{ "[::1]", "::1", AF_INET6, 0 },
	{ "[::1]:5000", "[::1]:5000", AF_INET6, 5000 },
	{ "fd00:0:0::1", "fd00::1", AF_INET6, 0 },
	{ "::ffff:10.0.0.1", "10.0.0.1", AF_INET, 0 },
	{ "[::ffff:10.0.0.1]:5000", "10.0.0.1:5000", AF_INET, 5000 },
	{ "fe80::1%lo", "fe80::1%lo", AF_INET6, 0 },
	{ "fe80::1%1", "fe80::1%lo", AF_INET6, 0 },
	{ "[fe80::1%lo]:5000", "[fe80::1%lo]:5000", AF_INET6, 5000 },
	{ "fe80::1%4000000000", "fe80::1%4000000000", AF_INET6, 0 },
	/* A scope means nothing elsewhere */
	{ "fd00::1%lo", "fd00::1", AF_INET6, 0 },
};

static const struct {
	const char *text;
	int error;
} bad[] = {
	{ "", EINVAL }, { "node-b", EINVAL }, { "node-b:5000", EINVAL },
	{ "10.0.0", EINVAL }, { "10.0.0.256", EINVAL }, { "10.0.0.1:", EINVAL },
	{ "10.0.0.1:0", EINVAL }, { "10.0.0.1:65536", EINVAL },
	{ "10.0.0.1:-1", EINVAL }, { "10.0.0.1: 1", EINVAL },
	{ "10.0.0.1:5000x", EINVAL }, { " 10.0.0.1", EINVAL },
	{ "[10.0.0.1]:5000", EINVAL }, { "[::1", EINVAL }, { "[::1]5000", EINVAL },
	{ "[::1]:", EINVAL }, { "::1]:5000", EINVAL }, { "[]", EINVAL },
	{ "fe80::1", EINVAL }, { "fe80::1%", ENODEV }, { "fe80::1%0", ENODEV },
	{ "fe80::1%nosuch0", ENODEV }, { "fe80::1%4294967296", ENODEV },
	{ "%lo", EINVAL },
};

static void parse__good(void)
{
	char text[ORED_PEER_STRLEN];
	struct ored_peer peer;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		int ret = ored_peer_parse(good[i].text, &peer);

		ok(!ret && peer.family == good[i].family &&
		   peer.port == good[i].port, "%s %s", __func__, good[i].text);
		ret = ored_peer_format(&peer, text, sizeof(text));
		ok(ret == (int)strlen(good[i].canonical) &&
		   !strcmp(text, good[i].canonical),
		   "format %s", good[i].canonical);
	}
}

static void parse__bad(void)
{
	struct ored_peer peer, before;
	char longer[100] = "";
	unsigned int i;

	memset(&before, 0x5a, sizeof(before));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		peer = before;
		ok(ored_peer_parse(bad[i].text, &peer) == -bad[i].error &&
		   !memcmp(&peer, &before, sizeof(peer)),
		   "%s '%.30s'", __func__, bad[i].text);
	}
	memset(longer, '1', sizeof(longer) - 1);
	ok(ored_peer_parse(longer, &peer) == -EINVAL,
	   "%s longer than any address", __func__);
}

static void from_sockaddr__families(void)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons(5000),
		.sin_addr.s_addr = htonl(0x0a000001),
	};
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_scope_id = 7 };
	struct sockaddr other = { .sa_family = AF_UNIX };
	struct ored_peer peer;

	ok(!ored_peer_from_sockaddr((void *)&in, &peer) &&
	   peer.family == AF_INET && peer.port == 5000 &&
	   !memcmp(peer.addr, "\x0a\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0", 16),
	   "from_sockaddr__ipv4");
	inet_pton(AF_INET6, "fe80::1", &in6.sin6_addr);
	ok(!ored_peer_from_sockaddr((void *)&in6, &peer) &&
	   peer.family == AF_INET6 && peer.port == 0 && peer.scope_id == 7,
	   "from_sockaddr__link_local");
	in6.sin6_scope_id = 0;
	ok(ored_peer_from_sockaddr((void *)&in6, &peer) == -EINVAL,
	   "from_sockaddr__link_local_without_scope");
	inet_pton(AF_INET6, "::ffff:10.0.0.1", &in6.sin6_addr);
	ok(!ored_peer_from_sockaddr((void *)&in6, &peer) &&
	   peer.family == AF_INET, "from_sockaddr__mapped");
	ok(ored_peer_from_sockaddr(&other, &peer) == -EAFNOSUPPORT,
	   "from_sockaddr__other");
}

static void format__too_short(void)
{
	struct ored_peer peer;
	char text[9];

	ored_peer_parse("10.0.0.1", &peer);
	ok(ored_peer_format(&peer, text, 9) == 8 &&
	   ored_peer_format(&peer, text, 8) == -ENOSPC, "format__too_short");
	peer.family = AF_UNIX;
	ok(ored_peer_format(&peer, text, 9) == -EAFNOSUPPORT,
	   "format__unknown_family");
}

int main(void)
{
	parse__good();
	parse__bad();
	from_sockaddr__families();
	format__too_short();
	return tap_done();
}
