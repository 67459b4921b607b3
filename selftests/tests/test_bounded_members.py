#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=debug timeout=900
"""Bounded ops while ranks leave, fall silent, stand still and come back.

Where a process takes no time, as in User-Mode Linux: on one emulated processor
the trainers' own work would be most of what is measured.
"""
from lib import abi, ledger, tap
from lib.netns import Network
from lib.trainers import Plan, Trainers

LINK = "delay 100us rate 100mbit limit 1000"
RANKS, COUNT = 4, 6000
OP = {"reduction": abi.MEAN, "deadline_us": 50000}
POLICY = {"loss_skip": 500000, "loss_halt": 900000}


def statuses(sock):
    return [p.status for p in sock.peers()]


def plan(**fields):
    return Plan(**{"count": COUNT, "op": OP, "policy": POLICY, "look": statuses, **fields})


def check(logs):
    ledger.check(logs, RANKS, policy=POLICY)
    ledger.check_bound(logs)


def quiet_us(log):
    return sorted(s.took_us for s in log.values())[len(log) // 4]


def test_early_finisher():
    """One that has no more data closes: nobody waits for it, and means are over
    those who are still there."""
    logs = {}
    plans = [plan(ops=30) for _ in range(RANKS)]
    plans[2] = plan(ops=10, close=True)
    with Network(RANKS, netem=LINK, offloads=False) as net, \
            Trainers(net.hosts, plans) as trainers:
        logs = trainers.logs()
    check(logs)
    assert len(logs[2]) == 10
    for rank in (0, 1, 3):
        quiet = quiet_us(logs[rank])
        for number, step in logs[rank].items():
            assert step.took_us < 3 * quiet, f"op {number} waited: {step.took_us:.0f} us"
            assert step.result.limit == abi.LIMIT_COMPLETE
            gone = {2} if number >= 10 else set()
            assert ledger.words(step.result.missing) == gone
            assert (step.seen[2] == abi.PEER_LEFT) >= (number > 10)


def test_kill():
    """kill -9 in mid-run is the same, at whatever point it comes."""
    with Network(RANKS, netem=LINK, offloads=False) as net:
        for turn in range(4):
            with Trainers(net.hosts, plan(ops=20)) as trainers:
                trainers.sleep_until(0.07 + 0.002 * turn)
                trainers[1].kill()
                logs = trainers.logs()
            check(logs)
            for log in logs.values():
                quiet = quiet_us(log)
                slow = [n for n, s in log.items() if s.took_us > 3 * quiet]
                assert not slow, f"ops {slow} waited for a dead rank"
                assert ledger.words(log[19].result.missing) == {1}
                assert log[19].seen[1] == abi.PEER_LEFT


def test_told_apart():
    """Stopped, cut off, gone and well, at the same time, as the well ones see it."""
    plans = [plan(seconds=2) for _ in range(6)]
    plans[3] = plan(ops=4, close=True)
    with Network(6, netem=LINK, offloads=False) as net, \
            Trainers(net.hosts, plans) as trainers:
        trainers.sleep_until(0.1)
        trainers[1].stop()
        net.switch.ip("link set p2 nomaster")
        trainers.sleep_until(2.2)
        trainers[1].go_on()
        logs = trainers.logs()
    for rank in (0, 4, 5):
        seen = list(logs[rank][max(logs[rank])].seen)
        want = [abi.PEER_LIVE] * 6
        want[1:4] = [abi.PEER_STALLED, abi.PEER_SILENT, abi.PEER_LEFT]
        assert seen == want, f"rank {rank} sees {seen}, not {want}"
        assert logs[rank][0].seen == [abi.PEER_LIVE] * 6
    ledger.check_bound(logs)


def test_return():
    """One that was stopped takes part again, in the op that the others are in."""
    with Network(RANKS, netem=LINK, offloads=False) as net, \
            Trainers(net.hosts, plan(seconds=1.2, gap=0.001)) as trainers:
        trainers.sleep_until(0.1)
        trainers[3].stop()
        trainers.sleep_until(0.6)
        trainers[3].go_on()
        logs = trainers.logs()
        origin = trainers.origin * 1e9
    for number in [n for n, s in logs[3].items()
                   if s.begin < origin + 0.6e9 < s.end]:
        del logs[3][number]	# its caller was stopped, too
    check({r: {n: s for n, s in log.items() if s.begin < origin + 1.1e9}
           for r, log in logs.items()})
    behind = sum(s.result.behind > 0 for s in logs[3].values())
    late = [s for s in logs[0].values() if origin + 0.9e9 < s.begin < origin + 1.1e9]
    assert behind > 5, "it wasn't away"
    assert late and all(s.result.verdict == abi.VERDICT_OK for s in late)
    assert all(s.seen[3] == abi.PEER_LIVE for s in late)
    tap.note(f"{behind} ops skipped")


def test_earlier_epoch():
    """What the ranks of an earlier run have sent arrives in the next one, on the
    same ports: nothing of it is taken."""
    strange = []
    with Network(RANKS, netem="delay 40ms limit 1000", offloads=False) as net:
        for turn in range(3):
            look = plan(ops=6, op=dict(OP, deadline_us=600000), look=lambda s: s.stats())
            with Trainers(net.hosts, look) as trainers:
                if turn < 2:
                    trainers.sleep_until(0.1 + 0.02 * turn)
                    for trainer in trainers:
                        trainer.kill()
                    continue
                logs = trainers.logs()
    check(logs)
    for log in logs.values():
        assert all(s.result.verdict == abi.VERDICT_OK for s in log.values())
        strange.append(log[5].seen["ns_session"])
    tap.note(f"packets of other sessions: {strange}")


def test_missed_op():
    """An op that one rank has missed altogether leaves the next ones alone."""
    with Network(RANKS, netem=LINK, offloads=False) as net, \
            Trainers(net.hosts, plan(ops=24)) as trainers:
        for turn in range(3):
            trainers.sleep_until(0.05 + 0.2 * turn)
            net.switch.ip("link set p0 nomaster")
            trainers.sleep_until(0.05 + 0.2 * turn + 0.06)
            net.switch.ip("link set p0 master br0")
        logs = trainers.logs()
    check(logs)
    missed = [n for n, s in logs[1].items() if 0 in ledger.words(s.result.missing)]
    whole = [n for n, s in logs[1].items() if s.result.verdict == abi.VERDICT_OK]
    tap.note(f"missed in {missed}, whole {whole}")
    assert missed and len(whole) > len(missed)


tap.main(globals())
