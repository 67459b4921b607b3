/* SPDX-License-Identifier: GPL-2.0 */
/* Memory that stays counts against RLIMIT_MEMLOCK. */
#ifndef ORED_CHARGE_H
#define ORED_CHARGE_H

#include <linux/types.h>

struct user_struct;

/**
 * struct ored_charge - who is charged for memory
 * @user: who, NULL: nobody
 * @pages: for how much
 */
struct ored_charge {
	struct user_struct	*user;
	unsigned long		pages;
};

int ored_charge(struct ored_charge *charge, u64 bytes, const char *what, char *why);
void ored_uncharge(struct ored_charge *charge);

#endif /* ORED_CHARGE_H */
