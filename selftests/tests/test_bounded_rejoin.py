#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=debug alone timeout=1200
"""Ranks that fell apart meet again by themselves.

Counted is how many ops the front runs after a disturbance is over until all ranks
lose less than 1 %.
"""
import random

from lib import abi, ledger, tap
from lib.netns import Network
from lib.trainers import Plan, Trainers, of

LINK = "delay 100us rate 100mbit limit 1000"
RANKS, COUNT, GAP = 8, 8000, 0.002
BOUND = 0.012		# s; an undisturbed op takes two thirds of that
POLICY = {"bound_us": int(BOUND * 1e6), "loss_skip": 200000}
OP = {"reduction": abi.MEAN}
PERIOD = BOUND * 1.25 + GAP	# of an op that runs into its bound


def plan(**fields):
    return Plan(**{"count": COUNT, "gap": GAP, "op": OP, "policy": POLICY, **fields})


def run(plans, disturb=None, nranks=RANKS):
    """Logs of ranks that trained for some time; they stop at the same moment, so
    that nobody waits for one that has had enough."""
    with Network(nranks, netem=LINK, offloads=False) as net, \
            Trainers(net.hosts, plans) as trainers:
        if disturb:
            disturb(net, trainers)
        logs = trainers.logs()
        origin = trainers.origin * 1e9
    plans = plans if isinstance(plans, list) else [plans] * nranks
    end = origin + min(p.seconds for p in plans) * 1e9 - 2 * PERIOD * 1e9
    return origin, {rank: {n: s for n, s in log.items() if s.begin < end}
                    for rank, log in logs.items()}


def newest(log, since):
    """The op that a rank was in, or was about to begin."""
    return max((n for n, s in log.items() if s.begin < since), default=-1) + 1


def lossy_ops(logs, since, allowed=0.01):
    """(ops that the front has run until nobody lost anything, lag of the last rank).

    The front is the rank that is furthest. What others skip on their way to it are
    ops that are over."""
    at = [newest(log, since) for log in logs.values()]
    front, lag = max(at), max(at) - min(at)
    bad = [n for log in logs.values() for n, s in log.items()
           if n >= front and s.loss > allowed]
    last = min(max(log) for log in logs.values())
    took = max(bad) + 1 - front if bad else 0
    assert last >= front + took + 4, f"no end to it: {took} ops, lag {lag}"
    return took, lag


def check_flags(logs):
    """'resync' begins with a result that was missed and lasts until a reliable op;
    what was skipped is counted, and only then."""
    for rank, log in logs.items():
        resync = False
        for number in sorted(log):
            result = log[number].result
            if result.mode == abi.MODE_RELIABLE:
                resync = False
            elif result.limit == abi.LIMIT_BEHIND:
                resync |= result.gather.missing > 0
                assert result.behind >= 1, f"rank {rank}, op {number}"
            assert (result.limit == abi.LIMIT_BEHIND) == (result.behind > 0)
            said = bool(result.flags & abi.RESULT_RESYNC)
            assert said == resync, f"rank {rank}, op {number}: resync {said}"


