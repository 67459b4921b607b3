/* SPDX-License-Identifier: GPL-2.0 */
#ifndef ORED_COMPUTE_H
#define ORED_COMPUTE_H

#include "core/hadamard.h"
#include "core/reduce.h"

void ored_compute_init(void);
const struct ored_hadamard_unit *ored_compute_hadamard(void);
u32 ored_compute_reduce(void *dst, const struct ored_contribs *c, u32 len, u8 dtype, u8 reduction);

#endif /* ORED_COMPUTE_H */
