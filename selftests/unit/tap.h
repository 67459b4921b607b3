/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A test program is some TEST(name) { ... } with CHECKs inside and TAP_MAIN.
 * Tests run in the order of the file and print TAP. A test without a single
 * CHECK executed has failed. ORED_SEED in the environment moves the random
 * numbers; what they start from is printed. ORED_STEP has tests of sheer number
 * try every so many-th case only: for emulators.
 */
#ifndef ORED_UNIT_TAP_H
#define ORED_UNIT_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define TAP_FAILURES_SHOWN 5

struct tap_test {
	const char *name;
	void (*run)(void);
	struct tap_test *next;
};

static struct tap_test *tap_first, **tap_last = &tap_first;
static uint64_t tap_checks, tap_failures, tap_count;
static uint64_t tap_random_state;

#define TEST(test)							\
	static void test(void);						\
	__attribute__((constructor)) static void test##_register(void)	\
	{								\
		static struct tap_test t = { #test, test, NULL };	\
									\
		*tap_last = &t;						\
		tap_last = &t.next;					\
		tap_count++;						\
	}								\
	static void test(void)

/* Is the condition true? printf() arguments may follow it. */
#define CHECK(cond, ...)						\
	tap_check((cond), __FILE__, __LINE__, #cond, " " __VA_ARGS__)
/* Are two integers equal? */
#define CHECK_EQ(a, b) do {						\
	uint64_t _ta = (uint64_t)(a), _tb = (uint64_t)(b);		\
									\
	tap_check(_ta == _tb, __FILE__, __LINE__, #a " == " #b,		\
		  "%#" PRIx64 " and %#" PRIx64, _ta, _tb);		\
} while (0)

__attribute__((format(printf, 5, 6)))
static inline void tap_check(_Bool good, const char *file, int line,
			     const char *what, const char *format, ...)
{
	va_list args;

	tap_checks++;
	if (__builtin_expect(good, 1) || tap_failures++ >= TAP_FAILURES_SHOWN)
		return;
	printf("# %s:%d: failed: %s: ", file, line, what);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

/* xorshift64*: the same numbers on every machine */
static inline uint64_t tap_random(void)
{
	tap_random_state ^= tap_random_state >> 12;
	tap_random_state ^= tap_random_state << 25;
	tap_random_state ^= tap_random_state >> 27;
	return tap_random_state * 0x2545f4914f6cdd1dULL;
}

static inline uint32_t tap_below(uint32_t n)
{
	return (uint32_t)((tap_random() >> 32) * n >> 32);
}

static inline uint32_t tap_step(void)
{
	const char *env = getenv("ORED_STEP");

	return env ? (uint32_t)strtoul(env, NULL, 0) : 1;
}

static inline int tap_main(void)
{
	const char *env = getenv("ORED_SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : 1;
	int failed = 0, number = 0;
	struct tap_test *t;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n1..%" PRIu64 "\n# seed %" PRIu64 "\n",
	       tap_count, seed);
	for (t = tap_first; t; t = t->next) {
		tap_checks = 0;
		tap_failures = 0;
		tap_random_state = (seed + 1) * 0x9e3779b97f4a7c15ULL | 1;
		t->run();
		if (tap_failures)
			printf("# %" PRIu64 " of %" PRIu64 " checks failed\n",
			       tap_failures, tap_checks);
		if (!tap_checks)
			printf("# nothing was checked\n");
		failed += tap_failures || !tap_checks;
		printf("%s %d %s\n", tap_failures || !tap_checks ? "not ok" :
		       "ok", ++number, t->name);
	}
	return failed != 0;
}

#define TAP_MAIN int main(void) { return tap_main(); }

#endif /* ORED_UNIT_TAP_H */
