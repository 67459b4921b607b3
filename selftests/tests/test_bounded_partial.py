#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=debug timeout=900
"""What a partial result is made of, and what is said of it.

lib/ledger.py compares, chunk by chunk and rank by rank, what results contain with
what they say: bytes, contributors, missing ranks, uncounted chunks, verdicts.
"""
from lib import abi, ledger, tap
from lib.netns import Network
from lib.trainers import Plan, Trainers

LINK = "delay 100us rate 100mbit limit 1000"
MEAN = {"reduction": abi.MEAN, "deadline_us": 30000}
OPS = 16


def run(nranks, plan, disturb=None, netem=LINK, **join):
    with Network(nranks, netem=netem, offloads=False) as net, \
            Trainers(net.hosts, plan, **join) as trainers:
        if disturb:
            disturb(net, trainers)
        return trainers.logs()


def dead(rank, plan, nranks=4):
    """The logs of those that survive a rank whose link goes at once."""
    def disturb(net, trainers):
        trainers.sleep_until(-0.1)
        net.hosts[rank].ip("link set eth0 down")
    logs = run(nranks, plan, disturb)
    del logs[rank]
    return logs


def test_whole():
    logs = run(4, Plan(ops=OPS, count=5000, op=MEAN))
    accounts = ledger.check(logs, 4)
    over = ledger.check_bound(logs)
    for log in logs.values():
        for step in log.values():
            assert step.result.limit == abi.LIMIT_COMPLETE
            assert step.result.verdict == abi.VERDICT_OK and not step.uncounted
    assert all(set(a.truth) == {frozenset(range(4))} for a in accounts.values())
    tap.note(f"{len(accounts)} ops, {-over:.0f} us before the bound at least")


@tap.cases((3, "mean"), (4, "sum"), (4, "zero"), (8, "mean"))
def test_dead_rank(nranks, how):
    """The mean is over the others, the sum scaled to all; in the dead one's shard
    there is one's own value, or zero. All survivors name it, and nobody else."""
    op = dict(MEAN, reduction=abi.MEAN if how != "sum" else abi.SUM,
              flags=abi.OP_MISSING_ZERO if how == "zero" else 0)
    logs = dead(1, Plan(ops=OPS, count=9000, op=op), nranks)
    accounts = ledger.check(logs, nranks, mean=how != "sum", zero=how == "zero")
    ledger.check_bound(logs)
    others = frozenset(range(nranks)) - {1}
    for account in accounts.values():
        lost = account.map.shard(1)
        for chunk, found in enumerate(account.truth):
            assert found == (None if chunk in lost else others), (chunk, found)
        for rank, step in account.steps.items():
            result, size = step.result, account.map.bytes_of(lost)
            assert ledger.words(result.missing) == {1}
            assert ledger.words(result.contributed) == others
            assert result.gather.missing == size
            assert result.scatter.missing == account.map.bytes_of(account.map.shard(rank))
            stand_in = account.counted[rank][lost[0]]
            assert stand_in == (ledger.ZERO if how == "zero" else {rank})
            # Nobody reduced these: they are to be added to the next bucket.
            assert step.uncounted == sum(1 << c for c in lost), bin(step.uncounted)


@tap.cases(
    ("by default", abi.VERDICT_SKIP, {}),
    ("loss_skip above it", abi.VERDICT_PARTIAL, {"loss_skip": 400000}),
    ("loss_halt below it", abi.VERDICT_HALT, {"loss_halt": 250000}),
    ("min_ranks", abi.VERDICT_HALT, {"loss_skip": 400000, "min_ranks": 4}),
    ("min_ranks that are there", abi.VERDICT_PARTIAL, {"loss_skip": 400000, "min_ranks": 3}))
def test_verdict(_, verdict, policy):
    """Of a third that is missing: one rank of four is dead."""
    logs = dead(3, Plan(ops=3, count=9000, op=MEAN, policy=policy))
    ledger.check(logs, 4, policy=policy)
    for log in logs.values():
        for step in log.values():
            assert step.result.verdict == verdict, step.result.verdict


@tap.cases((2, "mean"), (4, "mean"), (2, "sum"), (4, "sum"))
def test_alone(nranks, how):
    """A rank that hears nobody has its own contribution back, and is told to halt,
    however much loss its policy takes: it is no sum of the group's."""
    policy = {"loss_skip": 1000000, "loss_halt": 1000000}

    def disturb(net, trainers):
        trainers.sleep_until(-0.1)
        for host in net.hosts:
            host.ip("link set eth0 down")
    op = dict(MEAN, reduction=abi.MEAN if how == "mean" else abi.SUM)
    logs = run(nranks, Plan(ops=4, count=3000, op=op, policy=policy), disturb)
    ledger.check(logs, nranks, mean=how == "mean", policy=policy)
    ledger.check_bound(logs)
    for rank, log in logs.items():
        for step in log.values():
            assert step.result.verdict == abi.VERDICT_HALT, step.result.verdict
            assert ledger.words(step.result.contributed) <= {rank}
            assert step.result.gather.received == step.result.scatter.received == 0


def test_error_feedback():
    """Under loss that repair has no time for, each contribution to each chunk is
    either in its result or named as uncounted."""
    nranks, op = 4, dict(MEAN, deadline_us=5000, flags=abi.OP_NO_WAIT)
    logs = run(nranks, Plan(ops=60, count=9000, op=op),
               netem="delay 500us rate 100mbit limit 1000 loss 10%")
    accounts = ledger.check(logs, nranks)
    ledger.check_bound(logs)
    counted = uncounted = twice = 0
    for account in accounts.values():
        for chunk, found in enumerate(account.truth):
            for rank, step in account.steps.items():
                said = step.uncounted >> chunk & 1
                counted += rank in (found or ())
                uncounted += said
                twice += said and rank in (found or ())
                assert said or found is None or rank in found
    assert uncounted > 50, uncounted
    tap.note(f"{counted} counted, {uncounted} named as uncounted, {twice} of these in error")
    assert twice < uncounted / 5


tap.main(globals())
