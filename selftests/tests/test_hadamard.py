#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time timeout=600
"""The Hadamard transform of an op's bucket when nothing is missing: sums are the same
but for rounding, of any length, on all ranks; and who may ask for it."""
import errno
import math
import random
import socket
import struct

from lib import abi, raw, tap
from lib.netns import shared
from lib.sockets import Ranks, refused, reliable

ON, OFF = {"flags": abi.OP_HADAMARD_ON}, {"flags": abi.OP_HADAMARD_OFF}
FORMAT = {abi.F32: "f", abi.F16: "e"}
RANKS = 3
random_ = random.Random(1)


def pack(values, dtype):
    if dtype == abi.BF16:
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack(f"<{len(values)}{FORMAT[dtype]}", *values)


def unpack(data, dtype):
    if dtype == abi.BF16:
        data = b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2))
        dtype = abi.F32
    size = struct.calcsize(FORMAT[dtype])
    return struct.unpack(f"<{len(data) // size}{FORMAT[dtype]}", data)


def buckets(count, dtype):
    return [pack([random_.gauss(0, 1) for _ in range(count)], dtype)
            for _ in range(RANKS)]


def reduce(group, data, dtype, **fields):
    """One op; what all have got, which must be the same, and its result."""
    for sock, bucket in zip(group, data):
        sock.set(abi.OP, reliable(dtype=dtype, **fields))
        sock.send(bucket)
    taken = [sock.take(len(data[0])) for sock in group]
    assert len(set(taken)) == 1, "ranks have got different bits"
    group.ops += 1
    return taken[0], group[0].result(group.ops - 1)


def distance(a, b):
    """Between two vectors, relative to the length of the second"""
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b))


@tap.cases((abi.F32, 2 ** -22), (abi.F16, 2 ** -9.5), (abi.BF16, 2 ** -6.5))
def test_sum_is_the_sum(dtype, most):
    """Of any length, and the mean too."""
    with shared(RANKS) as net, Ranks(net.hosts, bucket_max=1 << 17) as group:
        for count in (1, 2, 3, 7, 100, 1000, 1023, 4097, 5000, 21000):
            data = buckets(count, dtype)
            sums = [sum(x) for x in zip(*(unpack(d, dtype) for d in data))]
            got, result = reduce(group, data, dtype, **ON)
            assert len(got) == len(data[0])
            assert result.flags & abi.RESULT_HADAMARD and result.hadamard_ns > 0
            error = distance(unpack(got, dtype), sums)
            assert error < most, f"{count}: {error}"
            got, _ = reduce(group, data, dtype, reduction=abi.MEAN, **ON)
            error = distance([RANKS * x for x in unpack(got, dtype)], sums)
            assert error < most, f"mean, {count}: {error}"


def test_off_changes_no_bit():
    with shared(RANKS) as net, Ranks(net.hosts) as group:
        data = buckets(3000, abi.F32)
        got, result = reduce(group, data, abi.F32, **OFF)
        assert not result.flags & abi.RESULT_HADAMARD and not result.hadamard_ns
        plain, _ = reduce(group, data, abi.F32)
        assert got == plain
        turned, _ = reduce(group, data, abi.F32, **ON)
        assert turned != plain


def test_seed_of_each_op():
    """Other signs, other roundings: of the next op too; the same input, the same
    group and number give the same bits."""
    with shared(RANKS) as net:
        data = buckets(3000, abi.F32)
        with Ranks(net.hosts, epoch=1 << 40) as group:
            first = [reduce(group, data, abi.F32, **ON)[0] for _ in range(3)]
        with Ranks(net.hosts, epoch=1 << 40) as group:
            again = [reduce(group, data, abi.F32, **ON)[0] for _ in range(3)]
        with Ranks(net.hosts, epoch=(1 << 40) + 1) as group:
            other, _ = reduce(group, data, abi.F32, **ON)
    assert len({*first, other}) == 4
    assert first == again


def test_peek_and_short_buffers():
    """What was read before can be read again."""
    with shared(RANKS) as net, Ranks(net.hosts) as group:
        data = buckets(1000, abi.F32)
        for sock, bucket in zip(group, data):
            sock.set(abi.OP, reliable(**ON))
            sock.send(bucket)
        whole = group[0].take(4000, socket.MSG_PEEK)
        with refused(errno.EMSGSIZE, group[0]):
            group[0].take(3999)
        assert group[0].take(400, socket.MSG_PEEK) == whole[:400]
        assert group[0].take(4000) == whole
        assert group[1].take(4000) == whole and group[2].take(4000) == whole


