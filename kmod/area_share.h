/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checkpoints on other ranks: areas of a group's ranks keep each other's
 * generations. A namespace has one area for a rank of a group that has peers; they
 * find each other by that, over the membership of the same rank.
 *
 * An owner offers his newest generation to its holders until all have it. A holder
 * takes it over (struct ored_take): it asks for chunks, each of which is written by
 * the softirq that it comes in straight to where it belongs. The owner's softirq answers
 * from the pages of the generation itself. Neither wakes a process.
 *
 * Whoever reads does as a holder does, but asks first what there is: anybody may have
 * it, since a host can come back as another rank. So packets that ask and answer look at
 * all areas of the group that are in the namespace.
 */
#ifndef ORED_AREA_SHARE_H
#define ORED_AREA_SHARE_H

#include <linux/bitmap.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/ored.h>

#include "core/area_wire.h"
#include "core/pace.h"
#include "core/pull.h"
#include "core/rate.h"
#include "core/remote.h"
#include "core/survey.h"

struct ored_area;
struct ored_area_slot;
struct ored_link;
struct ored_member;
struct ored_net;
struct ored_packet;
struct page;
struct sk_buff;

/**
 * struct ored_take - a generation, or some blocks of it, being taken over
 * @list: in ored_area.takes, until the area or who reads is gone; read under RCU
 * @rcu: frees what a reader has used
 * @area: whose; outlives it
 * @ended: told, with bottom halves off and no lock held, when @over has been set
 * @lock: protects what follows
 * @window: what the key that is given out gives access to; key 0: nothing is taken
 * @past: the key before that one: who has it is late, not wrong
 * @pages: the place, from block @first on
 * @crc: receives the CRC32C of each block of the generation, or NULL
 * @first: see @pages
 * @end: first block that isn't wanted
 * @bad: the block that is damaged, with @err -EBADMSG
 * @rank: of whose state
 * @step: which generation
 * @digest: likewise
 * @session: of the membership over which it is asked for
 * @pull: what has come
 * @rate: how much may be in flight
 * @pace: how fast
 * @pto_at: when silence has lasted too long, ns; U64_MAX: nothing is in flight
 * @paused: nothing is asked for before that, ns
 * @heard: when something came last, or was begun, ns
 * @timer: for both
 * @over: it has ended: @err, or all is there
 * @err: 0 or negative errno
 */
struct ored_take {
	struct list_head	list;
	struct rcu_head		rcu;
	struct ored_area	*area;
	void			(*ended)(struct ored_take *take);

	spinlock_t		lock;	/* what follows */
	struct ored_window	window;
	u64			past;
	struct page		**pages;
	u32			*crc;
	u32			first;
	u32			end;
	u32			bad;
	u32			rank;
	u64			step;
	u32			digest;
	u32			session;
	struct ored_pull	pull;
	struct ored_rate	rate;
	struct ored_pace	pace;
	u64			pto_at;
	u64			paused;
	u64			heard;
	struct hrtimer		timer;
	bool			over;
	int			err;
};

/**
 * struct ored_target - a holder of the own generations, under ored_area.state
 * @rank: the holder's
 * @acked: it has the newest
 * @tell_rolled: it must be told what was given up
 * @code: enum ored_area_code of its last answer about the newest
 * @blocks: of the newest that it has
 */
struct ored_target {
	u32	rank;
	bool	acked;
	bool	tell_rolled;
	u8	code;
	u32	blocks;
};

/**
 * struct ored_offered - what a peer has offered, under ored_area.state
 * @fresh: nobody has looked at it yet
 * @offer: the fields, but for the metadata
 * @meta: these
 */
struct ored_offered {
	bool			fresh;
	struct ored_offer	offer;
	u8			meta[ORED_AREA_META_MAX];
};

/* A packet about areas on its way in; in softirq, under RCU */
struct ored_area_rx {
	struct ored_link		*l;
	const struct ored_packet	*pkt;
	struct sk_buff			*skb;
	u32				offset;	/* of what follows the header */
	u32				len;	/* bytes of it */
};

/**
 * struct ored_inquiry - somebody wants to know which generations there are
 * @list: in ored_area.inquiries, under ored_area.state; read under RCU
 * @rcu: frees it
 * @query: what peers are asked
 * @only: one peer is asked, or ORED_ANY_HOLDER: all
 * @all: all are waited for, though the owner has it
 * @ranks: receives what there is of each rank's state, or NULL. This and what follows
 *	under ored_area.state
 * @answered: ranks that have told all
 * @has: those that have the generation that is asked for, and it is @told
 * @got: how many generations each has told
 * @news: something has come since peers were asked last
 * @told: the generation that is asked for, with ORED_QUERY_META; its owner's word counts
 *	more than others'
 * @meta_len: bytes of @meta
 * @meta: its metadata
 */
struct ored_inquiry {
	struct list_head	list;
	struct rcu_head		rcu;
	struct ored_query	query;
	u32			only;
	bool			all;
	struct ored_survey_rank	*ranks;
	DECLARE_BITMAP(answered, ORED_MAX_RANKS);
	DECLARE_BITMAP(has, ORED_MAX_RANKS);
	u16			got[ORED_MAX_RANKS];
	bool			news;
	struct ored_told	told;
	u32			meta_len;
	u8			meta[ORED_AREA_META_MAX];
};

/* area_share.c: offers and answers */
int ored_share_check(struct ored_net *on, const struct ored_area *area, char *why);
void ored_share_init(struct ored_area *area);
void ored_share_begin(struct ored_area *area);
void ored_share_stop(struct ored_area *area);
void ored_share_kick(struct ored_area *area);
void ored_share_joined(struct ored_member *m);
void ored_share_committed(struct ored_area *area);
void ored_share_rolled(struct ored_area *area, u64 step);
bool ored_share_is_refused(struct ored_area *area, u32 *rank, u8 *code);
const char *ored_share_reason(u8 code);
enum ored_counter ored_area_rx(const struct ored_area_rx *rx);
struct ored_area *ored_shared_next(const struct ored_member *m, struct ored_area *area);
struct ored_member *ored_share_member(const struct ored_area *area);

/* area_query.c: what there is, here and elsewhere */
enum ored_counter ored_area_queried(const struct ored_area_rx *rx);
enum ored_counter ored_area_told(const struct ored_area_rx *rx);
int ored_inquire(struct ored_area *area, struct ored_inquiry *inquiry, long patience, char *why);

/* area_fetch.c: reading what peers have */
int ored_fetch(struct ored_area *area, const struct ored_area_read *read, char *why);

/* area_take.c: taking over */
void ored_take_init(struct ored_take *take, struct ored_area *area,
		    void (*ended)(struct ored_take *take));
void ored_take_begin(struct ored_take *take, struct ored_link *l, const struct ored_window *window);
void ored_take_move(struct ored_take *take, struct ored_link *l);
void ored_take_close(struct ored_take *take);
void ored_take_forget(struct ored_take *take);
bool ored_take_is(struct ored_take *take, u64 step, u32 digest, u32 serial);
enum ored_counter ored_take_data(const struct ored_area_rx *rx);
enum ored_counter ored_take_refused(const struct ored_area_rx *rx);

/* area_serve.c: answering who asks */
enum ored_counter ored_serve(const struct ored_area_rx *rx);
void ored_area_refuse(struct ored_link *l, u8 code, u32 block, u64 key);

#endif /* ORED_AREA_SHARE_H */
