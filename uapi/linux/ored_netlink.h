/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The generic netlink family, made of uapi/ored.yaml by selftests/netlink/header:
 * change it there. Values of attributes are explained in linux/ored.h.
 */
#ifndef _UAPI_LINUX_ORED_NETLINK_H
#define _UAPI_LINUX_ORED_NETLINK_H

#define ORED_FAMILY_NAME	"ored"
#define ORED_FAMILY_VERSION	1

enum ored_attr {
	ORED_A_PAD = 1,
	/* Its id. */
	ORED_A_GROUP,
	/* The run of the group. Where it may be left out, the newest here is meant. */
	ORED_A_EPOCH,
	/* A rank that runs here. */
	ORED_A_RANK,
	/* Ranks in the group. */
	ORED_A_NRANKS,
	/* Ops in flight that are allowed [1]. */
	ORED_A_DEPTH,
	/* Largest bucket in bytes, a multiple of 8. */
	ORED_A_BUCKET_MAX,
	/* How long who joins waits for all peers, ms [30000]. */
	ORED_A_TIMEOUT_MS,
	/* UDP port of all peers that don't name their own [4741]. */
	ORED_A_PORT,
	/* Upper limit of a packet's payload in bytes [what all paths carry]. */
	ORED_A_PAYLOAD_MAX,
	/* The user who may bind() to it; absent, everybody may. */
	ORED_A_UID,
	/* An administrator has set the group up. */
	ORED_A_SETUP,
	/* A rank of the group; in group-new all of them, in the order of ranks. */
	ORED_A_PEER,
	/* What the rank makes of loss, and how its bounds are found. */
	ORED_A_POLICY,
	/* Counters; of the rank that the message names, else of the namespace. */
	ORED_A_STATS,
	/* What became of an op of the rank. */
	ORED_A_OP,
	/* Of the membership. */
	ORED_A_STATE,
	/* Agreed bytes of a full chunk; 0 while joining. */
	ORED_A_PAYLOAD,
	/* Bytes of ORED's own header in each packet. */
	ORED_A_HEADER,
	/* AF_INET or AF_INET6. */
	ORED_A_FAMILY,
	/* Interface that the socket is bound to; absent, there is none. */
	ORED_A_IFINDEX,
	/* Ops that send() has accepted. */
	ORED_A_POSTED,
	/* Ops that have ended here, without a gap. */
	ORED_A_FINISHED,
	/* Ops whose result recv() has returned. */
	ORED_A_RECEIVED,
	/* Bytes allocated for the group. */
	ORED_A_MEMORY,
	/* Rate at which gradients leave, bytes per second; 0, not measured. */
	ORED_A_PACE,
	/* How many peers this rank lets send to it at once. */
	ORED_A_TAKES,
	/* Its socket is closed; peers are still served. */
	ORED_A_ORPHAN,
	/*
	 * What packets to this rank carry, so that they can't be forged blindly. Only who has
	 * CAP_NET_ADMIN gets to see it.
	 */
	ORED_A_SESSION,

	__ORED_A_MAX,
	ORED_A_MAX = __ORED_A_MAX - 1
};

enum ored_peer_attr {
	ORED_A_PEER_PAD = 1,
	/* The peer's. */
	ORED_A_PEER_RANK,
	/* Its address, if that is IPv4. */
	ORED_A_PEER_ADDR4,
	/* Its address, if that is IPv6. */
	ORED_A_PEER_ADDR6,
	/* Its UDP port, in host order [the group's]. */
	ORED_A_PEER_PORT,
	/* Interface of a link-local address. */
	ORED_A_PEER_SCOPE_ID,
	ORED_A_PEER_STATUS,
	/* Ops it has posted, as last heard. */
	ORED_A_PEER_POSTED,
	/* Ops that have ended there, as last heard. */
	ORED_A_PEER_FINISHED,
	/* Microseconds since it was last heard; absent, never. */
	ORED_A_PEER_HEARD_US,
	/* Smoothed round trip, us; 0, not measured. */
	ORED_A_PEER_SRTT_US,
	/* Its variation. */
	ORED_A_PEER_RTTVAR_US,
	/* Packets allowed in flight to it. */
	ORED_A_PEER_WINDOW,
	/* Packets in flight to it. */
	ORED_A_PEER_INFLIGHT,
	/* Largest payload that the path to it has carried, bytes. */
	ORED_A_PEER_PATH_PAYLOAD,
	/* How many peers it lets send to it at once, as last heard; 0, unknown. */
	ORED_A_PEER_TAKES,
	/* Packets of gradients sent to it, each resend included. */
	ORED_A_PEER_SENT,
	/* Of these, how many had been sent before. */
	ORED_A_PEER_RESENT,
	/* Packets of gradients taken from it. */
	ORED_A_PEER_RECEIVED,
	/* Packets from it that were there already. */
	ORED_A_PEER_DUPLICATES,
	/* Packets to it that this host itself dropped. */
	ORED_A_PEER_LOCAL_DROPS,

