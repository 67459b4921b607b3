/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * libored: collectives over AF_ORED sockets, for C and C++.
 *
 * The library adds no state to a socket: what ored_open() returns is a file
 * descriptor like any other, and every call here can be mixed with send(),
 * recv(), poll() and close(). It never prints, never exits and starts no
 * threads. Calls return a negative errno on failure and leave errno itself
 * undefined. All calls are safe from several threads; what several threads
 * do with one descriptor is up to the caller.
 *
 * The structures and constants are the kernel's: <linux/ored.h>.
 */
#ifndef _ORED_H
#define _ORED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <linux/ored.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORED_BUCKET_DEFAULT	(4U << 20)	/* bytes, of ored_open() */
#define ORED_DEPTH_DEFAULT	4		/* ops, of ored_open() */

/* Bytes that ored_peer_format() needs at most, with the NUL */
#define ORED_PEER_STRLEN	80

/**
 * struct ored_config - a group, as ored_open() wants it
 * @peers: where each rank lives, by rank: "10.0.0.1", "10.0.0.1:4741",
 *	"fd00::1", "[fe80::1%eth0]:4741". Names aren't resolved
 * @addrs: the same as socket addresses; used if @peers is NULL
 * @nranks: how many, 1 to ORED_MAX_RANKS
 * @rank: the caller's own, below @nranks
 * @group: id of the group; different groups may share a port
 * @port: UDP port of all peers that name none; 0: ORED_PORT_DEFAULT
 * @flags: ORED_JOIN_SLOTS, or 0
 * @epoch: run of the group; a restarted job needs a larger one
 * @bucket_max: largest bucket in bytes, a multiple of 8 up to
 *	ORED_MAX_BUCKET; 0: ORED_BUCKET_DEFAULT. The same on every rank
 * @depth: ops in flight, 1 to ORED_MAX_DEPTH; 0: ORED_DEPTH_DEFAULT. The
 *	same on every rank
 * @timeout_ms: how long to wait for all peers; 0: ORED_TIMEOUT_DEFAULT
 * @error: buffer for the sentence that explains a failure, or NULL
 * @error_size: its bytes; ORED_ERROR_MAX is enough
 * @reserved: zero
 *
 * The caller keeps everything that the pointers point to; nothing of it is
 * used after ored_open() has returned.
 */
struct ored_config {
	const char *const *peers;
	const struct sockaddr *const *addrs;
	uint32_t nranks;
	uint32_t rank;
	uint32_t group;
	uint16_t port;
	uint16_t flags;
	uint64_t epoch;
	uint64_t bucket_max;
	uint32_t depth;
	uint32_t timeout_ms;
	char *error;
	size_t error_size;
	uint64_t reserved[4];
};

/* Opening */

/**
 * ored_family - number of the socket family
 *
 * Returns the number that the loaded module has registered, or
 * ORED_FAMILY_DEFAULT if none says otherwise (socket() may then load it).
 */
int ored_family(void);

/**
 * ored_socket - socket() of the right family
 * @proto: enum ored_proto
 *
 * Returns a descriptor (close-on-exec), which the caller closes.
 * Errors: -EAFNOSUPPORT (the module isn't loaded), -EOPNOTSUPP (@proto isn't
 * in this version), those of socket().
 */
int ored_socket(int proto);

/**
 * ored_open - creates a socket and joins a group, waiting for all peers
 * @config: the group
 *
 * Returns a descriptor that is ready for ored_allreduce(); the caller closes
 * it. Every failure leaves a sentence in @config->error.
 * Errors: -EINVAL (a field, or an address that can't be parsed), those of
 * ored_socket() and of ORED_JOIN in <linux/ored.h>.
 */
int ored_open(const struct ored_config *config);

/**
 * ored_open_env - ored_open() with the group taken from the environment
 * @config: what the environment doesn't say, or NULL
 *
 * Reads ORED_RANK and ORED_PEERS (comma-separated), which must be there, and
 * ORED_SIZE (checked), ORED_PORT, ORED_GROUP and ORED_EPOCH, which may be.
 * They replace the fields of @config.
 * Errors: -EINVAL (a variable is missing or no number), those of ored_open().
 */
