// SPDX-License-Identifier: GPL-2.0
/*
 * Messages: a bucket, or a shard, goes in, and a result comes out.
 *
 * Neither call sleeps with its mutex held; the mutexes only keep two callers
 * from copying at the same time.
 */

#include <linux/sched/signal.h>
#include <linux/uio.h>

#include "af_ored.h"
#include "core/reduce.h"
#include "deadline.h"
#include "op.h"
#include "timer.h"

#define ORED_SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR | MSG_CMSG_COMPAT)
#define ORED_RECV_FLAGS (MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC | MSG_WAITALL | \
			 MSG_CMSG_COMPAT | MSG_CMSG_CLOEXEC)

static bool slot_is_free(const struct ored_member *m)
{
	u64 posted = READ_ONCE(m->posted);

	return posted - READ_ONCE(m->received) < m->conf.depth &&
	       /* Pairs with the release in reset_if_empty(): the slot is open. */
	       posted < smp_load_acquire(&m->retained) + m->nslots;
}

/*
 * If it is only peers that hold the next slot, they are asked: one that has
 * left the op may not have had anything to send since.
 */
static void want_slot(struct ored_member *m)
{
	bool ask = false;

	spin_lock_bh(&m->lock);
	ored_slot_release_past(m);
	if (m->posted >= m->retained + m->nslots && m->want_left <= m->retained) {
		m->want_left = m->retained + 1;
		ask = true;
	}
	spin_unlock_bh(&m->lock);
	if (ask)
		ored_timer_need(m, ktime_get_ns());
}

/**
 * ored_can_send() - would send() return without waiting?
 * @osk: the socket
 * @m: joined
 */
bool ored_can_send(struct ored_sock *osk, struct ored_member *m)
{
	if (READ_ONCE(m->state) != ORED_STATE_JOINED || slot_is_free(m))
		return true;
	want_slot(m);
	return slot_is_free(m);
}

/* Have all results been taken of a socket that posts no more? */
static bool ored_at_end(const struct ored_member *m)
{
	return READ_ONCE(m->state) == ORED_STATE_LEFT &&
	       READ_ONCE(m->received) == READ_ONCE(m->last);
}

/**
 * ored_can_recv() - would recv() return without waiting?
 * @osk: the socket
 * @m: joined
 */
bool ored_can_recv(struct ored_sock *osk, struct ored_member *m)
{
	/* Whoever waits ends an op whose time is up by himself. */
	if (ored_deadline_due(m, ktime_get_ns()))
		ored_deadline_check(m);
	if (READ_ONCE(m->received) < READ_ONCE(m->finished) || ored_at_end(m))
		return true;
	if (READ_ONCE(osk->sk.sk_shutdown) & RCV_SHUTDOWN)
		return true;
	/* Nothing more can come. */
	return ored_at_end(m);
}

/* Reads ORED_OP from the ancillary data, if it is there. */
static int read_control(struct ored_sock *osk, struct msghdr *msg, struct ored_op *op)
{
	struct cmsghdr *cmsg;

	for_each_cmsghdr(cmsg, msg) {
		size_t len;

		if (!CMSG_OK(msg, cmsg))
			return ored_sock_refuse(osk, EINVAL, "malformed ancillary data");
		if (cmsg->cmsg_level != SOL_ORED || cmsg->cmsg_type != ORED_OP)
			return ored_sock_refuse(osk, EINVAL,
						"ancillary data of level %d, type %d: only ORED_OP is known",
						cmsg->cmsg_level, cmsg->cmsg_type);
		len = cmsg->cmsg_len - CMSG_ALIGN(sizeof(*cmsg));
		if (len > sizeof(*op) && memchr_inv(CMSG_DATA(cmsg) + sizeof(*op), 0,
						    len - sizeof(*op)))
			return ored_sock_refuse(osk, E2BIG,
						"ORED_OP has fields that this kernel doesn't know");
		memset(op, 0, sizeof(*op));
		memcpy(op, CMSG_DATA(cmsg), min(len, sizeof(*op)));
	}
	return 0;
}

