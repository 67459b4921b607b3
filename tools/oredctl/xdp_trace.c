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

#include "ored_trace.skel.h"
#include "oredctl.h"
#include "xdp.h"

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
		return "the module is not loaded: after `modprobe ored`, run `oredctl xdp sync`";
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

static int family(void)
{
	FILE *file = fopen("/sys/module/ored/parameters/family", "r");
	int number = -1;

	if (file && fscanf(file, "%d", &number) != 1)
		number = -1;
	if (file)
		fclose(file);
	return number;
}

/* What the module hasn't told of since @since isn't there any more. */
static void forget(uint32_t netns, uint64_t since)
{
	struct ored_x_session key, next, *at = NULL;
	int fd = xdp_map("ored_members");
	static struct ored_x_member m;

	while (!bpf_map_get_next_key(fd, at, &next)) {
		key = next;
		at = &key;
		if (key.netns != netns || bpf_map_lookup_elem(fd, &key, &m))
			continue;
		if (!m.gone && m.told_ns < since)
			bpf_map_delete_elem(fd, &key);
	}
	close(fd);
}

const char *xdp_trace_sync(void)
{
	struct timespec now;
	int fd, number = family();

	if (number < 0 || !attached("on_ored_member"))
		return "the module is not loaded: after `modprobe ored`, run `oredctl xdp sync`";
	clock_gettime(CLOCK_MONOTONIC, &now);
	fd = socket(number, SOCK_SEQPACKET | SOCK_CLOEXEC, ORED_PROTO_REDUCE);
	if (fd < 0)
		fail(STATUS_KERNEL, "a socket of ORED: %s", strerror(errno));
	if (setsockopt(fd, SOL_ORED, ORED_TELL_AGAIN, NULL, 0))
		fail(STATUS_KERNEL, "asking the module for its memberships: %s", strerror(errno));
	close(fd);
	forget(xdp_own_netns(), (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
	return NULL;
}
