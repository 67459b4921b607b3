#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""The policies beside the default ones, in real ops: how many may send at once, and
a bound that is the warm-up's 95th percentile."""
import time

from lib import abi, ledger, tap
from lib.netns import Network
from lib.sockets import Ranks
from lib.sums import contribution, difference, expected
from lib.tracing import recorded

LINK = "delay 100us rate 100mbit limit 1000"
RANKS, COUNT, BOUND_US = 4, 6000, 50000


def group_of(net, deadline_us=BOUND_US, **fields):
    """Means, without a wait for late posters."""
    group = Ranks(net.hosts, mode=abi.MODE_BOUNDED, **fields)
    for sock in group:
        sock.set(abi.OP, abi.Op(reduction=abi.MEAN, deadline_us=deadline_us,
                                flags=abi.OP_NO_WAIT | abi.OP_HADAMARD_OFF))
    return group


def run(group, op, ranks=range(RANKS)):
    """One op of these ranks; their results."""
    for rank in ranks:
        group[rank].send(contribution(rank, COUNT, op))
    results = []
    for rank in ranks:
        got = group[rank].take(COUNT * 4)
        results.append(group[rank].result(op))
        if results[-1].verdict == abi.VERDICT_OK:
            assert not difference(got, expected(RANKS, COUNT, op, mean=True))
    return results


def obeyed(events):
    """What each op was posted with: {op: {incast of each rank}}."""
    posts = {}
    for event in events:
        if event.name == "ored_op_post":
            posts.setdefault(event["op"], set()).add(event["incast"])
    return posts


def test_incast():
    """From one sender at a time, one more after each clean op; half of them after
    one that was not."""
    with Network(RANKS, netem=LINK, offloads=False) as net, group_of(net) as group:
        for sock in group:
            sock.set(abi.POLICY, abi.Policy(incast=abi.INCAST_ADAPT))
        with recorded(net.hosts) as events:
            for op in range(6):
                results = run(group, op)
                assert all(r.verdict == abi.VERDICT_OK for r in results)
            run(group, 6, range(RANKS - 1))	# ends by its bound
            run(group, 6, [RANKS - 1])
            run(group, 7)
    posts = obeyed(events)
    assert posts[0] == {1}, posts
    assert posts[4] == posts[5] == {RANKS - 1}, posts
    # What a peer takes now may be heard a little later, never more than it takes.
    for op in range(1, 4):
        assert max(posts[op]) <= min(op + 1, RANKS - 1), posts
    assert min(posts[7]) == (RANKS - 1) // 2, posts


def test_incast_of_one():
    """One rank alone takes fewer: all obey, as soon as they have heard of it."""
    with Network(RANKS, netem=LINK, offloads=False) as net, \
            group_of(net, depth=2) as group:
        with recorded(net.hosts) as events:
            run(group, 0)
            group[0].set(abi.POLICY, abi.Policy(incast=abi.INCAST_ADAPT))
            # An op that doesn't end yet, and in which rank 0 acknowledges something
            for rank in range(RANKS - 1):
                group[rank].send(contribution(rank, COUNT, 1))
            time.sleep(0.01)
            group[1].send(contribution(1, COUNT, 2))
            group[RANKS - 1].send(contribution(RANKS - 1, COUNT, 1))
            for sock in group:
                sock.take(COUNT * 4)
    assert obeyed(events)[0] == {RANKS - 1}
    assert obeyed(events)[2] == {1}, obeyed(events)


def test_p95():
    """The bound is that of the warm-up, and what is lost later doesn't change it."""
    warmup, victim = 10, RANKS - 1
    with Network(RANKS, netem=LINK, offloads=False) as net, \
            group_of(net, deadline_us=0) as group:
        for sock in group:
            sock.set(abi.POLICY, abi.Policy(deadline=abi.DEADLINE_P95, warmup=warmup,
                                            floor_us=1, ceiling_us=200000))
        warm = [run(group, op) for op in range(warmup)]
        learnt = [run(group, op) for op in range(warmup, warmup + 3)]
        net.hosts[victim].ip("link set eth0 down")
        there = range(RANKS - 1)
        lossy = [run(group, op, there) for op in range(warmup + 3, warmup + 13)]
    for rank in range(RANKS):
        assert all(r[rank].bound_us == 200000 + COUNT * 4 // 20 for r in warm)
        took = sorted(r[rank].elapsed_ns / 1000 for r in warm)
        bound = learnt[0][rank].bound_us
        tap.note(f"rank {rank}: took {took[0]:.0f} to {took[-1]:.0f} us, bound {bound} us")
        # Not less than the floor, 1.05 times the 20th percentile
        assert took[len(took) // 2] <= bound <= max(took[-1], 1.06 * took[2]) + 1
        assert {r[rank].bound_us for r in learnt} == {bound}
    for rank in there:
        assert {r[rank].bound_us for r in lossy} == {learnt[0][rank].bound_us}
        assert ledger.words(lossy[-1][rank].missing) == {victim}


tap.main(globals())
