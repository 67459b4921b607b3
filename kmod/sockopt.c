// SPDX-License-Identifier: GPL-2.0
/* Options at level SOL_ORED. */

#include <linux/capability.h>
#include <linux/slab.h>
#include <linux/sockptr.h>

#include "af_ored.h"
#include "core/reduce.h"
#include "describe.h"
#include "err.h"
#include "event.h"
#include "op.h"
#include "policy.h"
#include "setup.h"
#include "tell.h"
#include "tx.h"
#include "value.h"

#define ORED_PEER_SIZE_MAX 256

/* Reads a structure that may be shorter or longer than ours. */
static int read_struct(struct ored_sock *osk, void *to, size_t size, sockptr_t from,
		       size_t len)
{
	char why[ORED_ERROR_MAX];

	return ored_sock_say(osk, ored_value_read(to, size, from, len, why), why);
}

static int check_reserved(struct ored_sock *osk, const void *reserved, size_t len)
{
	if (!memchr_inv(reserved, 0, len))
		return 0;
	return ored_sock_refuse(osk, EINVAL, "reserved fields must be zero");
}

/* What only some kinds have */
static int check_kind(struct ored_sock *osk, const struct ored_op *op)
{
	bool adds = op->kind == ORED_ALLREDUCE || op->kind == ORED_REDUCE_SCATTER;

	if (op->reduction && !adds)
		return ored_sock_refuse(osk, EINVAL, "kind %u adds nothing up: no reduction",
					op->kind);
	if (op->dtype && op->kind == ORED_BARRIER)
		return ored_sock_refuse(osk, EINVAL, "a barrier has no dtype");
	if (op->root && op->kind != ORED_BROADCAST)
		return ored_sock_refuse(osk, EINVAL, "only a broadcast has a root");
	if (op->flags & ORED_OP_SLOT)
		return op->kind != ORED_BARRIER ? 0 :
		       ored_sock_refuse(osk, EINVAL, "a barrier has nothing to put in a slot");
	if (op->length && op->kind != ORED_ALL_GATHER)
		return ored_sock_refuse(osk, EINVAL,
					"only an all-gather, or what is in a slot, has a length");
	if (op->slot)
		return ored_sock_refuse(osk, EINVAL, "a slot without ORED_OP_SLOT");
	return 0;
}

/**
 * ored_op_check() - can an op with these parameters run?
 * @osk: the socket, for the sentence
 * @op: from the user
 *
 * Return: 0; -EINVAL: nonsense; -EOPNOTSUPP: not built yet
 */
int ored_op_check(struct ored_sock *osk, const struct ored_op *op)
{
	if (op->kind > ORED_BARRIER)
		return ored_sock_refuse(osk, EINVAL, "kind %u is no collective", op->kind);
	if (!ored_dtype_size(op->dtype))
		return ored_sock_refuse(osk, EINVAL, "dtype %u doesn't exist", op->dtype);
	if (op->reduction > ORED_MAX)
		return ored_sock_refuse(osk, EINVAL, "reduction %u doesn't exist", op->reduction);
	if (op->mode > ORED_MODE_RELIABLE)
		return ored_sock_refuse(osk, EINVAL, "mode %u doesn't exist", op->mode);
	if (op->flags & ~ORED_OP_FLAGS)
		return ored_sock_refuse(osk, EINVAL, "op flags %#x don't exist",
					op->flags & ~ORED_OP_FLAGS);
	if (check_reserved(osk, op->reserved, sizeof(op->reserved)))
		return -EINVAL;
	if (op->flags & ORED_OP_HADAMARD_ON && op->flags & ORED_OP_HADAMARD_OFF)
		return ored_sock_refuse(osk, EINVAL, "the Hadamard transform can't be both on and off");
	if (op->flags & ORED_OP_HADAMARD_ON &&
	    !ored_rotate_takes(op->kind, op->dtype, op->reduction))
		return ored_sock_refuse(osk, EINVAL,
					"the Hadamard transform is for allreduces: sums and means of 32- and 16-bit floats");
	if (op->mode == ORED_MODE_RELIABLE && (op->deadline_us || op->wait_us))
		return ored_sock_refuse(osk, EINVAL, "a reliable op has no deadline");
	if (op->wait_us && op->flags & ORED_OP_NO_WAIT)
		return ored_sock_refuse(osk, EINVAL, "wait_us and ORED_OP_NO_WAIT exclude each other");
	return check_kind(osk, op);
}

