// SPDX-License-Identifier: GPL-2.0
/* Areas by name: making, finding, listing and removing them. */

#include <linux/capability.h>
#include <linux/ctype.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "area.h"
#include "err.h"
#include "lock.h"

static void release(struct kref *ref)
{
	ored_area_free(container_of(ref, struct ored_area, ref));
}

/**
 * ored_area_put() - gives up a reference
 * @area: the area
 */
void ored_area_put(struct ored_area *area)
{
	kref_put(&area->ref, release);
}

static int check_name(const struct ored_area_conf *conf, char *why)
{
	size_t len = strnlen(conf->name, sizeof(conf->name)), i;

	if (!len || len == sizeof(conf->name))
		return ored_refuse(why, EINVAL, "an area's name has 1 to %d bytes and a NUL",
				   ORED_AREA_NAME_MAX - 1);
	for (i = 0; i < len; i++) {
		if (iscntrl(conf->name[i]) || conf->name[i] == '/')
			return ored_refuse(why, EINVAL, "byte %zu of the name is %#x", i,
					   conf->name[i]);
	}
	return 0;
}

static int check_conf(const struct ored_area_conf *conf, char *why)
{
	if (conf->flags & ~ORED_AREA_FLAGS)
		return ored_refuse(why, EINVAL, "area flags %#x don't exist",
				   conf->flags & ~ORED_AREA_FLAGS);
	if (conf->flags & ORED_AREA_EXCLUSIVE && !(conf->flags & ORED_AREA_CREATE))
		return ored_refuse(why, EINVAL, "ORED_AREA_EXCLUSIVE without ORED_AREA_CREATE");
	if (conf->mode & ~0777)
		return ored_refuse(why, EINVAL, "mode is %#o, more than 0777", conf->mode);
	if (conf->memory || memchr_inv(conf->reserved, 0, sizeof(conf->reserved)))
		return ored_refuse(why, EINVAL, "memory and reserved fields must be zero");
	return check_name(conf, why);
}

/* What a new area must be; zeros stand for defaults. */
static int check_new(struct ored_area_conf *conf, struct ored_placement *place, char *why)
{
	conf->mode = conf->mode ?: 0600;
	conf->nranks = conf->nranks ?: 1;
	conf->copies = conf->copies ?: 1;
	conf->jump = conf->jump ?: 1;
	if (!conf->bytes || conf->bytes > ORED_AREA_BYTES_MAX)
		return ored_refuse(why, EINVAL, "bytes is %llu, not 1 to %llu", (u64)conf->bytes,
				   ORED_AREA_BYTES_MAX);
	*place = (struct ored_placement) {
		.nranks = conf->nranks,
		.copies = conf->copies,
		.kind = conf->placement,
		.jump = conf->jump,
	};
	if (!ored_placement_valid(place))
		return ored_refuse(why, EINVAL,
				   "%u copies among %u ranks, placement %u, jump %u: there is no such placement",
				   conf->copies, conf->nranks, conf->placement, conf->jump);
	if (conf->owner >= conf->nranks)
		return ored_refuse(why, EINVAL, "owner %u is not below nranks, %u", conf->owner,
				   conf->nranks);
	return 0;
}

static struct ored_area *find(struct ored_net *on, const u8 *name)
{
	struct ored_area *area;

	lockdep_assert_held(&on->lock);
	list_for_each_entry(area, &on->areas, list) {
		if (!strncmp(area->conf.name, name, sizeof(area->conf.name)))
			return area;
	}
	return NULL;
}

static bool is_admin(const struct ored_net *on)
{
	return ns_capable(on->net->user_ns, CAP_NET_ADMIN);
}

/* Rights by the mode, as with a file */
static u32 allowed(const struct ored_net *on, const struct ored_area *area)
{
	if (is_admin(on))
		return ORED_AREA_MAY_READ | ORED_AREA_MAY_WRITE;
	if (uid_eq(current_fsuid(), area->uid))
		return area->conf.mode >> 6;
	if (in_group_p(area->gid))
		return area->conf.mode >> 3;
	return area->conf.mode;
}

static int take_rights(const struct ored_net *on, const struct ored_area *area, u32 flags,
		       u32 *rights, char *why)
{
	*rights = ORED_AREA_MAY_READ;
	if (!(flags & ORED_AREA_READONLY))
		*rights |= ORED_AREA_MAY_WRITE;
	if ((allowed(on, area) & *rights) == *rights)
		return 0;
	return ored_refuse(why, EACCES, "mode %#o of the area doesn't let this user %s it",
			   area->conf.mode,
			   flags & ORED_AREA_READONLY ? "read" : "read and write");
}

