# SPDX-License-Identifier: GPL-2.0
"""Contributions and what they must add up to, bit for bit.

A contribution repeats a block of PERIOD random numbers, turned by an amount
that depends on the rank and the op. PERIOD is a prime, so no two chunks of a
shard are alike and a chunk in a wrong place is noticed, and yet the expected
sum takes only PERIOD additions for each rank, whatever the bucket's size.
"""
import operator
import random
import struct
from array import array

PERIOD = 997
blocks = {}


def block(rank):
    """Numbers of many magnitudes: another order of adding gives other bits."""
    if rank not in blocks:
        random_ = random.Random(rank)
        blocks[rank] = array("f", (random_.uniform(-1, 1) *
                                   2.0 ** random_.randint(-12, 12)
                                   for _ in range(PERIOD)))
    return blocks[rank]


def turned(rank, op):
    by = op * (2 * rank + 1) % PERIOD
    return block(rank)[by:] + block(rank)[:by]


def repeated(numbers, count):
    whole = numbers.tobytes()
    return (whole * (count // PERIOD + 1))[:count * 4]


def contribution(rank, count, op=0):
    """Rank's bucket of count floats for its op-th op."""
    return repeated(turned(rank, op), count)


def expected(ranks, count, op=0, mean=False):
    """The result, added up in the order of ranks with each sum rounded to f32.

    Python adds doubles; rounding these to f32 gives the same bits as an f32
    addition does, since a double has more than twice the digits and two bits.
    """
    order = list(range(ranks)) if isinstance(ranks, int) else ranks
    total = turned(order[0], op)
    for rank in order[1:]:
        total = array("f", map(operator.add, total, turned(rank, op)))
    if mean:
        total = array("f", [x / len(order) for x in total])
    return repeated(total, count)


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


def difference(got, want):
    """None, or where two buckets differ first, for a message."""
    if got == want:
        return None
    if len(got) != len(want):
        return f"{len(got)} bytes instead of {len(want)}"
    wrong = [i for i in range(0, len(got), 4) if got[i:i + 4] != want[i:i + 4]]
    at = wrong[0]
    return (f"{len(wrong)} of {len(got) // 4} elements differ, first number "
            f"{at // 4}: {got[at:at + 4].hex()} instead of {want[at:at + 4].hex()}")
