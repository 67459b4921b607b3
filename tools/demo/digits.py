# SPDX-License-Identifier: GPL-2.0
"""The handwritten digits that Debian's python3-sklearn ships: 1797 pictures
of 8 x 8 pixels, from the UCI repository's optdigits."""
import gzip
import importlib.util
import os
import sys

import numpy

HELD_OUT = 360      # a fifth, never trained on


def path():
    """The data file. The package itself isn't imported, which takes long."""
    spec = importlib.util.find_spec("sklearn")
    for folder in spec.submodule_search_locations if spec else ():
        name = os.path.join(folder, "datasets", "data", "digits.csv.gz")
        if os.path.exists(name):
            return name
    sys.exit("demo: no data set: install it with "
             "'apt-get install python3-sklearn'")


def load(seed):
    """Training and held-out images and labels, in an order set by @seed."""
    with gzip.open(path(), "rt", encoding="ascii") as lines:
        table = numpy.loadtxt(lines, delimiter=",", dtype=numpy.float32)
    table = table[numpy.random.default_rng(seed).permutation(len(table))]
    images, labels = table[:, :-1] / 16, table[:, -1].astype(numpy.int64)
    return ((images[HELD_OUT:], labels[HELD_OUT:]),
            (images[:HELD_OUT], labels[:HELD_OUT]))


def batches(count, nranks, batch, epoch, seed):
    """An epoch's steps: for each, the indices that each rank trains on.

    A rank's part of the training set is its own: every @nranks-th picture.
    All ranks make the same number of equal batches, so that the mean over
    ranks is the mean over the union of their batches.
    """
    rng = numpy.random.default_rng((seed, epoch))
    steps = count // nranks // batch
    own = [rng.permutation(numpy.arange(rank, count, nranks))
           for rank in range(nranks)]
    for step in range(steps):
        yield [part[step * batch:(step + 1) * batch] for part in own]
