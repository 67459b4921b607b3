#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=debug alone timeout=3600
"""The bound is kept in ten thousand consecutive ops with 1 % loss.

ORED_OPS=N runs N of them instead, where a kernel is slow.
"""
import os

from lib import abi, ledger, tap
from lib.netns import Network
from lib.trainers import Plan, Trainers

OPS = int(os.environ.get("ORED_OPS", "10000"))
RANKS, COUNT = 3, 750
NAMES = ("none", "complete", "early", "hard", "behind")


def test_many():
    plan = Plan(ops=OPS, count=COUNT, gap=0.001, op={"reduction": abi.MEAN})
    with Network(RANKS, netem="delay 100us rate 100mbit loss 1% limit 1000",
                 offloads=False) as net, Trainers(net.hosts, plan) as trainers:
        logs = trainers.logs(seconds=3600)
    assert all(len(log) == OPS for log in logs.values())
    ledger.check(logs, RANKS)
    over = ledger.check_bound(logs)
    steps = [s for log in logs.values() for s in log.values()]
    took = sorted(s.took_us for s in steps)
    limits = {name: sum(s.result.limit == n for s in steps) for n, name in enumerate(NAMES)}
    loss = sum(s.loss for s in steps) / len(steps)
    tap.note(f"{OPS} ops: {over:.0f} us over the bound at most; {limits}; loss "
             f"{1e6 * loss:.0f} ppm; p50 {took[len(took) // 2]:.0f} us, p99 "
             f"{took[len(took) * 99 // 100]:.0f} us, max {took[-1]:.0f} us; last bound "
             f"{logs[0][OPS - 1].result.bound_us} us")
    assert loss < 0.02, "more is lost than what the network loses twice"


tap.main(globals())
