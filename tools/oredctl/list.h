/* SPDX-License-Identifier: GPL-2.0 */
#ifndef OREDCTL_LIST_H
#define OREDCTL_LIST_H

#include "show.h"

/* Takes a selector, and shows what @command's dump has of it. */
int list(struct words *words, uint8_t command, genl_sink sink);

#endif /* OREDCTL_LIST_H */
