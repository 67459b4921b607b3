// SPDX-License-Identifier: GPL-2.0
/* The command line, word by word. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/ored.h>

#include "oredctl.h"

const char *peek(const struct words *words)
{
	return *words->at;
}

const char *take(struct words *words, const char *what)
{
	if (!*words->at)
		fail(STATUS_USAGE, "%s is missing at the end of the command", what);
	return *words->at++;
}

bool abbreviates(const char *word, const char *full)
{
	size_t len = strlen(word);

	return len && len <= strlen(full) && !memcmp(word, full, len);
}

bool take_if(struct words *words, const char *full)
{
	if (!*words->at || !abbreviates(*words->at, full))
		return false;
	words->at++;
	return true;
}

void take_end(const struct words *words)
{
	if (*words->at)
		fail(STATUS_USAGE, "'%s' is not expected here", *words->at);
}

uint64_t take_number(struct words *words, const char *what, uint64_t least, uint64_t most)
{
	const char *word = take(words, what);
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(word, &end, 0);
	/* strtoull() takes signs and white space, and turns -1 into a large number. */
	if (word[0] < '0' || word[0] > '9' || *end || errno)
		fail(STATUS_USAGE, "%s is a number, not '%s'", what, word);
	if (value < least || value > most)
		fail(STATUS_USAGE, "%s is %" PRIu64 " to %" PRIu64 ", not %s", what, least, most,
		     word);
	return value;
}

bool take_selector(struct words *words, struct selector *selector)
{
	const char *word = peek(words);

	if (!word)
		return false;
	if (!selector->has_group && ((word[0] >= '0' && word[0] <= '9') ||
				     take_if(words, "group"))) {
		selector->group = take_number(words, "the group's id", 0, UINT32_MAX);
		selector->has_group = true;
	} else if (!selector->has_epoch && take_if(words, "epoch")) {
		selector->epoch = take_number(words, "the epoch", 0, UINT64_MAX);
		selector->has_epoch = true;
	} else if (!selector->has_rank && take_if(words, "rank")) {
		selector->rank = take_number(words, "the rank", 0, ORED_MAX_RANKS - 1);
		selector->has_rank = true;
	} else {
		return false;
	}
	return true;
}

int run_command(const struct command *table, struct words *words, const char *usage)
{
	const struct command *command;
	const char *word = peek(words);

	if (!word)
		return table->run(words);
	for (command = table; command->name; command++) {
		if (!abbreviates(word, command->name))
			continue;
		words->at++;
		return command->run(words);
	}
	if (!abbreviates(word, "help"))
		fail(STATUS_USAGE, "'%s' is unknown here: try `help`", word);
	fputs(usage, stdout);
	return STATUS_OK;
}
