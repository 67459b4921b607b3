// SPDX-License-Identifier: GPL-2.0
/* Sockets of protocol ORED_PROTO_CKPT: handles on areas. */

#include <linux/net.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "area.h"
#include "err.h"
#include "lock.h"
#include "value.h"

#define NEWEST_PATIENCE	(2 * HZ)	/* with peers that don't answer, without SO_RCVTIMEO */

/**
 * struct ored_area_sock - a handle
 * @sk: its generic part; must be first
 * @conf: opening
 * @area: what it is a handle on; set once, under @conf
 * @rights: ORED_AREA_MAY_*, set before @area
 * @say: protects @why
 * @why: last sentence
 */
struct ored_area_sock {
	struct sock		sk;
	struct mutex		conf;	/* opening */
	struct ored_area	*area;
	u32			rights;
	spinlock_t		say;	/* @why */
	char			why[ORED_ERROR_MAX];
};

static struct proto proto = {
	.name = "ORED-CKPT",
	.owner = THIS_MODULE,
	.obj_size = sizeof(struct ored_area_sock),
};

static struct ored_area_sock *handle_of(const struct socket *sock)
{
	return container_of(sock->sk, struct ored_area_sock, sk);
}

static struct ored_area *area_of(const struct ored_area_sock *as)
{
	/* Pairs with the release in open_area(): its rights are there. */
	return smp_load_acquire(&as->area);
}

static struct ored_net *net_of(const struct ored_area_sock *as)
{
	return ored_net(sock_net(&as->sk));
}

static noinline_for_stack int open_area(struct ored_area_sock *as, sockptr_t value,
					unsigned int len, char *why)
{
	struct ored_area_conf conf;
	struct ored_area *area;
	int err;

	err = ored_value_read(&conf, sizeof(conf), value, len, why);
	if (err)
		return err;
	if (mutex_lock_interruptible(&as->conf))
		return ored_refuse(why, EINTR, "interrupted while another call opened an area");
	if (as->area) {
		err = ored_refuse(why, EISCONN, "this socket is a handle on area %s",
				  as->area->conf.name);
		goto out;
	}
	area = ored_area_open(net_of(as), &conf, &as->rights, why);
	if (IS_ERR(area))
		err = PTR_ERR(area);
	else
		/* Whoever sees it sees its rights. */
		smp_store_release(&as->area, area);
out:
	mutex_unlock(&as->conf);
	return err;
}

static noinline_for_stack int remove_area(struct ored_area_sock *as, sockptr_t value,
					  unsigned int len, char *why)
{
	struct ored_area_conf conf;
	struct ored_area *area = NULL;
	int err;

	err = ored_value_read(&conf, sizeof(conf), value, len, why);
	if (err)
		return err;
	if (!conf.name[0]) {
		area = area_of(as);
		if (!area)
			return ored_refuse(why, EINVAL, "neither a name nor an area of this socket");
	}
	if (memchr_inv((void *)&conf + sizeof(conf.name), 0, sizeof(conf) - sizeof(conf.name)))
		return ored_refuse(why, EINVAL, "ORED_AREA_REMOVE takes nothing but a name");
	return ored_area_remove(net_of(as), area, conf.name, why);
}

/* Waits until @ready, as long as the socket's time limit says. */
static int wait_for(struct ored_area *area, bool (*ready)(struct ored_area *area, u64 step),
		    u64 step, long left, const char *what, char *why)
{
	if (ready(area, step))
		return 0;
	if (left)
		left = wait_event_interruptible_timeout(area->wait, ready(area, step), left);
	if (left < 0)
		return ored_refuse(why, EINTR, "interrupted while waiting");
	return left ? 0 : ored_refuse(why, EAGAIN, "%s", what);
}

static bool can_commit(struct ored_area *area, u64 step)
{
	return READ_ONCE(area->dead) || ored_area_may_commit(area);
}

static bool is_complete(struct ored_area *area, u64 step)
{
	u64 complete = ored_area_complete(area);

	return READ_ONCE(area->dead) || (complete != ORED_NO_STEP && complete >= step);
}

/* Or it won't be */
static bool is_decided(struct ored_area *area, u64 step)
{
	u32 rank;
	u8 code;

	return is_complete(area, step) || ored_share_is_refused(area, &rank, &code);
}

