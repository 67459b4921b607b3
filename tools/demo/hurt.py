#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The demo's training on hosts that suffer, once with reliable ops and once with
bounded ones: the same weights to begin with, the same batches, the same pauses
of a straggler.

One process a rank, started by the demo where packets are lost and cross traffic
is on the links. Rank 0 reports. Exits with 0 if both networks have learned, the
replicas are identical in the end, and bounded ops made the slow steps faster.
"""
import argparse
import collections
import hashlib
import sys
import time

import numpy

import digits
import model
import ored
from common import RATE, WANTED, percentile, report

MODES = "reliable", "bounded"

# The straggler is the last rank: it pauses in some of its steps, as hosts do
# that swap, back up, or read a slow disk
PAUSED = 0.03
PAUSE = 0.1, 0.3        # s, from and to

# After so many steps the replicas are made equal again. It costs a wait for the
# slowest rank, so it is rare; what may drift apart meanwhile is little.
TOGETHER = 50

# So many results in a row that no use can be made of, and the training stops
HALTS = 5

LIMITS = "complete", "early", "hard", "behind"
VERDICTS = "ok", "partial", "skip", "halt"


class Tally(collections.Counter):
    """What became of a rank's ops, added up."""

    NAMES = ("ops", "expected", "missing", "repaired", "resent",
             "straggler", *LIMITS, *VERDICTS)

    def add(self, result, straggler):
        self["ops"] += 1
        for stage in result.scatter, result.gather:
            self["expected"] += stage.expected
            self["missing"] += stage.missing
            self["repaired"] += stage.repaired
        self["resent"] += result.resent
        self[result.limit] += 1
        self[result.verdict] += 1
        self["straggler"] += straggler in result.contributed

    def row(self):
        return [float(self[name]) for name in self.NAMES]


class Trainer:
    """One rank's replica and its training."""

    def __init__(self, group, mode, args, train_set):
        self.group, self.mode, self.args = group, mode, args
        self.images, self.labels = train_set
        self.weights = model.initial(args.seed)
        self.optimizer = model.Momentum(RATE)
        self.gradient = numpy.zeros(model.COUNT, numpy.float32)
        self.tally = Tally()
        self.times = []
        self.applied = 0        # steps since the replicas were equal
        self.halts = 0          # useless results in a row
        self.behind = 0         # ops that the group had gone on

    def batches(self):
        """This rank's batch of each step, and its pause in it."""
        rng = numpy.random.default_rng(self.args.seed)
        last = self.group.rank == self.group.size - 1
        for epoch in range(1, self.args.epochs + 1):
            for parts in digits.batches(len(self.labels), self.group.size,
                                        self.args.batch, epoch,
                                        self.args.seed):
                paused, pause = rng.random() < PAUSED, rng.uniform(*PAUSE)
                yield parts[self.group.rank], pause * (paused and last)

    def run(self):
        for number, (own, pause) in enumerate(self.batches(), 1):
            begin = time.monotonic()
            self.step(own, pause)
            if self.mode == "bounded" and number % TOGETHER == 0:
                self.come_together()
            self.times.append(time.monotonic() - begin)
        self.come_together()

    def step(self, own, pause):
        if self.behind < 2:
            model.gradient(self.weights, self.images[own], self.labels[own],
                           self.gradient)
            time.sleep(pause)
        # else: the op is over for the others; to catch up, post what is there
        bucket = self.gradient.copy()
        result = self.group.allreduce(bucket, op="mean", mode=self.mode)
        self.tally.add(result, self.group.size - 1)
        self.behind = result.behind
        if result.verdict in ("ok", "partial"):
            self.optimizer.step(self.weights, bucket)
            self.applied += 1
        self.look(result)

    def look(self, result):
        """"halt" says: stop and look. Where only this rank has fallen behind all
        is well with the others, and a burst passes; more than that ends it."""
        if result.verdict != "halt":
            self.halts = 0
        elif not result.behind:
            self.halts += 1
        if self.halts == HALTS:
            sys.exit(f"demo: op {result.op} is the {HALTS}th in a row of which too "
                     f"little came; the last has ranks {result.contributed}")

    def come_together(self):
        """All replicas become their mean, in which a rank that has missed steps
        since the last time counts for as much less."""
        both = numpy.concatenate((self.weights, self.optimizer.velocity,
                                  numpy.ones(1, numpy.float32)))
        both *= 1 + self.applied
        self.group.allreduce(both, op="sum", mode="reliable")
        both /= both[-1]
        self.weights[:] = both[:model.COUNT]
        self.optimizer.velocity[:] = both[model.COUNT:-1]
        self.applied = self.behind = 0


