// SPDX-License-Identifier: GPL-2.0
/*
 * First stage of a User-Mode Linux guest: what guest-stage1 is to QEMU's, and
 * the mounts of guest-init besides. Starting a program takes this kernel, with
 * all its checkers, some 30 ms; so that a boot takes a second and not four, all
 * of it is done by one program.
 *
 * The first root is a folder with
 *
 *	ored/		becomes /run/ored: orders of guest-init
 *	visible		paths below /tmp and the like that the command must see
 *	modules-from	folder that becomes /lib/modules
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

/* Serial lines, in the order of the kernel's arguments, serve as ports. */
static const char *const ports[] = { "stdout", "stderr", "status", "coverage" };

/* Folders that belong to the running machine; the guest has its own. */
static const char *const own[] = { "tmp", "var/tmp", "run" };

/* The end of process 1 is a panic, and the console says why. */
static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *format, ...)
{
	const char *why = strerror(errno);
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf(": %s\n", why);
	fflush(stdout);
	_exit(1);
}

/* Joins path parts; the result lives until the fourth next call. */
static char *join(const char *a, const char *b)
{
	static char buffers[4][PATH_MAX];
	static int next;
	char *to = buffers[next++ % 4];

	if (snprintf(to, PATH_MAX, "%s/%s", a, b) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		die("%s", b);
	}
	return to;
}

/* Makes a folder and those above it, below base. */
static void make_folder(const char *base, const char *path)
{
	char *full = join(base, path), *p = full + strlen(base) + 1;

	while ((p = strchr(p, '/'))) {
		*p = 0;
		if (mkdir(full, 0755) && errno != EEXIST)
			die("mkdir %s", full);
		*p++ = '/';
	}
	if (mkdir(full, 0755) && errno != EEXIST)
		die("mkdir %s", full);
}

static void mount_at(const char *type, const char *where, const char *options)
{
	if (mkdir(where, 0755) && errno != EEXIST)
		die("mkdir %s", where);
	if (mount(type, where, type, 0, options))
		die("mount %s on %s", type, where);
}

static void bind_mount(const char *from, const char *to)
{
	if (mount(from, to, NULL, MS_BIND, NULL))
		die("bind %s on %s", from, to);
}

/* A file system in memory over the machine's root, which stays as it is. */
static void stack_root(void)
{
	mount_at("hostfs", "/ro", "/");
	if (mount(NULL, "/ro", NULL, MS_REMOUNT | MS_RDONLY, NULL))
		die("remount /ro");
	mount_at("tmpfs", "/rw", NULL);
	make_folder("/rw", "upper");
	make_folder("/rw", "work");
	mount_at("overlay", "/new",
		 "lowerdir=/ro,upperdir=/rw/upper,workdir=/rw/work");
}

static void hide_own(void)
{
	size_t i;

	for (i = 0; i < sizeof(own) / sizeof(*own); i++) {
		make_folder("/keep", own[i]);
		bind_mount(join("/new", own[i]), join("/keep", own[i]));
		mount_at("tmpfs", join("/new", own[i]), "mode=1777");
	}
}

/* Brings back what the command needs to see in a folder that is hidden. */
static void show(const char *path)
{
	struct stat status;
	size_t i, n;
	int fd;

	for (i = 0; i < sizeof(own) / sizeof(*own); i++) {
		n = strlen(own[i]);
		if (!strncmp(path, own[i], n) && (!path[n] || path[n] == '/'))
			break;
	}
	if (i == sizeof(own) / sizeof(*own))
		return;
	if (!path[n]) {
		if (umount(join("/new", path)))
			die("umount %s", path);
		return;
	}
	if (stat(join("/keep", path), &status))
		die("%s", path);
	if (S_ISDIR(status.st_mode)) {
		make_folder("/new", path);
	} else {
		char *parent = strdup(path);

		*strrchr(parent, '/') = 0;
		make_folder("/new", parent);
		free(parent);
		fd = open(join("/new", path), O_CREAT | O_WRONLY, 0644);
		if (fd < 0)
			die("%s", path);
		close(fd);
	}
	bind_mount(join("/keep", path), join("/new", path));
}

