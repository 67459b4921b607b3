// SPDX-License-Identifier: GPL-2.0
/*
 * Attaches programs that need the module's types, says so, and when its standard input
 * ends, prints what they have seen. Exit status 2: the types can't be had.
 */

#include <stdio.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "typed.skel.h"

int main(void)
{
	struct typed_bpf *typed = typed_bpf__open_and_load();
	char byte;

	if (!typed || typed_bpf__attach(typed)) {
		puts("refused");
		return 2;
	}
	puts("attached");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	printf("packets %llu\nchunks %llu\ntaken %llu\ntold %u\ngroup %u\n",
	       (unsigned long long)typed->bss->packets, (unsigned long long)typed->bss->chunks,
	       (unsigned long long)typed->bss->taken, typed->bss->told, typed->bss->group);
	typed_bpf__destroy(typed);
	return 0;
}
