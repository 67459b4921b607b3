#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Averages numpy arrays over all ranks where they lie: they are the kernel's memory,
and nothing is copied. Rank and peers come from the environment:

    ORED_RANK=0 ORED_PEERS=10.0.0.1,10.0.0.2 ./slots.py
    ORED_RANK=1 ORED_PEERS=10.0.0.1,10.0.0.2 ./slots.py
"""
import numpy
import ored

COUNT, STEPS = 100_000, 10

with ored.from_env(slots=True) as group:
    arrays = [numpy.frombuffer(slot, numpy.float32, COUNT) for slot in group.slots]
    arrays[0][:] = group.rank
    for step in range(STEPS):
        now, following = step % len(arrays), (step + 1) % len(arrays)
        group.post_slot(now, arrays[now].nbytes, "mean")
        arrays[following][:] = group.rank + step    # while it is on its way
        result = group.wait()
        print(f"step {step}: {arrays[now][3]}, {result.verdict}")
    del arrays                      # close() can't unmap what is in use