/* Zero asks nothing. */
static int check_same(const struct ored_area *area, const struct ored_area_conf *conf, char *why)
{
	const struct {
		const char *name;
		u64 is, wanted;
	} field[] = {
		{ "bytes", area->conf.bytes, conf->bytes },
		{ "group", area->conf.group, conf->group },
		{ "owner", area->conf.owner, conf->owner },
		{ "copies", area->conf.copies, conf->copies },
		{ "nranks", area->conf.nranks, conf->nranks },
		{ "placement", area->conf.placement, conf->placement },
		{ "jump", area->conf.jump, conf->jump },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(field); i++) {
		if (field[i].wanted && field[i].wanted != field[i].is)
			return ored_refuse(why, EINVAL, "the area's %s is %llu, not %llu",
					   field[i].name, field[i].is, field[i].wanted);
	}
	return 0;
}

/* Opens one that is there. Return: NULL if there is none */
static struct ored_area *open_old(struct ored_net *on, const struct ored_area_conf *conf,
				  u32 *rights, char *why)
{
	struct ored_area *area;
	int err;

	mutex_lock(&on->lock);
	area = find(on, conf->name);
	if (!area)
		goto out;
	if (conf->flags & ORED_AREA_EXCLUSIVE)
		err = ored_refuse(why, EEXIST, "there is an area of that name");
	else
		err = take_rights(on, area, conf->flags, rights, why) ?:
		      check_same(area, conf, why);
	if (err) {
		area = ERR_PTR(err);
		goto out;
	}
	kref_get(&area->ref);
	atomic_inc(&area->handles);
out:
	mutex_unlock(&on->lock);
	return area;
}

static struct ored_area *lay_out(struct ored_net *on, const struct ored_area_conf *conf,
				 const struct ored_placement *place)
{
	struct ored_area *area = kzalloc(sizeof(*area), GFP_KERNEL_ACCOUNT);

	if (!area)
		return NULL;
	kref_init(&area->ref);
	area->on = on;
	INIT_LIST_HEAD(&area->list);
	area->conf = *conf;
	area->conf.flags &= ORED_AREA_HUGE;
	/* What follows the name's NUL isn't for others to read. */
	strncpy(area->conf.name, conf->name, sizeof(area->conf.name));
	area->uid = current_fsuid();
	area->gid = current_fsgid();
	area->place = *place;
	area->npages = DIV_ROUND_UP_ULL(conf->bytes, PAGE_SIZE);
	/* Slots begin at multiples of a huge page. */
	area->stride = ALIGN(area->npages, PMD_SIZE / PAGE_SIZE);
	area->ncopies = place->copies;
	area->complete = ORED_NO_STEP;
	init_waitqueue_head(&area->wait);
	mutex_init(&area->lock);
	ored_lock_class(&area->lock, ORED_LOCK_AREA);
	spin_lock_init(&area->state);
	ored_lock_class(&area->state, ORED_LOCK_STATE);
	return area;
}

/* Return: an area that nobody knows of yet, or an ERR_PTR() */
static struct ored_area *make(struct ored_net *on, struct ored_area_conf *conf, char *why)
{
	struct ored_placement place;
	struct ored_area *area;
	int err;

	err = check_new(conf, &place, why);
	if (err)
		return ERR_PTR(err);
	ored_refuse(why, ENOMEM, "out of memory");
	area = lay_out(on, conf, &place);
	if (!area)
		return ERR_PTR(-ENOMEM);
	area->conf.memory = ored_area_needs(area);
	err = ored_area_reserve(on, area->conf.memory, why);
	if (err)
		goto err_put;
	err = ored_charge(&area->charge, area->conf.memory, "the area", why) ?:
	      ored_area_alloc(area, why);
	if (err)
		goto err_reserved;
	ored_refuse(why, ENOMEM, "out of memory");
	err = ored_area_map_file(area);
	if (!err)
		return area;
	err = -ENOMEM;
err_reserved:
	ored_area_unreserve(on, area->conf.memory);
err_put:
	ored_area_put(area);
	return ERR_PTR(err);
}

/*
 * Takes everything away from an area that has just been unlinked, and the
 * reference that the list had.
 */
static void kill(struct ored_net *on, struct ored_area *area)
{
	struct file *file = area->file;
	u32 c, s;

	mutex_lock(&area->lock);
	spin_lock_bh(&area->state);
	area->dead = true;
	spin_unlock_bh(&area->state);
	mutex_unlock(&area->lock);
	ored_share_stop(area);
	mutex_lock(&area->lock);
	for (c = 0; c < area->ncopies; c++)
		for (s = 0; s < ORED_SLOTS; s++)
			ored_area_unmap(area, c, s);
	ored_area_free_pages(area);
	ored_area_unreserve(on, area->conf.memory);
	ored_uncharge(&area->charge);
	mutex_unlock(&area->lock);
	wake_up_all(&area->wait);
	fput(file);
	ored_area_put(area);
}

