/* SPDX-License-Identifier: GPL-2.0 */
/* vm_flags_set(), vm_flags_clear(): added in 6.3. */
#ifndef ORED_COMPAT_LINUX_MM_H
#define ORED_COMPAT_LINUX_MM_H

#include_next <linux/mm.h>

#ifdef ORED_LACKS_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif

#endif