static int check_bucket(struct ored_sock *osk, const struct ored_member *m,
			const struct ored_op *op, u64 len)
{
	u32 size = ored_dtype_size(op->dtype);
	bool deals = op->kind == ORED_REDUCE_SCATTER || op->kind == ORED_ALL_GATHER;

	if (len > m->conf.bucket_max)
		return ored_sock_refuse(osk, EMSGSIZE,
					"a bucket of %llu bytes is larger than this group's %llu",
					len, (u64)m->conf.bucket_max);
	if (!len)
		return ored_sock_refuse(osk, EINVAL, "an empty bucket can't be reduced");
	if ((u32)len % size)
		return ored_sock_refuse(osk, EINVAL,
					"%llu bytes are no multiple of the element's %u",
					len, size);
	if (deals && (u32)len / size < m->nranks)
		return ored_sock_refuse(osk, EINVAL,
					"%u elements are too few: each of %u ranks has a shard",
					(u32)len / size, m->nranks);
	return 0;
}

/* A rank gives its shard: that of a bucket of the given length, or everybody the same. */
static int check_shard(struct ored_sock *osk, const struct ored_member *m,
		       const struct ored_params *params, size_t len)
{
	struct ored_map map;
	u64 shard;

	ored_kind_map(&map, params, m->payload, m->nranks);
	shard = ored_map_shard_bytes(&map, m->rank);
	if (shard == len)
		return 0;
	return ored_sock_refuse(osk, EINVAL,
				"rank %u's shard of %u bytes has %llu, not the %zu that it gives",
				m->rank, params->bytes, shard, len);
}

/* What all ranks must agree on, if the op can be */
static int read_params(struct ored_sock *osk, const struct ored_member *m,
		       const struct ored_op *op, size_t len, struct ored_params *params)
{
	u8 mode = op->mode ?: READ_ONCE(m->policy.mode);
	u64 bytes = len;
	int err;

	if (op->kind == ORED_BROADCAST && op->root >= m->nranks)
		return ored_sock_refuse(osk, EINVAL,
					"root %u is not below %u, the size of the group",
					op->root, m->nranks);
	if (op->kind == ORED_BARRIER && len)
		return ored_sock_refuse(osk, EINVAL, "a barrier carries nothing, and not %zu bytes",
					len);
	if (op->flags & ORED_OP_SLOT)
		bytes = op->length;
	else if (op->kind == ORED_ALL_GATHER)
		bytes = op->length ?: (u64)len * m->nranks;
	err = op->kind == ORED_BARRIER ? 0 : check_bucket(osk, m, op, bytes);
	if (err)
		return err;
	params->bytes = op->kind == ORED_BARRIER ? m->nranks * ORED_BARRIER_BYTES : bytes;
	params->word = op->kind == ORED_BROADCAST ? ored_params_broadcast(op->root, mode) :
		       ored_params_word(op->dtype, op->reduction, op->kind, mode);
	if (op->flags & ORED_OP_SLOT || op->kind != ORED_ALL_GATHER)
		return 0;
	return check_shard(osk, m, params, len);
}

/* An op whose bucket is in a slot carries nothing. */
static int check_mapped(struct ored_sock *osk, const struct ored_member *m,
			const struct ored_op *op, size_t len)
{
	if (!(op->flags & ORED_OP_SLOT))
		return 0;
	if (!m->mapped.count)
		return ored_sock_refuse(osk, EINVAL,
					"the group was joined without ORED_JOIN_SLOTS");
	if (op->slot >= m->mapped.count)
		return ored_sock_refuse(osk, EINVAL, "slot %u: the group has %u of them", op->slot,
					m->mapped.count);
	if (len)
		return ored_sock_refuse(osk, EINVAL,
					"the bucket is in slot %u: %zu bytes more aren't wanted",
					op->slot, len);
	return 0;
}

static int send_setup(struct ored_sock *osk, struct msghdr *msg, size_t len,
		      struct ored_member **m, struct ored_op *op, struct ored_params *params)
{
	int err;

	if (msg->msg_flags & ~ORED_SEND_FLAGS)
		return ored_sock_refuse(osk, EOPNOTSUPP, "send: flags %#x are not supported",
					msg->msg_flags & ~ORED_SEND_FLAGS);
	if (msg->msg_namelen)
		return ored_sock_refuse(osk, EISCONN, "a bucket goes to the group, not to an address");
	*m = ored_sock_joined(osk);
	if (!*m)
		return ored_sock_refuse(osk, ENOTCONN, "this socket has joined no group");
	mutex_lock(&osk->conf_mutex);
	*op = osk->op;
	mutex_unlock(&osk->conf_mutex);
	err = read_control(osk, msg, op);
	if (!err)
		err = ored_op_check(osk, op);
	return err ?: check_mapped(osk, *m, op, len) ?: read_params(osk, *m, op, len, params);
}

