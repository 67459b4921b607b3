#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=debug timeout=600
"""Corners of bounded ops that trainers come into seldom: policies that aren't the
default, a bound that must be found in the dark, failures beside ops that go on."""
import contextlib
import errno
import socket
import time

from lib import abi, ledger, tap
from lib.netns import Network
from lib.sockets import Ranks, refused, reliable
from lib.sums import contribution, difference, expected
from lib.trainers import Plan, Trainers

LINK = "delay 100us rate 100mbit limit 1000"
COUNT = 9000
SMALL = 900
MEAN = {"reduction": abi.MEAN}
# Of each scatter of rank 1 to rank 0 the first two chunks never come.
HOLE = "ip saddr 10.77.0.2 udp dport 4741 @th,72,8 & 0xf0 == 0x20 @th,240,16 < 2"
GATHER = "udp dport 4741 @th,72,8 & 0xf0 == 0x30"
HALF_BOUND = 100000	# us


def train(plan, nranks=3, netem=LINK, disturb=None):
    with Network(nranks, netem=netem, offloads=False) as net, \
            Trainers(net.hosts, plan) as trainers:
        if disturb:
            disturb(net, trainers)
        logs = trainers.logs()
    ledger.check(logs, nranks)
    ledger.check_bound(logs)
    return logs


def test_incast():
    """One peer at a time, then one more after each op that lost nothing, and half of
    them after one that did: the ops are the same, and take longer in the beginning."""
    logs = train(Plan(ops=20, count=COUNT, op=dict(MEAN, deadline_us=60000),
                      policy={"incast": abi.INCAST_ADAPT}),
                 nranks=5, netem=LINK + " loss 0.5%")
    steps = [[log[n] for log in logs.values()] for n in range(20)]
    whole = sum(s.result.verdict == abi.VERDICT_OK for op in steps for s in op)
    tap.note(f"{whole} of 100 results are whole; first op "
             f"{max(s.took_us for s in steps[0]):.0f} us, best "
             f"{min(max(s.took_us for s in op) for op in steps):.0f} us")
    assert whole > 50


@tap.cases(("by loss", abi.DEADLINE_LOSS), ("by p95", abi.DEADLINE_P95))
def test_deadline_policy(_, deadline):
    """Once ops have been seen the bound comes down from its ceiling to what they
    take, and nearly all of them still fit."""
    logs = train(Plan(ops=16, count=COUNT, op=MEAN,
                      policy={"deadline": deadline, "warmup": 5, "ceiling_us": 400000,
                              "wait_ppm": abi.WAIT_NONE}))
    for log in logs.values():
        bounds = [log[n].result.bound_us for n in range(16)]
        assert min(bounds[:5]) >= 400000, bounds
        assert max(bounds[6:]) < 60000, bounds
    steps = [s for log in logs.values() for s in log.values()]
    complete = sum(s.result.limit == abi.LIMIT_COMPLETE for s in steps)
    tap.note(f"{complete} of {len(steps)} complete, bounds {bounds}")
    assert complete > len(steps) * 2 // 3


def test_lengths():
    """A line is laid through what ops of different lengths took: a short bucket has
    a shorter bound."""
    counts = (3000, 30000)
    with Network(3, netem=LINK, offloads=False) as net, \
            Ranks(net.hosts, mode=abi.MODE_BOUNDED, bucket_max=4 * max(counts)) as group:
        for sock in group:
            sock.set(abi.POLICY, abi.Policy(warmup=8, floor_us=1))
        bounds = {}
        for op in range(16):
            count = counts[op % 2]
            group.allreduce(count)
            bounds[count] = group[0].result(op).bound_us
    tap.note(f"{bounds}")
    assert bounds[3000] < bounds[30000] / 3, bounds


def lossy(ops, warmup, good):
    """Bounds of rank 0, which gets nothing whole after so many ops."""
    gap = 0.05

    def disturb(net, trainers):
        if good:
            trainers.sleep_until((good + 0.6) * gap)
        net.hosts[0].drop("input", HOLE)
    plan = Plan(ops=ops, count=COUNT, op=MEAN, gap=gap,
                policy={"warmup": warmup, "ceiling_us": 2 * HALF_BOUND, "loss_skip": 500000,
                        "loss_halt": 900000, "loss_target": 500000,
                        "wait_ppm": abi.WAIT_NONE})
    with Network(3, netem=LINK, offloads=False) as net, Trainers(net.hosts, plan) as trainers:
        disturb(net, trainers)
        logs = trainers.logs()
    ledger.check(logs, 3, policy=plan.policy)
    ledger.check_bound(logs)
    bounds = [logs[0][n].result.bound_us for n in range(ops)]
    whole = [logs[0][n].result.verdict == abi.VERDICT_OK for n in range(ops)]
    tap.note(f"bounds {bounds}, {sum(whole)} ops whole")
    assert not any(whole[good + 2:]), "no loss"
    return bounds


