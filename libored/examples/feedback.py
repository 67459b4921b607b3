#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Error feedback: what a bounded op couldn't count of this rank's gradients is
added to its next bucket, so that it arrives late instead of never.

    ORED_RANK=0 ORED_PEERS=10.0.0.1,10.0.0.2 ./feedback.py
    ORED_RANK=1 ORED_PEERS=10.0.0.1,10.0.0.2 ./feedback.py

At the end a reliable op carries what is left over.
"""
import os
import sys

import numpy
import ored

STEPS, COUNT = 40, 30_000


def of_floats(part):
    """A slice of bytes as one of 32-bit floats: chunks are cut between elements."""
    return slice(part.start // 4, part.stop // 4)


def main():
    bound_us = int(os.environ.get("BOUND_US", 20_000))
    hadamard_off = 3    # chunks of a transformed bucket are no parts of it
    with ored.from_env(bucket_max=4 * COUNT) as group:
        rank = group.rank
        group.set_policy(bound_us=bound_us, hadamard=hadamard_off)
        carry = numpy.zeros(COUNT, numpy.float32)
        late = 0
        for step in range(STEPS):
            # Small whole numbers, so that sums are exact whatever their order.
            gradients = numpy.full(COUNT, rank + 1, numpy.float32)
            bucket = gradients + carry
            result = numpy.empty_like(bucket)
            group.post(bucket, op="sum", mode="bounded")
            group.wait(result)
            carry[:] = 0
            for part in group.uncounted(step):
                carry[of_floats(part)] = bucket[of_floats(part)]
                late += carry[of_floats(part)].size
        group.allreduce(carry.copy(), op="sum", mode="reliable")
        print(f"rank {rank}: {late} of {STEPS * COUNT} gradients came late, "
              f"{numpy.count_nonzero(carry)} with the last op")


if __name__ == "__main__":
    try:
        main()
    except ored.Error as error:
        sys.exit(f"feedback.py: {error}")
