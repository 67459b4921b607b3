// SPDX-License-Identifier: GPL-2.0
/*
 * The library against the module: two ranks on this host, a thread each, over
 * the loopback device. Needs root and ored.ko.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <ored.h>
#include "tap.h"

#define COUNT 5000
#define BITS 4	/* words: COUNT floats in chunks of 512 bytes or more */
#define LIMIT 60	/* seconds for everything */

static const char *const peers[] = { "127.0.0.1:5200", "127.0.0.1:5201" };

struct rank {
	unsigned int rank;
	int fd;
	char why[ORED_ERROR_MAX];
	pthread_t thread;
	/* What each step returned, for the main thread to judge */
	int sum, mean, mismatch, posted[2], busy;
	int sum_right, mean_right, kept, kinds;
	ssize_t short_buffer, received[2];
	float first[2];
	struct ored_result sum_result, mismatch_result, by_number, kinds_result;
	int by_number_ret, unknown_ret;
	struct ored_uncounted uncounted;
	uint64_t bits[BITS];
	int uncounted_ret, no_room_ret, never_ret;
};

static void fill(float *values, unsigned int rank)
{
	unsigned int i;

	for (i = 0; i < COUNT; i++)
		values[i] = (rank + 1) * 0.1f + i;
}

static int right(const float *values, float divisor)
{
	float a[COUNT], b[COUNT];
	volatile float sum;	/* rounded to 32 bits on any processor */
	unsigned int i;

	fill(a, 0);
	fill(b, 1);
	for (i = 0; i < COUNT; i++) {
		sum = a[i] + b[i];
		sum = sum / divisor;
		if (values[i] != sum)
			return 0;
	}
	return 1;
}

static void reduce(struct rank *r)
{
	struct ored_op mean = { .reduction = ORED_MEAN };
	float values[COUNT];

	fill(values, r->rank);
	r->sum = ored_allreduce(r->fd, values, sizeof(values), NULL,
				&r->sum_result);
	r->sum_right = right(values, 1);
	fill(values, r->rank);
	r->mean = ored_allreduce(r->fd, values, sizeof(values), &mean, NULL);
	r->mean_right = right(values, 2);
	r->by_number_ret = ored_result(r->fd, 1, &r->by_number);
	r->unknown_ret = ored_result(r->fd, 2, &r->mismatch_result);
	r->uncounted_ret = ored_uncounted(r->fd, 1, &r->uncounted, r->bits, BITS);
	r->no_room_ret = ored_uncounted(r->fd, 1, &r->uncounted, r->bits, 0);
	r->never_ret = ored_uncounted(r->fd, 9, &r->uncounted, r->bits, BITS);
}

static void pipeline(struct rank *r)
{
	float values[2] = { 1, 1 };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		values[0] = i + r->rank;
		r->posted[i] = ored_send(r->fd, values, sizeof(values), NULL);
	}
	r->busy = ored_allreduce(r->fd, values, sizeof(values), NULL, NULL);
	r->short_buffer = ored_recv(r->fd, values, 4, NULL);
	for (i = 0; i < 2; i++) {
		r->received[i] = ored_recv(r->fd, values, sizeof(values), NULL);
		r->first[i] = values[0];
	}
}

/* The ranks' lengths differ */
static void differ(struct rank *r)
{
	float values[2] = { 1, 1 };

	r->mismatch = ored_allreduce(r->fd, values, 4 + 4 * r->rank, NULL,
				     &r->mismatch_result);
	ored_error(r->fd, r->why, sizeof(r->why));
	r->kept = values[0] == 1 && values[1] == 1;
}

/* Seven elements for two ranks: four and three */
static void kinds(struct rank *r)
{
	struct ored_op reliable = { .mode = ORED_MODE_RELIABLE };
	float in[7], out[7] = { 0 }, root[7];
	unsigned int i, mine = r->rank ? 3 : 4, first = r->rank ? 4 : 0;

	for (i = 0; i < 7; i++)
		root[i] = i + 10 * r->rank;
	memcpy(in, root, sizeof(in));
	r->kinds = ored_reduce_scatter(r->fd, in, sizeof(in), out, sizeof(out), &reliable,
				       &r->kinds_result) == (ssize_t)mine * 4;
	for (i = 0; i < mine; i++)
		r->kinds &= out[i] == 2 * (first + i) + 10;
	r->kinds &= r->kinds_result.kind == ORED_REDUCE_SCATTER;
	r->kinds &= !ored_all_gather(r->fd, in + first, mine * 4, out, sizeof(out), &reliable,
				     NULL);
	for (i = 0; i < 7; i++)
		r->kinds &= out[i] == i + (i < 4 ? 0 : 10);
	r->kinds &= !ored_broadcast(r->fd, root, sizeof(root), 1, &reliable, NULL);
	for (i = 0; i < 7; i++)
		r->kinds &= root[i] == i + 10;
	r->kinds &= !ored_barrier(r->fd, &reliable, &r->kinds_result);
	r->kinds &= r->kinds_result.kind == ORED_BARRIER && !r->kinds_result.missing[0];
}

