// SPDX-License-Identifier: GPL-2.0

#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>

#include "oredctl.h"
#include "output.h"

#define DEPTH 8	/* objects and arrays in each other */

static struct json_object *open_values[DEPTH];
static int depth;

static struct json_object *made(struct json_object *value)
{
	if (!value)
		fail(STATUS_KERNEL, "out of memory");
	return value;
}

/* Puts a value into what is open. */
static void put(const char *key, struct json_object *value)
{
	struct json_object *into = open_values[depth - 1];
	int err;

	if (json_object_is_type(into, json_type_array))
		err = json_object_array_add(into, value);
	else
		err = json_object_object_add(into, key, value);
	if (err)
		fail(STATUS_KERNEL, "out of memory");
}

static void push(const char *key, struct json_object *value)
{
	made(value);
	if (depth == DEPTH)
		fail(STATUS_KERNEL, "the output is nested too deeply");
	if (depth)
		put(key, value);
	open_values[depth++] = value;
}

/* Closes what was opened last; the outermost is printed. */
static void pop(void)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;

	if (--depth)
		return;
	if (options.pretty)
		flags |= JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED;
	puts(json_object_to_json_string_ext(open_values[0], flags));
	json_object_put(open_values[0]);
}

void out_begin(void)
{
	if (options.json)
		push(NULL, json_object_new_array());
}

void out_end(void)
{
	if (options.json)
		pop();
}

void out_item(void)
{
	if (options.json)
		push(NULL, json_object_new_object());
}

void out_item_end(void)
{
	if (options.json)
		pop();
	else
		putchar('\n');
}

void out_open(const char *key)
{
	if (options.json)
		push(key, json_object_new_object());
}

void out_close(void)
{
	if (options.json)
		pop();
}

void out_array(const char *key)
{
	if (options.json)
		push(key, json_object_new_array());
}

void out_array_end(void)
{
	if (options.json)
		pop();
}

void out_u64(const char *key, uint64_t value, const char *label)
{
	if (options.json)
		put(key, made(json_object_new_uint64(value)));
	else if (label)
		printf("%s%" PRIu64, label, value);
}

void out_string(const char *key, const char *value, const char *label)
{
	if (options.json)
		put(key, made(json_object_new_string(value)));
	else if (label)
		printf("%s%s", label, value);
}

void out_bool(const char *key, bool value, const char *label)
{
	if (options.json)
		put(key, made(json_object_new_boolean(value)));
	else if (label && value)
		fputs(label, stdout);
}

void out_text(const char *format, ...)
{
	va_list args;

	if (options.json)
		return;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
}
