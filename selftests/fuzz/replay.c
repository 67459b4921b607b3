// SPDX-License-Identifier: GPL-2.0
/* Gives a fuzzer all files of its corpus, each cut to every length too. */

#include <dirent.h>
#include <limits.h>

#include "fuzz.h"
#include "../unit/tap.h"

#define INPUT_MAX	4096

static void replay(const char *path)
{
	u8 buffer[INPUT_MAX];
	FILE *file = fopen(path, "rb");
	size_t len, cut;

	CHECK(file, "%s", path);
	if (!file)
		return;
	len = fread(buffer, 1, sizeof(buffer), file);
	CHECK(len > 0 && feof(file), "%s is empty or too long", path);
	fclose(file);
	for (cut = 0; cut <= len; cut++) {
		u8 *exact = malloc(cut);

		memcpy(exact, buffer, cut);
		LLVMFuzzerTestOneInput(exact, cut);
		free(exact);
	}
}

static void replay_corpus(void)
{
	DIR *dir = opendir(CORPUS);
	struct dirent *entry;
	char path[PATH_MAX];
	u32 files = 0;

	CHECK(dir, "%s", CORPUS);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", CORPUS, entry->d_name);
		replay(path);
		files++;
	}
	if (dir)
		closedir(dir);
	CHECK(files >= 5, "%u files in %s", files, CORPUS);
}

__attribute__((constructor)) static void replay_register(void)
{
	static struct tap_test test = { "fuzz_" NAME "__corpus", replay_corpus, NULL };

	*tap_last = &test;
	tap_last = &test.next;
	tap_count++;
}

TAP_MAIN
