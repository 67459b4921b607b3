// SPDX-License-Identifier: GPL-2.0
/* oredctl xdp steer: which CPUs packets of gradients are sent to. */

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "oredctl.h"
#include "output.h"
#include "xdp.h"

#define QUEUE		2048	/* packets that may wait for a CPU */
#define WORTH		0.95	/* of the time without: less is better by more than noise */
#define FEW		1000	/* packets: fewer tell nothing of a 99th percentile */

/* Fills in the CPUs that are online: "0-3,7" and the like. */
static void online(struct ored_x_config *config)
{
	FILE *file = fopen("/sys/devices/system/cpu/online", "r");
	unsigned int from, to;
	int sep = ',';

	config->ncpus = 0;
	while (file && sep == ',' && fscanf(file, "%u", &from) == 1) {
		to = from;
		sep = fgetc(file);
		if (sep == '-') {
			if (fscanf(file, "%u", &to) != 1)
				break;
			sep = fgetc(file);
		}
		for (; from <= to && from < ORED_X_CPUS; from++)
			config->cpu[config->ncpus++] = from;
	}
	if (file)
		fclose(file);
	if (!config->ncpus)
		fail(STATUS_KERNEL, "/sys/devices/system/cpu/online names no CPU");
}

/* Queues for these CPUs, and for no others */
static void set_queues(const struct ored_x_config *config)
{
	struct bpf_cpumap_val value = { .qsize = QUEUE };
	int fd = xdp_map("ored_cpus");
	__u32 cpu, i = 0;

	for (cpu = 0; cpu < ORED_X_CPUS; cpu++) {
		if (i < config->ncpus && config->cpu[i] == cpu) {
			i++;
			if (bpf_map_update_elem(fd, &cpu, &value, BPF_ANY))
				fail(STATUS_KERNEL, "a queue for CPU %u: %s", cpu,
				     strerror(errno));
		} else {
			bpf_map_delete_elem(fd, &cpu);
		}
	}
	close(fd);
}

/* What a link is paired with: its number, 0 if that is one of another namespace */
static int read_pair(const struct nlmsghdr *msg, void *data)
{
	unsigned int *pair = data;
	const struct nlattr *attr;
	bool elsewhere = false;

	mnl_attr_for_each(attr, msg, sizeof(struct ifinfomsg)) {
		if (mnl_attr_get_type(attr) == IFLA_LINK)
			*pair = mnl_attr_get_u32(attr);
		else if (mnl_attr_get_type(attr) == IFLA_LINK_NETNSID)
			elsewhere = true;
	}
	if (elsewhere)
		*pair = 0;
	return MNL_CB_OK;
}

/* Not by /sys, which shows the namespace that it was mounted in. */
static unsigned int paired_with(unsigned int index)
{
	char buffer[16384] = {};
	struct nlmsghdr *msg = mnl_nlmsg_put_header(buffer);
	struct mnl_socket *nl = mnl_socket_open(NETLINK_ROUTE);
	struct ifinfomsg *info;
	unsigned int pair = 0;
	ssize_t got;

	if (!nl)
		fail(STATUS_KERNEL, "netlink: %s", strerror(errno));
	msg->nlmsg_type = RTM_GETLINK;
	msg->nlmsg_flags = NLM_F_REQUEST;
	info = mnl_nlmsg_put_extra_header(msg, sizeof(*info));
	info->ifi_index = (int)index;
	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_sendto(nl, msg, msg->nlmsg_len) < 0)
		fail(STATUS_KERNEL, "netlink: %s", strerror(errno));
	got = mnl_socket_recvfrom(nl, buffer, sizeof(buffer));
	if (got < 0 || mnl_cb_run(buffer, (size_t)got, 0, 0, read_pair, &pair) < 0)
		fail(STATUS_KERNEL, "asking for interface %u: %s", index, strerror(errno));
	mnl_socket_close(nl);
	return pair;
}

static bool veth_peer(const struct xdp_place *place, char name[IF_NAMESIZE])
{
	unsigned int peer = paired_with(place->index);

	return peer && if_indextoname(peer, name);
}

