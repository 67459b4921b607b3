/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Output, as text or with -j as JSON. A command's output is a list of items; an
 * item has values by name. In text a value stands behind its @label, which says
 * what it is and brings the space before it; with a @label of NULL it is only in
 * the JSON.
 */
#ifndef OREDCTL_OUTPUT_H
#define OREDCTL_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

void out_begin(void);
void out_end(void);

/* Each item is a line of text; of JSON too, if there is no list around it. */
void out_item(void);
void out_item_end(void);

/* An object inside the item, or, with @key of NULL, inside an array */
void out_open(const char *key);
void out_close(void);
void out_array(const char *key);
void out_array_end(void);

void out_u64(const char *key, uint64_t value, const char *label);
void out_string(const char *key, const char *value, const char *label);
/* In text the label alone, if it is true */
void out_bool(const char *key, bool value, const char *label);
/* For the text alone */
void __attribute__((format(printf, 1, 2))) out_text(const char *format, ...);

#endif /* OREDCTL_OUTPUT_H */