typedef bool (*ored_ready_fn)(struct ored_sock *osk, struct ored_member *m);

static int wait_on(struct ored_sock *osk, struct ored_member *m, ored_ready_fn ready,
		   long *left, const char *what)
{
	long ret;

	if (ready(osk, m))
		return 0;
	if (!*left)
		return ored_sock_refuse(osk, EAGAIN, "%s", what);
	ret = wait_event_interruptible_timeout(*sk_sleep(&osk->sk), ready(osk, m),
					       *left);
	if (ret < 0)
		return sock_intr_errno(*left);
	if (*left != MAX_SCHEDULE_TIMEOUT)
		*left = ret;
	return ret ? 0 : ored_sock_refuse(osk, EAGAIN, "%s", what);
}

/* Copies the bucket into its slot and posts it. Return: 1 if the slot was lost. */
static int post(struct ored_sock *osk, struct ored_member *m, const struct ored_op *op,
		struct ored_params params, struct msghdr *msg, size_t len)
{
	struct ored_slot *slot;
	u8 *to;

	lockdep_assert_held(&osk->send_mutex);
	if (READ_ONCE(m->state) != ORED_STATE_JOINED)
		return ored_sock_refuse(osk, EPIPE, "this socket has left its group");
	if (!slot_is_free(m))
		return 1;
	params.word = ored_rotate_choose(m, params.word, op->flags);
	slot = ored_slot_of(m, m->posted);
	/* Pairs with the release in ored_mapped_return(). */
	if (op->flags & ORED_OP_SLOT && smp_load_acquire(&m->mapped.op[op->slot]) != ORED_NO_OP)
		return ored_sock_refuse(osk, EBUSY, "op %llu has slot %u until recv() returns it",
					m->mapped.op[op->slot], op->slot);
	to = ored_op_place(slot, &params);
	if (op->flags & ORED_OP_SLOT)
		ored_mapped_take(slot, op->slot, &params);
	else if (op->kind == ORED_BARRIER)
		put_unaligned(m->posted, (u64 *)to);
	else if (!copy_from_iter_full(to, len, &msg->msg_iter))
		return ored_sock_refuse(osk, EFAULT, "the bucket can't be read");
	ored_rotate_in(slot, &params);
	if (ored_op_post(slot, &params, op))
		return ored_sock_refuse(osk, EPIPE, "this socket has left its group");
	return 0;
}

/**
 * ored_sendmsg() - posts an op
 * @sock: the socket
 * @msg: one bucket, with ORED_OP as ancillary data or without
 * @len: its length
 *
 * Return: @len, or negative errno with a sentence
 */
int ored_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct ored_sock *osk = ored_sk(sock->sk);
	struct ored_params params;
	struct ored_member *m;
	struct ored_op op;
	long left;
	int err;

	err = send_setup(osk, msg, len, &m, &op, &params);
	if (err)
		return err;
	left = sock_sndtimeo(sock->sk, msg->msg_flags & MSG_DONTWAIT);
	do {
		err = wait_on(osk, m, ored_can_send, &left,
			      "as many ops are in flight as the group's depth allows");
		if (err)
			return err;
		mutex_lock(&osk->send_mutex);
		err = post(osk, m, &op, params, msg, len);
		mutex_unlock(&osk->send_mutex);
	} while (err > 0);
	return err ?: (int)len;
}

/*
 * What can still be asked for when the slot has been used again: peers that have
 * gone on may need it at any time.
 */
static void remember(struct ored_sock *osk, const struct ored_slot *slot,
		     const struct ored_result *result)
{
	struct ored_uncounted *last = slot->m->uncounted;

	last->op = slot->error ? ORED_NO_OP : slot->op;
	last->chunk = slot->map.payload;
	last->chunks = slot->map.chunks;
	if (!slot->error)
		ored_op_uncounted(slot, (u64 *)(last + 1));
	spin_lock(&osk->say);
	osk->past[result->op % ORED_MAX_DEPTH] = *result;
	osk->npast = result->op + 1;
	spin_unlock(&osk->say);
}

