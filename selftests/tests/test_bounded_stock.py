#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=6.1,6.12 timeout=900
"""An op returns within its published bound on distributions' kernels, too.

On one emulated processor, where one instruction is one nanosecond, the work of all
hosts' kernels and trainers is in what a call takes, one after the other; so trainers
are lean, and buckets small. Half of the ranks dead, nobody ever finishes early:
every op of the others, which all end at the same time, lasts until its bound.
"""
import itertools
import signal

from lib import abi, lean, tap
from lib.netns import Network

LINK = "delay 100us rate 100mbit limit 1000"
RANKS, OPS, COUNT = 4, 30, 2000
DEADLINE, SLACK = 20000, 200	# us


def cut(partition, _trainers, rank):
    partition.cut(rank)


def kill(_partition, trainers, rank):
    trainers[rank].signal(signal.SIGKILL)


def stop(_partition, trainers, rank):
    trainers[rank].signal(signal.SIGSTOP)


DISTURB = {"killed": kill, "stopped": stop, "partitioned": cut}


def judge(seen, bound):
    """All kept to the bound; the largest overshoot is told."""
    steps = [s for log in seen.values() for s in log]
    assert all(len(log) == OPS for log in seen.values())
    assert {s.bound_us for s in steps} == {bound}
    over = max(s.took_us - s.bound_us for s in steps)
    ends = {name: sum(s.limit == n for s in steps) for n, name in enumerate(
        ("none", "complete", "early", "hard", "behind"))}
    tap.note(f"{over:.0f} us over the bound at most; ended {ends}")
    assert over <= SLACK, f"{over:.0f} us over the bound"
    return steps


def measure(disturb, victims, *options):
    with Network(RANKS, netem=LINK, offloads=False) as net, \
            lean.Trainers(net.hosts, "--ops", OPS, "--count", COUNT, "--deadline",
                          DEADLINE, *options) as trainers:
        partition = lean.Partition(net)
        trainers.begin()
        trainers.sleep_until(0.02)
        for rank in range(RANKS - victims, RANKS):
            disturb(partition, trainers, rank)
        return trainers.steps(range(RANKS - victims))


@tap.cases(*itertools.product(DISTURB, (1, RANKS // 2), ("W", "no W")))
def test_disturbed(how, victims, wait):
    wait = wait == "W"
    seen = measure(DISTURB[how], victims, *([] if wait else ["--no-wait"]))
    steps = judge(seen, DEADLINE * 5 // 4 if wait else DEADLINE)
    if 2 * victims >= RANKS and how != "killed":
        assert sum(s.limit == abi.LIMIT_HARD for s in steps) > len(steps) // 2


@tap.cases(*itertools.product((5000, 10000), ("W", "no W")))
def test_flood(rate, wait):
    """One of two survivors sends all that it sends again and again."""
    with Network(RANKS, netem=LINK, offloads=False) as net, \
            lean.Trainers(net.hosts, "--ops", OPS, "--count", COUNT, "--deadline",
                          DEADLINE, *([] if wait == "W" else ["--no-wait"])) as trainers:
        partition = lean.Partition(net)
        with lean.flood(net.hosts[1], rate) as sent:
            trainers.begin()
            trainers.sleep_until(0.02)
            for rank in range(2, RANKS):
                partition.cut(rank)
            seen = trainers.steps(range(2))
    steps = judge(seen, DEADLINE * 5 // 4 if wait == "W" else DEADLINE)
    assert sum(s.limit == abi.LIMIT_HARD for s in steps) > len(steps) // 2
    expected = rate * sum(s.took_us for s in seen[0]) / 1e6
    tap.note(f"{sent[0]} packets sent again")
    assert sent[0] > expected / 2, f"no flood: {sent[0]} packets, not {expected:.0f}"


lean.keep_in_memory()
tap.main(globals())
