/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Everything that `oredctl xdp` shares. Programs and maps live in pins below
 * XDP_FOLDER, so nothing has to run for them to work: the maps by their names, a
 * link for each interface, and one for each tracepoint.
 */
#ifndef OREDCTL_XDP_H
#define OREDCTL_XDP_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../bpf/maps.h"

#define XDP_FOLDER	"/sys/fs/bpf/ored"
#define XDP_PATH_MAX	256
#define XDP_WHY_MAX	512

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif

/* How a program is attached to an interface */
enum xdp_mode {
	XDP_MODE_AUTO,
	XDP_MODE_NATIVE,
	XDP_MODE_SKB,
};

/**
 * struct xdp_place - where a program is, or shall be
 * @name: of the interface, in the namespace we are in
 * @index: of the interface
 * @netns: inode of the namespace
 */
struct xdp_place {
	char		name[IF_NAMESIZE];
	unsigned int	index;
	uint32_t	netns;
};

/* xdp_maps.c: pins */

/* Inode of the namespace that we are in */
uint32_t xdp_own_netns(void);
/* The pinned map of that name; if there is none, ends the program saying so. */
int xdp_map(const char *name);
/* The same; -1 if there is none */
int xdp_map_if_any(const char *name);
void xdp_link_path(const struct xdp_place *place, char path[XDP_PATH_MAX]);
/* Calls @each with all pinned links of interfaces, until it returns something else than 0. */
int xdp_each_link(int (*each)(const char *path, uint32_t netns, unsigned int index, void *arg),
		  void *arg);
/*
 * Calls @each with all memberships that are not known to have gone; it may delete the
 * one that it is called with from @map.
 */
void xdp_each_member(void (*each)(int map, const struct ored_x_session *key,
				  const struct ored_x_member *m, void *arg), void *arg);
/* Sees to it that pins can be made, or ends the program with what to type. */
void xdp_need_folder(void);
/* Removes everything that is pinned. */
void xdp_remove_all(void);
struct ored_x_config xdp_config(void);
void xdp_set_config(const struct ored_x_config *config);
/* The sum over all CPUs */
void xdp_counters(struct ored_x_counters *sum);
extern const char * const xdp_counter_names[ORED_X_COUNTERS];

/* xdp_trace.c: the module's tracepoints */

/*
 * Attaches the programs that keep the maps true. Return: NULL, or a sentence that
 * says why the maps know of nothing
 */
const char *xdp_trace_attach(void);
/* Events that the kernel had to keep from the programs, of all of them */
uint64_t xdp_trace_misses(void);
/*
 * Has the module tell of all memberships of this namespace, and forgets those that it
 * doesn't tell of. Return: NULL, or why not
 */
const char *xdp_trace_sync(void);

/* xdp_refusal.c: what drivers mean */

/* Writes one sentence with the limit and the command that fixes it. */
void xdp_explain(const struct xdp_place *place, enum xdp_mode mode, int err,
		 const char *kernel, char why[XDP_WHY_MAX]);
/* Is there something that native mode would founder on? Nothing is tried. */
bool xdp_foresee(const struct xdp_place *place, char why[XDP_WHY_MAX]);
/* What the kernel says on standard error by libbpf, kept instead of printed */
const char *xdp_kernel_says(void);
void xdp_listen(void);
/* The driver's name, as ethtool has it; empty if it has none */
void xdp_driver(const struct xdp_place *place, char name[32]);
/* Is the transmit checksum on? -1: not known */
int xdp_tx_checksum(const char *name);

/* xdp_quantile.c: figures of a histogram */

/* The time that @share of 0 to 1 of all are within, in ns; 0 if there are none */
uint64_t xdp_quantile(const struct ored_x_latency *l, double share);
void xdp_add(struct ored_x_latency *sum, const struct ored_x_latency *more);
void xdp_subtract(struct ored_x_latency *from, const struct ored_x_latency *what);
/* A time with a unit, three digits or more */
void xdp_show_time(uint64_t ns, char text[16]);
/* The distribution as @rows lines of bars */
void xdp_draw(const struct ored_x_latency *l, unsigned int rows);

/* xdp_latency.c */

/* All flows' latencies of one kind, added up */
void xdp_latency_total(enum ored_x_what what, struct ored_x_latency *sum);

/* Commands */
struct words;
int do_xdp_attach(struct words *words);
int do_xdp_detach(struct words *words);
int do_xdp_status(struct words *words);
int do_xdp_sync(struct words *words);
int do_xdp_latency(struct words *words);
int do_xdp_steer(struct words *words);

#endif /* OREDCTL_XDP_H */
