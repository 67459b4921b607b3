// SPDX-License-Identifier: GPL-2.0

#include "remote.h"

/**
 * ored_window_check() - is an access allowed?
 * @window: what its key may name
 * @access: what is wanted
 *
 * Return: 0; -EKEYREJECTED: not that key; -ESTALE: it was the key of what the
 * slot held before; -EACCES: another rank's, or a right that it doesn't give;
 * -ERANGE: beyond the window
 */
int ored_window_check(const struct ored_window *window, const struct ored_access *access)
{
	if (!window->key || window->key != access->key)
		return -EKEYREJECTED;
	if (window->serial != access->serial)
		return -ESTALE;
	if (window->rank != access->rank || !(window->rights & access->right))
		return -EACCES;
	if (!access->length || !ored_span_inside(window->bytes, access->offset, access->length))
		return -ERANGE;
	return 0;
}
