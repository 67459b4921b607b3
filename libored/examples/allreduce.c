// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Sums one bucket over all ranks. The group comes from the environment, which
 * `selftests/cluster/cluster run -- allreduce` or any launcher sets:
 *
 *   ORED_RANK=0 ORED_PEERS=10.0.0.1,10.0.0.2 ./allreduce
 *   ORED_RANK=1 ORED_PEERS=10.0.0.1,10.0.0.2 ./allreduce
 *
 * Build: cc allreduce.c $(pkg-config --cflags --libs libored)
 */
#include <ored.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COUNT 100000

static void fail(int fd_or_error)
{
	char sentence[ORED_ERROR_MAX];

	ored_error(fd_or_error, sentence, sizeof(sentence));
	fprintf(stderr, "allreduce: %s\n", sentence);
	exit(1);
}

int main(void)
{
	static float gradients[COUNT];
	char why[ORED_ERROR_MAX] = "";
	struct ored_config config = { .error = why, .error_size = sizeof(why) };
	struct ored_result result;
	int i, fd = ored_open_env(&config);

	if (fd < 0) {
		fprintf(stderr, "allreduce: %s\n", why);
		return 1;
	}
	for (i = 0; i < COUNT; i++)
		gradients[i] = i;
	if (ored_allreduce(fd, gradients, sizeof(gradients), NULL, &result))
		fail(fd);
	printf("gradient 3 over all ranks: %g, after %.3f ms\n",
	       gradients[3], result.elapsed_ns / 1e6);
	close(fd);
	return 0;
}