/* A holder's refusal as an errno */
static int refusal(u8 code)
{
	switch (code) {
	case ORED_AREA_NEWER:
		return -EEXIST;
	case ORED_AREA_DAMAGED:
		return -EBADMSG;
	default:
		return -EINVAL;
	}
}

static int check_commit(const struct ored_commit *commit, char *why)
{
	if (commit->flags & ~ORED_COMMIT_DIGEST_ONLY)
		return ored_refuse(why, EINVAL, "commit flags %#x don't exist",
				   commit->flags & ~ORED_COMMIT_DIGEST_ONLY);
	if (commit->meta_len > ORED_AREA_META_MAX)
		return ored_refuse(why, EINVAL, "%u bytes of metadata are more than %u",
				   commit->meta_len, ORED_AREA_META_MAX);
	if (memchr_inv(commit->meta + commit->meta_len, 0,
		       ORED_AREA_META_MAX - commit->meta_len) ||
	    memchr_inv(commit->reserved, 0, sizeof(commit->reserved)))
		return ored_refuse(why, EINVAL,
				   "reserved fields, and metadata beyond its length, must be zero");
	if (commit->step == ORED_NO_STEP)
		return ored_refuse(why, EINVAL, "step %llu stands for none", ORED_NO_STEP);
	return 0;
}

static noinline_for_stack int commit_slot(struct ored_area_sock *as, sockptr_t value,
					  unsigned int len, bool nonblock, char *why)
{
	struct ored_commit commit;
	long left = sock_sndtimeo(&as->sk, nonblock);
	int err;

	err = ored_value_read(&commit, sizeof(commit), value, len, why) ?:
	      check_commit(&commit, why);
	while (!err) {
		err = wait_for(as->area, can_commit, 0, left,
			       "the generation before is not complete yet", why);
		if (err)
			break;
		err = ored_area_commit(as->area, &commit, why);
		if (err != -EAGAIN)
			break;
		/* Somebody else has committed in between. */
		err = 0;
	}
	return err;
}

static int read_step(u64 *step, sockptr_t value, unsigned int len, char *why)
{
	if (len < sizeof(*step))
		return ored_refuse(why, EINVAL, "this option takes the 64-bit number of a step");
	return ored_value_read(step, sizeof(*step), value, len, why);
}

static int roll_back(struct ored_area_sock *as, sockptr_t value, unsigned int len, char *why)
{
	u64 step;

	return read_step(&step, value, len, why) ?: ored_area_roll_back(as->area, step, why);
}

static int wait_complete(struct ored_area_sock *as, sockptr_t value, unsigned int len,
			 bool nonblock, char *why)
{
	u32 rank;
	u64 step;
	u8 code;
	int err;

	err = read_step(&step, value, len, why);
	if (!err)
		err = wait_for(as->area, is_decided, step, sock_rcvtimeo(&as->sk, nonblock),
			       "that step is not complete yet", why);
	if (!err && READ_ONCE(as->area->dead))
		err = ored_area_gone(why);
	if (!err && !is_complete(as->area, step) &&
	    ored_share_is_refused(as->area, &rank, &code))
		err = ored_refuse(why, -refusal(code), "rank %u refuses the newest generation: %s",
				  rank, ored_share_reason(code));
	return err;
}

static noinline_for_stack int read_range(struct ored_area_sock *as, sockptr_t value,
					 unsigned int len, char *why)
{
	struct ored_area_read read;
	int err;

	err = ored_value_read(&read, sizeof(read), value, len, why);
	if (err)
		return err;
	if (memchr_inv(read.reserved, 0, sizeof(read.reserved)))
		return ored_refuse(why, EINVAL, "reserved fields must be zero");
	return ored_area_read(as->area, &read, as->rights, why);
}

static int need_area(struct ored_area_sock *as, u32 right, char *why)
{
	if (!area_of(as))
		return ored_refuse(why, ENOTCONN, "this socket is no handle on an area yet");
	if (right & ~as->rights)
		return ored_refuse(why, EACCES, "this handle is read-only");
	return 0;
}

