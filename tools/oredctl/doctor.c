// SPDX-License-Identifier: GPL-2.0
/*
 * oredctl doctor: looks at what ORED needs on this host, item by item, and says what to
 * type where something is missing. Changes nothing.
 */

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/ored.h>

#include "oredctl.h"
#include "output.h"
#include "xdp.h"

enum verdict {
	FINE,
	HINT,		/* works, but something is worse than it could be */
	WRONG,		/* something can't work */
};

static const char * const verdicts[] = { "ok", "hint", "wrong" };
static bool any_wrong;

static void __attribute__((format(printf, 4, 5)))
say(const char *what, enum verdict verdict, const char *type, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	any_wrong |= verdict == WRONG;
	out_item();
	out_string("check", what, NULL);
	out_string("verdict", verdicts[verdict], NULL);
	out_text("%-5s %-10s ", verdicts[verdict], what);
	out_string("text", text, "");
	if (type) {
		out_string("type", type, NULL);
		out_text(": `%s`", type);
	}
	out_item_end();
}

/* First line of a file; empty if there is none */
static void read_line(const char *path, char *line, size_t room)
{
	FILE *file = fopen(path, "r");

	line[0] = '\0';
	if (file && !fgets(line, (int)room, file))
		line[0] = '\0';
	if (file)
		fclose(file);
	line[strcspn(line, "\n")] = '\0';
}

/* What configuration of modprobe keeps the module away, if any does */
static bool forbidden(char *where, size_t room)
{
	FILE *pipe = popen("modprobe -c 2>/dev/null", "r");
	char line[512], name[64];
	bool found = false;

	while (pipe && !found && fgets(line, sizeof(line), pipe)) {
		found = !strncmp(line, "install ored ", 13) ||
			(sscanf(line, "blacklist %63s", name) == 1 && !strcmp(name, "ored"));
	}
	if (found) {
		line[strcspn(line, "\n")] = '\0';
		snprintf(where, room, "%.200s", line);
	}
	if (pipe) {
		/* Reads to its end, so that it isn't killed for writing to nobody. */
		while (fgets(line, sizeof(line), pipe))
			;
		pclose(pipe);
	}
	return found;
}

static int check_module(void)
{
	char line[64], where[256];

	read_line("/sys/module/ored/parameters/family", line, sizeof(line));
	if (line[0]) {
		say("module", FINE, NULL, "loaded, its socket family is %s", line);
		return atoi(line);
	}
	if (forbidden(where, sizeof(where)))
		say("module", WRONG, "grep -rn ored /etc/modprobe.d /lib/modprobe.d",
		    "not loaded, and modprobe is told not to: '%s'", where);
	else
		say("module", WRONG, "modprobe ored",
		    "not loaded; 'Key was rejected' there means that Secure Boot wants it signed (`mokutil --import`)");
	return -1;
}

static void check_socket(int family)
{
	int fd = socket(family, SOCK_SEQPACKET | SOCK_CLOEXEC, ORED_PROTO_REDUCE);

	if (fd >= 0) {
		say("socket", FINE, NULL, "sockets of the family can be made");
		close(fd);
	} else if (errno == EPERM || errno == EACCES) {
		say("socket", WRONG, NULL,
		    "a seccomp filter or security module refuses family %d (%s): allow that number in the container's profile",
		    family, strerror(errno));
	} else {
		say("socket", WRONG, "dmesg | tail", "socket(%d) says: %s", family,
		    strerror(errno));
	}
}

static void check_capabilities(void)
{
	static const struct {
		int bit;
		const char *name;
		const char *need;
	} caps[] = {
		{ CAP_NET_ADMIN, "CAP_NET_ADMIN",
		  "joining groups that no administrator has set up, and XDP" },
		{ CAP_IPC_LOCK, "CAP_IPC_LOCK",
		  "groups whose slots exceed the limit of locked memory" },
		{ CAP_BPF, "CAP_BPF", "loading BPF programs" },
		{ CAP_PERFMON, "CAP_PERFMON", "BPF programs at tracepoints" },
	};
	FILE *file = fopen("/proc/self/status", "r");
	bool missing = false;
	uint64_t have = 0;
	char line[256];
	size_t i;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %" SCNx64, &have) == 1)
			break;
	if (file)
		fclose(file);
	for (i = 0; i < ARRAY_SIZE(caps); i++) {
		if (have >> caps[i].bit & 1)
			continue;
		missing = true;
		say("rights", HINT, NULL, "without %s: not possible is %s", caps[i].name,
		    caps[i].need);
	}
	if (!missing)
		say("rights", FINE, NULL, "all capabilities that anything here takes");
}

static void check_memory(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    !geteuid())
		say("memory", FINE, NULL, "no limit of locked memory binds this user");
	else
		say("memory", HINT, "ulimit -l unlimited",
		    "slots of a group, about 3 x bucket x (2 x depth + 1), have to fit into %llu KiB of locked memory",
		    (unsigned long long)limit.rlim_cur / 1024);
}

static void check_sysctl(void)
{
	char line[64];

	read_line("/proc/sys/net/ored/loss_target", line, sizeof(line));
	if (line[0])
		say("sysctl", FINE, NULL, "net.ored is there; loss_target is %s ppm", line);
	else
		say("sysctl", WRONG, "mount | grep proc/sys",
		    "no net.ored in this namespace: is /proc/sys hidden?");
}

static void check_bpf(void)
{
	struct statfs fs;
	char line[64];

	if (statfs("/sys/fs/bpf", &fs) || fs.f_type != BPF_FS_MAGIC)
		say("bpf", HINT, "mount -t bpf bpffs /sys/fs/bpf",
		    "no BPF file system, which `oredctl xdp` keeps its programs in");
	else
		say("bpf", FINE, NULL, "the BPF file system is there");
	read_line("/proc/sys/net/core/bpf_jit_enable", line, sizeof(line));
	if (line[0] == '0')
		say("bpf", HINT, "sysctl net.core.bpf_jit_enable=1",
		    "BPF programs are interpreted, which makes each packet some ten times dearer");
	if (access("/sys/kernel/btf/ored", R_OK))
		say("types", HINT, NULL,
		    "the kernel has no type information (BTF) of the module: only programs at its functions need it");
	else
		say("types", FINE, NULL, "the module's type information fits this kernel");
}

/* Would native XDP be refused here? Only what can be seen without trying. */
static void check_interface(const char *name)
{
	struct xdp_place place = { .index = if_nametoindex(name) };
	char why[XDP_WHY_MAX];

	if (!place.index || !strcmp(name, "lo"))
		return;
	snprintf(place.name, sizeof(place.name), "%s", name);
	if (xdp_foresee(&place, why))
		say("xdp", HINT, NULL, "%s would refuse native mode: %s", name, why);
	else
		say("xdp", FINE, NULL, "%s: nothing is known that speaks against native mode",
		    name);
}

static void check_interfaces(void)
{
	struct if_nameindex *all = if_nameindex(), *at;

	for (at = all; at && at->if_index; at++)
		check_interface(at->if_name);
	if (all)
		if_freenameindex(all);
}

int do_doctor(struct words *words)
{
	int family;

	take_end(words);
	out_begin();
	family = check_module();
	if (family >= 0) {
		check_socket(family);
		check_sysctl();
	}
	check_capabilities();
	check_memory();
	check_bpf();
	check_interfaces();
	out_end();
	return any_wrong ? STATUS_KERNEL : STATUS_OK;
}