	__ORED_A_PEER_MAX,
	ORED_A_PEER_MAX = __ORED_A_PEER_MAX - 1
};

enum ored_policy_attr {
	/* Above this loss, ppm, the verdict is skip. */
	ORED_A_POLICY_LOSS_SKIP = 1,
	/* Above this loss, ppm, the verdict is halt. */
	ORED_A_POLICY_LOSS_HALT,
	/* If fewer have contributed anything the verdict is halt. */
	ORED_A_POLICY_MIN_RANKS,
	/* Of ops that name none. */
	ORED_A_POLICY_MODE,
	/* How bounds are found. */
	ORED_A_POLICY_DEADLINE,
	/* How many peers may send to a rank at once. */
	ORED_A_POLICY_INCAST,
	/* Of ops that say neither on nor off; the same on every rank. */
	ORED_A_POLICY_HADAMARD,
	/* Loss that is aimed at, ppm. */
	ORED_A_POLICY_LOSS_TARGET,
	/* The least bound, ppm of the quiet time. */
	ORED_A_POLICY_FLOOR,
	/* The longest bound, ppm of the quiet time. */
	ORED_A_POLICY_CEILING,
	/* Ops from which the quiet time is learnt. */
	ORED_A_POLICY_WARMUP,
	/* A fixed bound, us, whatever the length. */
	ORED_A_POLICY_BOUND_US,
	/* How long to wait for late posters, ppm of the bound; ~0, not at all. */
	ORED_A_POLICY_WAIT_PPM,
	/* The least bound, us. */
	ORED_A_POLICY_FLOOR_US,
	/* The bound while nothing has been learnt, and never more, us. */
	ORED_A_POLICY_CEILING_US,

	__ORED_A_POLICY_MAX,
	ORED_A_POLICY_MAX = __ORED_A_POLICY_MAX - 1
};

enum ored_stat_attr {
	ORED_A_STAT_PAD = 1,
	/* Packets that reached this rank. */
	ORED_A_STAT_RX_PACKETS,
	/* Contributions and gather chunks taken. */
	ORED_A_STAT_RX_DATA,
	/* Packets handed to IP; a GSO train counts each. */
	ORED_A_STAT_TX_PACKETS,
	/* Hand-overs to IP. */
	ORED_A_STAT_TX_TRAINS,
	/* Packets that this host dropped on the way out. */
	ORED_A_STAT_TX_DROPPED,
	/* Packets sent again. */
	ORED_A_STAT_RESENT,
	/* Data that was there already. */
	ORED_A_STAT_DUPLICATE,
	/* Data of an op that has ended here. */
	ORED_A_STAT_LATE,
	/* Data of an op that has no slot yet. */
	ORED_A_STAT_AHEAD,
	/* Data whose parameters differ from ours. */
	ORED_A_STAT_MISMATCH,
	/* Right session, wrong address or rank. */
	ORED_A_STAT_BAD_SOURCE,
	/* Chunk, length or stage out of bounds. */
	ORED_A_STAT_BAD_CHUNK,
	/* Malformed control packets. */
	ORED_A_STAT_BAD_CONTROL,
	/* A path began to carry less than was agreed. */
	ORED_A_STAT_PATH_SHRUNK,
	/* Packets not sent for want of memory. */
	ORED_A_STAT_NOMEM,
	/* Of the namespace; too short for a header. */
	ORED_A_STAT_NS_SHORT,
	/* Of the namespace; no header of ours, or another version. */
	ORED_A_STAT_NS_VERSION,
	/* Of the namespace; unknown packet type. */
	ORED_A_STAT_NS_TYPE,
	/* Of the namespace; no such session, stale or not for us. */
	ORED_A_STAT_NS_SESSION,
	/* Of the namespace; HELLO for a group or rank not here. */
	ORED_A_STAT_NS_GROUP,
	/* Of the namespace; HELLO of another epoch. */
	ORED_A_STAT_NS_EPOCH,