static int set_op(struct ored_sock *osk, sockptr_t value, unsigned int len)
{
	struct ored_op op;
	int err;

	err = read_struct(osk, &op, sizeof(op), value, len);
	if (!err)
		err = ored_op_check(osk, &op);
	if (err)
		return err;
	mutex_lock(&osk->conf_mutex);
	osk->op = op;
	mutex_unlock(&osk->conf_mutex);
	return 0;
}

static int check_sizes(struct ored_sock *osk, const struct ored_join *conf)
{
	if (!conf->nranks || conf->nranks > ORED_MAX_RANKS)
		return ored_sock_refuse(osk, EINVAL, "nranks is %u, not 1 to %u", conf->nranks,
					ORED_MAX_RANKS);
	if (conf->rank >= conf->nranks)
		return ored_sock_refuse(osk, EINVAL, "rank %u is not below nranks, %u", conf->rank,
					conf->nranks);
	if (!conf->depth || conf->depth > ORED_MAX_DEPTH)
		return ored_sock_refuse(osk, EINVAL, "depth is %u, not 1 to %u", conf->depth,
					ORED_MAX_DEPTH);
	if (conf->bucket_max > ORED_MAX_BUCKET)
		return ored_sock_refuse(osk, EMSGSIZE, "bucket_max is %llu; the largest is %u",
					(u64)conf->bucket_max, ORED_MAX_BUCKET);
	if (!conf->bucket_max || conf->bucket_max % 8)
		return ored_sock_refuse(osk, EINVAL, "bucket_max is %llu, no positive multiple of 8",
					(u64)conf->bucket_max);
	if (conf->payload_max && conf->payload_max < ORED_PAYLOAD_MIN)
		return ored_sock_refuse(osk, EINVAL, "payload_max is %u, less than %u",
					conf->payload_max, ORED_PAYLOAD_MIN);
	return 0;
}

static int check_conf(struct ored_sock *osk, const struct ored_join *conf, int name)
{
	int err;

	if (conf->flags & ~ORED_JOIN_FLAGS)
		return ored_sock_refuse(osk, EINVAL, "join flags %#x don't exist",
					conf->flags & ~ORED_JOIN_FLAGS);
	err = check_reserved(osk, conf->reserved, sizeof(conf->reserved));
	if (!err)
		err = check_sizes(osk, conf);
	if (err)
		return err;
	if (conf->peer_size < sizeof(struct ored_peer) || conf->peer_size > ORED_PEER_SIZE_MAX)
		return ored_sock_refuse(osk, EINVAL, "peer_size is %u, not %zu or a little more",
					conf->peer_size, sizeof(struct ored_peer));
	if (name == ORED_JOIN && conf->uid)
		return ored_sock_refuse(osk, EINVAL, "uid belongs to ORED_SETUP");
	if (name == ORED_SETUP && conf->rank)
		return ored_sock_refuse(osk, EINVAL, "the rank is chosen by bind()");
	if (conf->flags & ORED_JOIN_KEY)
		return ored_sock_refuse(osk, EOPNOTSUPP, "keys are not built yet");
	if (memchr_inv(conf->key, 0, sizeof(conf->key)))
		return ored_sock_refuse(osk, EINVAL, "a key without ORED_JOIN_KEY");
	return 0;
}

/* Reads the fixed part, which says itself how long it is. */
static int read_conf(struct ored_sock *osk, sockptr_t value, unsigned int len,
		     struct ored_join *conf)
{
	u32 size;
	int err;

	if (len < sizeof(size))
		return ored_sock_refuse(osk, EINVAL, "%u bytes are no struct ored_join", len);
	if (copy_from_sockptr(&size, value, sizeof(size)))
		return ored_sock_refuse(osk, EFAULT, "the option's value can't be read");
	if (size < offsetofend(struct ored_join, peer_size) || size > len)
		return ored_sock_refuse(osk, EINVAL,
					"size is %u: the structure has at least %zu bytes, and the option has %u",
					size, offsetofend(struct ored_join, peer_size), len);
	err = read_struct(osk, conf, sizeof(*conf), value, size);
	if (err)
		return err;
	/* From here on it is what it was read as, whatever it says now. */
	conf->size = size;
	conf->port = conf->port ?: ORED_PORT_DEFAULT;
	conf->timeout_ms = conf->timeout_ms ?: ORED_TIMEOUT_DEFAULT;
	return 0;
}

static int read_peer(struct ored_sock *osk, sockptr_t value, u32 at, u32 size,
		     struct ored_peer *peer)
{
	int zero;

