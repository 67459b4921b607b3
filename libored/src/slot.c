// SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
/* Slots: buckets in memory that is shared with the kernel. */
#include <errno.h>
#include <sys/mman.h>
#include "internal.h"

int ored_slots_map(int fd, struct ored_slots *slots)
{
	struct ored_group group;
	void *base;
	int ret;

	ret = ored_group(fd, &group);
	if (ret)
		return ret;
	/* Of nothing the kernel shall say itself why there is nothing */
	slots->count = group.slots ? group.slots : 1;
	slots->stride = group.slots ? group.slot_stride : 1;
	slots->bytes = group.bucket_max;
	base = mmap(NULL, slots->count * slots->stride, PROT_READ | PROT_WRITE, MAP_SHARED,
		    fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	slots->base = base;
	return 0;
}

void ored_slots_unmap(struct ored_slots *slots)
{
	munmap(slots->base, slots->count * slots->stride);
	slots->base = NULL;
}

int ored_slot_send(int fd, unsigned int slot, size_t len, const struct ored_op *op)
{
	struct ored_op all = op ? *op : (struct ored_op){ 0 };

	all.flags |= ORED_OP_SLOT;
	all.slot = slot;
	all.length = len;
	return ored_send(fd, NULL, 0, &all);
}

ssize_t ored_slot_recv(int fd, struct ored_result *result)
{
	return ored_recv(fd, NULL, 0, result);
}
