// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/* Which chunks of the own contribution others went without. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/* The longest bitmap there is: of the largest bucket, in the smallest chunks */
#define WORDS_MAX (ORED_MAX_BUCKET / 512 / 64 + 1)

int ored_uncounted(int fd, uint64_t op, struct ored_uncounted *head,
		   uint64_t *bits, size_t words)
{
	struct ored_uncounted *all;
	socklen_t len;
	int ret;

	if (words > WORDS_MAX)
		words = WORDS_MAX;
	len = sizeof(*all) + words * sizeof(*bits);
	/* The kernel wants the bitmap behind the structure. */
	all = calloc(1, len);
	if (!all)
		return -ENOMEM;
	all->op = op;
	ret = ored_get(fd, ORED_UNCOUNTED, all, &len);
	if (!ret) {
		*head = *all;
		memcpy(bits, all + 1, words * sizeof(*bits));
	}
	free(all);
	return ret;
}
