/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Talking with the module by generic netlink. What goes wrong ends the program,
 * with the kernel's own sentence where it has one.
 */
#ifndef OREDCTL_GENL_H
#define OREDCTL_GENL_H

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdint.h>

/* Where a message's attributes begin */
#define GENL_HEADER sizeof(struct genlmsghdr)

/**
 * struct genl - a connection
 * @nl: the socket
 * @family: number of the family
 * @events: its multicast group
 * @seq: of the last request
 * @request: the request that is being made
 */
struct genl {
	struct mnl_socket	*nl;
	uint16_t		family;
	uint32_t		events;
	uint32_t		seq;
	uint8_t			request[32768];
};

typedef void (*genl_sink)(const struct nlmsghdr *msg, void *arg);

/*
 * To the family @name, in the namespace we are in. @genl is zero, but for a request
 * that may have been made already.
 */
void genl_open(struct genl *genl, const char *name);
void genl_close(struct genl *genl);

/*
 * Begins a request, to which attributes are added by mnl_attr_put*(); there is
 * room for all that the module takes.
 */
struct nlmsghdr *genl_request(struct genl *genl, uint8_t command, uint16_t flags);
/* Sends the request and waits until it is done; @sink, if any, gets the answer. */
void genl_do(struct genl *genl, genl_sink sink, void *arg);
/*
 * Sends the request as a dump. If something changes meanwhile it is asked for
 * again, so that @sink sees one state, or is told on standard error that it doesn't.
 */
void genl_dump(struct genl *genl, genl_sink sink, void *arg);
/* Gives all events to @sink, for ever. */
void __attribute__((noreturn)) genl_listen(struct genl *genl, genl_sink sink, void *arg);

/* Sorts a message's, or a nest's, attributes by type; those above @max are left out. */
void genl_sort(const struct nlmsghdr *msg, const struct nlattr **table, uint16_t max);
void genl_sort_nest(const struct nlattr *nest, const struct nlattr **table, uint16_t max);

/* An attribute's value; 0 if it is absent or too short for that */
uint64_t attr_u64(const struct nlattr *attr);

#endif /* OREDCTL_GENL_H */
