#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""In the guest: half of four ranks are cut off, so that every op of the others lasts
until its bound, while something computes on every processor all the time.

Prints a line of JSON for each setting: its name, and sorted lists of what calls, the
ops themselves as the kernel says, and plain sleeps for the same time took beyond it,
in microseconds.
"""
import contextlib
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests"))
from lib import abi, lean, module  # noqa: E402  found only now
from lib.netns import Network, warm_up  # noqa: E402

RANKS, FIRST = 4, 10
LINK = "delay 100us rate 100mbit limit 1000"
BUSY = ["/bin/sh", "-c", "while :; do :; done"]
PLAN = ["--count", 2000, "--gap", 5000, "--spin", "--no-wait", "--deadline", 20000]


def calls(net, ops, *options):
    """Steps of the ranks that are there, from when the others count no more."""
    there = range(RANKS // 2)
    partition = lean.Partition(net)
    with lean.Trainers(net.hosts, "--ops", ops + FIRST, *PLAN, *options) as trainers:
        trainers.begin()
        trainers.sleep_until(0.02)
        for rank in range(len(there), RANKS):
            partition.cut(rank)
        seen = trainers.steps(there)
    steps = [step for log in seen.values() for step in log[FIRST:]]
    hard = sum(step.limit == abi.LIMIT_HARD for step in steps)
    assert hard > len(steps) / 2, f"only {hard} of {len(steps)} ops lasted until their bound"
    return steps


def sleeps(net, ops, *options):
    """The same by as many processes that only sleep."""
    with lean.Trainers(net.hosts[:RANKS // 2], "--ops", ops, "--alone", *PLAN,
                       *options) as trainers:
        trainers.begin()
        seen = trainers.steps(range(len(trainers)))
    return [step for log in seen.values() for step in log]


def measure(name, ops, *options):
    with Network(RANKS, netem=LINK, offloads=False) as net:
        alone = sleeps(net, ops, *options)
        steps = calls(net, ops, *options)
    print(json.dumps({
        "name": name,
        "calls": sorted(s.took_us - s.bound_us for s in steps),
        "ops": sorted(s.elapsed_ns / 1e3 - s.bound_us for s in steps),
        "sleeps": sorted(s.took_us - s.bound_us for s in alone)}), flush=True)


@contextlib.contextmanager
def busy():
    processes = [subprocess.Popen(BUSY) for _ in range(os.cpu_count())]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main():
    ops = int(sys.argv[1])
    module.modprobe()
    warm_up()
    measure("idle", ops)
    with busy():
        measure("busy", ops)
        measure("busy_fifo", ops, "--fifo")


main()