int ored_open_env(const struct ored_config *config);

/**
 * ored_join - setsockopt(ORED_JOIN)
 * @fd: socket from ored_socket(ORED_PROTO_REDUCE)
 * @join: the group; @size and @peer_size are filled in by the library
 * @peers: @join->nranks of them
 *
 * Returns 0. On a descriptor with O_NONBLOCK it returns -EINPROGRESS: wait
 * for POLLOUT, then read SO_ERROR.
 */
int ored_join(int fd, const struct ored_join *join,
	      const struct ored_peer *peers);

/**
 * ored_setup - setsockopt(ORED_SETUP): lets a user join with bind()
 * @fd: socket from ored_socket(ORED_PROTO_REDUCE)
 * @join: the group, with @uid; @size and @peer_size are filled in
 * @peers: @join->nranks of them
 *
 * Returns 0, or -EPERM without CAP_NET_ADMIN, or what ORED_SETUP says.
 */
int ored_setup(int fd, const struct ored_join *join,
	       const struct ored_peer *peers);

/**
 * ored_teardown - setsockopt(ORED_TEARDOWN): undoes ored_setup()
 * @fd: any socket of the family in the same network namespace
 * @group: id
 * @epoch: run
 *
 * Returns 0, or -ENOENT if there is no such group.
 */
int ored_teardown(int fd, uint32_t group, uint64_t epoch);

/* Addresses */

/**
 * ored_peer_parse - reads an address with or without a port
 * @text: "10.0.0.1", "10.0.0.1:4741", "fd00::1", "[fd00::1]:4741",
 *	"fe80::1%eth0", "[fe80::1%2]:4741". An IPv4 address mapped into IPv6
 *	becomes IPv4
 * @peer: filled in; untouched on failure
 *
 * Returns 0, -EINVAL (no such form; a link-local address without its
 * interface), or -ENODEV (no such interface).
 */
int ored_peer_parse(const char *text, struct ored_peer *peer);

/**
 * ored_peer_from_sockaddr - takes a socket address
 * @addr: a sockaddr_in or sockaddr_in6, whole; port 0: the group's
 * @peer: filled in; untouched on failure
 *
 * Returns 0, or -EAFNOSUPPORT (another family).
 */
int ored_peer_from_sockaddr(const struct sockaddr *addr,
			    struct ored_peer *peer);

/**
 * ored_peer_format - the reverse of ored_peer_parse()
 * @peer: an address
 * @buf: for the text
 * @len: its bytes; ORED_PEER_STRLEN is enough
 *
 * Returns the length of the text, -ENOSPC (@len is too small) or
 * -EAFNOSUPPORT (an unknown family).
 */
int ored_peer_format(const struct ored_peer *peer, char *buf, size_t len);

/* Ops */

/**
 * ored_send - posts a bucket as the next op
 * @fd: socket that has joined
 * @buf: the bucket, which may be reused at once
 * @len: its bytes, a multiple of the element's and at most the group's
 *	bucket_max
 * @op: parameters of this op alone; NULL: the socket's
 *
 * Returns @len.
 * Errors: -EAGAIN (O_NONBLOCK or SO_SNDTIMEO: depth ops are in flight),
 * -EMSGSIZE, -EINVAL (@len or a field of @op), -EOPNOTSUPP (not in this
 * version), -EINTR, -ENOTCONN (not joined), -EPIPE (shut down).
 */
ssize_t ored_send(int fd, const void *buf, size_t len,
		  const struct ored_op *op);

/**
 * ored_recv - result of the oldest op
 * @fd: socket that has joined
 * @buf: where the reduced bucket goes
 * @len: its bytes, at least the op's
 * @result: what became of the op, or NULL; it is filled in on failure too,
 *	and zero but for @error if the failure isn't that of an op
 *
 * Returns the bytes of the bucket.
 * Errors: -EAGAIN (O_NONBLOCK or SO_RCVTIMEO), -EINTR and -EMSGSIZE (@len is
 * too small) leave the op where it is. -EPROTO (the ranks' ops differ) and
 * -ECONNRESET (a rank has left) are the op's own end.
 */
