// SPDX-License-Identifier: GPL-2.0
/*
 * Answering who asks for chunks of a generation that is here, in softirq: packets
 * whose payload is the generation's own pages. Nothing is remembered of it.
 */

#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/dst.h>
#include <net/xfrm.h>

#include "area.h"
#include "area_share.h"
#include "member.h"
#include "tx.h"

#define HEADER	(ORED_WIRE_HEADER + ORED_WRITE_BYTES)

/**
 * ored_area_refuse() - says that an ASK or a DATA was in vain
 * @l: to whom; no lock held
 * @code: enum ored_area_code
 * @block: as there
 * @key: as there
 */
void ored_area_refuse(struct ored_link *l, u8 code, u32 block, u64 key)
{
	struct ored_refusal refusal = { .code = code, .block = block, .key = key };
	u8 content[ORED_REFUSE_BYTES];
	struct ored_packet pkt;

	ored_packet_init(l, &pkt, ORED_T_AREA, 0);
	ored_refuse_build(content, &refusal);
	ored_send_packet(l, &pkt, content, sizeof(content), 0);
}

/* An ASK being answered */
struct serving {
	struct ored_area	*area;
	struct ored_link	*l;
	const struct ored_ask	*ask;
	u32			clock;	/* of the ASK */
	u64			left;	/* chunks that haven't been sent */
};

/* The slot that an ASK is about. Under the area's state. */
static struct ored_area_slot *find(const struct serving *s, u64 *bytes)
{
	struct ored_area *area = s->area;
	u32 c, i;

	lockdep_assert_held(&area->state);
	for (c = 0; c < area->ncopies && !area->dead; c++) {
		const struct ored_generations *gens = &area->copy[c].gens;

		if (area->copy[c].rank != s->ask->rank)
			continue;
		i = ored_generations_find(gens, s->ask->step);
		if (i == ORED_NO_SLOT || gens->slot[i].digest != s->ask->digest)
			break;
		*bytes = gens->slot[i].bytes;
		return &area->copy[c].slot[i];
	}
	return NULL;
}

/* Finds an area in which it is. Return: false if there is none */
static bool find_area(struct serving *s)
{
	struct ored_area *area;
	bool found;
	u64 bytes;

	for (area = ored_shared_next(s->l->m, NULL); area;
	     area = ored_shared_next(s->l->m, area)) {
		s->area = area;
		spin_lock(&area->state);
		found = find(s, &bytes);
		spin_unlock(&area->state);
		if (found)
			return true;
	}
	return false;
}

static u8 check(const struct serving *s, u64 bytes)
{
	const struct ored_ask *ask = s->ask;
	u32 chunks;

	if (ask->block >= ored_area_blocks(bytes) ||
	    ask->chunk + ORED_WRITE_BYTES > READ_ONCE(s->l->m->payload))
		return ORED_AREA_RANGE;
	chunks = ored_block_chunks(bytes, ask->block, ask->chunk);
	return 64U * ask->word + fls64(ask->mask) > chunks ? ORED_AREA_RANGE : ORED_AREA_HAVE;
}

static void write_header(const struct serving *s, void *to, u32 index, u32 crc)
{
	struct ored_write wr = {
		.index = index,
		.block = s->ask->block,
		.key = s->ask->key,
		.serial = s->ask->serial,
		.crc = crc,
	};
	struct ored_packet pkt;

	ored_packet_init(s->l, &pkt, ORED_T_AREA, 0);
	pkt.op = s->clock;
	ored_wire_build(to, &pkt);
	ored_write_build(to + ORED_WIRE_HEADER, &wr);
}

/* Takes a reference to the memory, unless it joins what is the skb's already. */
static void add_frag(struct sk_buff *skb, struct page *page, u32 offset, u32 len, bool own)
{
	struct page *head = compound_head(page);
	u32 n = skb_shinfo(skb)->nr_frags;

	offset += (page - head) * PAGE_SIZE;
	if (!own && skb_can_coalesce(skb, n, head, offset)) {
		skb_frag_size_add(&skb_shinfo(skb)->frags[n - 1], len);
	} else {
		if (!own)
			get_page(head);
		skb_fill_page_desc(skb, n, head, offset, len);
	}
	skb->len += len;
	skb->data_len += len;
	skb->truesize += len;
}

static void add_chunk(struct sk_buff *skb, const struct ored_area_slot *slot, u64 at, u32 len)
{
	while (len) {
		u32 part = min_t(u32, len, PAGE_SIZE - offset_in_page(at));

		add_frag(skb, slot->pages[at >> PAGE_SHIFT], offset_in_page(at), part, false);
		at += part;
		len -= part;
	}
}

/* Frags that a chunk takes at the most, with its header */
static u32 frags_of(u64 at, u32 len)
{
	return 1 + DIV_ROUND_UP(offset_in_page(at) + len, PAGE_SIZE);
}