@tap.cases(
    ("min", {"reduction": abi.MIN}), ("max", {"reduction": abi.MAX}),
    ("f64", {"dtype": abi.F64}), ("i32", {"dtype": abi.I32}), ("i64", {"dtype": abi.I64}))
def test_not_for(_, fields):
    """On is refused, with a sentence; off isn't, and without either it isn't done."""
    with shared(RANKS) as net, Ranks(net.hosts) as group:
        with refused(errno.EINVAL, group[0], "sums and means"):
            group[0].set(abi.OP, reliable(**fields, **ON))
        for sock in group:
            sock.set(abi.POLICY, abi.Policy(hadamard=abi.HADAMARD_ON))
        fields = dict({"dtype": abi.F32}, **fields)
        for how in ({}, OFF):
            _, result = reduce(group, [bytes(800)] * RANKS, **fields, **how)
            assert not result.flags & abi.RESULT_HADAMARD


def test_nonsense():
    both = abi.OP_HADAMARD_ON | abi.OP_HADAMARD_OFF
    with shared(RANKS) as net, Ranks(net.hosts) as group:
        with refused(errno.EINVAL, group[0], "both"):
            group[0].set(abi.OP, reliable(flags=both))
        with refused(errno.EINVAL, group[0], "hadamard"):
            group[0].set(abi.POLICY, abi.Policy(hadamard=abi.HADAMARD_OFF + 1))


def test_policy():
    """What ops do that say nothing; auto never touches reliable ones."""
    with shared(RANKS) as net, Ranks(net.hosts) as group:
        assert group[0].get(abi.POLICY, abi.Policy).hadamard == abi.HADAMARD_AUTO
        for policy, fields, on in (
                (abi.HADAMARD_ON, {}, True), (abi.HADAMARD_ON, OFF, False),
                (abi.HADAMARD_OFF, {}, False), (abi.HADAMARD_OFF, ON, True),
                (abi.HADAMARD_AUTO, {}, False), (abi.HADAMARD_DEFAULT, {}, False)):
            for sock in group:
                sock.set(abi.POLICY, abi.Policy(hadamard=policy))
            _, result = reduce(group, buckets(500, abi.F32), abi.F32, **fields)
            assert bool(result.flags & abi.RESULT_HADAMARD) == on, (policy, fields)


@tap.cases((ON, OFF, abi.HADAMARD_ON, abi.HADAMARD_OFF),
           ({}, ON, abi.HADAMARD_AUTO, abi.HADAMARD_ON),
           (OFF, {}, abi.HADAMARD_OFF, abi.HADAMARD_AUTO))
def test_mismatch(all_others, odd, *values):
    """Ranks that disagree have their op refused, with both values."""
    with shared(RANKS) as net, Ranks(net.hosts) as group:
        for rank, sock in enumerate(group):
            fields = odd if rank == 1 else all_others
            sock.set(abi.OP, abi.Op(mode=abi.MODE_BOUNDED, **fields))
            sock.send(bytes(4000))
        for sock in group:
            with refused(errno.EPROTO, sock, "Hadamard"):
                sock.take(4000)
            result = sock.result(0)
            assert result.field == abi.FIELD_HADAMARD
            assert set(result.value) == set(values), list(result.value)


def test_uncounted():
    """Which chunks weren't counted would lead astray."""
    with shared(RANKS) as net, Ranks(net.hosts) as group:
        for fields, code in ((ON, errno.EOPNOTSUPP), (OFF, errno.EMSGSIZE)):
            reduce(group, buckets(500, abi.F32), abi.F32, **fields)
            head = abi.Uncounted(op=group.ops - 1)
            with refused(code, group[0]):
                raw.getsockopt(group[0], abi.UNCOUNTED, head)


def test_nan_spoils_and_shows():
    """All of a short bucket is NaN on all ranks, rather than wrong somewhere."""
    with shared(RANKS) as net, Ranks(net.hosts) as group:
        data = buckets(64, abi.F32)
        data[1] = data[1][:-4] + struct.pack("<f", math.nan)
        got, _ = reduce(group, data, abi.F32, **ON)
        assert all(math.isnan(x) for x in unpack(got, abi.F32))


tap.main(globals())
