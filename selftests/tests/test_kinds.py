#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Reduce-scatter, all-gather, broadcast and barrier: every rank gets what the
collective's name promises, whatever the dtype, the length and the loss."""
import errno

from lib import abi, ledger, tap
from lib.kinds import Case
from lib.netns import Network, shared
from lib.sockets import Ranks, refused

OTHERS = ("reduce-scatter", "all-gather", "broadcast", "barrier")
RELIABLE = {"mode": abi.MODE_RELIABLE}


def run(group, cases):
    """Each op is posted by all, and then each result is right, and says it is."""
    for case in cases:
        for rank, sock in enumerate(group):
            case.send(sock, rank)
        for rank, sock in enumerate(group):
            want = case.gets(rank)
            got = sock.take(max(len(want), 64))
            assert got == want, f"{case}, rank {rank}: {len(got)} bytes, wrong"
            check_whole(sock.result(case.number), case, rank)


def check_whole(result, case, rank):
    """What a result says of an op of which nothing is missing"""
    assert result.kind == case.op.kind and result.dtype == case.op.dtype
    assert result.verdict == abi.VERDICT_OK and result.limit == abi.LIMIT_COMPLETE, \
        f"{case}, rank {rank}, op {case.number}: limit {result.limit}"
    assert ledger.words(result.contributed) == set(range(case.nranks)), str(case)
    assert not ledger.words(result.missing)
    for stage in (result.scatter, result.gather):
        assert stage.received == stage.expected and not stage.missing


def counted(kind, nranks, lengths, dtypes, **op):
    """Cases with the numbers of the ops that they will be."""
    number = 0
    for count in lengths:
        for dtype in dtypes:
            roots = range(nranks) if kind == "broadcast" and count == lengths[0] else [0]
            for root in roots:
                yield Case(kind, nranks, count, dtype, root, number, **op)
                number += 1


@tap.cases(*[(kind, n) for kind in OTHERS for n in range(1, 9)])
def test_right(kind, nranks):
    """Lengths that divide by nothing; reliable and bounded in turns. One thread posts
    for all ranks, so that the last is late by more than what an op takes: the bound is
    ample."""
    lengths = [0] if kind == "barrier" else [nranks, nranks + 1, 1009, 6007]
    dtypes = ["f32"] if kind == "barrier" else ["f16", "f32", "f64", "bf16", "i32", "i64"]
    with Ranks([None] * nranks) as group:
        run(group, (Case(kind, nranks, c.count, c.dtype, c.root, c.number,
                         mode=1 + c.number % 2, deadline_us=(c.number + 1) % 2 * 1000000)
                    for c in counted(kind, nranks, lengths, dtypes)))


def test_mixed():
    """Kinds one after the other, several in flight."""
    nranks, names = 4, ("allreduce",) + OTHERS
    with shared(nranks) as net, Ranks(net.hosts, depth=4, bucket_max=1 << 16) as group:
        cases = [Case(names[n % 5], nranks, 4000 + n, number=n, root=n % nranks, **RELIABLE)
                 for n in range(20)]
        for first in range(0, 20, 4):
            for case in cases[first:first + 4]:
                for rank, sock in enumerate(group):
                    case.send(sock, rank)
            for case in cases[first:first + 4]:
                for rank, sock in enumerate(group):
                    assert sock.take(1 << 16) == case.gets(rank), str(case)


@tap.cases(*OTHERS)
def test_loss(kind):
    """Reliable ops repair it all."""
    nranks = 4
    with Network(nranks, netem="delay 200us limit 1000 loss 5%", offloads=False) as net, \
            Ranks(net.hosts, bucket_max=1 << 17) as group:
        run(group, (Case(kind, nranks, 30011, "f32", n % nranks, n, **RELIABLE)
                    for n in range(4)))


def bytes_of(case, rank):
    """(scatter, gather) that a rank expects of peers"""
    own = len(case.shard(rank, case.numbers[rank])) * case.size
    total = case.count * case.size
    if case.kind == "reduce-scatter":
        return own * (case.nranks - 1), 0
    return 0, total - own


@tap.cases("reduce-scatter", "all-gather")
def test_expected_bytes(kind):
    with Ranks([None] * 3) as group:
        case = Case(kind, 3, 1000)
        run(group, [case])
        for rank, sock in enumerate(group):
            result = sock.result(0)
            assert (result.scatter.expected, result.gather.expected) == bytes_of(case, rank)


def failed(sock, case, rank, field):
    """Takes the result of an op that ranks disagree about. Return: whether it failed

    Whoever broadcasts may be through before the others post what they think.
    """
    if case.kind == "broadcast" and rank == case.root:
        try:
            assert sock.take(1 << 15) == case.gets(rank)
        except OSError as error:
            assert error.errno == errno.EPROTO
            return True
        return False
    with refused(errno.EPROTO, sock, field):
        sock.take(1 << 15)
    return True