/* Makes a new one known, unless somebody was faster. */
static struct ored_area *publish(struct ored_net *on, struct ored_area *area,
				 const struct ored_area_conf *conf, u32 *rights, char *why)
{
	struct ored_area *old;
	bool taken;
	int err;

	mutex_lock(&on->lock);
	taken = find(on, conf->name);
	err = taken ? 0 : ored_share_check(on, area, why);
	if (!taken && !err) {
		ored_share_begin(area);
		kref_get(&area->ref);
		atomic_inc(&area->handles);
		list_add_tail(&area->list, &on->areas);
		mutex_unlock(&on->lock);
		*rights = ORED_AREA_MAY_READ;
		if (!(conf->flags & ORED_AREA_READONLY))
			*rights |= ORED_AREA_MAY_WRITE;
		return area;
	}
	mutex_unlock(&on->lock);
	kill(on, area);
	if (err)
		return ERR_PTR(err);
	old = open_old(on, conf, rights, why);
	return old ?: ERR_PTR(ored_refuse(why, EAGAIN,
					  "an area of that name has come and gone meanwhile"));
}

/**
 * ored_area_open() - finds or makes an area
 * @on: the namespace
 * @conf: from the user
 * @rights: receives ORED_AREA_MAY_*
 * @why: receives a sentence if it is refused
 *
 * Return: the area, for ored_area_close(), or an ERR_PTR()
 */
struct ored_area *ored_area_open(struct ored_net *on, struct ored_area_conf *conf, u32 *rights,
				 char *why)
{
	struct ored_area *area;
	int err;

	err = check_conf(conf, why);
	if (err)
		return ERR_PTR(err);
	area = open_old(on, conf, rights, why);
	if (area)
		return area;
	if (!(conf->flags & ORED_AREA_CREATE))
		return ERR_PTR(ored_refuse(why, ENOENT, "there is no area of that name"));
	area = make(on, conf, why);
	return IS_ERR(area) ? area : publish(on, area, conf, rights, why);
}

/**
 * ored_area_close() - a handle goes; the area stays
 * @area: from ored_area_open()
 */
void ored_area_close(struct ored_area *area)
{
	atomic_dec(&area->handles);
	ored_area_put(area);
}

/**
 * ored_area_remove() - removes an area
 * @on: the namespace
 * @area: which, or NULL
 * @name: or the one of this name
 * @why: receives a sentence if it is refused
 *
 * Return: 0, -ENOENT, -ENODEV: it has been removed, or -EPERM
 */
int ored_area_remove(struct ored_net *on, struct ored_area *area, const u8 *name, char *why)
{
	int err = 0;

	mutex_lock(&on->lock);
	if (!area)
		area = find(on, name);
	if (!area)
		err = ored_refuse(why, ENOENT, "there is no area of that name");
	else if (list_empty(&area->list))
		err = ored_area_gone(why);
	else if (!uid_eq(current_fsuid(), area->uid) && !is_admin(on))
		err = ored_refuse(why, EPERM, "another user has made the area");
	else
		list_del_init(&area->list);
	mutex_unlock(&on->lock);
	if (!err)
		kill(on, area);
	return err;
}

static void describe(struct ored_area *area, struct ored_area_entry *entry)
{
	const struct ored_generations *gens = &area->copy[0].gens;
	u32 slot[2], i;

	memset(entry, 0, sizeof(*entry));
	entry->conf = area->conf;
	entry->uid = from_kuid_munged(current_user_ns(), area->uid);
	entry->gid = from_kgid_munged(current_user_ns(), area->gid);
	entry->handles = atomic_read(&area->handles);
	entry->mapped = ored_area_mapped(area);
	spin_lock_bh(&area->state);
	slot[0] = ored_generations_newest(gens);
	slot[1] = ored_generations_previous(gens);
	for (i = 0; i < ARRAY_SIZE(slot); i++)
		entry->step[i] = slot[i] == ORED_NO_SLOT ? ORED_NO_STEP : gens->slot[slot[i]].step;
	spin_unlock_bh(&area->state);
}

/**
 * ored_area_list() - tells all areas
 * @on: the namespace
 * @entries: receives them, for kvfree(); NULL if there are none
 * @n: receives their number
 *
 * Return: 0 or -ENOMEM
 */
int ored_area_list(struct ored_net *on, struct ored_area_entry **entries, u32 *n)
{
	struct ored_area *area;
	u32 count = 0;

	*n = 0;
	*entries = NULL;
	mutex_lock(&on->lock);
	list_for_each_entry(area, &on->areas, list)
		count++;
	if (count)
		*entries = kvcalloc(count, sizeof(**entries), GFP_KERNEL_ACCOUNT);
	if (*entries) {
		list_for_each_entry(area, &on->areas, list)
			describe(area, &(*entries)[(*n)++]);
	}
	mutex_unlock(&on->lock);
	return count && !*entries ? -ENOMEM : 0;
}

/**
 * ored_area_end() - a namespace goes, and its areas with it
 * @on: the namespace, which no socket is in any more
 */
void ored_area_end(struct ored_net *on)
{
	struct ored_area *area;

	for (;;) {
		mutex_lock(&on->lock);
		area = list_first_entry_or_null(&on->areas, struct ored_area, list);
		if (area)
			list_del_init(&area->list);
		mutex_unlock(&on->lock);
		if (!area)
			break;
		kill(on, area);
	}
}
