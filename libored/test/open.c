// SPDX-License-Identifier: GPL-2.0
/* Arguments that the library refuses by itself, each with a sentence. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <ored.h>
#include "tap.h"

static const char *const two[] = { "127.0.0.1", "127.0.0.2" };
static char why[ORED_ERROR_MAX];

static struct ored_config config(void)
{
	why[0] = '\0';
	return (struct ored_config){
		.peers = two, .nranks = 2, .error = why,
		.error_size = sizeof(why),
	};
}

static void refused(const struct ored_config *c, int error, const char *part,
		    const char *name)
{
	int ret = ored_open(c);

	ok(ret == -error && strstr(why, part), "open__%s: %s", name, why);
	if (ret >= 0)
		close(ret);
}

static void open__arguments(void)
{
	const char *const bad_peers[] = { "127.0.0.1", "node-b" };
	const char *const no_device[] = { "127.0.0.1", "fe80::1%nosuch0" };
	struct sockaddr other = { .sa_family = AF_UNIX };
	const struct sockaddr *const addrs[] = { &other };
	struct ored_config c;

	c = config();
	c.nranks = 0;
	refused(&c, EINVAL, "nranks is 0", "no_ranks");
	c = config();
	c.nranks = ORED_MAX_RANKS + 1;
	refused(&c, EINVAL, "nranks is 257", "too_many_ranks");
	c = config();
	c.peers = NULL;
	refused(&c, EINVAL, "neither peers nor addrs", "no_peers");
	c = config();
	c.reserved[3] = 1;
	refused(&c, EINVAL, "reserved", "reserved");
	c = config();
	c.reserved[0] = 1;
	refused(&c, EINVAL, "reserved", "reserved_first");
	c = config();
	c.peers = bad_peers;
	refused(&c, EINVAL, "peer 1: 'node-b'", "name");
	c = config();
	c.peers = no_device;
	refused(&c, ENODEV, "no such interface", "no_device");
	c = config();
	c.peers = NULL;
	c.addrs = addrs;
	c.nranks = 1;
	refused(&c, EAFNOSUPPORT, "peer 0: neither IPv4", "sockaddr");
	c = config();
	c.peers = bad_peers;
	c.error = NULL;
	ok(ored_open(&c) == -EINVAL, "open__without_sentence");
}

static void env_refused(const char *rank, const char *peers, const char *size,
			const char *part)
{
	struct ored_config c = config();
	int ret;

	clearenv();
	if (rank)
		setenv("ORED_RANK", rank, 1);
	if (peers)
		setenv("ORED_PEERS", peers, 1);
	if (size)
		setenv("ORED_SIZE", size, 1);
	ret = ored_open_env(&c);
	ok(ret == -EINVAL && strstr(why, part), "open_env: %s", why);
}

static void open_env__arguments(void)
{
	static char many[ORED_MAX_RANKS * 4 + 8];
	unsigned int i;

	env_refused(NULL, "::1", NULL, "ORED_RANK isn't set");
	env_refused("0", NULL, NULL, "ORED_PEERS isn't set");
	env_refused("", "::1", NULL, "ORED_RANK is ''");
	env_refused("-1", "::1", NULL, "ORED_RANK is '-1'");
	env_refused("1x", "::1", NULL, "ORED_RANK is '1x'");
	env_refused("256", "::1", NULL, "ORED_RANK is '256'");
	env_refused("0", "::1,::2", "3", "ORED_SIZE is 3");
	env_refused("0", "::1,", NULL, "peer 1: ''");
	for (i = 0; i <= ORED_MAX_RANKS; i++)
		strcat(many, i ? ",::1" : "::1");
	env_refused("0", many, NULL, "nranks is 257");
}

static void error__own_sentences(void)
{
	char text[ORED_ERROR_MAX], tiny[4];

	ok(ored_error(-EAFNOSUPPORT, text, sizeof(text)) == (int)strlen(text) &&
	   strstr(text, "modprobe ored"), "error__no_module");
	ok(ored_error(-EPERM, text, sizeof(text)) > 0 &&
	   strstr(text, "CAP_NET_ADMIN"), "error__no_permission");
	ok(ored_error(-ENOENT, text, sizeof(text)) > 0 &&
	   !strcmp(text, strerror(ENOENT)), "error__of_the_C_library");
	ok(ored_error(-EPERM, tiny, sizeof(tiny)) == 3 && !strcmp(tiny, "not"),
	   "error__cut");
	ok(ored_error(-EPERM, NULL, 0) == 0, "error__no_buffer");
	/* Standard input is no ORED socket */
	ok(ored_error(0, text, sizeof(text)) > 0, "error__of_no_socket");
}

static void transfer__too_long(void)
{
	/* Refused before a descriptor or the memory is looked at */
	ok(ored_send(-1, why, (size_t)ORED_MAX_BUCKET + 1, NULL) == -EMSGSIZE,
	   "send__above_1_GiB");
	ok(ored_send(-1, why, SIZE_MAX, NULL) == -EMSGSIZE,
	   "send__longest");
	ok(ored_send(-1, why, 4, NULL) == -EBADF, "send__bad_descriptor");
	ok(ored_recv(-1, why, 4, NULL) == -EBADF, "recv__bad_descriptor");
	ok(ored_allreduce(-1, why, 4, NULL, NULL) == -EBADF,
	   "allreduce__bad_descriptor");
}

int main(void)
{
	open__arguments();
	open_env__arguments();
	error__own_sentences();
	transfer__too_long();
	return tap_done();
}
