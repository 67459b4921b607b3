// SPDX-License-Identifier: GPL-2.0
/*
 * Why an interface takes no program. Kernels say it by an errno, some by a sentence
 * too, and each driver in its own way; people need the limit and what to type.
 */

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "oredctl.h"
#include "xdp.h"

#define MARK "Kernel error message: "

static char said[256];

/* What libbpf would print: the kernel's sentence is kept, the rest is for -d of bpftool. */
static int __attribute__((format(printf, 2, 0)))
hear(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[512];
	char *found;

	vsnprintf(line, sizeof(line), format, args);
	found = strstr(line, MARK);
	if (level == LIBBPF_WARN && found) {
		snprintf(said, sizeof(said), "%.255s", found + strlen(MARK));
		said[strcspn(said, "\n")] = '\0';
	}
	return 0;
}

void xdp_listen(void)
{
	libbpf_set_print(hear);
}

const char *xdp_kernel_says(void)
{
	return said;
}

static int ask(const char *name, unsigned long request, void *data)
{
	struct ifreq ifr = {};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ifr.ifr_data = data;
	err = fd < 0 ? -1 : ioctl(fd, request, &ifr);
	if (!err && request == SIOCGIFMTU)
		err = ifr.ifr_mtu;
	if (fd >= 0)
		close(fd);
	return err;
}

void xdp_driver(const struct xdp_place *place, char name[32])
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };

	name[0] = '\0';
	if (!ask(place->name, SIOCETHTOOL, &info))
		snprintf(name, 32, "%.31s", info.driver);
}

int xdp_tx_checksum(const char *name)
{
	struct ethtool_value value = { .cmd = ETHTOOL_GTXCSUM };

	return ask(name, SIOCETHTOOL, &value) ? -1 : !!value.data;
}

/* The largest MTU that a driver takes with XDP in one piece; 0: not known here */
static int mtu_limit(const char *driver)
{
	static const struct {
		const char *driver;
		int mtu;
	} limits[] = {
		{ "ena", 3498 }, { "virtio_net", 3502 }, { "bnxt_en", 3502 },
		{ "veth", 3520 }, { "tun", 1500 }, { "vif", 3840 },
		{ "hv_netvsc", 3506 }, { "gve", 2032 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(limits); i++)
		if (!strcmp(driver, limits[i].driver))
			return limits[i].mtu;
	return 0;
}

/* Queues that a driver needs to have free for XDP: half of what it can have */
static bool explain_queues(const struct xdp_place *place, char why[XDP_WHY_MAX])
{
	struct ethtool_channels ch = { .cmd = ETHTOOL_GCHANNELS };
	unsigned int most;

	if (ask(place->name, SIOCETHTOOL, &ch) || !ch.max_combined)
		return false;
	most = ch.max_combined / 2;
	if (ch.combined_count <= most)
		return false;
	if (!most)
		snprintf(why, XDP_WHY_MAX,
			 "it has 1 queue and XDP needs a second one: give the machine more queues, or use `mode skb`");
	else
		snprintf(why, XDP_WHY_MAX,
			 "it has %u of %u queues in use and XDP needs as many again: `ethtool -L %s combined %u`",
			 ch.combined_count, ch.max_combined, place->name, most);
	return true;
}

static bool explain_mtu(const struct xdp_place *place, const char *driver,
			char why[XDP_WHY_MAX])
{
	int mtu = ask(place->name, SIOCGIFMTU, NULL), limit = mtu_limit(driver);

	if (!limit || mtu <= limit)
		return false;
	snprintf(why, XDP_WHY_MAX,
		 "its MTU is %d and its driver %s takes XDP up to %d: `ip link set %s mtu %d`",
		 mtu, driver, limit, place->name, limit);
	return true;
}

bool xdp_foresee(const struct xdp_place *place, char why[XDP_WHY_MAX])
{
	char driver[32];

	xdp_driver(place, driver);
	/* Its driver takes frames of many pieces, as this program does. */
	if (!strcmp(driver, "veth"))
		return false;
	return explain_mtu(place, driver, why) || explain_queues(place, why);
}

void xdp_explain(const struct xdp_place *place, enum xdp_mode mode, int err,
		 const char *kernel, char why[XDP_WHY_MAX])
{
	char driver[32];

	xdp_driver(place, driver);
	if (err == EPERM)
		snprintf(why, XDP_WHY_MAX,
			 "it takes CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON: run it as root of the host");
	else if (err == EBUSY || err == EEXIST)
		snprintf(why, XDP_WHY_MAX,
			 "another XDP program is attached: `ip link set %s xdp off` takes it away, `bpftool net` names it",
			 place->name);
	else if (mode == XDP_MODE_NATIVE && explain_mtu(place, driver, why))
		return;
	else if (mode == XDP_MODE_NATIVE && explain_queues(place, why))
		return;
	else if (err == EOPNOTSUPP && mode == XDP_MODE_NATIVE)
		snprintf(why, XDP_WHY_MAX,
			 "its driver%s%s has no native XDP: `mode skb` works, later and slower",
			 driver[0] ? " " : "", driver);
	else if (kernel[0])
		snprintf(why, XDP_WHY_MAX, "%s (%s)", kernel, strerror(err));
	else
		snprintf(why, XDP_WHY_MAX, "%s; `dmesg` may say more", strerror(err));
}