	__ORED_A_STAT_MAX,
	ORED_A_STAT_MAX = __ORED_A_STAT_MAX - 1
};

enum ored_op_attr {
	ORED_A_OP_PAD = 1,
	/* Its number. */
	ORED_A_OP_OP,
	/* What ended it. */
	ORED_A_OP_LIMIT,
	/* What is missing of what peers should have given, ppm. */
	ORED_A_OP_LOSS_PPM,
	/* From post to finish. */
	ORED_A_OP_ELAPSED_NS,
	/* The bound it ran under; 0, none. */
	ORED_A_OP_BOUND_NS,
	/* Length of the bucket. */
	ORED_A_OP_BYTES,
	/*
	 * Bit r of the 64-bit word r / 64, in host order, is rank r of which something is
	 * missing.
	 */
	ORED_A_OP_MISSING,

	__ORED_A_OP_MAX,
	ORED_A_OP_MAX = __ORED_A_OP_MAX - 1
};

enum ored_cmd {
	/*
	 * Sets a group up, so that `uid` can bind() to it without privileges. EEXIST, if this
	 * group and epoch are set up; ENOSPC, if too many are.
	 */
	ORED_CMD_GROUP_NEW = 1,
	/* Forgets a group that was set up; who has joined it stays. ENOENT. */
	ORED_CMD_GROUP_DEL,
	/*
	 * Changes the policy of a rank that runs here, or of all ranks of the group that do,
	 * from the next op on; and of who will bind() to it, if it is set up. ENOENT.
	 */
	ORED_CMD_GROUP_SET,
	/*
	 * With `rank`, that rank; without, what was set up. The dump gives all groups that are
	 * set up and all ranks that run here, or those that fit what is given. ENOENT.
	 */
	ORED_CMD_GROUP_GET,
	/*
	 * The peers of each rank that runs here, the rank itself included, a message each, and
	 * the ranks of each group that is set up. Not a dump, it needs `group`, and `peer`
	 * with the `rank` of one.
	 */
	ORED_CMD_PEER_GET,
	/*
	 * Counters of a rank, or without `group` those of the namespace, of packets that can't
	 * be laid to any. The dump gives the namespace's first, then each rank's.
	 */
	ORED_CMD_STAT_GET,
	/* A group has been set up. */
	ORED_CMD_GROUP_NEW_NTF,
	/* A group that was set up is forgotten. */
	ORED_CMD_GROUP_DEL_NTF,
	/* A rank that runs here has joined its group. */
	ORED_CMD_RANK_JOINED_NTF,
	/* A rank that runs here takes part in no further op. */
	ORED_CMD_RANK_LEFT_NTF,
	/* The policy of a rank that runs here, or of a group that is set up, has changed. */
	ORED_CMD_POLICY_NTF,
	/*
	 * To a rank that runs here a peer has become stalled, silent or left, or is live
	 * again.
	 */
	ORED_CMD_PEER_NTF,
	/* Something is missing of an op's result; at most ten in five seconds for each rank. */
	ORED_CMD_OP_NTF,

	__ORED_CMD_MAX,
	ORED_CMD_MAX = __ORED_CMD_MAX - 1
};

#define ORED_MCGRP_EVENTS	"events"

#endif /* _UAPI_LINUX_ORED_NETLINK_H */
