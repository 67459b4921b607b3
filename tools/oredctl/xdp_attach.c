// SPDX-License-Identifier: GPL-2.0
/* Attaching the XDP program to interfaces, and taking it away. */

#include <errno.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ored_xdp.skel.h"
#include "oredctl.h"
#include "output.h"
#include "xdp.h"

#define PLACES_MAX 64

static struct xdp_place place_of(const char *name)
{
	struct xdp_place place = { .index = if_nametoindex(name), .netns = xdp_own_netns() };

	if (!place.index)
		fail(STATUS_KERNEL, "there is no interface '%s' in this namespace", name);
	snprintf(place.name, sizeof(place.name), "%s", name);
	return place;
}

static bool take_switch(struct words *words, const char *what)
{
	if (take_if(words, "on"))
		return true;
	if (take_if(words, "off"))
		return false;
	fail(STATUS_USAGE, "%s is on or off", what);
}

static enum xdp_mode take_mode(struct words *words)
{
	if (take_if(words, "auto"))
		return XDP_MODE_AUTO;
	if (take_if(words, "native"))
		return XDP_MODE_NATIVE;
	if (take_if(words, "skb"))
		return XDP_MODE_SKB;
	fail(STATUS_USAGE, "mode is auto, native or skb");
}

/* Loads a copy of the program for interfaces of this namespace. */
static struct ored_xdp_bpf *load(uint32_t netns)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .pin_root_path = XDP_FOLDER);
	struct ored_xdp_bpf *xdp = ored_xdp_bpf__open_opts(&opts);

	if (!xdp)
		fail(STATUS_KERNEL, "opening the XDP program: %s", strerror(errno));
	xdp->rodata->ored_netns = netns;
	if (ored_xdp_bpf__load(xdp)) {
		if (errno == EPERM)
			fail(STATUS_KERNEL,
			     "loading BPF programs takes CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON: run it as root of the host");
		fail(STATUS_KERNEL, "loading the XDP program: %s", strerror(errno));
	}
	return xdp;
}

static __u32 flags_of(enum xdp_mode mode)
{
	return mode == XDP_MODE_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
}

/* A link tells its errno only; by netlink the driver's sentence comes with it. */
static void ask_why(int prog, const struct xdp_place *place, enum xdp_mode mode)
{
	__u32 flags = flags_of(mode) | XDP_FLAGS_UPDATE_IF_NOEXIST;

	if (!bpf_xdp_attach((int)place->index, prog, flags, NULL))
		bpf_xdp_detach((int)place->index, flags_of(mode), NULL);
}

/* Return: a link's descriptor, or -1 with the reason in @why */
static int try_mode(int prog, const struct xdp_place *place, enum xdp_mode mode,
		    char why[XDP_WHY_MAX])
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = flags_of(mode));
	int fd = bpf_link_create(prog, (int)place->index, BPF_XDP, &opts), err = errno;

	if (fd >= 0)
		return fd;
	ask_why(prog, place, mode);
	xdp_explain(place, mode, err, xdp_kernel_says(), why);
	return -1;
}

static void told(const struct xdp_place *place, const char *mode, const char *action,
		 const char *why)
{
	out_item();
	out_string("interface", place->name, "");
	out_string("action", action, ": ");
	out_string("mode", mode, ", mode=");
	if (why) {
		out_text(" (native refused: %s)", why);
		out_string("native_refused", why, NULL);
	}
	out_item_end();
}

static const char *mode_now(unsigned int index)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	if (bpf_xdp_query((int)index, 0, &query))
		return "unknown";
	switch (query.attach_mode) {
	case XDP_ATTACHED_DRV:
		return "native";
	case XDP_ATTACHED_SKB:
		return "skb";
	case XDP_ATTACHED_NONE:
		return "none";
	default:
		return "other";
	}
}

/* A link that is there already gets the new program between two packets. */
static bool replace(const struct ored_xdp_bpf *xdp, const struct xdp_place *place,
		    enum xdp_mode mode)
{
	const char *now = mode_now(place->index);
	char path[XDP_PATH_MAX];
	int fd, err;