	if (copy_from_sockptr_offset(peer, value, at, sizeof(*peer)))
		return ored_sock_refuse(osk, EFAULT, "the peers can't be read");
	if (size == sizeof(*peer))
		return 0;
	zero = check_zeroed_sockptr(value, at + sizeof(*peer), size - sizeof(*peer));
	if (zero < 0)
		return ored_sock_refuse(osk, EFAULT, "the peers can't be read");
	if (!zero)
		return ored_sock_refuse(osk, E2BIG, "a peer has what this kernel doesn't know");
	return 0;
}

static int read_peers(struct ored_sock *osk, sockptr_t value, unsigned int len,
		      const struct ored_join *conf, struct ored_peer **peers)
{
	u32 bytes = conf->nranks * conf->peer_size, r;
	int err = 0;

	if (len - conf->size != bytes)
		return ored_sock_refuse(osk, EINVAL,
					"%u bytes follow the structure, but %u peers have %u",
					len - conf->size, conf->nranks, bytes);
	*peers = kvmalloc_array(conf->nranks, sizeof(**peers), GFP_KERNEL_ACCOUNT);
	if (!*peers)
		return ored_sock_refuse(osk, ENOMEM, "out of memory");
	for (r = 0; r < conf->nranks && !err; r++)
		err = read_peer(osk, value, conf->size + r * conf->peer_size, conf->peer_size,
				&(*peers)[r]);
	if (err)
		kvfree(*peers);
	return err;
}

static bool may_administer(struct ored_sock *osk)
{
	return ns_capable(sock_net(&osk->sk)->user_ns, CAP_NET_ADMIN);
}

static int set_group(struct socket *sock, int name, sockptr_t value, unsigned int len)
{
	struct ored_sock *osk = ored_sk(sock->sk);
	struct ored_net *on = ored_net(sock_net(sock->sk));
	struct ored_peer *peers;
	struct ored_join conf;
	char why[ORED_ERROR_MAX];
	int err;

	if (!may_administer(osk))
		return ored_sock_refuse(osk, EPERM,
					"this needs CAP_NET_ADMIN; without it, bind() to a group that an administrator has set up");
	err = read_conf(osk, value, len, &conf);
	if (err)
		return err;
	if (name == ORED_TEARDOWN) {
		err = check_reserved(osk, conf.reserved, sizeof(conf.reserved));
		if (!err && (conf.flags || conf.size != len))
			err = ored_sock_refuse(osk, EINVAL,
					       "ORED_TEARDOWN takes neither flags nor peers");
		return err ?: ored_sock_say(osk, ored_setup_remove(on, &conf, why), why);
	}
	err = check_conf(osk, &conf, name);
	if (!err)
		err = read_peers(osk, value, len, &conf, &peers);
	if (err)
		return err;
	if (name == ORED_JOIN)
		err = ored_sock_join(sock, &conf, peers, NULL);
	else
		err = ored_sock_say(osk, ored_setup_add(on, &conf, peers, NULL, why),
				    why);
	kvfree(peers);
	return err;
}

static int tell_again(struct ored_sock *osk, unsigned int len)
{
	if (len)
		return ored_sock_refuse(osk, EINVAL, "ORED_TELL_AGAIN takes no value");
	if (!may_administer(osk))
		return ored_sock_refuse(osk, EPERM,
					"having memberships told of again needs CAP_NET_ADMIN");
	ored_tell_again(ored_net(sock_net(&osk->sk)));
	return 0;
}

static int set_policy(struct ored_sock *osk, sockptr_t value, unsigned int len)
{
	struct ored_member *m = ored_sock_joined(osk);
	struct ored_policy policy;
	char why[ORED_ERROR_MAX];
	int err;

	if (!m)
		return ored_sock_refuse(osk, ENOTCONN, "this socket has joined no group");
	err = read_struct(osk, &policy, sizeof(policy), value, len);
	err = err ?: ored_sock_say(osk, ored_policy_set(m, &policy, why), why);
	if (err)
		return err;
	spin_lock_bh(&m->lock);
	ored_event_rank(m, ORED_CMD_POLICY_NTF);
	spin_unlock_bh(&m->lock);
	return 0;
}

static int set_results(struct ored_sock *osk, sockptr_t value, unsigned int len)
{
	int on, err;

	if (len < sizeof(on))
		return ored_sock_refuse(osk, EINVAL, "ORED_RESULTS takes an int");
	err = read_struct(osk, &on, sizeof(on), value, len);
	if (err)
		return err;
	if (on != 0 && on != 1)
		return ored_sock_refuse(osk, EINVAL, "ORED_RESULTS is 0 or 1, not %d", on);
	WRITE_ONCE(osk->results, on);
	return 0;
}