/* Appends a packet to those of an skb. Return: false if it has no room, or there is none */
static bool add_packet(const struct serving *s, const struct ored_area_slot *slot, u64 bytes,
		       struct sk_buff *skb, u32 index)
{
	u32 block = s->ask->block, len = ored_chunk_bytes(bytes, block, s->ask->chunk, index);
	u64 at = (u64)block * ORED_AREA_BLOCK + (u64)index * s->ask->chunk;
	void *header;

	if (skb->len + HEADER + len > GSO_LEGACY_MAX_SIZE - ORED_HEADROOM && skb->len)
		return false;
	if (skb_shinfo(skb)->nr_frags + frags_of(at, len) > MAX_SKB_FRAGS)
		return false;
	if (!skb->len) {
		header = skb_put(skb, HEADER);
	} else {
		struct page *page;

		header = netdev_alloc_frag(HEADER);
		if (!header)
			return false;
		page = virt_to_head_page(header);
		add_frag(skb, page, header - page_address(page), HEADER, true);
	}
	write_header(s, header, index, slot->crc[block]);
	add_chunk(skb, slot, at, len);
	return true;
}

/*
 * The next packets as one: all of the same length, but for the last. Under the
 * area's state, so that the pages are there until they are the skb's.
 */
static u32 fill(struct serving *s, const struct ored_area_slot *slot, u64 bytes,
		struct sk_buff *skb, u32 most)
{
	u32 n = 0;

	lockdep_assert_held(&s->area->state);
	while (s->left && n < most) {
		u32 index = 64 * s->ask->word + __ffs64(s->left);

		if (!add_packet(s, slot, bytes, skb, index))
			break;
		n++;
		s->left &= s->left - 1;
		if (ored_chunk_bytes(bytes, s->ask->block, s->ask->chunk, index) != s->ask->chunk)
			break;
	}
	skb_shinfo(skb)->flags |= SKBFL_SHARED_FRAG;
	return n;
}

static u32 train_limit(const struct ored_link *l, const struct dst_entry *dst, u32 chunk)
{
	if (!(dst->dev->features & NETIF_F_GSO) || dst_xfrm(dst) ||
	    dst_mtu(dst) < chunk + ORED_WRITE_BYTES + ored_overhead(l->m))
		return 1;
	return MAX_SKB_FRAGS;
}

/* Return: enum ored_area_code; ORED_AREA_TAKING: there is no memory or route now */
static u8 send_some(struct serving *s)
{
	struct ored_area_slot *slot;
	struct ored_route route;
	struct sk_buff *skb;
	u64 bytes;
	u32 n = 0, size;
	u8 code;

	if (ored_route_get(s->l, &route))
		return ORED_AREA_TAKING;
	skb = alloc_skb(ORED_HEADROOM + HEADER, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb) {
		ored_count(s->l->m->stats, ORED_CNT_NOMEM);
		dst_release(route.dst);
		return ORED_AREA_TAKING;
	}
	skb_reserve(skb, ORED_HEADROOM);
	spin_lock(&s->area->state);
	slot = find(s, &bytes);
	code = slot ? check(s, bytes) : ORED_AREA_NONE;
	if (code == ORED_AREA_HAVE)
		n = fill(s, slot, bytes, skb, train_limit(s->l, route.dst, s->ask->chunk));
	spin_unlock(&s->area->state);
	if (!n) {
		kfree_skb(skb);
		dst_release(route.dst);
		return code == ORED_AREA_HAVE ? ORED_AREA_TAKING : code;
	}
	size = n > 1 ? HEADER + s->ask->chunk : skb->len;
	ored_transmit(s->l, &route, skb, n, size);
	return ORED_AREA_HAVE;
}

/**
 * ored_serve() - a peer asks for chunks
 * @rx: the packet
 *
 * Return: the counter of what has become of it
 */
enum ored_counter ored_serve(const struct ored_area_rx *rx)
{
	u8 buffer[ORED_ASK_BYTES];
	struct ored_ask ask;
	struct serving s = {
		.l = rx->l, .ask = &ask, .clock = rx->pkt->clock,
	};
	const void *content;
	u8 code = ORED_AREA_HAVE;

	content = skb_header_pointer(rx->skb, rx->offset, min_t(u32, rx->len, sizeof(buffer)),
				     buffer);
	if (!content || ored_ask_parse(content, rx->len, &ask))
		return ORED_CNT_BAD_CONTROL;
	s.left = ask.mask;
	if (!find_area(&s))
		code = s.area ? ORED_AREA_NONE : ORED_AREA_NO_AREA;
	while (s.left && code == ORED_AREA_HAVE)
		code = send_some(&s);
	if (code == ORED_AREA_HAVE || code == ORED_AREA_TAKING)
		return ORED_CNT_MAX;
	ored_area_refuse(rx->l, code, ask.block, ask.key);
	/* What is gone may have been asked for in good faith. */
	if (code == ORED_AREA_NONE || code == ORED_AREA_NO_AREA)
		return ORED_CNT_LATE;
	return ORED_CNT_BAD_CHUNK;
}
