# SPDX-License-Identifier: GPL-2.0
"""Random numbers that can be had again.

ORED_SEED=N in the environment makes them others; the seed is printed at the head
of each file's output (tap.main).
"""
import os
import random

SEED = int(os.environ.get("ORED_SEED") or "1", 0)


def numbers(use):
    """A random.Random for one use, named so that uses don't repeat each other."""
    return random.Random(f"{SEED} {use}")