static int set_result_of(struct ored_sock *osk, sockptr_t value, unsigned int len)
{
	u64 op;
	int err;

	if (len < sizeof(op))
		return ored_sock_refuse(osk, EINVAL,
					"ORED_RESULT_OF takes the 64-bit number of an op");
	err = read_struct(osk, &op, sizeof(op), value, len);
	if (err)
		return err;
	spin_lock(&osk->say);
	osk->result_of = op;
	spin_unlock(&osk->say);
	return 0;
}

/**
 * ored_setsockopt() - sets an option
 * @sock: the socket
 * @level: SOL_ORED
 * @name: enum ored_option
 * @value: its value
 * @len: bytes of it
 *
 * Return: 0, or negative errno with a sentence
 */
int ored_setsockopt(struct socket *sock, int level, int name, sockptr_t value,
		    unsigned int len)
{
	struct ored_sock *osk = ored_sk(sock->sk);

	if (level != SOL_ORED)
		return ored_sock_refuse(osk, ENOPROTOOPT, "level %d has no options here", level);
	switch (name) {
	case ORED_JOIN:
	case ORED_SETUP:
	case ORED_TEARDOWN:
		return set_group(sock, name, value, len);
	case ORED_OP:
		return set_op(osk, value, len);
	case ORED_RESULTS:
		return set_results(osk, value, len);
	case ORED_RESULT_OF:
		return set_result_of(osk, value, len);
	case ORED_POLICY:
		return set_policy(osk, value, len);
	case ORED_TELL_AGAIN:
		return tell_again(osk, len);
	case ORED_AREA_OPEN:
	case ORED_AREA_REMOVE:
	case ORED_AREA_COMMIT:
	case ORED_AREA_ABORT:
	case ORED_AREA_READ:
	case ORED_AREA_ROLL_BACK:
	case ORED_AREA_WAIT:
		return ored_sock_refuse(osk, ENOPROTOOPT, "option %d is for ORED_PROTO_CKPT", name);
	default:
		return ored_sock_refuse(osk, ENOPROTOOPT, "option %d can't be set", name);
	}
}

/* Where an option's value goes */
struct ored_out {
	char __user	*value;
	int __user	*len;
	int		room;
};

static int write_out(struct ored_sock *osk, const struct ored_out *out, const void *from,
		     size_t size)
{
	char why[ORED_ERROR_MAX];
	int err;

	err = ored_value_write(out->value, out->len, out->room, from, size, why);
	return ored_sock_say(osk, err, why);
}

/* The membership, whatever its state. It can't go while conf_mutex is held. */
static struct ored_member *membership(struct ored_sock *osk)
{
	return rcu_dereference_protected(osk->m, lockdep_is_held(&osk->conf_mutex));
}

static int get_error(struct ored_sock *osk, const struct ored_out *out)
{
	char why[ORED_ERROR_MAX];
	struct ored_member *m;
	size_t len;

	/* A join that failed while nobody waited has no sentence yet. */
	mutex_lock(&osk->conf_mutex);
	m = membership(osk);
	if (m)
		ored_sock_explain(osk, m);
	mutex_unlock(&osk->conf_mutex);
	spin_lock(&osk->say);
	memcpy(why, osk->why, sizeof(why));
	spin_unlock(&osk->say);
	len = strnlen(why, sizeof(why) - 1);
	why[len] = 0;
	return write_out(osk, out, why, len + 1);
}

static int get_op(struct ored_sock *osk, const struct ored_out *out)
{
	struct ored_op op;

	mutex_lock(&osk->conf_mutex);
	op = osk->op;
	mutex_unlock(&osk->conf_mutex);
	return write_out(osk, out, &op, sizeof(op));
}

/* A result that recv() has returned already. */
static bool find_past(struct ored_sock *osk, struct ored_result *result)
{
	bool found;

	spin_lock(&osk->say);
	found = result->op < osk->npast && result->op + ORED_MAX_DEPTH >= osk->npast;
	if (found)
		*result = osk->past[result->op % ORED_MAX_DEPTH];
	spin_unlock(&osk->say);
	return found;
}

