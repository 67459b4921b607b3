// SPDX-License-Identifier: GPL-2.0
/*
 * fpu_guard: a job that has all its vector registers in use: those of AVX, and where
 * there is AVX-512, all 32 whole ones and the masks. Fills them with numbers of its
 * own, computes for a while without touching them, and looks whether they are as they
 * were; the control word, too. Until its input ends; then it prints how often it
 * looked. With --spoil it changes one itself, the last, and has to find that.
 * Status 1: something was changed; 2: there is no AVX.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define REGISTERS	32
#define MASKS		8
#define SPINS		20000
#define ROUND_TO_ZERO	0x7f80	/* of MXCSR, with all exceptions masked */

/* Of AVX alone: the first half of the first 16, and no masks. The rest stays as it is. */
struct state {
	uint8_t vector[REGISTERS][64];
	uint64_t mask[MASKS];
	uint64_t mxcsr;
};

#define MASK_AT		"2048"	/* where mask and mxcsr are */
#define MXCSR_AT	"2112"

#define LOW_16(f)	f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) \
			f(12) f(13) f(14) f(15)
#define HIGH_16(f)	f(16) f(17) f(18) f(19) f(20) f(21) f(22) f(23) f(24) f(25) \
			f(26) f(27) f(28) f(29) f(30) f(31)
#define ALL_MASKS(f)	f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)

#define LOAD_YMM(n)	"vmovdqu 64*" #n "(%[in]), %%ymm" #n "\n\t"
#define STORE_YMM(n)	"vmovdqu %%ymm" #n ", 64*" #n "(%[out])\n\t"
#define LOAD_ZMM(n)	"vmovdqu64 64*" #n "(%[in]), %%zmm" #n "\n\t"
#define STORE_ZMM(n)	"vmovdqu64 %%zmm" #n ", 64*" #n "(%[out])\n\t"
#define LOAD_MASK(n)	"kmovq " MASK_AT "+8*" #n "(%[in]), %%k" #n "\n\t"
#define STORE_MASK(n)	"kmovq %%k" #n ", " MASK_AT "+8*" #n "(%[out])\n\t"

/*
 * From the first load to the last store nothing but the loop runs here. The compiler
 * uses none of AVX-512's registers, so that only those of SSE are named.
 */
#define HOLD(loads, spoil, stores)						\
	__asm__ volatile("ldmxcsr " MXCSR_AT "(%[in])\n\t"			\
			 loads							\
			 "1: dec %[spins]\n\t"					\
			 "jnz 1b\n\t"						\
			 spoil							\
			 stores							\
			 "stmxcsr " MXCSR_AT "(%[out])\n\t"			\
			 "vzeroupper\n\t"					\
			 "ldmxcsr %[plain]\n\t"					\
			 : [spins] "+r"(spins)					\
			 : [in] "r"(in), [out] "r"(out), [plain] "m"(plain)	\
			 : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3",	\
			   "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",	\
			   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")

static const uint32_t plain = 0x1f80;

static void hold_avx(const struct state *in, struct state *out)
{
	unsigned long spins = SPINS;

	HOLD(LOW_16(LOAD_YMM), "", LOW_16(STORE_YMM));
}

static void spoil_avx(const struct state *in, struct state *out)
{
	unsigned long spins = SPINS;

	HOLD(LOW_16(LOAD_YMM), "vpxor %%ymm15, %%ymm15, %%ymm15\n\t", LOW_16(STORE_YMM));
}

#define LOAD_512	LOW_16(LOAD_ZMM) HIGH_16(LOAD_ZMM) ALL_MASKS(LOAD_MASK)
#define STORE_512	LOW_16(STORE_ZMM) HIGH_16(STORE_ZMM) ALL_MASKS(STORE_MASK)

static void hold_avx512(const struct state *in, struct state *out)
{
	unsigned long spins = SPINS;

	HOLD(LOAD_512, "", STORE_512);
}

static void spoil_avx512(const struct state *in, struct state *out)
{
	unsigned long spins = SPINS;

	HOLD(LOAD_512, "kxorq %%k7, %%k7, %%k7\n\t", STORE_512);
}

static int input_ended(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };

	return poll(&in, 1, 0) != 0;
}

static void fill(struct state *state, uint32_t *seed)
{
	uint8_t *bytes = (uint8_t *)state;
	size_t i;

	for (i = 0; i < sizeof(*state); i++) {
		*seed = *seed * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(*seed >> 24);
	}
	state->mxcsr = ROUND_TO_ZERO;
}

static int changed(const struct state *in, const struct state *out)
{
	int i;

	for (i = 0; i < REGISTERS; i++)
		if (memcmp(in->vector[i], out->vector[i], sizeof(in->vector[i])))
			fprintf(stderr, "vector register %d was changed\n", i);
	for (i = 0; i < MASKS; i++)
		if (in->mask[i] != out->mask[i])
			fprintf(stderr, "mask register %d was changed\n", i);
	if (in->mxcsr != out->mxcsr)
		fprintf(stderr, "MXCSR was changed to %#lx\n", (unsigned long)out->mxcsr);
	return memcmp(in, out, sizeof(*in)) != 0;
}

int main(int argc, char **argv)
{
	void (*hold)(const struct state *in, struct state *out) = hold_avx;
	int spoil = argc > 1 && !strcmp(argv[1], "--spoil");
	struct state in, out;
	uint32_t seed = 1;
	unsigned long looked = 0;

	if (!__builtin_cpu_supports("avx"))
		return 2;
	if (__builtin_cpu_supports("avx512bw"))
		hold = spoil ? spoil_avx512 : hold_avx512;
	else if (spoil)
		hold = spoil_avx;
	do {
		fill(&in, &seed);
		out = in;
		hold(&in, &out);
		looked++;
		if (changed(&in, &out))
			return 1;
	} while (!input_ended());
	printf("%lu\n", looked);
	return 0;
}