def tell_all(group, row):
    """A row of each rank's, known to all: each writes its own in a table of
    zeros, and the sum is the whole table."""
    table = numpy.zeros((group.size, len(row)), numpy.float64)
    table[group.rank] = row
    group.allreduce(table, op="sum", mode="reliable")
    return table


class Outcome:
    """What rank 0 knows of a training in the end."""

    def __init__(self, trainer, held_out):
        group = trainer.group
        rows = tell_all(group, trainer.tally.row())
        self.tallies = [dict(zip(Tally.NAMES, map(int, row))) for row in rows]
        self.total = {name: sum(tally[name] for tally in self.tallies)
                      for name in Tally.NAMES}
        digest = hashlib.sha256(trainer.weights.tobytes()).digest()
        hashes = tell_all(group, list(digest))
        self.identical = bool((hashes == hashes[0]).all())
        self.times = trainer.times
        self.accuracy = model.accuracy(trainer.weights, *held_out)

    def time(self, share):
        return percentile(self.times, share) * 1e3


def introduce(args, straggler):
    print(f"""
The same on a bad day, twice with the same batches and pauses:
  - {args.trouble};
  - rank {straggler} pauses for {PAUSE[0] * 1e3:.0f} to {PAUSE[1] * 1e3:.0f} ms in {PAUSED:.0%} of its steps.
With mode="reliable" an op ends when nothing is missing: all wait for rank {straggler}.
With mode="bounded" it ends by a bound that the kernel has learnt, and its result
says what is missing; every {TOGETHER} steps a reliable op, which does wait, makes all
replicas equal. All else is as the kernel does it by default.
""", flush=True)


def compare(reliable, bounded):
    """The two beside each other."""
    both = reliable, bounded

    def line(name, *texts):
        print(f"  {name:41}" + "".join(f"{text:>18}" for text in texts))

    def counts(name, *fields):
        line(name, *("/".join(str(o.total[f]) for f in fields) for o in both))

    line("", *MODES)
    for name, share in ("p50", .5), ("p99", .99), ("max", 1):
        line(f"time of a step on rank 0, {name}",
             *(f"{o.time(share):.1f} ms" for o in both))
    line(f"all {len(reliable.times)} steps",
         *(f"{sum(o.times):.1f} s" for o in both))
    line("held-out accuracy", *(f"{o.accuracy:.1%}" for o in both))
    print("  of all ranks' gradients and means, in bytes:")
    line("  repaired: lost, sent again in time",
         *(f"{o.total['repaired'] / o.total['expected']:.2%}" for o in both))
    line("  missing: the op ended without them",
         *(f"{o.total['missing'] / o.total['expected']:.2%}" for o in both))
    line("  packets sent again", *(o.total["resent"] for o in both))
    print("  of all ranks' ops:")
    counts("  verdict ok / partial / skip / halt", *VERDICTS)
    counts("  ended complete / early / hard / behind", *LIMITS)
    print("  of the straggler's ops:")
    line("  its whole gradient counted on rank 0",
         *(f"{o.tallies[0]['straggler']} of {o.tallies[0]['ops']}"
           for o in both))
    line("  over before it came, so it skipped", *(o.tallies[-1]["behind"]
                                                   for o in both))
    print(flush=True)


def judge(reliable, bounded):
    both = reliable, bounded
    good = report("held-out accuracy", all(o.accuracy > WANTED for o in both),
                  f"{reliable.accuracy:.1%} and {bounded.accuracy:.1%} "
                  f"(wanted: over {WANTED:.0%})")
    good &= report("replicas", all(o.identical for o in both),
                   "all identical in the end" if
                   all(o.identical for o in both) else "they differ")
    slow, fast = reliable.time(.99), bounded.time(.99)
    good &= report("p99 of a step, bounded", fast < slow,
                   f"{fast:.1f} ms (wanted: less than {slow:.1f} ms)")
    return good


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=8,
                        help="pictures a rank takes in each step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trouble", required=True,
                        help="what is wrong with the network, in words")
    return parser.parse_args()


def main():
    args = arguments()
    train_set, held_out = digits.load(args.seed)
    outcomes = []
    # A group for each: what the kernel has learnt in one doesn't help the other
    for epoch, mode in enumerate(MODES, 1):
        with ored.from_env(epoch=epoch, bucket_max=1 << 16, timeout=60.0) as group:
            if group.rank == 0 and not outcomes:
                introduce(args, group.size - 1)
            trainer = Trainer(group, mode, args, train_set)
            trainer.run()
            outcomes.append(Outcome(trainer, held_out))
    if group.rank != 0:
        return 0
    compare(*outcomes)
    return 0 if judge(*outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
