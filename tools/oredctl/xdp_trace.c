// SPDX-License-Identifier: GPL-2.0
/*
 * The programs on the module's tracepoints, which keep the maps true. While they are
 * attached the module can't be unloaded.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/ored.h>
#include <ored.h>

#include "ored_trace.skel.h"
#include "oredctl.h"
#include "xdp.h"

#define NOT_LOADED "the module is not loaded: after `modprobe ored`, run `oredctl xdp sync`"

static void link_path(const char *program, char path[XDP_PATH_MAX])
{
	snprintf(path, XDP_PATH_MAX, XDP_FOLDER "/%s", program);
}

/* Has it been attached before? A link whose module has gone would not be here. */
static bool attached(const char *program)
{
	char path[XDP_PATH_MAX];
	int fd;

	link_path(program, path);
	fd = bpf_obj_get(path);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static const char *attach_one(struct bpf_program *program)
{
	const char *name = bpf_program__name(program);
	char path[XDP_PATH_MAX];
	struct bpf_link *link;

	if (attached(name))
		return NULL;
	link = bpf_program__attach(program);
	if (!link && errno == ENOENT)
		return NOT_LOADED;
	link_path(name, path);
	if (!link || bpf_link__pin(link, path))
		fail(STATUS_KERNEL, "attaching %s: %s", name, strerror(errno));
	bpf_link__destroy(link);
	return NULL;
}

const char *xdp_trace_attach(void)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .pin_root_path = XDP_FOLDER);
	struct ored_trace_bpf *trace = ored_trace_bpf__open_opts(&opts);
	struct bpf_program *program;
	const char *why = NULL;

	if (!trace || ored_trace_bpf__load(trace))
		fail(STATUS_KERNEL, "loading the programs for the module's tracepoints: %s",
		     strerror(errno));
	bpf_object__for_each_program(program, trace->obj) {
		why = attach_one(program);
		if (why)
			break;
	}
	ored_trace_bpf__destroy(trace);
	return why;
}

static uint64_t misses_of(const char *program)
{
	struct bpf_link_info link = {};
	struct bpf_prog_info prog = {};
	__u32 len = sizeof(link);
	char path[XDP_PATH_MAX];
	uint64_t misses = 0;
	int fd;

	link_path(program, path);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return 0;
	if (bpf_obj_get_info_by_fd(fd, &link, &len))
		link.prog_id = 0;
	close(fd);
	fd = link.prog_id ? bpf_prog_get_fd_by_id(link.prog_id) : -1;
	len = sizeof(prog);
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &prog, &len))
		misses = prog.recursion_misses;
	if (fd >= 0)
		close(fd);
	return misses;
}

uint64_t xdp_trace_misses(void)
{
	return misses_of("on_ored_member") + misses_of("on_ored_refused") +
	       misses_of("on_ored_chunk");
}

/* What the module has to tell of again */
struct told {
	uint32_t netns;
	uint64_t since;
};

/* What it hasn't told of isn't there any more. */
static void forget(int map, const struct ored_x_session *key, const struct ored_x_member *m,
		   void *arg)
{
	const struct told *told = arg;

	if (key->netns == told->netns && m->told_ns < told->since)
		bpf_map_delete_elem(map, key);
}

const char *xdp_trace_sync(void)
{
	struct told told = { .netns = xdp_own_netns() };
	struct timespec now;
	int fd;

	clock_gettime(CLOCK_MONOTONIC, &now);
	told.since = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (!attached("on_ored_member"))
		return NOT_LOADED;
	fd = ored_socket(ORED_PROTO_REDUCE);
	if (fd == -EAFNOSUPPORT)
		return NOT_LOADED;
	if (fd < 0)
		fail(STATUS_KERNEL, "a socket of ORED: %s", strerror(-fd));
	if (setsockopt(fd, SOL_ORED, ORED_TELL_AGAIN, NULL, 0))
		fail(STATUS_KERNEL, "asking the module for its memberships: %s", strerror(errno));
	close(fd);
	xdp_each_member(forget, &told);
	return NULL;
}