/* Calls f on each line of a file; lines are absolute paths. */
static void each_path(const char *name, void (*f)(const char *path))
{
	FILE *file = fopen(name, "r");
	char line[PATH_MAX];

	if (!file)
		die("%s", name);
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (line[0] == '/')
			f(line + 1);
	}
	fclose(file);
}

static void bind_modules(const char *path)
{
	make_folder("/new", "lib/modules");
	bind_mount(join("/new", path), "/new/lib/modules");
}

static void copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY);
	int out = open(to, O_CREAT | O_WRONLY | O_EXCL, 0755);
	ssize_t n;

	if (in < 0 || out < 0)
		die("copy %s", from);
	while ((n = sendfile(out, in, NULL, 1 << 20)) > 0)
		;
	if (n)
		die("copy %s", from);
	close(in);
	close(out);
}

static void copy_orders(void)
{
	DIR *dir = opendir("/ored");
	struct dirent *entry;

	if (!dir)
		die("/ored");
	make_folder("/new", "run/ored/ports");
	while ((entry = readdir(dir)))
		if (entry->d_type == DT_REG)
			copy_file(join("/ored", entry->d_name),
				  join("/new/run/ored", entry->d_name));
		else if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			make_folder("/new/run/ored", entry->d_name);
	closedir(dir);
}

static void enter_root(void)
{
	if (chdir("/new") || mount(".", "/", NULL, MS_MOVE, NULL) ||
	    chroot(".") || chdir("/"))
		die("can't enter the new root");
}

static void mount_all(void)
{
	static const char *const links[][2] = {
		{ "/proc/self/fd", "/dev/fd" },
		{ "/proc/self/fd/0", "/dev/stdin" },
		{ "/proc/self/fd/1", "/dev/stdout" },
		{ "/proc/self/fd/2", "/dev/stderr" },
	};
	size_t i;

	mount_at("proc", "/proc", NULL);
	mount_at("sysfs", "/sys", NULL);
	mount_at("devtmpfs", "/dev", NULL);
	mount_at("tmpfs", "/dev/shm", "mode=1777");
	mount_at("devpts", "/dev/pts", "ptmxmode=666");
	mount_at("bpf", "/sys/fs/bpf", NULL);
	mount_at("cgroup2", "/sys/fs/cgroup", NULL);
	mount_at("debugfs", "/sys/kernel/debug", NULL);
	mount_at("tracefs", "/sys/kernel/tracing", NULL);
	for (i = 0; i < sizeof(links) / sizeof(*links); i++)
		if (symlink(links[i][0], links[i][1]) && errno != EEXIST)
			die("symlink %s", links[i][1]);
	make_folder("/run", "lock");
	make_folder("/run", "netns");
}

/* A line passes on bytes as they are. */
static void set_up_port(int number)
{
	struct termios raw;
	char path[16];
	int fd;

	snprintf(path, sizeof(path), "/dev/ttyS%d", number);
	fd = open(path, O_RDWR | O_NOCTTY);
	if (fd < 0 || tcgetattr(fd, &raw))
		die("%s", path);
	cfmakeraw(&raw);
	if (tcsetattr(fd, TCSANOW, &raw))
		die("%s", path);
	close(fd);
	if (symlink(path, join("/run/ored/ports", ports[number])))
		die("symlink %s", ports[number]);
}

static void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	request.ifr_flags = IFF_UP | IFF_RUNNING;
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		die("lo");
	close(fd);
}

int main(void)
{
	size_t i;

	umask(0);
	stack_root();
	hide_own();
	each_path("/visible", show);
	each_path("/modules-from", bind_modules);
	copy_orders();
	enter_root();
	mount_all();
	for (i = 0; i < sizeof(ports) / sizeof(*ports); i++)
		set_up_port(i);
	loopback_up();
	umask(022);
	setenv("ORED_PORTS", "/run/ored/ports", 1);
	execl("/bin/bash", "bash", "/run/ored/init", NULL);
	die("/bin/bash");
}