def test_nothing_to_learn_from():
    """No op is ever whole: the bound is tried shorter and shorter, as long as the
    loss stays the same."""
    bounds = lossy(ops=16, warmup=5, good=0)
    assert min(bounds[:5]) >= 2 * HALF_BOUND, bounds
    assert bounds[-1] < HALF_BOUND, bounds


def test_little_to_learn_from():
    """A few ops were, before it began: they must do, and are enough."""
    bounds = lossy(ops=30, warmup=12, good=7)
    assert min(bounds[:12]) >= 2 * HALF_BOUND, bounds
    assert bounds[-1] < HALF_BOUND, bounds


def start(group, ranks, op, **fields):
    for rank in ranks:
        control = [(abi.SOL_ORED, abi.OP, bytes(abi.Op(**fields)))]
        group[rank].sendmsg([contribution(rank, SMALL, op)], control)


def test_given_up():
    """A reliable op that others have ended is not kept for ever: who was cut off with
    a part of it is told when he is back, and can go on."""
    short = dict(MEAN, mode=abi.MODE_BOUNDED, deadline_us=20000, flags=abi.OP_NO_WAIT)
    with Network(3, netem="delay 100us", offloads=False) as net, \
            Ranks(net.hosts, bucket_max=SMALL * 4) as group:
        net.hosts[2].drop("input", GATHER)
        for rank, sock in enumerate(group):
            sock.send(contribution(rank, SMALL))
        for sock in group[:2]:
            assert not difference(sock.take(SMALL * 4), expected(3, SMALL))
        net.switch.ip("link set p2 nomaster")
        begin = time.monotonic()
        for op in range(1, 8):
            start(group, (0, 1), op, **short)
            for sock in group[:2]:
                sock.take(SMALL * 4)
        took = time.monotonic() - begin
        # Its silence is noticed within a few bounds, and nobody waits longer.
        assert took < 0.5, f"the others were held up for {took} s"
        net.hosts[2].drop_no_more()
        net.switch.ip("link set p2 master br0")
        with refused(errno.ESTALE, group[2], ("op 0", "gone on")):
            group[2].take(SMALL * 4)
        assert group[2].result(0).error == errno.ESTALE
        for sock in group:
            sock.set(abi.OP, abi.Op(**short))
        for op in range(1, 8):
            group[2].send(contribution(2, SMALL, op))
            group[2].take(SMALL * 4)
            # Of the last one there may still be everything to be had.
            assert group[2].result(op).limit == abi.LIMIT_BEHIND or op == 7, op
        group.ops = 8
        group.allreduce(SMALL, mean=True)


def test_failed_beside_one_that_goes_on():
    """A rank leaves: the reliable op fails, and the bounded one before it doesn't
    wait for that rank any more."""
    with Network(3, netem="delay 100us", offloads=False) as net, \
            Ranks(net.hosts, depth=2, bucket_max=SMALL * 4) as group:
        start(group, [0], 0, **MEAN, mode=abi.MODE_BOUNDED, deadline_us=1000000)
        group[0].sendmsg([contribution(0, SMALL, 1)], [(abi.SOL_ORED, abi.OP, reliable())])
        group[2].shutdown(socket.SHUT_WR)
        group[1].limit(0.05)
        with contextlib.suppress(BlockingIOError):
            group[1].recv(4)	# until it is known
        start(group, [1], 0, **MEAN, mode=abi.MODE_BOUNDED, deadline_us=1000000)
        mean = expected([0, 1], SMALL, 0, mean=True)
        group[1].limit(10)
        for sock in group[:2]:
            assert not difference(sock.take(SMALL * 4), mean)
            assert sock.result(0).limit == abi.LIMIT_COMPLETE
        with refused(errno.ECONNRESET, group[0], "rank 2"):
            group[0].take(SMALL * 4)


tap.main(globals())
