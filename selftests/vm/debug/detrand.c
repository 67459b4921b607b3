// SPDX-License-Identifier: GPL-2.0
/*
 * Preloaded into User-Mode Linux: the host's randomness, which the guest's
 * kernel seeds itself with, becomes a function of $ORED_SEED (splitmix64).
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	static uint64_t state;
	static int seeded;
	unsigned char *to = buffer;
	uint64_t z = 0;
	size_t i;

	(void)flags;
	if (!seeded) {
		const char *seed = getenv("ORED_SEED");

		state = seed ? strtoull(seed, NULL, 0) : 0;
		seeded = 1;
	}
	for (i = 0; i < length; i++, z >>= 8) {
		if (i % 8 == 0) {
			state += 0x9e3779b97f4a7c15;
			z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
			z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
			z ^= z >> 31;
		}
		to[i] = z;
	}
	return length;
}
