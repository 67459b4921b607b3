/* SPDX-License-Identifier: GPL-2.0 */
/*
 * oredctl: looks at ORED and administers it, with iproute2's manners. One file
 * for each object; a new one is a function in the table of main.c.
 */
#ifndef OREDCTL_H
#define OREDCTL_H

#include <stdbool.h>
#include <stdint.h>

/* What oredctl ends with, as ip(8) does */
enum status {
	STATUS_OK	= 0,
	STATUS_USAGE	= 1,	/* the command line makes no sense */
	STATUS_KERNEL	= 2,	/* the kernel refused, or has no such thing */
};

/* Options before the object */
struct options {
	bool		json;
	bool		pretty;
	bool		details;
	const char	*netns;
};

extern struct options options;

/* Says why on standard error and ends the program. */
void __attribute__((noreturn, format(printf, 2, 3)))
fail(enum status status, const char *format, ...);

/*
 * words.c: the command line, word by word. A word that can't be understood ends
 * the program.
 */

/**
 * struct words - what is left of the command line
 * @at: the next word; NULL behind the last
 */
struct words {
	char	**at;
};

/* Is there another word? It isn't taken. */
const char *peek(const struct words *words);
/* Takes the next word; @what names it for the complaint if there is none. */
const char *take(struct words *words, const char *what);
/* Takes the next word if it is @full or an abbreviation of it. */
bool take_if(struct words *words, const char *full);
/* Nothing may be left. */
void take_end(const struct words *words);
/* Is @word @full or an abbreviation of it? */
bool abbreviates(const char *word, const char *full);
/* Takes a number from @least to @most, in C's notation; @what names it. */
uint64_t take_number(struct words *words, const char *what, uint64_t least, uint64_t most);

/**
 * struct command - a verb of an object, or an object
 * @name: in full; it may be abbreviated, and the first that fits is meant
 * @run: does it; @words are those behind its name. Return: enum status
 */
struct command {
	const char	*name;
	int		(*run)(struct words *words);
};

/*
 * Takes a command's name and runs it. @table ends with an empty entry; without a
 * word the first is meant. `help` prints @usage.
 */
int run_command(const struct command *table, struct words *words, const char *usage);

/**
 * struct selector - which groups and ranks are meant
 * @has_group: @group is given
 * @has_epoch: @epoch is
 * @has_rank: @rank is
 * @group: id
 * @epoch: of the run
 * @rank: a rank that runs here
 */
struct selector {
	bool		has_group;
	bool		has_epoch;
	bool		has_rank;
	uint32_t	group;
	uint64_t	epoch;
	uint32_t	rank;
};

/* Takes `[group] GROUP`, `epoch EPOCH` or `rank RANK`, if the next word is one. */
bool take_selector(struct words *words, struct selector *selector);

/* netns.c: moves to a namespace made by `ip netns`. */
void enter_netns(const char *name);

/*
 * Objects: each is a do_NAME() in a file NAME.c, declared here, with a line in the
 * table and in the usage of main.c.
 */
int do_group(struct words *words);
int do_peer(struct words *words);
int do_stat(struct words *words);
int do_monitor(struct words *words);

int do_xdp(struct words *words);
int do_doctor(struct words *words);

#endif /* OREDCTL_H */