ssize_t ored_recv(int fd, void *buf, size_t len, struct ored_result *result);

/**
 * ored_allreduce - posts a bucket and waits for its result, in place
 * @fd: socket that has joined, with no op in flight
 * @buf: the bucket; on failure its contents are as they were
 * @len: its bytes
 * @op: parameters of this op alone; NULL: the socket's (ORED_SUM of
 *	ORED_F32 unless set)
 * @result: as for ored_recv(), or NULL
 *
 * Returns 0.
 * Errors: -EBUSY (an op is in flight), those of ored_send() and ored_recv().
 * After -EAGAIN or -EINTR from the wait the op is in flight: fetch it with
 * ored_recv().
 */
int ored_allreduce(int fd, void *buf, size_t len, const struct ored_op *op,
		   struct ored_result *result);

/**
 * ored_reduce_scatter - posts a bucket and waits for one's shard of its result
 * @fd: socket that has joined, with no op in flight
 * @bucket: the bucket, which isn't changed
 * @len: its bytes; at least one element for each rank
 * @shard: where the own shard of the result goes; may lie in @bucket
 * @room: its bytes; rank r has n / N of n elements, and one more if r < n % N
 * @op: parameters but for the kind; NULL: the sum of ORED_F32
 * @result: as for ored_recv(), or NULL
 *
 * Returns the shard's bytes.
 * Errors: as ored_allreduce(); -EMSGSIZE (@room is too small: the op is done, and
 * ored_recv() can fetch it).
 */
ssize_t ored_reduce_scatter(int fd, const void *bucket, size_t len, void *shard, size_t room,
			    const struct ored_op *op, struct ored_result *result);

/**
 * ored_all_gather - posts one's shard and waits for the bucket of all of them
 * @fd: socket that has joined, with no op in flight
 * @shard: the own shard, of the length that ored_reduce_scatter() gives
 * @shard_len: its bytes
 * @bucket: where the bucket goes; @shard may lie in it
 * @len: its bytes, the same on every rank
 * @op: parameters but for kind and length; NULL: ORED_F32
 * @result: as for ored_recv(), or NULL
 *
 * Returns 0. Errors: as ored_allreduce().
 */
int ored_all_gather(int fd, const void *shard, size_t shard_len, void *bucket, size_t len,
		    const struct ored_op *op, struct ored_result *result);

/**
 * ored_broadcast - replaces a bucket by that of one rank
 * @fd: socket that has joined, with no op in flight
 * @buf: the bucket; on failure its contents are as they were
 * @len: its bytes, the same on every rank
 * @root: the rank
 * @op: parameters but for kind and root; NULL: none
 * @result: as for ored_recv(), or NULL
 *
 * Returns 0. Errors: as ored_allreduce().
 */
int ored_broadcast(int fd, void *buf, size_t len, uint32_t root, const struct ored_op *op,
		   struct ored_result *result);

/**
 * ored_barrier - waits until all ranks have come
 * @fd: socket that has joined, with no op in flight
 * @op: parameters but for the kind; NULL: bounded, if the policy doesn't say else
 * @result: as for ored_recv(), or NULL; of a bounded one @result->missing says who
 *	has not come
 *
 * Returns 0. Errors: as ored_allreduce().
 */
int ored_barrier(int fd, const struct ored_op *op, struct ored_result *result);

/* Slots */

/**
 * struct ored_slots - the slots of a group, mapped
 * @base: the first; slot i begins @stride * i bytes behind it
 * @stride: bytes
 * @bytes: that a bucket in a slot can have
 * @count: slots: one more than ops can be in flight
 */
struct ored_slots {
	void *base;
	size_t stride;
	size_t bytes;
	unsigned int count;
};