static int write_option(struct socket *sock, int name, sockptr_t value, unsigned int len, char *why)
{
	struct ored_area_sock *as = handle_of(sock);
	bool nonblock = sock->file && sock->file->f_flags & O_NONBLOCK;

	switch (name) {
	case ORED_AREA_OPEN:
		return open_area(as, value, len, why);
	case ORED_AREA_REMOVE:
		return remove_area(as, value, len, why);
	case ORED_AREA_COMMIT:
		return need_area(as, ORED_AREA_MAY_WRITE, why) ?:
		       commit_slot(as, value, len, nonblock, why);
	case ORED_AREA_ABORT:
		return need_area(as, ORED_AREA_MAY_WRITE, why) ?: ored_area_abort(as->area, why);
	case ORED_AREA_ROLL_BACK:
		return need_area(as, ORED_AREA_MAY_WRITE, why) ?: roll_back(as, value, len, why);
	case ORED_AREA_WAIT:
		return need_area(as, 0, why) ?: wait_complete(as, value, len, nonblock, why);
	case ORED_AREA_READ:
		return need_area(as, 0, why) ?: read_range(as, value, len, why);
	default:
		return ored_refuse(why, ENOPROTOOPT, "option %d can't be set here", name);
	}
}

static int say(struct ored_area_sock *as, int err, const char *why)
{
	if (err) {
		spin_lock(&as->say);
		strscpy(as->why, why, sizeof(as->why));
		spin_unlock(&as->say);
	}
	return err;
}

static int area_setsockopt(struct socket *sock, int level, int name, sockptr_t value,
			   unsigned int len)
{
	char why[ORED_ERROR_MAX];
	int err;

	if (level == SOL_ORED)
		err = write_option(sock, name, value, len, why);
	else
		err = ored_refuse(why, ENOPROTOOPT, "level %d has no options here", level);
	return say(handle_of(sock), err, why);
}

/* Where an option's value goes */
struct out {
	char __user	*value;
	int __user	*len;
	int		room;
};

static int write_out(const struct out *out, const void *from, size_t size, char *why)
{
	return ored_value_write(out->value, out->len, out->room, from, size, why);
}

static int get_error(struct ored_area_sock *as, const struct out *out, char *why)
{
	char sentence[ORED_ERROR_MAX];

	spin_lock(&as->say);
	strscpy(sentence, as->why, sizeof(sentence));
	spin_unlock(&as->say);
	return write_out(out, sentence, strlen(sentence) + 1, why);
}

static int get_status(struct ored_area_sock *as, const struct out *out, char *why)
{
	struct ored_area_status status;

	return ored_area_status(as->area, &status, why) ?:
	       write_out(out, &status, sizeof(status), why);
}

static int get_generations(struct ored_area_sock *as, const struct out *out, char *why)
{
	struct ored_generation *gens;
	int err;
	u32 n;

	err = ored_area_generations(as->area, &gens, &n, why) ?:
	      write_out(out, gens, n * sizeof(*gens), why);
	kvfree(gens);
	return err;
}

static int get_newest(struct ored_area_sock *as, const struct out *out, char *why)
{
	long patience = sock_rcvtimeo(&as->sk, false);
	struct ored_area_newest newest;

	if (patience == MAX_SCHEDULE_TIMEOUT)
		patience = NEWEST_PATIENCE;
	return ored_area_newest(as->area, &newest, patience, why) ?:
	       write_out(out, &newest, sizeof(newest), why);
}

static int get_list(struct ored_area_sock *as, const struct out *out, char *why)
{
	struct ored_area_entry *entries;
	int err;
	u32 n;

	if (ored_area_list(net_of(as), &entries, &n))
		return ored_refuse(why, ENOMEM, "out of memory");
	err = write_out(out, entries, n * sizeof(*entries), why);
	kvfree(entries);
	return err;
}

static int read_option(struct socket *sock, int name, const struct out *out, char *why)
{
	struct ored_area_sock *as = handle_of(sock);

	switch (name) {
	case ORED_ERROR:
		return get_error(as, out, why);
	case ORED_AREA_LIST:
		return get_list(as, out, why);
	case ORED_AREA_OPEN:
		return need_area(as, 0, why) ?:
		       write_out(out, &as->area->conf, sizeof(as->area->conf), why);
	case ORED_AREA_STATUS:
		return need_area(as, 0, why) ?: get_status(as, out, why);
	case ORED_AREA_GENERATIONS:
		return need_area(as, 0, why) ?: get_generations(as, out, why);
	case ORED_AREA_NEWEST:
		return need_area(as, 0, why) ?: get_newest(as, out, why);
	default:
		return ored_refuse(why, ENOPROTOOPT, "option %d can't be read here", name);
	}
}