@tap.cases(*OTHERS)
def test_disagree_about_kind(kind):
    nranks = 3
    with shared(nranks) as net, Ranks(net.hosts) as group:
        cases = [Case("allreduce" if r == 1 else kind, nranks, 300, **RELIABLE)
                 for r in range(nranks)]
        for rank, sock in enumerate(group):
            cases[rank].send(sock, rank)
        for rank, sock in enumerate(group):
            if not failed(sock, cases[rank], rank, "kind"):
                continue
            result = sock.result(0)
            assert result.field == abi.FIELD_KIND
            assert set(result.value) == {abi.ALLREDUCE, cases[0].op.kind}
            assert 1 in result.rank
        run(group, [Case(kind, nranks, 300, number=1, **RELIABLE)])


@tap.cases((2, 0, 1), (4, 3, 1), (4, 0, 2))
def test_disagree_about_root(nranks, root, odd):
    with shared(nranks) as net, Ranks(net.hosts) as group:
        wrong = (root + 1) % nranks
        # Everybody owns a shard, and so is wanted by those who don't broadcast.
        cases = [Case("broadcast", nranks, 6000, root=wrong if r == odd else root, **RELIABLE)
                 for r in range(nranks)]
        for rank, sock in enumerate(group):
            cases[rank].send(sock, rank)
        for rank, sock in enumerate(group):
            if not failed(sock, cases[rank], rank, "root"):
                continue
            result = sock.result(0)
            assert result.field == abi.FIELD_ROOT and set(result.value) == {root, wrong}
            assert odd in result.rank


def test_arguments():
    """What can't be is refused by what is wrong with it, and nothing is posted."""
    refusals = [
        ("barrier", 0, {}, b"12345678", "carries nothing"),
        ("broadcast", 8, {"root": 3}, bytes(32), "root 3"),
        ("reduce-scatter", 8, {}, bytes(8), "too few"),
        ("all-gather", 8, {}, bytes(8), "shard"),
        ("all-gather", 2, {}, bytes(4), "too few"),
        ("all-gather", 8, {"length": 0}, b"", "empty"),
        ("reduce-scatter", 8, {"length": 32}, bytes(32), "length"),
        ("all-gather", 8, {"root": 1}, bytes(12), "root"),
        ("broadcast", 8, {"reduction": abi.MEAN}, bytes(32), "adds nothing"),
        ("barrier", 0, {"dtype": abi.F64}, b"", "dtype"),
    ]
    with Ranks([None] * 3) as group:
        for kind, count, fields, bucket, words in refusals:
            op = Case(kind, 3, count).op
            for name, value in fields.items():
                setattr(op, name, value)
            with refused(errno.EINVAL, group[0], words):
                group[0].sendmsg([bucket], [(abi.SOL_ORED, abi.OP, bytes(op))])
        with refused(errno.EMSGSIZE, group[0], "larger"):
            Case("all-gather", 3, 1 << 16).send(group[0], 0)
        assert group[0].group().posted == 0
        run(group, [Case("barrier", 3, 0)])


def test_never_transformed():
    """Whatever the policy says of Hadamard; to ask for it is refused."""
    with Ranks([None] * 3) as group:
        for sock in group:
            sock.set(abi.POLICY, abi.Policy(hadamard=abi.HADAMARD_ON))
        for number, kind in enumerate(OTHERS):
            case = Case(kind, 3, 1000, number=number)
            run(group, [case])
            assert not group[0].result(number).flags & abi.RESULT_HADAMARD
            case.op.flags = abi.OP_HADAMARD_ON
            with refused(errno.EINVAL, group[0], "allreduces"):
                case.send(group[0], 0)


def test_all_gather_of_equal_shards():
    """Without a length everybody gives as much."""
    with Ranks([None] * 3) as group:
        op = [(abi.SOL_ORED, abi.OP, bytes(abi.Op(kind=abi.ALL_GATHER, dtype=abi.I32)))]
        for rank, sock in enumerate(group):
            sock.sendmsg([bytes([rank]) * 20], op)
        for sock in group:
            assert sock.take(64) == bytes(20) + b"\1" * 20 + b"\2" * 20


@tap.cases("reliable", "bounded")
def test_broadcast_waits(mode):
    """For who has got it all before he posts: nobody is ahead of him then, and
    what others pass on to him isn't missing."""
    nranks = 3
    mode = abi.MODE_RELIABLE if mode == "reliable" else abi.MODE_BOUNDED
    with shared(nranks) as net, Ranks(net.hosts, depth=2) as group:
        for number in range(0, 6, 2):
            late = 1 + number // 2 % 2
            cases = [Case("broadcast", nranks, 6000, number=number + n, mode=mode)
                     for n in range(2)]
            for case in cases:
                for rank, sock in enumerate(group):
                    if rank != late:
                        case.send(sock, rank)
            assert not group[0].poll(seconds=0.01), "the root is through"
            for case in cases:
                case.send(group[late], late)
            for case in cases:
                for rank, sock in enumerate(group):
                    assert sock.take(1 << 15) == case.gets(rank), str(case)
                    check_whole(sock.result(case.number), case, rank)


def test_barrier_waits():
    """Nobody is through before the last has come."""
    with shared(3) as net, Ranks(net.hosts) as group:
        case = Case("barrier", 3, 0, **RELIABLE)
        for rank in (0, 2):
            case.send(group[rank], rank)
        assert not group[0].poll(seconds=0.3) and not group[2].poll()
        case.send(group[1], 1)
        for sock in group:
            assert sock.take(8) == bytes(8)


tap.main(globals())