	xdp_link_path(place, path);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return false;
	if (mode != XDP_MODE_AUTO && strcmp(now, mode == XDP_MODE_SKB ? "skb" : "native"))
		fail(STATUS_KERNEL,
		     "%s has the program in mode %s, and a mode can't be changed without a gap: `oredctl xdp detach %s` first",
		     place->name, now, place->name);
	err = bpf_link_update(fd, bpf_program__fd(xdp->progs.ored_xdp), NULL);
	close(fd);
	/* An interface that has gone, or is another by now, leaves a dead link. */
	if (err && (errno == ENOLINK || errno == ENODEV)) {
		unlink(path);
		return false;
	}
	if (err)
		fail(STATUS_KERNEL, "replacing the program of %s: %s", place->name,
		     strerror(errno));
	told(place, now, "replaced", NULL);
	return true;
}

static int any(const char *path, uint32_t netns, unsigned int index, void *arg)
{
	(void)path;
	(void)netns;
	(void)index;
	(void)arg;
	return 1;
}

/* Takes away the links of interfaces that have gone. */
static int prune(const char *path, uint32_t netns, unsigned int index, void *arg)
{
	struct bpf_link_info info = {};
	__u32 len = sizeof(info);
	int fd = bpf_obj_get(path);

	(void)netns;
	(void)index;
	(void)arg;
	if (fd < 0)
		return 0;
	if (!bpf_obj_get_info_by_fd(fd, &info, &len) && !info.xdp.ifindex)
		unlink(path);
	close(fd);
	return 0;
}

/* Without interfaces nothing is left to be kept true. */
static void tidy(void)
{
	xdp_each_link(prune, NULL);
	if (!xdp_each_link(any, NULL))
		xdp_remove_all();
}

static void __attribute__((noreturn)) give_up(const struct xdp_place *place, const char *what,
					      const char *why)
{
	tidy();
	fail(STATUS_KERNEL, "%s refuses %s: %s", place->name, what, why);
}

static void attach_one(const struct xdp_place *place, enum xdp_mode mode)
{
	struct ored_xdp_bpf *xdp = load(place->netns);
	int prog = bpf_program__fd(xdp->progs.ored_xdp), fd = -1;
	enum xdp_mode took = XDP_MODE_NATIVE;
	char why[XDP_WHY_MAX], path[XDP_PATH_MAX];
	bool refused = false;

	if (replace(xdp, place, mode)) {
		ored_xdp_bpf__destroy(xdp);
		return;
	}
	if (mode != XDP_MODE_SKB) {
		fd = try_mode(prog, place, XDP_MODE_NATIVE, why);
		refused = fd < 0;
		if (refused && mode == XDP_MODE_NATIVE)
			give_up(place, "native mode", why);
	}
	if (fd < 0) {
		char again[XDP_WHY_MAX];

		took = XDP_MODE_SKB;
		fd = try_mode(prog, place, XDP_MODE_SKB, again);
		if (fd < 0)
			give_up(place, "the program", again);
	}
	xdp_link_path(place, path);
	if (bpf_obj_pin(fd, path))
		fail(STATUS_KERNEL, "pinning %s: %s", path, strerror(errno));
	close(fd);
	told(place, took == XDP_MODE_SKB ? "skb" : "native", "attached", refused ? why : NULL);
	ored_xdp_bpf__destroy(xdp);
}

/* Measuring and the shield are on from the first attachment, unless it says else. */
static void set_flags(bool first, int shield, int measure)
{
	struct ored_x_config config = xdp_config();

	if (first)
		config.flags = ORED_X_MEASURE | ORED_X_SHIELD;
	if (shield >= 0)
		config.flags = (config.flags & ~ORED_X_SHIELD) | (shield ? ORED_X_SHIELD : 0);
	if (measure >= 0)
		config.flags = (config.flags & ~ORED_X_MEASURE) | (measure ? ORED_X_MEASURE : 0);
	xdp_set_config(&config);
}

int do_xdp_attach(struct words *words)
{
	struct xdp_place places[PLACES_MAX];
	enum xdp_mode mode = XDP_MODE_AUTO;
	int shield = -1, measure = -1, fd;
	unsigned int n = 0, i;
	const char *why;
	bool first;

	while (peek(words)) {
		if (n && take_if(words, "mode"))
			mode = take_mode(words);
		else if (n && take_if(words, "shield"))
			shield = take_switch(words, "shield");
		else if (n && take_if(words, "measure"))
			measure = take_switch(words, "measure");
		else if (n < PLACES_MAX)
			places[n++] = place_of(take(words, "an interface"));
		else
			fail(STATUS_USAGE, "at most %d interfaces at once", PLACES_MAX);
	}
	if (!n)
		fail(STATUS_USAGE, "an interface is missing at the end of the command");
	xdp_need_folder();
	xdp_each_link(prune, NULL);
	fd = xdp_map_if_any("ored_config");
	first = fd < 0;
	if (fd >= 0)
		close(fd);
	/* The maps first, so that the program has something to go by. */
	why = xdp_trace_attach();
	if (!why)
		why = xdp_trace_sync();
	out_begin();
	set_flags(first, shield, measure);
	for (i = 0; i < n; i++)
		attach_one(&places[i], mode);
	out_end();
	if (why)
		fprintf(stderr, "oredctl: nothing is known of groups yet: %s\n", why);
	return STATUS_OK;
}

