/* SPDX-License-Identifier: GPL-2.0 */
/* What BPF programs are told by tracepoints: linux/ored_trace.h. */
#ifndef ORED_TELL_H
#define ORED_TELL_H

#include <linux/types.h>

struct ored_addr;
struct ored_link;
struct ored_member;
struct ored_net;
struct ored_packet;
struct sk_buff;

void ored_tell_made(struct ored_member *m);
void ored_tell_gone(struct ored_member *m);
void ored_tell_window(struct ored_member *m);
void ored_tell_again(struct ored_net *on);
void ored_tell_chunk(const struct ored_link *l, const struct ored_packet *pkt, u8 fate);
void ored_tell_refused(const struct ored_net *on, const struct sk_buff *skb,
		       const struct ored_packet *pkt, u32 told, u64 epoch, u32 cause);

#endif /* ORED_TELL_H */