/*
 * A redirect loses what veth knows of a checksum that its peer hasn't computed, and
 * every packet would be dropped as damaged. The peer has to compute it.
 */
static int check_veth(const char *path, uint32_t netns, unsigned int index, void *arg)
{
	struct xdp_place place = { .index = index, .netns = netns };
	char driver[32], peer[IF_NAMESIZE];

	(void)path;
	(void)arg;
	if (netns != xdp_own_netns() || !if_indextoname(index, place.name))
		return 0;
	xdp_driver(&place, driver);
	if (strcmp(driver, "veth"))
		return 0;
	if (!veth_peer(&place, peer))
		fail(STATUS_KERNEL,
		     "%s is a veth whose peer is in another namespace: turn its checksums off there, `ethtool -K PEER tx off`, and say `steer on force`",
		     place.name);
	if (xdp_tx_checksum(peer) != 0)
		fail(STATUS_KERNEL,
		     "%s is a veth, and its peer leaves checksums to be computed, which a redirect loses: `ethtool -K %s tx off`",
		     place.name, peer);
	return 0;
}

static void turn_on(void)
{
	struct ored_x_config config = xdp_config();

	online(&config);
	set_queues(&config);
	config.flags |= ORED_X_STEER;
	xdp_set_config(&config);
}

static void turn_off(void)
{
	struct ored_x_config config = xdp_config();

	config.flags &= ~ORED_X_STEER;
	xdp_set_config(&config);
}

/* How long packets take from arrival until they can be reduced, for some time */
static uint64_t watch(unsigned int seconds, uint64_t *packets)
{
	struct ored_x_latency before, after;

	xdp_latency_total(ORED_X_HOST, &before);
	sleep(seconds);
	xdp_latency_total(ORED_X_HOST, &after);
	xdp_subtract(&after, &before);
	*packets = after.timed;
	return xdp_quantile(&after, 0.99);
}

static void show(void)
{
	struct ored_x_config config = xdp_config();
	bool on = config.flags & ORED_X_STEER;

	out_begin();
	out_item();
	out_bool("steer", on, "on");
	out_text("%s", on ? "" : "off");
	if (on)
		out_u64("cpus", config.ncpus, ", CPUs ");
	out_item_end();
	out_end();
}

/* Tries both for a while, under the load that there is, and keeps what is better. */
static int decide(unsigned int seconds)
{
	uint64_t without, with, few, n;
	char a[16], b[16];
	bool better;

	turn_off();
	without = watch(seconds, &few);
	turn_on();
	with = watch(seconds, &n);
	if (n < few)
		few = n;
	better = few >= FEW && (double)with < WORTH * (double)without;
	if (!better)
		turn_off();
	xdp_show_time(without, a);
	xdp_show_time(with, b);
	out_begin();
	out_item();
	out_bool("steer", better, "on");
	out_text("%s: ", better ? "" : "off");
	if (few < FEW)
		out_text("only %llu packets came, which tells nothing",
			 (unsigned long long)few);
	else
		out_text("from arrival to reduction the p99 is %s without and %s with it", a, b);
	out_u64("packets", few, NULL);
	out_u64("p99_without_ns", without, NULL);
	out_u64("p99_with_ns", with, NULL);
	out_item_end();
	out_end();
	return STATUS_OK;
}

int do_xdp_steer(struct words *words)
{
	bool automatic = false;
	uint64_t seconds = 5;

	close(xdp_map("ored_config"));
	if (!peek(words)) {
		show();
		return STATUS_OK;
	}
	if (!strcmp(peek(words), "off")) {
		words->at++;
		take_end(words);
		turn_off();
		return STATUS_OK;
	}
	if (!strcmp(peek(words), "on")) {
		words->at++;
	} else if (take_if(words, "auto")) {
		automatic = true;
		if (peek(words) && strcmp(peek(words), "force"))
			seconds = take_number(words, "seconds", 1, 3600);
	} else {
		fail(STATUS_USAGE, "steer is on, off or auto");
	}
	if (!take_if(words, "force"))
		xdp_each_link(check_veth, NULL);
	take_end(words);
	if (automatic)
		return decide((unsigned int)seconds);
	turn_on();
	return STATUS_OK;
}