static void detach_one(const struct xdp_place *place)
{
	char path[XDP_PATH_MAX];

	xdp_link_path(place, path);
	if (unlink(path) && errno == ENOENT)
		fail(STATUS_KERNEL, "%s has no program of ours", place->name);
	else if (access(path, F_OK) == 0)
		fail(STATUS_KERNEL, "%s: %s", path, strerror(errno));
}

int do_xdp_detach(struct words *words)
{
	if (!peek(words))
		fail(STATUS_USAGE, "an interface, or `all`, is missing at the end of the command");
	if (!strcmp(peek(words), "all")) {
		words->at++;
		take_end(words);
		xdp_remove_all();
		return STATUS_OK;
	}
	while (peek(words)) {
		struct xdp_place place = place_of(take(words, "an interface"));

		detach_one(&place);
	}
	tidy();
	return STATUS_OK;
}

int do_xdp_sync(struct words *words)
{
	const char *why;

	take_end(words);
	close(xdp_map("ored_config"));
	why = xdp_trace_attach();
	if (!why)
		why = xdp_trace_sync();
	if (why)
		fail(STATUS_KERNEL, "%s", why);
	return STATUS_OK;
}

static int show_link(const char *path, uint32_t netns, unsigned int index, void *arg)
{
	bool here = netns == *(uint32_t *)arg;
	struct bpf_link_info info = {};
	__u32 len = sizeof(info);
	char name[IF_NAMESIZE];
	int fd = bpf_obj_get(path);

	if (fd < 0)
		return 0;
	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		memset(&info, 0, sizeof(info));
	close(fd);
	out_item();
	/* Names are only known in the namespace that we are in. */
	if (here && info.xdp.ifindex && if_indextoname(index, name))
		out_string("interface", name, "");
	else
		out_u64("index", index, "interface ");
	out_u64("netns", netns, " netns ");
	if (!info.xdp.ifindex)
		out_bool("dead", true, ", whose interface has gone");
	else if (here)
		out_string("mode", mode_now(index), " mode ");
	out_u64("program", info.prog_id, " program ");
	out_item_end();
	return 0;
}

static void show_member(int map, const struct ored_x_session *key,
			const struct ored_x_member *m, void *arg)
{
	(void)map;
	(void)arg;
	out_item();
	out_u64("group", m->group, "group ");
	out_u64("rank", m->rank, " rank ");
	out_u64("ranks", m->nranks, " of ");
	out_u64("epoch", m->epoch, " epoch ");
	out_u64("port", m->port, " port ");
	out_u64("done", m->retained, " ops done with ");
	out_u64("netns", key->netns, " netns ");
	out_item_end();
}

int do_xdp_status(struct words *words)
{
	struct ored_x_config config = xdp_config();
	uint32_t netns = xdp_own_netns();
	struct ored_x_counters sum;
	unsigned int i;

	take_end(words);
	xdp_counters(&sum);
	out_begin();
	out_item();
	out_bool("measure", config.flags & ORED_X_MEASURE, "measure ");
	out_bool("shield", config.flags & ORED_X_SHIELD, "shield ");
	out_bool("steer", config.flags & ORED_X_STEER, "steer ");
	out_open("counters");
	for (i = 0; i < ORED_X_COUNTERS; i++) {
		if (options.json || sum.value[i])
			out_text("\n  %-13s", xdp_counter_names[i]);
		if (options.json || sum.value[i])
			out_u64(xdp_counter_names[i], sum.value[i], "");
	}
	out_close();
	out_u64("misses", xdp_trace_misses(), "\n  misses       ");
	out_bool("types", !access("/sys/kernel/btf/ored", R_OK), NULL);
	if (access("/sys/kernel/btf/ored", R_OK))
		out_text("\nthe module has no type information (BTF) for this kernel, or isn't loaded: all of this works, fentry at its functions doesn't");
	out_item_end();
	xdp_each_link(show_link, &netns);
	xdp_each_member(show_member, NULL);
	out_end();
	return STATUS_OK;
}
