// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/*
 * Sums a bucket over all ranks where it lies: nothing is copied between this program
 * and the kernel. The next one is filled in while the first is on its way. The
 * group comes from the environment, as for allreduce.c:
 *
 *   ORED_RANK=0 ORED_PEERS=10.0.0.1,10.0.0.2 ./slots
 *   ORED_RANK=1 ORED_PEERS=10.0.0.1,10.0.0.2 ./slots
 *
 * Build: cc slots.c $(pkg-config --cflags --libs libored)
 */
#include <ored.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COUNT 100000
#define STEPS 10

static void fail(int fd_or_error)
{
	char sentence[ORED_ERROR_MAX];

	ored_error(fd_or_error, sentence, sizeof(sentence));
	fprintf(stderr, "slots: %s\n", sentence);
	exit(1);
}

static float *slot(const struct ored_slots *slots, unsigned int step)
{
	return (float *)((char *)slots->base + step % slots->count * slots->stride);
}

static void fill(float *gradients, unsigned int step)
{
	unsigned int i;

	for (i = 0; i < COUNT; i++)
		gradients[i] = i + step;
}

int main(void)
{
	char why[ORED_ERROR_MAX] = "";
	struct ored_config config = {
		.flags = ORED_JOIN_SLOTS, .error = why, .error_size = sizeof(why),
	};
	struct ored_slots slots;
	unsigned int step;
	int fd = ored_open_env(&config);

	if (fd < 0) {
		fprintf(stderr, "slots: %s\n", why);
		return 1;
	}
	if (ored_slots_map(fd, &slots))
		fail(fd);
	fill(slot(&slots, 0), 0);
	for (step = 0; step < STEPS; step++) {
		if (ored_slot_send(fd, step % slots.count, COUNT * sizeof(float), NULL))
			fail(fd);
		fill(slot(&slots, step + 1), step + 1);
		if (ored_slot_recv(fd, NULL) < 0)
			fail(fd);
	}
	printf("gradient 3 over all ranks: %g\n", slot(&slots, STEPS - 1)[3]);
	ored_slots_unmap(&slots);
	close(fd);
	return 0;
}
