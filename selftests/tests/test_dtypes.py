#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Every dtype and reduction over the sockets: right, and the same on all ranks; and
what is made of it where a contribution is missing.

Where the module can be told to do without the FPU, the bits stay the same.
"""
import errno
import os
import random

import numpy

from lib import abi, ledger, tap
from lib.sockets import Ranks, refused

PARAMETER = "/sys/module/ored/parameters/inject_no_fpu"
RANKS, COUNT = 3, 3001
ALL, PAYLOAD, BOUND_US = RANKS + 1, 1024, 20000	# where one rank is missing
REDUCTIONS = {"sum": abi.SUM, "mean": abi.MEAN, "min": abi.MIN, "max": abi.MAX}
DTYPES = {"f32": abi.F32, "f64": abi.F64, "f16": abi.F16, "bf16": abi.BF16,
          "i32": abi.I32, "i64": abi.I64}
NUMPY = {"f32": "f4", "f64": "f8", "f16": "f2", "i32": "i4", "i64": "i8"}


def buckets(name):
    """One for each rank; bf16 as the upper halves of f32."""
    random_ = numpy.random.default_rng(len(name))
    if name[0] == "i":
        info = numpy.iinfo(NUMPY[name])
        return [random_.integers(info.min, info.max, COUNT, NUMPY[name])
                for _ in range(RANKS)]
    wide = [(random_.standard_normal(COUNT) * 2.0 ** random_.integers(-6, 6, COUNT))
            .astype("f4" if name == "bf16" else NUMPY[name]) for _ in range(RANKS)]
    if name == "bf16":
        return [(x.view("u4") >> 16).astype("u2") for x in wide]
    return wide


def widened(name, bucket):
    if name == "bf16":
        return (bucket.astype("u4") << 16).view("f4")
    return bucket.astype("f4") if name == "f16" else bucket


def narrowed(name, result):
    if name == "bf16":
        bits = result.view("u4")
        return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype("u2")
    return result.astype(NUMPY[name])


def integer_mean(columns):
    """To nearest, ties to even, of the exact sum"""
    sums = [sum(map(int, column)) for column in zip(*columns)]
    return [(s + (RANKS - 1) // 2) // RANKS for s in sums]	# RANKS is odd: no ties


def expected(name, reduction, inputs):
    wide = [widened(name, x) for x in inputs]
    if reduction in ("min", "max"):
        best = wide[0]
        for x in wide[1:]:
            best = (numpy.minimum if reduction == "min" else numpy.maximum)(best, x)
        return narrowed(name, best)
    if name[0] == "i" and reduction == "mean":
        return numpy.array(integer_mean(inputs), NUMPY[name])
    total = wide[0]
    for x in wide[1:]:
        total = total + x
    if reduction == "mean":
        total = (total / total.dtype.type(RANKS)).astype(total.dtype)
    return narrowed(name, total)


def results(name, reduction):
    with Ranks([None] * RANKS) as group:
        op = abi.Op(dtype=DTYPES[name], reduction=REDUCTIONS[reduction])
        inputs = buckets(name)
        for sock, bucket in zip(group, inputs):
            sock.set(abi.OP, bytes(op))
            sock.send(bucket.tobytes())
        return [sock.take(inputs[0].nbytes) for sock in group]


@tap.cases(*(f"{name}-{reduction}" for name in DTYPES for reduction in REDUCTIONS))
def test_result(case):
    name, reduction = case.split("-")
    want = expected(name, reduction, buckets(name)).tobytes()
    for rank, got in enumerate(results(name, reduction)):
        assert got == want, f"rank {rank}"
    if not os.path.exists(PARAMETER):
        return
    try:
        with open(PARAMETER, "w") as file:
            file.write("1")
        assert results(name, reduction) == [want] * RANKS
    finally:
        with open(PARAMETER, "w") as file:
            file.write("0")


def scaled_sum(name, inputs):
    """Times all ranks, by those that are there; rounded once more, but as F32 before
    it is F16 or BF16. The sum of integers is exact till then."""
    if name[0] == "i":
        bits = 8 * inputs[0].itemsize
        sums = [(sum(map(int, column)) * ALL + len(inputs) // 2) // len(inputs)
                for column in zip(*inputs)]	# 1 or 3 of them: no ties
        return numpy.array([(s + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
                            for s in sums], NUMPY[name])
    total = widened(name, inputs[0])
    for bucket in inputs[1:]:
        total = total + widened(name, bucket)
    scaled = (total.astype("f8") * ALL / len(inputs)).astype(total.dtype)
    return narrowed(name, scaled)


def partial(name, reduction, inputs):
    return scaled_sum(name, inputs) if reduction == "sum" else (
        expected(name, reduction, inputs) if len(inputs) == RANKS else inputs[0])


@tap.cases(*(f"{name}-{reduction}" for name in DTYPES for reduction in REDUCTIONS))
def test_partial(case):
    """One rank doesn't post: the reduction is over the others, sums are scaled to
    all; in the shard of that rank there is what one's own contribution gives."""
    name, reduction = case.split("-")
    inputs = buckets(name)
    op = abi.Op(dtype=DTYPES[name], reduction=REDUCTIONS[reduction], deadline_us=BOUND_US,
                flags=abi.OP_NO_WAIT | abi.OP_HADAMARD_OFF)
    others = partial(name, reduction, inputs).tobytes()
    with Ranks([None] * ALL, mode=abi.MODE_BOUNDED, payload_max=PAYLOAD) as group:
        parts = ledger.Map(len(others), group[0].group().payload, ALL)
        begin = parts.first[RANKS] * parts.payload
        assert 0 < begin < len(others), "a shard is empty"
        for sock, bucket in zip(group, inputs):
            sock.set(abi.OP, bytes(op))
            sock.send(bucket.tobytes())
        for rank, bucket in enumerate(inputs):
            got = group[rank].take(len(others))
            assert got[:begin] == others[:begin], f"rank {rank}"
            own = partial(name, reduction, [bucket]).tobytes()
            assert got[begin:] == own[begin:], f"rank {rank}: its own"
            result = group[rank].result(0)
            assert result.limit == abi.LIMIT_HARD
            assert ledger.words(result.missing) == {RANKS}


def test_length():
    """A bucket ends where an element does."""
    with Ranks([None] * 2) as group:
        group[0].set(abi.OP, bytes(abi.Op(dtype=abi.F64)))
        with refused(errno.EINVAL, group[0], "8"):
            group[0].send(bytes(random.choice([4, 12, 20])))


tap.main(globals())
