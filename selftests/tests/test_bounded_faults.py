#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=debug timeout=600
"""Bounded ops with faults that the module itself makes: hosts whose clocks differ, and
a timer that keeps bounds too late."""
import contextlib
import time

from lib import abi, lean, ledger, module, tap
from lib.netns import Network
from lib.tracing import recorded
from lib.trainers import READY, Plan, Trainers

PARAMETERS = "/sys/module/ored/parameters/inject_"
LINK = "delay 100us rate 100mbit limit 1000"
RANKS, OPS, COUNT = 4, 30, 2000
DEADLINE, SLACK = 20000, 200	# us
LATE = 30000	# us that the timer is
RATE = 20000	# packets of a flood, a second: of
KEPT = 16	# in a row, one at least is for rank 0
WRAP = 1 << 32	# us


@contextlib.contextmanager
def inject(name, value):
    with open(PARAMETERS + name, "w") as file:
        file.write(str(value))
    try:
        yield
    finally:
        with open(PARAMETERS + name, "w") as file:
            file.write("0")


def overshoot(flooded):
    """us that the ops of rank 0 take beyond their bound at most, with a late timer, if
    half of the ranks are cut off, so that every op lasts until its bound."""
    with Network(RANKS, netem=LINK, offloads=False) as net, contextlib.ExitStack() as stack:
        trainers = stack.enter_context(lean.Trainers(
            net.hosts, "--ops", OPS, "--count", COUNT, "--deadline", DEADLINE, "--no-wait"))
        partition = lean.Partition(net)
        if flooded:
            stack.enter_context(lean.flood(net.hosts[1], RATE))
        stack.enter_context(inject("timer_us", LATE))
        trainers.begin()
        trainers.sleep_until(0.02)
        for rank in range(2, RANKS):
            partition.cut(rank)
        steps = trainers.steps([0, 1])[0]
    assert {s.bound_us for s in steps} == {DEADLINE}
    assert sum(s.limit == abi.LIMIT_HARD for s in steps) > OPS // 2
    return max(s.took_us - s.bound_us for s in steps)


def test_late_timer():
    """Every packet looks at the clock: where some come, a late timer makes no op
    longer."""
    alone, flooded = overshoot(False), overshoot(True)
    tap.note(f"{alone:.0f} us over the bound at most, with packets {flooded:.0f} us")
    assert LATE / 2 < alone <= LATE + SLACK, "the timer isn't late"
    assert flooded <= SLACK + KEPT * 1000000 / RATE, flooded


def test_clocks():
    """Clocks that say something else on each host, and wrap in mid-run: round trips are
    what they are, and what is lost is sent again."""
    plan = Plan(ops=40, count=9000, op={"reduction": abi.MEAN, "deadline_us": 40000},
                look=lambda sock: [p.srtt_us for p in sock.peers()])
    wraps = time.monotonic_ns() // 1000 + int(1e6 * (READY + 0.25))
    with Network(3, netem=LINK + " loss 1%", offloads=False) as net, \
            inject("clock_us", WRAP - wraps), recorded(net.hosts) as events, \
            Trainers(net.hosts, plan) as trainers:
        logs = trainers.logs()
    ledger.check(logs, 3)
    over = ledger.check_bound(logs)
    steps = [s for log in logs.values() for s in log.values()]
    loss = sum(s.loss for s in steps) / len(steps)
    repaired = sum(s.result.scatter.repaired + s.result.gather.repaired for s in steps)
    trips = [step.seen[peer] for rank, log in logs.items() for step in log.values()
             for peer in range(3) if peer != rank]
    clocks = [e["clock"] for e in events if e.name == "ored_chunk" and e["peer"] == 1]
    tap.note(f"clocks of rank 1 {min(clocks)} to {max(clocks)}; round trips {min(trips)} to "
             f"{max(trips)} us; loss {100 * loss:.3f} %, {repaired} bytes repaired, "
             f"{over:.0f} us over the bound at most")
    assert min(clocks) < WRAP // 4 and max(clocks) > WRAP // 4 * 3, "no clock has wrapped"
    assert 200 <= min(trips) and max(trips) < 20000, trips
    assert repaired > 0 and loss < 0.005, loss


module.modprobe()
lean.keep_in_memory()
tap.main(globals())