/* A result that recv() has yet to return. */
static bool find_finished(struct ored_sock *osk, struct ored_result *result)
{
	struct ored_member *m = ored_sock_joined(osk);
	struct ored_slot *slot;
	bool found = false;

	if (!m)
		return false;
	spin_lock_bh(&m->lock);
	if (result->op >= m->received && result->op < m->posted) {
		slot = ored_slot_of(m, result->op);
		found = slot->state == ORED_SLOT_FINISHED;
		if (found)
			ored_op_result(slot, result);
	}
	spin_unlock_bh(&m->lock);
	return found;
}

static int find_result(struct ored_sock *osk, struct ored_result *result,
		       const struct ored_out *out)
{
	if (!find_past(osk, result) && !find_finished(osk, result) && !find_past(osk, result))
		return ored_sock_refuse(osk, ENOENT, "op %llu has not ended, or too long ago",
					(u64)result->op);
	return write_out(osk, out, result, sizeof(*result));
}

static int get_result(struct ored_sock *osk, const struct ored_out *out)
{
	struct ored_result result = {};

	if (out->room < (int)sizeof(result.op))
		return ored_sock_refuse(osk, EINVAL, "ORED_RESULT starts with the op that is asked for");
	if (copy_from_user(&result.op, out->value, sizeof(result.op)))
		return ored_sock_refuse(osk, EFAULT, "the op can't be read");
	return find_result(osk, &result, out);
}

/* For those who can't pass the op in */
static int get_result_of(struct ored_sock *osk, const struct ored_out *out)
{
	struct ored_result result = {};

	spin_lock(&osk->say);
	result.op = osk->result_of == ORED_NO_OP ? osk->npast - 1 : osk->result_of;
	spin_unlock(&osk->say);
	return find_result(osk, &result, out);
}

static int egress(struct ored_member *m)
{
	struct ored_route route;
	int ifindex = 0;

	if (m->nranks < 2)
		return 0;
	local_bh_disable();
	if (!ored_route_get(&m->links[(m->rank + 1) % m->nranks], &route)) {
		ifindex = route.dst->dev->ifindex;
		dst_release(route.dst);
	}
	local_bh_enable();
	return ifindex;
}

static void describe(struct ored_member *m, struct ored_group *group)
{
	group->group = m->conf.group;
	group->rank = m->rank;
	group->nranks = m->nranks;
	group->depth = m->conf.depth;
	group->epoch = m->conf.epoch;
	group->bucket_max = m->conf.bucket_max;
	group->port = ntohs(m->links[m->rank].addr.port);
	group->family = m->family;
	group->memory = m->memory;
	group->slots = m->mapped.count;
	group->slot_stride = m->mapped.stride;
	group->ifindex = egress(m);
	spin_lock_bh(&m->lock);
	group->state = m->state;
	group->payload = m->payload;
	group->posted = m->posted;
	group->finished = m->finished;
	group->received = m->received;
	spin_unlock_bh(&m->lock);
}

static int get_group(struct ored_sock *osk, const struct ored_out *out)
{
	struct ored_group group = { .abi = ORED_ABI_VERSION, .header = ORED_WIRE_HEADER };

	mutex_lock(&osk->conf_mutex);
	if (membership(osk))
		describe(membership(osk), &group);
	mutex_unlock(&osk->conf_mutex);
	return write_out(osk, out, &group, sizeof(group));
}

static int get_peers(struct ored_sock *osk, const struct ored_out *out)
{
	struct ored_peer_state *states;
	struct ored_member *m;
	u32 r, n = 0;
	int err;

	mutex_lock(&osk->conf_mutex);
	m = membership(osk);
	if (!m) {
		mutex_unlock(&osk->conf_mutex);
		return ored_sock_refuse(osk, ENOTCONN, "this socket has joined no group");
	}
	states = kvcalloc(m->nranks, sizeof(*states), GFP_KERNEL_ACCOUNT);
	for (r = 0; states && r < m->nranks; r++)
		ored_describe_peer(m, &m->links[r], &states[n++]);
	mutex_unlock(&osk->conf_mutex);
	if (!states)
		return ored_sock_refuse(osk, ENOMEM, "out of memory");
	err = write_out(osk, out, states, n * sizeof(*states));
	kvfree(states);
	return err;
}

static int get_stats(struct ored_sock *osk, const struct ored_out *out)
{
	u64 sum[ORED_CNT_MAX] = {};

	mutex_lock(&osk->conf_mutex);
	if (membership(osk))
		ored_stats_read(membership(osk)->stats, sum);
	mutex_unlock(&osk->conf_mutex);
	ored_stats_read(ored_net(sock_net(&osk->sk))->stats, sum);
	return write_out(osk, out, sum, sizeof(sum));
}

