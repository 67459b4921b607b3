#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Trains a small network on handwritten digits, data-parallel: each rank on
its own part of the data, every gradient averaged over an AF_ORED socket.

One process a rank; the group comes from the environment (ORED_RANK,
ORED_PEERS, ...). Rank 0 reports. Exits with 0 if the network has learned, all
replicas are identical, and they equal a run in one process.
"""
import argparse
import hashlib
import sys
import time

import numpy

import digits
import model
from common import RATE, WANTED, percentile, report

# How far a weight may be from the one-process run's. There a batch is summed
# at once, here in one part per rank, which rounds differently in the last of
# 24 bits: weights are around 1, so some 1e-7 after hundreds of steps. One
# rank's gradient lost in one step moves a weight by 1e-3.
BOUND = 1e-5

SHOWN = 3               # one epoch in so many has its line


class Alone:
    """Stands in for ored.Group, and for its results, where there is no
    module: with one rank the mean is what it was."""

    rank, size, elapsed = 0, 1, 0.0

    def allreduce(self, _array, op, mode):
        assert op in ("sum", "mean") and mode == "reliable"
        return self

    def close(self):
        """Nothing to leave."""


def join(fake):
    if fake:
        return Alone()
    import ored
    return ored.from_env(bucket_max=1 << 16, timeout=60.0)


def milliseconds(seconds):
    return f"{seconds * 1e3:10.2f}"


def introduce(group, count, bucket):
    print(f"""
Training a network to read handwritten digits, on {group.size} hosts at once.

Each host has a copy of the network ({model.COUNT} weights) and its own part of
the {count} training pictures. In every step it works out on a few of them how
the weights should change: the gradient. Then

    group.allreduce(gradient, op="mean")

sends {bucket.nbytes} bytes into an AF_ORED socket, and receives the mean over all
hosts from it. The kernels add; the hosts stay identical.

                  held-out       allreduce, ms
 epoch     loss   accuracy      p50       max""", flush=True)


def train(group, args, train_set, held_out):
    """Returns the trained weights and the time of each allreduce."""
    images, labels = train_set
    weights = model.initial(args.seed)
    optimizer = model.Momentum(RATE)
    # The loss rides along behind the gradient: its mean comes for free
    bucket = numpy.zeros(model.COUNT + 1, numpy.float32)
    gradient = bucket[:model.COUNT]
    if group.rank == 0:
        introduce(group, len(labels), bucket)
    everything = []
    for epoch in range(1, args.epochs + 1):
        losses, times = [], []
        for parts in digits.batches(len(labels), group.size, args.batch,
                                    epoch, args.seed):
            own = parts[group.rank]
            bucket[-1] = model.gradient(weights, images[own], labels[own],
                                        gradient)
            times.append(group.allreduce(bucket, op="mean",
                                         mode="reliable").elapsed)
            losses.append(float(bucket[-1]))
            optimizer.step(weights, gradient)
        everything += times
        if group.rank == 0 and (epoch % SHOWN == 0 or epoch == args.epochs):
            share = model.accuracy(weights, *held_out)
            print(f"{epoch:6}  {numpy.mean(losses):7.4f}  {share:9.1%}"
                  f"{milliseconds(percentile(times, .5))}"
                  f"{milliseconds(max(times))}", flush=True)
    return weights, everything


def train_alone(nranks, args, train_set):
    """The same batches in one process: each step takes all ranks' parts as
    one batch."""
    images, labels = train_set
    weights = model.initial(args.seed)
    optimizer = model.Momentum(RATE)
    gradient = numpy.zeros(model.COUNT, numpy.float32)
    for epoch in range(1, args.epochs + 1):
        for parts in digits.batches(len(labels), nranks, args.batch, epoch,
                                    args.seed):
            union = numpy.concatenate(parts)
            model.gradient(weights, images[union], labels[union], gradient)
            optimizer.step(weights, gradient)
    return weights


def exchange_hashes(group, weights):
    """Every rank's SHA-256 of its weights, known to all: each writes the
    bytes of its own in a table of zeros, and the sum is the whole table."""
    own = hashlib.sha256(weights.tobytes()).digest()
    table = numpy.zeros((group.size, len(own)), numpy.float32)
    table[group.rank] = list(own)
    group.allreduce(table, op="sum", mode="reliable")
    return [bytes(row.astype(numpy.uint8)).hex() for row in table]


def summarize(args, group, weights, times, hashes, train_set, held_out,
              seconds):
    """Rank 0's last word. Returns whether all is well."""
    share = model.accuracy(weights, *held_out)
    alone = train_alone(group.size, args, train_set)
    off = float(numpy.abs(weights - alone).max())
    print(f"\nAfter {args.epochs} epochs, {seconds:.0f} s of the hosts' time:\n")
    good = report("held-out accuracy", share > WANTED,
                  f"{share:.1%} (wanted: over {WANTED:.0%})")
    good &= report("replicas", len(set(hashes)) == 1, "all have SHA-256 "
                   f"{hashes[0][:28]}..." if len(set(hashes)) == 1 else
                   "they differ: " + " ".join(h[:8] for h in hashes))
    good &= report("one process, same data", off <= BOUND,
                   f"no weight differs by more than {off:.1e} "
                   f"(bound: {BOUND:.0e})")
    print(f"  {'allreduce':23} {len(times)} ops of {4 * model.COUNT + 4} "
          f"bytes: p50 {percentile(times, .5) * 1e3:.2f} ms, "
          f"p99 {percentile(times, .99) * 1e3:.2f} ms\n"
          f"  {'':23} (with the wait for the slowest rank's batch)",
          flush=True)
    return good


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch", type=int, default=32,
                        help="pictures a rank takes in each step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fake", action="store_true",
                        help="one rank, without the module")
    return parser.parse_args()


def main():
    args = arguments()
    train_set, held_out = digits.load(args.seed)
    group = join(args.fake)
    start = time.monotonic()
    weights, times = train(group, args, train_set, held_out)
    hashes = exchange_hashes(group, weights)
    group.close()
    good = len(set(hashes)) == 1
    if group.rank == 0:
        good = summarize(args, group, weights, times, hashes, train_set,
                         held_out, time.monotonic() - start)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