static int area_getsockopt(struct socket *sock, int level, int name, char __user *value,
			   int __user *len)
{
	struct out out = { .value = value, .len = len };
	char why[ORED_ERROR_MAX];
	int err;

	if (level != SOL_ORED)
		err = ored_refuse(why, ENOPROTOOPT, "level %d has no options here", level);
	else if (get_user(out.room, len))
		err = ored_refuse(why, EFAULT, "the option's length can't be read");
	else if (out.room < 0)
		err = ored_refuse(why, EINVAL, "the option's length is negative");
	else
		err = read_option(sock, name, &out, why);
	return say(handle_of(sock), err, why);
}

static int area_mmap(struct file *file, struct socket *sock, struct vm_area_struct *vma)
{
	struct ored_area_sock *as = handle_of(sock);
	char why[ORED_ERROR_MAX];

	int err;

	err = need_area(as, 0, why) ?: ored_area_mmap(as->area, as->rights, vma, why);
	return say(as, err, why);
}

/* Languages ask it what a descriptor that they were handed is. */
static int area_getname(struct socket *sock, struct sockaddr *uaddr, int peer)
{
	struct sockaddr_ored *addr = (struct sockaddr_ored *)uaddr;

	if (peer)
		return say(handle_of(sock), -ENOTCONN, "an area has no peer");
	memset(addr, 0, sizeof(*addr));
	addr->sored_family = sock->sk->sk_family;
	return sizeof(*addr);
}

static __poll_t area_poll(struct file *file, struct socket *sock, poll_table *table)
{
	struct ored_area *area = area_of(handle_of(sock));
	__poll_t events = 0;

	if (!area)
		return EPOLLHUP;
	poll_wait(file, &area->wait, table);
	if (READ_ONCE(area->dead))
		return EPOLLERR | EPOLLHUP;
	if (ored_area_newest_complete(area))
		events |= EPOLLIN | EPOLLRDNORM;
	if (ored_area_may_commit(area))
		events |= EPOLLOUT | EPOLLWRNORM;
	return events;
}

static int area_release(struct socket *sock)
{
	struct sock *sk = sock->sk;

	if (!sk)
		return 0;
	if (handle_of(sock)->area)
		ored_area_close(handle_of(sock)->area);
	sock_prot_inuse_add(sock_net(sk), sk->sk_prot, -1);
	sock_orphan(sk);
	sock->sk = NULL;
	sock_put(sk);
	return 0;
}

static const struct proto_ops ops = {
	.owner = THIS_MODULE,
	.release = area_release,
	.bind = sock_no_bind,
	.connect = sock_no_connect,
	.socketpair = sock_no_socketpair,
	.accept = sock_no_accept,
	.getname = area_getname,
	.poll = area_poll,
	.ioctl = sock_no_ioctl,
	.gettstamp = sock_gettstamp,
	.listen = sock_no_listen,
	.shutdown = sock_no_shutdown,
	.setsockopt = area_setsockopt,
	.getsockopt = area_getsockopt,
	.sendmsg = sock_no_sendmsg,
	.recvmsg = sock_no_recvmsg,
	.mmap = area_mmap,
};

/**
 * ored_area_sock_create() - socket() with ORED_PROTO_CKPT
 * @net: namespace
 * @sock: the socket
 * @family: the family's number
 * @kern: of the kernel itself
 *
 * Return: 0 or -ENOMEM
 */
int ored_area_sock_create(struct net *net, struct socket *sock, int family, int kern)
{
	struct ored_area_sock *as;
	struct sock *sk;

	sk = sk_alloc(net, family, GFP_KERNEL, &proto, kern);
	if (!sk)
		return -ENOMEM;
	sock->ops = &ops;
	sock_init_data(sock, sk);
	as = handle_of(sock);
	mutex_init(&as->conf);
	ored_lock_class(&as->conf, ORED_LOCK_CONF);
	spin_lock_init(&as->say);
	ored_lock_class(&as->say, ORED_LOCK_SAY);
	sock_prot_inuse_add(net, sk->sk_prot, 1);
	return 0;
}

/**
 * ored_area_sock_init() - registers the protocol
 *
 * Return: 0 or negative errno
 */
int __init ored_area_sock_init(void)
{
	int err;

	err = ored_area_map_init();
	if (err)
		return err;
	err = proto_register(&proto, 0);
	if (err)
		ored_area_map_exit();
	return err;
}

void ored_area_sock_exit(void)
{
	proto_unregister(&proto);
	ored_area_map_exit();
}
