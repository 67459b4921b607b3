// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings of areas. Each area is an inode of a file system of our own: all its
 * mappings, made through whatever socket, inherited or copied, are in one place, from
 * where one call unmaps a slot. With i_size set, huge pages are mapped as such.
 *
 * Pages come from the fault handler, with a struct page that can be pinned: no
 * VM_PFNMAP, and no page_mkwrite(), which would refuse long-term pins.
 */

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/pagemap.h>
#include <linux/pseudo_fs.h>

#include "area.h"
#include "err.h"

#define ORED_FS_MAGIC 0x4f524544	/* "ORED" */

static struct vfsmount *mount;

static int fs_context(struct fs_context *fc)
{
	return init_pseudo(fc, ORED_FS_MAGIC) ? 0 : -ENOMEM;
}

/* Without an owner: the mount is there as long as the module. */
static struct file_system_type fs_type = {
	.name = "ored_area",
	.init_fs_context = fs_context,
	.kill_sb = kill_anon_super,
};

int __init ored_area_map_init(void)
{
	mount = kern_mount(&fs_type);
	return PTR_ERR_OR_ZERO(mount);
}

void ored_area_map_exit(void)
{
	kern_unmount(mount);
}

static int file_release(struct inode *inode, struct file *file)
{
	ored_area_put(file->private_data);
	return 0;
}

static const struct file_operations file_ops = {
	.owner = THIS_MODULE,
	.release = file_release,
	.llseek = noop_llseek,
};

/**
 * ored_area_map_file() - makes what an area's mappings are of
 * @area: with its sizes set; its @file holds a reference to it
 *
 * Return: 0 or negative errno
 */
int ored_area_map_file(struct ored_area *area)
{
	struct inode *inode = alloc_anon_inode(mount->mnt_sb);
	struct file *file;

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	inode->i_size = (loff_t)area->ncopies * ORED_SLOTS * area->stride << PAGE_SHIFT;
	/* The last fput() gives back what alloc_file_pseudo() doesn't take. */
	__module_get(THIS_MODULE);
	file = alloc_file_pseudo(inode, mount, "ored_area", O_RDWR, &file_ops);
	if (IS_ERR(file)) {
		module_put(THIS_MODULE);
		iput(inode);
		return PTR_ERR(file);
	}
	kref_get(&area->ref);
	file->private_data = area;
	area->file = file;
	return 0;
}

/**
 * ored_area_offset() - where a slot is in the file
 * @area: the area
 * @copy: which copy
 * @slot: which of its slots
 *
 * Return: pages
 */
unsigned long ored_area_offset(const struct ored_area *area, u32 copy, u32 slot)
{
	return (copy * ORED_SLOTS + slot) * area->stride;
}

static struct ored_area_slot *slot_at(const struct ored_area *area, unsigned long offset,
				      unsigned long *page)
{
	unsigned long i = offset / area->stride;

	*page = offset % area->stride;
	if (i >= area->ncopies * ORED_SLOTS || *page >= area->npages)
		return NULL;
	return &area->copy[i / ORED_SLOTS].slot[i % ORED_SLOTS];
}

/* The page, if the slot is still what it was when it was mapped. */
static struct page *find_page(struct ored_area *area, const struct vm_fault *vmf, bool take)
{
	unsigned long serial = (unsigned long)vmf->vma->vm_private_data, at;
	struct ored_area_slot *slot = slot_at(area, vmf->pgoff, &at);
	struct page *page = NULL;

	spin_lock_bh(&area->state);
	if (slot && !area->dead && slot->serial == serial)
		page = slot->pages[at];
	if (page && take)
		get_page(page);
	spin_unlock_bh(&area->state);
	return page;
}

static vm_fault_t area_fault(struct vm_fault *vmf)
{
	struct ored_area *area = vmf->vma->vm_file->private_data;
	struct page *page = find_page(area, vmf, true);

	if (!page)
		return VM_FAULT_SIGBUS;
	lock_page(page);
	/* The slot may have been sealed while we waited; see "Locking" in area.h. */
	if (!find_page(area, vmf, false)) {
		unlock_page(page);
		put_page(page);
		return VM_FAULT_SIGBUS;
	}
	vmf->page = page;
	return VM_FAULT_LOCKED;
}

static const struct vm_operations_struct vm_ops = {
	.fault = area_fault,
};

static int refuse_range(const struct ored_area *area, char *why)
{
	return ored_refuse(why, EINVAL, "a mapping lies in one slot, of %llu bytes",
			   (u64)area->npages << PAGE_SHIFT);
}

