// SPDX-License-Identifier: GPL-2.0
/* Objects that can only be looked at. */

#include <linux/ored_netlink.h>

#include "list.h"
#include "output.h"

int list(struct words *words, uint8_t command, genl_sink sink)
{
	struct selector selector = {};
	struct genl genl = {};

	while (take_selector(words, &selector))
		;
	take_end(words);
	genl_open(&genl, ORED_FAMILY_NAME);
	put_selector(genl_request(&genl, command, 0), &selector);
	out_begin();
	genl_dump(&genl, sink, NULL);
	out_end();
	genl_close(&genl);
	return STATUS_OK;
}
