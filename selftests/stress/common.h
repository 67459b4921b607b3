/* SPDX-License-Identifier: GPL-2.0 */
/* What sockfuzz, pktfuzz, stress, trainer and flood share. */
#ifndef ORED_STRESS_COMMON_H
#define ORED_STRESS_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <linux/ored.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MAX_RANKS	3

/* A random generator whose numbers are a function of its seed alone. */
struct rng {
	uint64_t state;
};

uint64_t rng_next(struct rng *rng);
struct rng rng_seeded(uint64_t seed, uint64_t stream);

/* A number below @n, which is not 0 */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
	return rng_next(rng) % n;
}

/* True once in @n calls */
static inline bool rng_one_in(struct rng *rng, uint64_t n)
{
	return rng_below(rng, n) == 0;
}

/* Whatever the caller says, with errno in words: exits with 1. */
__attribute__((format(printf, 1, 2), noreturn))
void die(const char *format, ...);

/* The same without errno */
__attribute__((format(printf, 1, 2), noreturn))
void fail(const char *format, ...);

uint64_t now_ms(void);
void sleep_ms(unsigned int ms);

/* The value of an option like "--seed 5", or exits with 2. */
uint64_t number(const char *option, const char *text);

/* A socket of the family, or -1 and errno */
int ored_socket(void);

/* SO_RCVTIMEO and SO_SNDTIMEO */
void set_limit(int fd, unsigned int ms);

/* A network namespace of one's own whose loopback is up */
void new_namespace(void);

/* Loopback up, in this namespace */
void loopback_up(void);

/**
 * struct test_group - what all ranks of a group in tests have in common
 * @id: group
 * @epoch: run
 * @nranks: up to MAX_RANKS
 * @depth: ops in flight
 * @bucket_max: bytes
 * @addr: IPv4 addresses, host order
 * @port: of each rank
 * @timeout_ms: for joining
 * @payload_max: bytes, or 0
 * @bounded: its ops end by their bound; else they are reliable
 */
struct test_group {
	uint32_t id;
	uint64_t epoch;
	uint32_t nranks;
	uint32_t depth;
	uint64_t bucket_max;
	uint32_t addr[MAX_RANKS];
	uint16_t port[MAX_RANKS];
	uint32_t timeout_ms;
	uint16_t payload_max;
	bool bounded;
};

/* The value of ORED_JOIN (or ORED_SETUP, as rank 0) */
struct join_value {
	struct ored_join join;
	struct ored_peer peers[MAX_RANKS];
};

size_t join_value(const struct test_group *group, uint32_t rank, struct join_value *value);

/*
 * Joins all ranks, each with a socket of its own in @fd. Returns 0, or a negative
 * errno and no open socket.
 */
int join_all(const struct test_group *group, int *fd);

/* Sends a join off without waiting for its end. Returns 0 or a negative errno. */
int join_start(const struct test_group *group, uint32_t rank, int fd);

/* Waits for it. Returns 0 or a negative errno. */
int join_finish(int fd, unsigned int ms);

/* A rank's number @i of its bucket for op @op, and what they must sum to */
float contribution(uint32_t rank, uint64_t op, uint32_t i);
void fill(float *bucket, uint32_t count, uint32_t rank, uint64_t op);
/* The first number that is wrong, or -1 */
long wrong_at(const float *bucket, uint32_t count, uint32_t nranks, uint64_t op);

/* Where all tasks of a process are, on stderr */
void show_tasks(pid_t pid);

#endif
