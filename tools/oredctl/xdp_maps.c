// SPDX-License-Identifier: GPL-2.0
/* Pins of BPF programs and maps, and what the shared maps hold. */

#include <dirent.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "oredctl.h"
#include "xdp.h"

const char * const xdp_counter_names[ORED_X_COUNTERS] = {
	[ORED_X_PACKETS] = "packets",
	[ORED_X_BYTES] = "bytes",
	[ORED_X_UNKNOWN] = "unknown",
	[ORED_X_TIMED] = "timed",
	[ORED_X_UNSYNCED] = "unsynced",
	[ORED_X_NO_ROOM] = "no_room",
	[ORED_X_STEERED] = "steered",
	[ORED_X_UNSTEERED] = "unsteered",
	[ORED_X_ANSWERED] = "answered",
	[ORED_X_DROP_GROUP] = "drop_group",
	[ORED_X_DROP_EPOCH] = "drop_epoch",
	[ORED_X_DROP_MEMBER] = "drop_member",
	[ORED_X_DROP_SEALED] = "drop_sealed",
	[ORED_X_DROP_LENGTH] = "drop_length",
	[ORED_X_DROP_VERSION] = "drop_version",
	[ORED_X_EVENTS] = "events",
	[ORED_X_EVENTS_LOST] = "events_lost",
	[ORED_X_MEMBERS_FULL] = "members_full",
};

uint32_t xdp_own_netns(void)
{
	struct stat st;

	if (stat("/proc/thread-self/ns/net", &st))
		fail(STATUS_KERNEL, "/proc/thread-self/ns/net: %s", strerror(errno));
	return (uint32_t)st.st_ino;
}

int xdp_map_if_any(const char *name)
{
	char path[XDP_PATH_MAX];

	snprintf(path, sizeof(path), XDP_FOLDER "/%s", name);
	return bpf_obj_get(path);
}

int xdp_map(const char *name)
{
	int fd = xdp_map_if_any(name);

	if (fd < 0 && errno == ENOENT)
		fail(STATUS_KERNEL, "no program is attached: `oredctl xdp attach IFACE` does that");
	if (fd < 0)
		fail(STATUS_KERNEL, XDP_FOLDER "/%s: %s", name, strerror(errno));
	return fd;
}

void xdp_link_path(const struct xdp_place *place, char path[XDP_PATH_MAX])
{
	snprintf(path, XDP_PATH_MAX, XDP_FOLDER "/link_%u_%u", place->netns, place->index);
}

int xdp_each_link(int (*each)(const char *path, uint32_t netns, unsigned int index, void *arg),
		  void *arg)
{
	DIR *folder = opendir(XDP_FOLDER);
	struct dirent *entry;
	int ret = 0;

	while (folder && !ret && (entry = readdir(folder))) {
		char path[XDP_PATH_MAX];
		unsigned int netns, index;

		if (sscanf(entry->d_name, "link_%u_%u", &netns, &index) != 2)
			continue;
		snprintf(path, sizeof(path), XDP_FOLDER "/%.200s", entry->d_name);
		ret = each(path, netns, index, arg);
	}
	if (folder)
		closedir(folder);
	return ret;
}

void xdp_each_member(void (*each)(int map, const struct ored_x_session *key,
				  const struct ored_x_member *m, void *arg), void *arg)
{
	struct ored_x_session key, next, *at = NULL;
	int map = xdp_map("ored_members");
	static struct ored_x_member m;

	while (!bpf_map_get_next_key(map, at, &next)) {
		key = next;
		at = &key;
		if (!bpf_map_lookup_elem(map, &key, &m) && !m.gone)
			each(map, &key, &m, arg);
	}
	close(map);
}

void xdp_need_folder(void)
{
	struct statfs fs;

	if (statfs("/sys/fs/bpf", &fs) || fs.f_type != BPF_FS_MAGIC)
		fail(STATUS_KERNEL, "/sys/fs/bpf is no BPF file system: `mount -t bpf bpffs /sys/fs/bpf`");
	if (mkdir(XDP_FOLDER, 0700) && errno != EEXIST)
		fail(STATUS_KERNEL, XDP_FOLDER ": %s", strerror(errno));
}

void xdp_remove_all(void)
{
	DIR *folder = opendir(XDP_FOLDER);
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		if (entry->d_name[0] != '.' &&
		    unlinkat(dirfd(folder), entry->d_name, 0))
			fail(STATUS_KERNEL, XDP_FOLDER "/%s: %s", entry->d_name, strerror(errno));
	}
	if (folder)
		closedir(folder);
	if (rmdir(XDP_FOLDER) && errno != ENOENT)
		fail(STATUS_KERNEL, XDP_FOLDER ": %s", strerror(errno));
}

struct ored_x_config xdp_config(void)
{
	struct ored_x_config config;
	int fd = xdp_map("ored_config");
	__u32 zero = 0;

	if (bpf_map_lookup_elem(fd, &zero, &config))
		fail(STATUS_KERNEL, "reading ored_config: %s", strerror(errno));
	close(fd);
	return config;
}

void xdp_set_config(const struct ored_x_config *config)
{
	int fd = xdp_map("ored_config");
	__u32 zero = 0;

	if (bpf_map_update_elem(fd, &zero, config, BPF_ANY))
		fail(STATUS_KERNEL, "writing ored_config: %s", strerror(errno));
	close(fd);
}

void xdp_counters(struct ored_x_counters *sum)
{
	int cpus = libbpf_num_possible_cpus(), fd = xdp_map("ored_counters"), cpu, i;
	struct ored_x_counters *all;
	__u32 zero = 0;

	memset(sum, 0, sizeof(*sum));
	all = cpus > 0 ? calloc((size_t)cpus, sizeof(*all)) : NULL;
	if (!all || bpf_map_lookup_elem(fd, &zero, all))
		fail(STATUS_KERNEL, "reading ored_counters: %s", strerror(errno));
	for (cpu = 0; cpu < cpus; cpu++)
		for (i = 0; i < ORED_X_COUNTERS; i++)
			sum->value[i] += all[cpu].value[i];
	free(all);
	close(fd);
}
