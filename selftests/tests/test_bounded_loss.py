#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=debug alone timeout=1200
"""Bounded ops under the kinds of loss that networks have, and under what only looks
like loss. What is lost, and of whom, is told to the byte (lib/ledger.py)."""
from lib import abi, ledger, tap
from lib.netns import Network
from lib.sums import floats
from lib.trainers import Plan, Trainers, value_of

LINK = "delay 100us rate 100mbit limit 1000"
RANKS, COUNT = 4, 9000
MEAN = {"reduction": abi.MEAN, "deadline_us": 40000}


def run(plan, netem=LINK, disturb=None, nranks=RANKS):
    with Network(nranks, netem=netem, offloads=False) as net:
        if disturb:
            disturb(net)
        with Trainers(net.hosts, plan) as trainers:
            logs = trainers.logs()
    if nranks <= 8:
        ledger.check(logs, nranks)
    over = ledger.check_bound(logs)
    steps = [s for log in logs.values() for s in log.values()]
    loss = sum(s.loss for s in steps) / len(steps)
    repaired = sum(s.result.scatter.repaired + s.result.gather.repaired for s in steps)
    limits = [sum(s.result.limit == n for s in steps) for n in range(5)]
    tap.note(f"loss {100 * loss:.3f} %, {repaired} bytes repaired, limits {limits} "
             f"(none complete early hard behind), {over:.0f} us over the bound at most")
    return logs, steps, loss, repaired


def test_random_loss():
    """Repair brings nearly all of it within the bound."""
    _, _, loss, repaired = run(Plan(ops=40, count=COUNT, op=MEAN), LINK + " loss 1%")
    assert repaired > 0 and loss < 0.005, loss


def test_gilbert_elliott():
    """Losses that come in clusters: nine of ten packets in a bad spell."""
    _, _, loss, repaired = run(Plan(ops=40, count=COUNT, op=MEAN),
                               LINK + " loss gemodel 0.5% 20% 90% 0.1%")
    assert repaired > 0 and loss < 0.05, loss


def test_burst_policer():
    """A port that takes ten packets at once and drops what is beyond its rate."""
    def police(net):
        for rank in range(RANKS):
            net.switch.tc(f"qdisc add dev p{rank} root tbf rate 30mbit burst 15000"
                          " limit 15000")
    _, _, loss, repaired = run(Plan(ops=40, count=COUNT, op=MEAN), disturb=police)
    assert repaired > 0, "nothing was policed"
    assert loss < 0.2, loss


def test_reordering():
    """A third of the packets overtake the others by 2 ms, tails too: nothing is lost,
    and no op is given up early for want of what is still on its way."""
    plan = Plan(ops=60, count=COUNT, op=MEAN, policy={"warmup": 5})
    _, steps, loss, _ = run(plan, "delay 2ms reorder 30% 25% limit 1000")
    assert loss == 0
    assert all(s.result.limit == abi.LIMIT_COMPLETE for s in steps)


def test_duplicates():
    """They are counted, and change nothing."""
    _, steps, loss, _ = run(Plan(ops=20, count=COUNT, op=MEAN), LINK + " duplicate 20%")
    assert loss == 0
    assert sum(s.result.duplicates for s in steps) > 100
    assert all(s.result.limit == abi.LIMIT_COMPLETE for s in steps)


def test_slow_peer():
    """One of four has a hundredth of the others' link: they have each other's
    contributions in time, and what they have of it."""
    def slow(net):
        net.hosts[1].netem("delay 100us rate 1mbit limit 1000")
    logs, steps, loss, _ = run(Plan(ops=30, count=COUNT, op=MEAN), disturb=slow)
    assert 0.05 < loss < 0.6, loss
    assert any(s.result.limit == abi.LIMIT_HARD for s in steps)
    for rank in (0, 2, 3):
        for number, step in logs[rank].items():
            missing = ledger.words(step.result.missing)
            assert missing <= {1}, f"op {number}, rank {rank}: {set(missing)} missing"


HOLE = ("ip saddr 10.77.0.{sender} udp dport 4741 @th,72,8 & 0xf0 == {kind}"
        " @th,240,16 < 2")
SCATTER, GATHER = "0x20", "0x30"	# of the header


def early(*holes):
    """The last ten ops of rank 0. holes: (receiver, sender, kind): the first two
    chunks of each such flow never come, its last ones do."""
    plan = Plan(ops=60, count=12000, gap=0.01, op=dict(MEAN, deadline_us=200000),
                policy={"warmup": 5})
    with Network(3, netem=LINK, offloads=False) as net, \
            Trainers(net.hosts, plan) as trainers:
        trainers.sleep_until(0.4)
        for to, sender, kind in holes:
            net.hosts[to].drop("input", HOLE.format(sender=sender + 1, kind=kind))
        logs = trainers.logs()
    ledger.check(logs, 3)
    ledger.check_bound(logs)
    steps = [logs[0][n] for n in sorted(logs[0])]
    quiet = [s for s in steps if s.result.verdict == abi.VERDICT_OK]
    assert len(quiet) >= 10, "never learnt what is usual"
    last = steps[-10:]
    slowest = max(s.took_us for s in last)
    tap.note(f"{slowest:.0f} us at most, quiet {min(s.took_us for s in quiet):.0f} us, "
             f"bound {last[0].result.bound_us} us; limits {[s.result.limit for s in last]}")
    assert slowest < 60000, "not early"
    assert all(ledger.words(s.result.missing) == {1} for s in last)
    return last


def test_early_end():
    """When nothing has come for a while the op is given up, long before its bound.
    Every rank misses something, so that none is behind the others."""
    last = early((0, 1, GATHER), (1, 2, GATHER), (2, 0, GATHER))
    assert sum(s.result.limit == abi.LIMIT_EARLY for s in last) >= 5
    assert all(s.result.gather.missing == 2 * s.chunk for s in last)


def test_early_seal():
    """Likewise the scatter, which the owner then reduces without those chunks, so
    that all have the rest of them."""
    for step in early((0, 1, SCATTER)):
        assert step.result.scatter.missing == 2 * step.chunk
        assert step.result.gather.missing == 0


@tap.cases(16, 32)
def test_many_ranks(nranks):
    """Quiet, then one dead: all others agree that it is, and on the mean."""
    plan = Plan(ops=8, count=nranks * 360, gap=0.01,
                op=dict(MEAN, deadline_us=100000), policy={"loss_skip": 200000})
    with Network(nranks, netem=LINK, offloads=False) as net, \
            Trainers(net.hosts, plan) as trainers:
        trainers.sleep_until(0.05)
        net.switch.ip("link set p5 nomaster")
        logs = trainers.logs()
    del logs[5]
    over = ledger.check_bound(logs)
    others = [r for r in range(nranks) if r != 5]
    for rank, log in logs.items():
        step = log[7]
        assert ledger.words(step.result.missing) == {5}, (
            rank, set(ledger.words(step.result.missing)))
        cut = ledger.Map(step.result.bytes, step.chunk, nranks)
        values = floats(step.data)
        mean = sum(value_of(r, 7) for r in others) / len(others)
        for chunk in range(cut.chunks):
            at = chunk * step.chunk // 4
            want = value_of(rank, 7) if chunk in cut.shard(5) else mean
            assert abs(values[at] / want - 1) < 1e-6, (rank, chunk, values[at], want)
        assert step.result.verdict == abi.VERDICT_PARTIAL
    tap.note(f"{over:.0f} us over the bound at most")


tap.main(globals())
