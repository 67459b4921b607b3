/* SPDX-License-Identifier: GPL-2.0 */
/* net.ored.*: the policy of new memberships of a network namespace. */
#ifndef ORED_SYSCTL_H
#define ORED_SYSCTL_H

struct ored_net;

int ored_sysctl_begin(struct ored_net *on);
void ored_sysctl_end(struct ored_net *on);

#endif /* ORED_SYSCTL_H */
