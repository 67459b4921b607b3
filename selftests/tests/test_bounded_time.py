#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=debug timeout=900
"""An op returns within its published bound, whatever its peers do.

Measured around send() and recv(), as a trainer would.
"""
import itertools
import time

from lib import abi, ledger, tap
from lib.netns import Network
from lib.sockets import Ranks
from lib.trainers import Plan, Trainers

LINK = "delay 100us rate 100mbit limit 1000"
DEADLINE = 20000	# us
MEAN = {"reduction": abi.MEAN, "deadline_us": DEADLINE}
NO_WAIT = dict(MEAN, flags=abi.OP_NO_WAIT)
RANKS, OPS, COUNT = 4, 16, 5000


def cut(net, _trainers, rank):
    net.hosts[rank].ip("link set eth0 down")


def kill(_net, trainers, rank):
    trainers[rank].kill()


def stop(_net, trainers, rank):
    trainers[rank].stop()


def partition(net, _trainers, rank):
    """Nothing gets through, and its link stays up."""
    net.switch.ip(f"link set p{rank} nomaster")


def measure(disturb, victims, plan, nranks=RANKS):
    """Logs of the others, that were disturbed after 4 ops or so."""
    with Network(nranks, netem=LINK, offloads=False) as net, \
            Trainers(net.hosts, plan) as trainers:
        trainers.sleep_until(0.035)
        for rank in victims:
            disturb(net, trainers, rank)
        logs = trainers.take_logs([t for t in trainers if t.rank not in victims], 60)
        if disturb is stop:
            for rank in victims:
                trainers[rank].go_on()
        return logs


DISTURB = {"killed": kill, "cut": cut, "stopped": stop, "partitioned": partition}


@tap.cases(*itertools.product(DISTURB, (1, RANKS - 1), ("W", "no W")))
def test_disturbed(how, victims, wait):
    disturb, wait = DISTURB[how], wait == "W"
    logs = measure(disturb, range(1, 1 + victims),
                   Plan(ops=OPS, count=COUNT, op=MEAN if wait else NO_WAIT))
    ledger.check(logs, RANKS)
    over = ledger.check_bound(logs)
    bounds = {s.result.bound_us for log in logs.values() for s in log.values()}
    assert bounds == {DEADLINE * 5 // 4 if wait else DEADLINE}, bounds
    if disturb is not kill:
        assert over > -DEADLINE / 2, "nothing was disturbed"
    tap.note(f"{over:.0f} us over the bound at most")


def bounds_of(plan):
    logs = measure(partition, [1], plan)
    over = ledger.check_bound(logs)
    assert over > -1000, f"the bound wasn't used: {over} us"
    return {s.result.bound_us for log in logs.values() for s in log.values()}


def test_bound_of_the_op():
    """deadline_us and wait_us of the op come before the policy's."""
    op = {"reduction": abi.MEAN, "deadline_us": 15000, "wait_us": 1000}
    assert bounds_of(Plan(ops=OPS, op=op, policy={"bound_us": 999999})) == {16000}


def test_bound_of_the_policy():
    assert bounds_of(Plan(ops=OPS, op={"reduction": abi.MEAN}, policy={
        "bound_us": 15000, "wait_ppm": 200000})) == {18000}


def test_bound_without_a_wait():
    assert bounds_of(Plan(ops=OPS, op={"reduction": abi.MEAN}, policy={
        "bound_us": 15000, "wait_ppm": abi.WAIT_NONE})) == {15000}


def test_bound_that_is_found():
    """From what quiet ops took; a ceiling holds before that."""
    ceiling, warmup = 200000, 8
    plan = Plan(ops=40, count=COUNT, gap=0.002, op={"reduction": abi.MEAN}, policy={
        "warmup": warmup, "ceiling_us": ceiling, "wait_ppm": abi.WAIT_NONE})
    with Network(RANKS, netem=LINK, offloads=False) as net, \
            Trainers(net.hosts, plan) as trainers:
        trainers.sleep_until(0.3)
        net.switch.ip("link set p1 nomaster")
        logs = trainers.logs()
    over = ledger.check_bound(logs)
    for log in logs.values():
        first, last = log[0].result, log[25].result
        assert first.bound_us == ceiling + COUNT * 4 * 50 // 1000, first.bound_us
        quiet = sorted(log[n].result.elapsed_ns for n in range(warmup))[1] / 1000
        assert last.bound_us <= 4 * quiet, (last.bound_us, quiet)
        assert last.bound_us >= 1.05 * quiet or last.bound_us == 2000
    tap.note(f"quiet {quiet:.0f} us, bound {last.bound_us} us, {over:.0f} us over it")


def test_several_in_flight():
    """Each op's bound is counted from its post, those before it included."""
    depth, ops = 4, 12
    with Network(3, netem=LINK, offloads=False) as net, \
            Ranks(net.hosts[:2] + [net.hosts[2]], depth=depth,
                  mode=abi.MODE_BOUNDED) as group:
        group.allreduce(100)
        net.switch.ip("link set p2 nomaster")
        for sock in group[:2]:
            sock.set(abi.OP, abi.Op(deadline_us=10000, flags=abi.OP_NO_WAIT))
        for _ in range(ops // depth):
            begins = {}
            for turn in range(depth):
                for sock in group[:2]:
                    begins[sock, turn] = time.monotonic_ns()
                    sock.send(bytes(4000))
            for turn in range(depth):
                for sock in group[:2]:
                    sock.take(4000)
                    took = (time.monotonic_ns() - begins[sock, turn]) / 1000
                    result = sock.result(sock.group().received - 1)
                    assert result.bound_us <= (turn + 1) * 10000, result.bound_us
                    assert took <= result.bound_us + ledger.SLACK_US, (turn, took)


tap.main(globals())
