// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/* Sentences for people: the kernel's, or the library's where it has none. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "internal.h"

/* What these mean for someone who has no socket yet */
static const struct {
	int error;
	const char *sentence;
} sentences[] = {
	{ EAFNOSUPPORT, "AF_ORED isn't there: load the module with 'modprobe ored'" },
	{ EPERM, "not allowed: joining needs CAP_NET_ADMIN, and seccomp may refuse AF_ORED" },
	{ EACCES, "not allowed: a security module refuses AF_ORED" },
	{ ESOCKTNOSUPPORT, "AF_ORED has sockets of type SOCK_SEQPACKET only" },
	{ EPROTONOSUPPORT, "this version of ored.ko doesn't know that protocol" },
	{ EOPNOTSUPP, "this version of ored.ko doesn't have that" },
	{ EBUSY, "an op is in flight: fetch its result first" },
	{ EMSGSIZE, "longer than the group's largest bucket, or than ORED allows" },
	{ ENOMSG, "the kernel attached no result to the bucket" },
};

static int put(char *buf, size_t len, const char *sentence)
{
	int n = snprintf(buf, len, "%s", sentence);

	if (n < 0 || !len)
		return 0;
	return (size_t)n < len ? n : (int)len - 1;
}

static int own_sentence(int error, char *buf, size_t len)
{
	char text[ORED_ERROR_MAX];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sentences); i++)
		if (sentences[i].error == error)
			return put(buf, len, sentences[i].sentence);
	return put(buf, len, strerror_r(error, text, sizeof(text)));
}

int ored_error(int fd, char *buf, size_t len)
{
	char sentence[ORED_ERROR_MAX] = "";
	socklen_t size = sizeof(sentence);
	int ret;

	if (fd < 0)
		return own_sentence(-fd, buf, len);
	ret = ored_get(fd, ORED_ERROR, sentence, &size);
	if (ret)
		return own_sentence(-ret, buf, len);
	sentence[sizeof(sentence) - 1] = '\0';
	return put(buf, len, sentence);
}

void ored_explain(const struct ored_config *config, const char *format, ...)
{
	va_list args;

	if (!config->error || !config->error_size)
		return;
	va_start(args, format);
	vsnprintf(config->error, config->error_size, format, args);
	va_end(args);
}