/* The open slot, at offset 0 */
static int find_open(struct ored_area *area, struct vm_area_struct *vma, unsigned long *offset,
		     unsigned long *serial)
{
	struct ored_area_copy *own = &area->copy[0];
	unsigned long base = ored_area_offset(area, 0, own->gens.open);

	lockdep_assert_held(&area->state);
	*offset = base + vma->vm_pgoff;
	*serial = own->slot[own->gens.open].serial;
	if (area->sealing)
		return -EBUSY;
	return vma->vm_pgoff < area->npages ? 0 : -EINVAL;
}

/* A generation, at its own offset */
static int find_sealed(struct ored_area *area, struct vm_area_struct *vma, unsigned long *offset,
		       unsigned long *serial)
{
	struct ored_area_slot *slot;
	unsigned long page, i;

	lockdep_assert_held(&area->state);
	slot = slot_at(area, vma->vm_pgoff, &page);
	if (!slot)
		return -EINVAL;
	i = vma->vm_pgoff / area->stride;
	if (!area->copy[i / ORED_SLOTS].gens.slot[i % ORED_SLOTS].sealed)
		return -ENOENT;
	*offset = vma->vm_pgoff;
	*serial = slot->serial;
	return 0;
}

/* Return: 0, -ENODEV, -EBUSY, -EINVAL: outside, or -ENOENT: no generation there */
static int find_slot(struct ored_area *area, struct vm_area_struct *vma, struct file **file,
		     unsigned long *offset, unsigned long *serial)
{
	int err;

	spin_lock_bh(&area->state);
	if (area->dead)
		err = -ENODEV;
	else if (vma->vm_flags & VM_WRITE)
		err = find_open(area, vma, offset, serial);
	else
		err = find_sealed(area, vma, offset, serial);
	if (!err)
		*file = get_file(area->file);
	spin_unlock_bh(&area->state);
	return err;
}

/**
 * ored_area_mmap() - maps a slot
 * @area: the area
 * @rights: of the handle
 * @vma: what is to be mapped where
 * @why: receives a sentence if it is refused
 *
 * Return: 0 or negative errno
 */
int ored_area_mmap(struct ored_area *area, u32 rights, struct vm_area_struct *vma, char *why)
{
	unsigned long offset = 0, serial = 0;
	bool write = vma->vm_flags & VM_WRITE;
	struct file *file;
	int err;

	if (write && !(vma->vm_flags & VM_SHARED))
		return ored_refuse(why, EINVAL,
				   "a private writable mapping would be a copy: use MAP_SHARED");
	if (!(rights & (write ? ORED_AREA_MAY_WRITE : ORED_AREA_MAY_READ)))
		return ored_refuse(why, EACCES, "the area may not be %s by this handle",
				   write ? "written" : "read");
	if (vma_pages(vma) > area->npages)
		return refuse_range(area, why);
	err = find_slot(area, vma, &file, &offset, &serial);
	if (err == -ENODEV)
		return ored_area_gone(why);
	if (err == -ENOENT)
		return ored_refuse(why, ENOENT, "no generation is at that offset");
	if (err == -EBUSY)
		return ored_refuse(why, EBUSY, "a commit of the open slot is under way");
	if (err)
		return refuse_range(area, why);
	if (vma_pages(vma) > area->npages - offset % area->stride) {
		fput(file);
		return refuse_range(area, why);
	}
	vma_set_file(vma, file);
	fput(file);
	vma->vm_pgoff = offset;
	vma->vm_private_data = (void *)serial;
	vma->vm_ops = &vm_ops;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	if (!write)
		vm_flags_clear(vma, VM_MAYWRITE);
	return 0;
}

/* Waits until each fault that saw the slot's old serial is in the page table. */
static void quiesce(struct ored_area_slot *slot)
{
	unsigned long i;

	for (i = 0; i < slot->npages; i++) {
		if (PageTail(slot->pages[i]))
			continue;
		lock_page(slot->pages[i]);
		unlock_page(slot->pages[i]);
		if (i % 1024 == 0)
			cond_resched();
	}
}

/**
 * ored_area_unmap() - takes a slot away from all processes
 * @area: the area, its lock held
 * @copy: which copy
 * @slot: which of its slots; its serial has just changed, or @area is dead
 */
void ored_area_unmap(struct ored_area *area, u32 copy, u32 slot)
{
	loff_t from = (loff_t)ored_area_offset(area, copy, slot) << PAGE_SHIFT;

	lockdep_assert_held(&area->lock);
	quiesce(&area->copy[copy].slot[slot]);
	unmap_mapping_range(area->file->f_mapping, from, (loff_t)area->npages << PAGE_SHIFT, 1);
}

/**
 * ored_area_mapped() - does any process map a part of an area?
 * @area: the area
 */
bool ored_area_mapped(const struct ored_area *area)
{
	return mapping_mapped(area->file->f_mapping);
}