/**
 * ored_slots_map - maps the slots of a group
 * @fd: socket that has joined with ORED_JOIN_SLOTS
 * @slots: filled in
 *
 * Buckets in slots are sent from and reduced into where they are. While an op has
 * a slot it isn't to be touched. The mapping holds the socket open, as a
 * descriptor does: the group is left when it is gone too.
 *
 * Returns 0. Errors: -ENODEV (joined without), -ENOTCONN, those of mmap().
 */
int ored_slots_map(int fd, struct ored_slots *slots);

/**
 * ored_slots_unmap - undoes ored_slots_map()
 * @slots: no op has one of them
 */
void ored_slots_unmap(struct ored_slots *slots);

/**
 * ored_slot_send - ored_send() of a bucket that is in a slot
 * @fd: socket that has joined
 * @slot: its index
 * @len: bytes of the bucket
 * @op: parameters but for slot and length; NULL: those of a zero struct ored_op
 *
 * Returns 0. Errors: as ored_send(); -EBUSY (an op has the slot).
 */
int ored_slot_send(int fd, unsigned int slot, size_t len, const struct ored_op *op);

/**
 * ored_slot_recv - waits for the oldest op, whose result is in its slot then
 * @fd: socket that has joined
 * @result: as for ored_recv(), or NULL
 *
 * Returns the bytes of the result. Errors: as ored_recv(); -EMSGSIZE: the oldest op
 * isn't one of a slot.
 */
ssize_t ored_slot_recv(int fd, struct ored_result *result);

/* State */

/**
 * ored_result - what became of an op, by its number
 * @fd: socket that has joined
 * @op: number; the first op of a socket is 0
 * @result: filled in
 *
 * Returns 0, or -ENOENT (unfinished, or too long ago).
 */
int ored_result(int fd, uint64_t op, struct ored_result *result);

/**
 * ored_uncounted - which chunks of the own contribution others went without
 * @fd: socket that has joined
 * @op: number of an op that ored_recv() has returned; ask before the next
 *	ored_send(), which may use its slot again
 * @head: filled in; chunk c is the bucket's bytes from c times @head->chunk on
 * @bits: filled in: bit c % 64 of word c / 64 is chunk c
 * @words: room in @bits; a bucket has at most a chunk for each 512 bytes
 *
 * Adding those chunks of one's own gradients to the next bucket keeps a
 * bounded op's loss from adding up (error feedback).
 *
 * Returns 0, -ENOENT (the op hasn't ended, or too long ago), -EMSGSIZE (no
 * room for the bits), -ENOMEM, or -ENOTCONN.
 */
int ored_uncounted(int fd, uint64_t op, struct ored_uncounted *head,
		   uint64_t *bits, size_t words);

/**
 * ored_group - what the kernel knows of the socket's group
 * @fd: any socket of ORED_PROTO_REDUCE
 * @group: filled in
 *
 * Returns 0 or -errno.
 */
int ored_group(int fd, struct ored_group *group);

/**
 * ored_peers - what the kernel knows of each rank
 * @fd: socket that joins or has joined
 * @peers: filled in, by rank
 * @n: room in @peers
 *
 * Returns how many were filled in: the smaller of @n and the group's ranks.
 */
int ored_peers(int fd, struct ored_peer_state *peers, unsigned int n);

/**
 * ored_stats - counters
 * @fd: any socket of ORED_PROTO_REDUCE
 * @counters: filled in, by enum ored_counter
 * @n: room in @counters, normally ORED_CNT_MAX
 *
 * Returns how many were filled in; an older module has fewer.
 */
int ored_stats(int fd, uint64_t *counters, unsigned int n);

/**
 * ored_error - why the last call failed, in one sentence
 * @fd: the socket, for the kernel's own sentence; or the negative errno that
 *	a call returned, where there is no socket
 * @buf: for the sentence, without a newline
 * @len: its bytes; ORED_ERROR_MAX is enough, less cuts it
 *
 * Returns the length of the sentence in @buf; 0 with an empty one if nothing
 * has failed.
 */
int ored_error(int fd, char *buf, size_t len);

#ifdef __cplusplus
}
#endif

#endif /* _ORED_H */