static int get_policy(struct ored_sock *osk, const struct ored_out *out)
{
	struct ored_member *m = ored_sock_joined(osk);
	struct ored_policy policy;

	if (!m)
		return ored_sock_refuse(osk, ENOTCONN, "this socket has joined no group");
	spin_lock_bh(&m->lock);
	policy = m->policy;
	spin_unlock_bh(&m->lock);
	return write_out(osk, out, &policy, sizeof(policy));
}

/* Under recv_mutex nobody receives meanwhile. */
static bool was_rotated(struct ored_sock *osk, u64 op)
{
	struct ored_result result = { .op = op };

	return find_past(osk, &result) && result.flags & ORED_RESULT_HADAMARD;
}

static int write_uncounted(struct ored_sock *osk, struct ored_member *m,
			   const struct ored_out *out, u64 op)
{
	const struct ored_uncounted *last = m->uncounted;
	size_t size = sizeof(*last) + DIV_ROUND_UP(last->chunks, 64) * sizeof(u64);

	if (last->op != op || op == ORED_NO_OP)
		return ored_sock_refuse(osk, ENOENT,
					"op %llu is not the one whose result was received last, or it failed",
					op);
	if (was_rotated(osk, op))
		return ored_sock_refuse(osk, EOPNOTSUPP,
					"op %llu was Hadamard-transformed: its chunks are no parts of the bucket",
					op);
	if (out->room < (int)size)
		return ored_sock_refuse(osk, EMSGSIZE, "the bitmap needs %zu bytes", size);
	return write_out(osk, out, last, size);
}

static int get_uncounted(struct ored_sock *osk, const struct ored_out *out)
{
	struct ored_member *m = ored_sock_joined(osk);
	int err;
	u64 op;

	if (!m)
		return ored_sock_refuse(osk, ENOTCONN, "this socket has joined no group");
	if (out->room < (int)sizeof(op))
		return ored_sock_refuse(osk, EINVAL,
					"ORED_UNCOUNTED starts with the op that is asked for");
	if (copy_from_user(&op, out->value, sizeof(op)))
		return ored_sock_refuse(osk, EFAULT, "the op can't be read");
	mutex_lock(&osk->recv_mutex);
	err = write_uncounted(osk, m, out, op);
	mutex_unlock(&osk->recv_mutex);
	return err;
}

static int get_results(struct ored_sock *osk, const struct ored_out *out)
{
	int on = READ_ONCE(osk->results);

	return write_out(osk, out, &on, sizeof(on));
}

/**
 * ored_getsockopt() - reads an option
 * @sock: the socket
 * @level: SOL_ORED
 * @name: enum ored_option
 * @value: where to
 * @len: room in, bytes out
 *
 * Return: 0, or negative errno with a sentence
 */
int ored_getsockopt(struct socket *sock, int level, int name, char __user *value,
		    int __user *len)
{
	struct ored_sock *osk = ored_sk(sock->sk);
	struct ored_out out = { .value = value, .len = len };

	if (level != SOL_ORED)
		return ored_sock_refuse(osk, ENOPROTOOPT, "level %d has no options here", level);
	if (get_user(out.room, len))
		return ored_sock_refuse(osk, EFAULT, "the option's length can't be read");
	if (out.room < 0)
		return ored_sock_refuse(osk, EINVAL, "the option's length is negative");
	switch (name) {
	case ORED_OP:
		return get_op(osk, &out);
	case ORED_RESULT:
		return get_result(osk, &out);
	case ORED_RESULT_OF:
		return get_result_of(osk, &out);
	case ORED_RESULTS:
		return get_results(osk, &out);
	case ORED_ERROR:
		return get_error(osk, &out);
	case ORED_GROUP:
		return get_group(osk, &out);
	case ORED_PEERS:
		return get_peers(osk, &out);
	case ORED_STATS:
		return get_stats(osk, &out);
	case ORED_POLICY:
		return get_policy(osk, &out);
	case ORED_UNCOUNTED:
		return get_uncounted(osk, &out);
	case ORED_AREA_STATUS:
	case ORED_AREA_NEWEST:
	case ORED_AREA_GENERATIONS:
	case ORED_AREA_LIST:
		return ored_sock_refuse(osk, ENOPROTOOPT, "option %d is for ORED_PROTO_CKPT", name);
	default:
		return ored_sock_refuse(osk, ENOPROTOOPT, "option %d can't be read", name);
	}
}
