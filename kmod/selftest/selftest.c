// SPDX-License-Identifier: GPL-2.0
/* Runs all self-tests. Part of builds with ORED_DEBUG only. */

#include <linux/errno.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

#include "selftest.h"

static char *fail_selftest;
module_param(fail_selftest, charp, 0444);
MODULE_PARM_DESC(fail_selftest, "Let the self-tests of this name fail, to see the load refused");

struct suite {
	const char	*name;
	bool		(*run)(void);
};

static const struct suite suites[] __initconst = {
	{ "lock", ored_selftest_lock },
	{ "wire", ored_selftest_wire },
	{ "chunkmap", ored_selftest_chunkmap },
	{ "reduce", ored_selftest_reduce },
	{ "slot", ored_selftest_slot },
};

static bool __init asked_to_fail(const struct suite *suite)
{
	return fail_selftest && !strcmp(fail_selftest, suite->name);
}

/**
 * ored_selftest_run() - runs all self-tests, and all of them if one fails
 *
 * Return: 0, or -ENOTRECOVERABLE: the module must not be used
 */
int __init ored_selftest_run(void)
{
	const struct suite *suite;
	int err = 0;

	for (suite = suites; suite < suites + ARRAY_SIZE(suites); suite++) {
		bool ok = suite->run();

		ok &= ored_expect(!asked_to_fail(suite));
		if (!ok)
			err = -ENOTRECOVERABLE;
		pr_info("ored: %s self-tests: %s\n", suite->name, ok ? "pass" : "FAIL");
	}
	return err;
}