/* The sentence that goes with a failed op */
static int op_error(struct ored_sock *osk, const struct ored_result *result)
{
	static const char * const field[] = {
		"nothing", "length", "dtype", "reduction", "kind", "mode",
		"the Hadamard transform (1 auto, 2 on, 3 off)",
		"root",
	};

	switch (result->error) {
	case EPROTO:
		return ored_sock_refuse(osk, EPROTO,
					"op %llu: ranks %u and %u differ in %s: %llu and %llu",
					(u64)result->op, result->rank[0], result->rank[1],
					field[min_t(u32, result->field, ORED_FIELD_ROOT)],
					(u64)result->value[0], (u64)result->value[1]);
	case ECONNRESET:
		return ored_sock_refuse(osk, ECONNRESET,
					"op %llu: rank %u has left the group and gives nothing more to it",
					(u64)result->op, result->rank[0]);
	case ESTALE:
		return ored_sock_refuse(osk, ESTALE,
					"op %llu: rank %u has ended it and gone on, since this rank was not heard for too long",
					(u64)result->op, result->rank[0]);
	default:
		return ored_sock_refuse(osk, result->error, "op %llu has failed", (u64)result->op);
	}
}

static int copy_bucket(struct ored_sock *osk, struct ored_slot *slot, struct msghdr *msg,
		       size_t room, int flags)
{
	const u8 *from;
	size_t len, n;

	from = ored_op_result_at(slot, &len);
	if (ored_params_is_rotated(slot->mine.word))
		from = ored_rotate_out(slot);
	if (slot->user) {
		ored_mapped_result(slot, from, len);
		return len;
	}
	n = min(room, len);
	if (room < len) {
		if (!(flags & MSG_PEEK))
			return ored_sock_refuse(osk, EMSGSIZE,
						"the result has %zu bytes, the buffer %zu: it stays",
						len, room);
		msg->msg_flags |= MSG_TRUNC;
	}
	if (copy_to_iter(from, n, &msg->msg_iter) != n)
		return ored_sock_refuse(osk, EFAULT, "the buffer can't be written; the result stays");
	return flags & MSG_TRUNC ? len : n;
}

/* Takes the oldest result. Return: its length; 0 at the end; -ENODATA if there is none. */
static int take(struct ored_sock *osk, struct ored_member *m, struct msghdr *msg, size_t room,
		int flags)
{
	struct ored_result result = { .op = m->received };
	struct ored_slot *slot;
	int ret = 0;

	lockdep_assert_held(&osk->recv_mutex);
	/* Pairs with the release in ored_op_end_locked(): the result is there. */
	if (m->received >= smp_load_acquire(&m->finished) || ored_at_end(m))
		return ored_can_recv(osk, m) ? 0 : -ENODATA;
	slot = ored_slot_of(m, m->received);
	if (slot->user)
		ored_mapped_detach(slot);
	if (!slot->error) {
		ored_op_settle(slot);
		ret = copy_bucket(osk, slot, msg, room, flags);
	}
	if (ret < 0)
		return ret;
	ored_op_result(slot, &result);
	if (READ_ONCE(osk->results))
		put_cmsg(msg, SOL_ORED, ORED_RESULT, sizeof(result), &result);
	if (slot->error)
		ret = op_error(osk, &result);
	if (!(flags & MSG_PEEK)) {
		remember(osk, slot, &result);
		if (slot->user)
			ored_mapped_return(slot);
		ored_op_delivered(slot);
	}
	return ret;
}

/**
 * ored_recvmsg() - takes the oldest op's result
 * @sock: the socket
 * @msg: where to
 * @len: room
 * @flags: MSG_*
 *
 * Return: the bucket's length, 0 after the last, or negative errno with a
 * sentence; the error of a failed op is its result
 */
int ored_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	struct ored_sock *osk = ored_sk(sock->sk);
	struct ored_member *m;
	long left;
	int ret;

	if (flags & ~ORED_RECV_FLAGS)
		return ored_sock_refuse(osk, EOPNOTSUPP, "recv: flags %#x are not supported",
					flags & ~ORED_RECV_FLAGS);
	m = ored_sock_joined(osk);
	if (!m)
		return ored_sock_refuse(osk, ENOTCONN, "this socket has joined no group");
	msg->msg_namelen = 0;
	left = sock_rcvtimeo(sock->sk, flags & MSG_DONTWAIT);
	do {
		ret = wait_on(osk, m, ored_can_recv, &left, "no result yet");
		if (ret)
			return ret;
		mutex_lock(&osk->recv_mutex);
		ret = take(osk, m, msg, len, flags);
		mutex_unlock(&osk->recv_mutex);
	} while (ret == -ENODATA);
	return ret;
}