static void *run(void *arg)
{
	struct rank *r = arg;
	struct ored_config config = {
		.peers = peers, .nranks = 2, .rank = r->rank,
		.port = 5200 + r->rank, .bucket_max = 1 << 20, .depth = 2,
		.error = r->why, .error_size = sizeof(r->why),
	};

	r->fd = ored_open(&config);
	if (r->fd < 0)
		return NULL;
	reduce(r);
	pipeline(r);
	differ(r);
	kinds(r);
	return NULL;
}

static void judge_reduce(const struct rank *r)
{
	unsigned int n = r->rank;

	ok(!r->sum && r->sum_right, "allreduce__sum rank %u", n);
	ok(!r->mean && r->mean_right, "allreduce__mean rank %u", n);
	ok(r->sum_result.op == 0 && r->sum_result.bytes == COUNT * 4 &&
	   r->sum_result.limit == ORED_LIMIT_COMPLETE &&
	   r->sum_result.contributed[0] == 3 && !r->sum_result.missing[0] &&
	   r->sum_result.elapsed_ns, "allreduce__result rank %u", n);
	ok(!r->by_number_ret && r->by_number.op == 1 &&
	   r->by_number.reduction == ORED_MEAN, "result__op_1 rank %u", n);
	ok(r->unknown_ret == -ENOENT, "result__unknown rank %u", n);
	ok(!r->uncounted_ret && r->uncounted.op == 1 && r->uncounted.chunks &&
	   (uint64_t)r->uncounted.chunk * r->uncounted.chunks >= COUNT * 4 && !r->bits[0],
	   "uncounted__nothing rank %u", n);
	ok(r->no_room_ret == -EMSGSIZE, "uncounted__no_room rank %u", n);
	ok(r->never_ret == -ENOENT, "uncounted__never rank %u", n);
}

static void judge_pipeline(const struct rank *r)
{
	unsigned int n = r->rank;

	ok(r->posted[0] == 8 && r->posted[1] == 8, "send rank %u", n);
	ok(r->busy == -EBUSY, "allreduce__in_flight rank %u", n);
	ok(r->short_buffer == -EMSGSIZE, "recv__short_buffer rank %u", n);
	ok(r->received[0] == 8 && r->received[1] == 8 &&
	   r->first[0] == 1 && r->first[1] == 3, "recv__order rank %u", n);
}

static void judge_differ(const struct rank *r)
{
	const struct ored_result *result = &r->mismatch_result;

	ok(r->mismatch == -EPROTO && r->kept, "mismatch rank %u: %s", r->rank,
	   r->why);
	ok(result->error == EPROTO && result->field == ORED_FIELD_BYTES &&
	   result->value[0] + result->value[1] == 12,
	   "mismatch__result rank %u", r->rank);
}

static void judge_kinds(const struct rank *r)
{
	ok(r->kinds, "kinds rank %u", r->rank);
}

static void judge_state(const struct rank *r)
{
	uint64_t counters[ORED_CNT_MAX] = { 0 };
	struct ored_peer_state states[3];
	struct ored_group group;

	ok(!ored_group(r->fd, &group) && group.abi == ORED_ABI_VERSION &&
	   group.state == ORED_STATE_JOINED && group.rank == r->rank &&
	   group.nranks == 2 && group.posted == 9 && group.received == 9,
	   "group rank %u", r->rank);
	ok(ored_peers(r->fd, states, 3) == 2 && states[1].rank == 1,
	   "peers rank %u", r->rank);
	ok(ored_peers(r->fd, states, 1) == 1, "peers__cut rank %u", r->rank);
	ok(ored_stats(r->fd, counters, ORED_CNT_MAX) == ORED_CNT_MAX &&
	   counters[ORED_CNT_TX_PACKETS], "stats rank %u", r->rank);
}

static void open__timeout(void)
{
	char why[ORED_ERROR_MAX] = "";
	struct ored_config config = {
		.peers = peers, .nranks = 2, .port = 5200, .timeout_ms = 300,
		.error = why, .error_size = sizeof(why),
	};

	ok(ored_open(&config) == -ETIMEDOUT && strstr(why, "127.0.0.1"),
	   "open__timeout: %s", why);
	config.rank = 2;
	ok(ored_open(&config) == -EINVAL && strstr(why, "rank"),
	   "open__rank: %s", why);
}

int main(void)
{
	struct rank ranks[2] = { { .rank = 0 }, { .rank = 1 } };
	unsigned int i;

	alarm(LIMIT);
	for (i = 0; i < 2; i++)
		pthread_create(&ranks[i].thread, NULL, run, &ranks[i]);
	for (i = 0; i < 2; i++)
		pthread_join(ranks[i].thread, NULL);
	for (i = 0; i < 2; i++) {
		ok(ranks[i].fd >= 0, "open rank %u: %s", i, ranks[i].why);
		if (ranks[i].fd < 0)
			continue;
		judge_reduce(&ranks[i]);
		judge_pipeline(&ranks[i]);
		judge_differ(&ranks[i]);
		judge_kinds(&ranks[i]);
		judge_state(&ranks[i]);
	}
	for (i = 0; i < 2; i++)
		if (ranks[i].fd >= 0)
			close(ranks[i].fd);
	open__timeout();
	return tap_done();
}
