#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=6.12,debug
"""Bounded collectives while a rank is dead and while packets are lost: they end by
their bound, and what results say is missing is what is missing, to the byte."""
import itertools

import numpy

from lib import abi, ledger, tap
from lib.kinds import Case
from lib.netns import Network
from lib.sockets import Ranks

OTHERS = ("reduce-scatter", "all-gather", "broadcast", "barrier")
LINK = "delay 100us rate 100mbit limit 1000"
RANKS, COUNT, DEAD = 4, 9001, 3


def run(case, group, ranks):
    """Posts at the given ranks; {rank: (bytes, result)} when the op has ended."""
    for rank in ranks:
        case.send(group[rank], rank)
    taken = {}
    for rank in ranks:
        data = group[rank].take(1 << 16)
        result = group[rank].result(case.number)
        over = result.elapsed_ns / 1000 - result.bound_us
        assert over <= ledger.SLACK_US, f"{case}, rank {rank}: {over:.0f} us too long"
        for stage in (result.scatter, result.gather):
            assert stage.received + stage.missing == stage.expected
        taken[rank] = data, result
    return taken


def own_values(case, rank):
    return numpy.frombuffer(case.gives(rank), "f4")


def tar(case, group):
    return ledger.Map(case.count * case.size, group[0].group().payload, case.nranks)


def missing(result):
    return result.scatter.missing + result.gather.missing


@tap.cases(*OTHERS)
def test_dead_rank(kind):
    """Of whom nothing comes from the first op on"""
    fields = {} if kind in ("barrier", "broadcast", "all-gather") else {"reduction": abi.MEAN}
    case = Case(kind, RANKS, COUNT, deadline_us=40000, mode=abi.MODE_BOUNDED, **fields)
    live = [r for r in range(RANKS) if r != DEAD]
    with Network(RANKS, netem=LINK, offloads=False) as net, \
            Ranks(net.hosts, bucket_max=1 << 16) as group:
        net.hosts[DEAD].ip("link set eth0 down")
        taken = run(case, group, live)
        lost = tar(case, group).bytes_of(tar(case, group).shard(DEAD))
    for rank, (data, result) in taken.items():
        got = numpy.frombuffer(data, "f4" if kind != "barrier" else "u1")
        if kind != "broadcast" or rank != case.root:
            assert ledger.words(result.missing) == {DEAD}, (rank, result.missing[0])
        if kind == "reduce-scatter":
            total = sum(case.numbers[r][case.place(rank)].astype("f4") for r in live)
            assert (got == total / numpy.float32(3)).all()
            assert result.scatter.missing == len(data) and not result.gather.expected
            assert result.verdict == abi.VERDICT_SKIP
        elif kind == "all-gather":
            want = numpy.frombuffer(case.gets(rank), "f4").copy()
            want[case.place(DEAD)] = 0
            assert (got == want).all()
            assert missing(result) == (case.place(DEAD).stop - case.place(DEAD).start) * 4
        elif kind == "broadcast":
            assert missing(result) == (0 if rank == case.root else lost)
            stood_in = numpy.count_nonzero(got == own_values(case, rank)) * 4
            assert rank == case.root or stood_in == lost
        else:
            assert data == bytes(8) and missing(result) == 8
            assert result.verdict == abi.VERDICT_SKIP


def test_dead_root():
    """Everybody has its own, and is told to halt."""
    case = Case("broadcast", RANKS, COUNT, root=DEAD, deadline_us=40000)
    with Network(RANKS, netem=LINK, offloads=False) as net, \
            Ranks(net.hosts, bucket_max=1 << 16) as group:
        net.hosts[DEAD].ip("link set eth0 down")
        taken = run(case, group, range(DEAD))
    for rank, (data, result) in taken.items():
        assert data == case.gives(rank) and result.verdict == abi.VERDICT_HALT
        assert missing(result) == COUNT * 4 and DEAD in ledger.words(result.missing)


def lost_of(case, rank, data):
    """Bytes that are missing of a result, by what is in it"""
    got = numpy.frombuffer(data, "f4")
    if case.kind == "all-gather":
        return numpy.count_nonzero(got == 0) * 4
    if case.kind == "broadcast":
        return numpy.count_nonzero(got == own_values(case, rank)) * 4 * (rank != case.root)
    lost = numpy.full(len(got), -1)
    for size in range(1, RANKS + 1):
        for ranks in itertools.combinations(range(RANKS), size):
            mean = sum(numpy.float32(10 ** r) for r in ranks) / numpy.float32(size)
            lost[got == mean] = RANKS - size
    assert (lost >= 0).all(), f"{case}, rank {rank}: what nobody gave"
    return lost.sum() * 4


@tap.cases("reduce-scatter", "all-gather", "broadcast")
def test_loss(kind):
    """More than there is time to repair"""
    fields = {"reduction": abi.MEAN} if kind == "reduce-scatter" else {}
    lost = whole = 0
    with Network(RANKS, netem="delay 500us rate 100mbit limit 1000 loss 8%",
                 offloads=False) as net, \
            Ranks(net.hosts, bucket_max=1 << 16) as group:
        for number in range(24):
            case = Case(kind, RANKS, COUNT, root=number % RANKS, number=number,
                        deadline_us=8000, flags=abi.OP_NO_WAIT, **fields)
            if kind == "reduce-scatter":
                case.numbers = [numpy.full(COUNT, 10 ** r) for r in range(RANKS)]
            for rank, (data, result) in run(case, group, range(RANKS)).items():
                found = lost_of(case, rank, data)
                assert found == missing(result), (
                    f"op {number}, rank {rank}: {found} bytes, not {missing(result)}")
                assert (result.verdict == abi.VERDICT_OK) == (not found)
                lost += found
                whole += not found
    tap.note(f"{lost} bytes lost, {whole} results whole")
    assert lost and whole


tap.main(globals())
