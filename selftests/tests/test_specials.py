#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Numbers that are no ordinary numbers: IEEE's rules, on every rank alike.

The processor's own additions say what is right; a NaN is the canonical one
whatever NaN went in.
"""
import itertools
import math
import struct
from array import array

from lib import abi, seed, tap
from lib.netns import shared
from lib.sockets import Ranks, reliable
from lib.sums import difference

QUIET_NAN = 0x7fc00000
LARGEST = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
SPECIALS = (
    0x00000000, 0x80000000,			# +0, -0
    0x3f800000, 0xbf800000,			# 1, -1
    0x7f800000, 0xff800000,			# inf, -inf
    0x7fc00000, 0xffc00000,			# quiet NaNs
    0x7f800001, 0xffbfffff, 0x7fffffff,		# signalling, full
    0x00000001, 0x80000001, 0x007fffff,		# subnormals
    0x00800000, 0x80800000,			# the smallest normals
    0x7f7fffff, 0xff7fffff,			# the largest
    0x34000000, 0x33800000, 0x4b800000,		# rounding: ulp, half, 2^24
)


def bits(numbers):
    return struct.pack(f"<{len(numbers)}I", *numbers)


def canonical(value):
    """f32 bits of a float, with one NaN only."""
    if value != value:
        return QUIET_NAN
    return struct.unpack("<I", array("f", [value]).tobytes())[0]


def sum_of(floats):
    total = floats[0]
    for x in floats[1:]:
        total = array("f", [total + x])[0]
    return total


def mean_of(floats):
    """Its partial sums have an f32's digits, but leave its range: the division
    brings them back."""
    total = floats[0]
    for x in floats[1:]:
        total += x
        if math.isfinite(total):
            part, power = math.frexp(total)
            total = math.ldexp(round(math.ldexp(part, 24)), power - 24) or total
    mean = total / len(floats)
    return max(-LARGEST, min(LARGEST, mean)) if math.isfinite(total) else total


def reduced(columns, mean):
    """Expected bits of each element, in rank order."""
    result = []
    for column in zip(*columns):
        floats = struct.unpack(f"<{len(column)}f", bits(column))
        result.append(canonical(mean_of(floats) if mean else sum_of(floats)))
    return bits(result)


def run(columns, mean=False):
    nranks = len(columns)
    with shared(nranks) as net, Ranks(net.hosts) as ranks:
        for sock, column in zip(ranks, columns):
            if mean:
                sock.set(abi.OP, reliable(reduction=abi.MEAN))
            sock.send(bits(column))
        want = reduced(columns, mean)
        for rank, sock in enumerate(ranks):
            wrong = difference(sock.take(len(want)), want)
            assert not wrong, f"rank {rank}: {wrong}"


@tap.cases(False, True)
def test_all_pairs(mean):
    pairs = list(itertools.product(SPECIALS, repeat=2))
    run([list(side) for side in zip(*pairs)], mean)


@tap.cases(False, True)
def test_triples(mean):
    random_ = seed.numbers("specials")
    run([[random_.choice(SPECIALS) for _ in range(1000)] for _ in range(3)], mean)


def test_random_bits():
    random_ = seed.numbers("bits")
    run([[random_.getrandbits(32) for _ in range(1500)] for _ in range(5)])


def test_alone():
    """With one rank nothing is added: a sum is the contribution itself, but for
    NaNs, which are made canonical as in any other group."""
    run([list(SPECIALS)])


tap.main(globals())