def converged(logs, since, most, nranks=RANKS):
    ledger.check(logs, nranks, policy=POLICY)
    over = ledger.check_bound(logs)
    check_flags(logs)
    took, lag = lossy_ops(logs, since)
    tap.note(f"{took} ops to converge from a lag of {lag}; at most {over:.0f} us over the bound; "
             f"{max(s.result.behind for log in logs.values() for s in log.values())}"
             " ops behind at most")
    steps = [s for log in logs.values() for s in log.values()]
    quiet = min(s.took_us for s in steps if not s.loss) / 1e6
    skipped = sorted(s.took_us for s in steps if s.result.behind > 1) or [0]
    skip = skipped[len(skipped) // 2] / 1e6
    # The front moves on while others catch up.
    most += round(lag * (GAP + skip) / max(quiet - skip, quiet / 4))
    assert took <= most, f"{took} ops, not {most}"


@tap.cases(1, 2, 3)
def test_random_starts(seed):
    """Each rank has run up to five ops alone before the others come."""
    random_ = random.Random(seed)
    starts = [random_.uniform(0, 5) * PERIOD for _ in range(RANKS)]
    origin, logs = run([plan(start=s, seconds=0.6) for s in starts])
    converged(logs, origin + max(starts) * 1e9, 6)


def test_halves():
    """Four ranks are three ops ahead of the other four."""
    starts = [3 * PERIOD * (r % 2) for r in range(RANKS)]
    origin, logs = run([plan(start=s, seconds=0.5) for s in starts])
    converged(logs, origin + max(starts) * 1e9, 6)


@tap.cases(2, 3, 8)
def test_one_behind(nranks):
    """One rank starts ten ops later than all others."""
    starts = [0] * (nranks - 1) + [10 * PERIOD]
    origin, logs = run([plan(start=s, seconds=0.6) for s in starts], nranks=nranks)
    converged(logs, origin + max(starts) * 1e9, 8, nranks)


def without_the_stopped(log, since):
    """What a rank has seen, but for the op whose caller was stopped, too."""
    return {n: s for n, s in log.items() if not s.begin < since < s.end}


def test_stopped():
    """SIGSTOP, and SIGCONT after many ops."""
    def disturb(_net, trainers):
        trainers.sleep_until(0.1)
        trainers[2].stop()
        trainers.sleep_until(0.5)
        trainers[2].go_on()
    origin, logs = run(plan(seconds=1.0), disturb)
    logs[2] = without_the_stopped(logs[2], origin + 0.5e9)
    converged(logs, origin + 0.5e9, 6)


@tap.cases((3, "link"), (8, "link"), (3, "host"), (8, "host"))
def test_frozen(nranks, what):
    """A link that goes and comes again, both ways; or a host that stands still: its
    trainer does, too, and its kernel answers nobody."""
    def disturb(net, trainers):
        trainers.sleep_until(0.1)
        if what == "host":
            trainers[1].stop()
        net.switch.ip("link set p1 nomaster")
        trainers.sleep_until(0.4)
        net.switch.ip("link set p1 master br0")
        if what == "host":
            trainers[1].go_on()
    origin, logs = run(plan(seconds=0.9), disturb, nranks)
    if what == "host":
        logs[1] = without_the_stopped(logs[1], origin + 0.4e9)
    converged(logs, origin + 0.4e9, 8, nranks)


def test_partition_healed():
    """Four and four hear nothing of each other for a while, then again."""
    def disturb(net, trainers):
        net.switch.ip("link add br1 type bridge forward_delay 0 mcast_snooping 0",
                      "link set br1 up")
        trainers.sleep_until(0.1)
        net.switch.ip(*[f"link set p{r} master br1" for r in range(4)])
        trainers.sleep_until(0.4)
        net.switch.ip(*[f"link set p{r} master br0" for r in range(4)])
    origin, logs = run(plan(seconds=0.9), disturb)
    converged(logs, origin + 0.4e9, 4)
    apart = [s for log in logs.values() for s in log.values()
             if origin + 0.15e9 < s.begin < origin + 0.35e9]
    assert apart and all(s.loss > 0.3 for s in apart), "no partition"


def test_link_goes_and_comes():
    """The own link of one is down for a while: sending fails there at once."""
    def disturb(net, trainers):
        trainers.sleep_until(0.1)
        net.hosts[1].ip("link set eth0 down")
        trainers.sleep_until(0.4)
        net.hosts[1].ip("link set eth0 up")
    origin, logs = run(plan(seconds=0.9), disturb)
    converged(logs, origin + 0.4e9, 8)
    apart = [s for s in logs[1].values() if origin + 0.15e9 < s.begin < origin + 0.35e9]
    assert apart and all(s.loss > 0.3 for s in apart), "the link wasn't down"


@tap.cases("with W", "without W")
def test_straggler(wait):
    """One that is always late by a fifth of the bound. With W nothing is lost by
    that; without it, it is the straggler's gradient at least that is."""
    late = 0.2 * BOUND
    policy = dict(POLICY, wait_ppm=250000 if wait == "with W" else abi.WAIT_NONE)
    plans = [plan(seconds=0.5, policy=policy) for _ in range(RANKS - 1)]
    plans.append(plan(seconds=0.5, policy=policy, gap=GAP + late))
    origin, logs = run(plans)
    ledger.check(logs, RANKS, policy=policy)
    over = ledger.check_bound(logs)
    steps = [s for log in logs.values() for s in log.values()
             if s.begin > origin + 0.1e9]
    loss = sum(s.loss for s in steps) / len(steps)
    tap.note(f"loss {100 * loss:.2f} %, {over:.0f} us over the bound at most")
    if wait == "with W":
        assert loss < 0.001, loss


def test_dead_rank():
    """The others go on as before, without what it owned."""
    def disturb(net, trainers):
        trainers.sleep_until(0.1)
        net.switch.ip("link set p1 nomaster")
    origin, logs = run(plan(seconds=0.5), disturb)
    del logs[1]
    ledger.check(logs, RANKS, policy=POLICY)
    ledger.check_bound(logs)
    took, _ = lossy_ops(logs, origin + 0.1e9, allowed=0.16)
    tap.note(f"{took} ops until only the dead rank's part is missing")
    assert took <= 4
    quiet = sorted(s.took_us for s in logs[0].values())[0]
    last = [s.took_us for s in list(logs[0].values())[-5:]]
    assert max(last) < 1.5 * quiet, f"they still wait for it: {last}, quiet {quiet}"


def test_reliable_between():
    """Each eighth op is reliable: it brings ranks together and ends 'resync'."""
    def op(number):
        return dict(OP, mode=abi.MODE_RELIABLE if number % 8 == 7 else abi.MODE_BOUNDED)

    def disturb(_net, trainers):
        trainers.sleep_until(0.1)
        trainers[2].stop()
        trainers.sleep_until(0.3)
        trainers[2].go_on()
    with Network(4, netem=LINK, offloads=False) as net, \
            Trainers(net.hosts, plan(ops=48, op=op)) as trainers:
        disturb(net, trainers)
        logs = trainers.logs()
    ledger.check(logs, 4, policy=POLICY)
    check_flags(logs)
    for log in logs.values():
        for number, step in log.items():
            want = of(op, number)["mode"]
            assert step.result.mode == want
            if want == abi.MODE_RELIABLE:
                assert step.result.verdict == abi.VERDICT_OK and not step.loss
    assert all(not log[47].result.flags for log in logs.values())


tap.main(globals())
