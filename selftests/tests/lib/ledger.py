# SPDX-License-Identifier: GPL-2.0
"""Do the logs of all ranks agree with each other, and with what results say?

Contributions are one number all over (lib/trainers.py), chosen so that each
reduced chunk tells by its value whose contributions are in it. So what was
counted where is known without asking the module, and everything that it says
about that can be compared: bytes, ranks, uncounted chunks, verdicts.
"""
import itertools
import struct
from array import array
from functools import lru_cache

from . import abi
from .trainers import value_of

SLACK_US = 200
ZERO = frozenset()


def f32(number):
    return struct.pack("<f", number)


@lru_cache(None)
def meanings(nranks, number, mean):
    """The set of ranks by each value that a reduced element can have."""
    values = [value_of(rank, number) for rank in range(nranks)]
    table = {f32(0): ZERO}
    for size in range(1, nranks + 1):
        for ranks in itertools.combinations(range(nranks), size):
            total = sum(values[r] for r in ranks)
            scaled = total / size if mean else total * nranks / size
            key = f32(scaled)
            assert key not in table, f"{ranks} and {table[key]} look alike"
            table[key] = frozenset(ranks)
    return table


class Map:
    """How a bucket is cut into chunks, and these into shards."""

    def __init__(self, length, payload, nranks):
        self.length, self.payload, self.nranks = length, payload, nranks
        self.chunks = -(-length // payload)
        quot, rem = divmod(self.chunks, nranks)
        self.first = [quot * r + min(r, rem) for r in range(nranks + 1)]

    def shard(self, rank):
        return range(self.first[rank], self.first[rank + 1])

    def owner(self, chunk):
        return next(r for r in range(self.nranks) if chunk in self.shard(r))

    def size(self, chunk):
        return min(self.payload, self.length - chunk * self.payload)

    def bytes_of(self, chunks):
        return sum(self.size(c) for c in chunks)


def words(ranks):
    return frozenset(64 * i + b for i, w in enumerate(ranks) for b in range(64)
                     if w >> b & 1)


class Account:
    """One op on all ranks that have it."""

    def __init__(self, number, steps, nranks, mean=True, zero=False):
        self.number, self.steps, self.nranks, self.zero = number, steps, nranks, zero
        one = next(iter(steps.values()))
        self.map = Map(one.result.bytes, one.chunk, nranks)
        table = meanings(nranks, number, mean)
        self.counted = {rank: [self.read(step, c, table) for c in range(self.map.chunks)]
                        for rank, step in steps.items()}
        self.truth = [self.agree(c) for c in range(self.map.chunks)]

    def where(self, rank):
        return f"op {self.number}, rank {rank}"

    def read(self, step, chunk, table):
        begin, size = chunk * self.map.payload, self.map.size(chunk)
        data = step.data[begin:begin + size]
        value = data[:4]
        assert value in table, (f"op {self.number}, chunk {chunk}: "
                                f"{array('f', value)[0]} is no reduction")
        assert data == value * (size // 4), f"op {self.number}: chunk {chunk} is mixed"
        return table[value]

    def has_gathered(self, rank, chunk):
        """Not the stand-in for a chunk that is missing?"""
        stand_in = ZERO if self.zero else frozenset([rank])
        return self.counted[rank][chunk] != stand_in

    def agree(self, chunk):
        """Whose contributions all who have the chunk have in it; None: nobody has it
        but, perhaps, its owner."""
        owner = self.map.owner(chunk)
        sets = {self.counted[r][chunk] for r in self.steps
                if r != owner and self.has_gathered(r, chunk)}
        assert len(sets) <= 1, f"op {self.number}: two results of chunk {chunk}: {sets}"
        for found in sets:
            # Who has left the group still serves its shard, but adds nothing to it.
            assert owner in found or owner not in self.steps, (
                f"op {self.number}: chunk {chunk} without its owner")
            if owner in self.steps:
                assert self.counted[owner][chunk] == found, (
                    f"op {self.number}: the owner has another chunk {chunk}")
        return next(iter(sets), None)

    def absent(self, rank):
        """How many ranks had left the group before this op, as this rank knows."""
        result = self.steps[rank].result
        own = self.map.bytes_of(self.map.shard(rank))
        return self.nranks - 1 - result.scatter.expected // own if own else 0

    def check_bytes(self, rank):
        result, own = self.steps[rank].result, self.map.shard(rank)
        gathered = [c for c in range(self.map.chunks)
                    if c not in own and self.has_gathered(rank, c)]
        got = self.map.bytes_of(gathered)
        assert result.gather.received == got, (
            f"{self.where(rank)}: {result.gather.received} bytes gathered, not {got}")
        assert result.gather.expected == self.map.length - self.map.bytes_of(own)
        # Who has left the group is expected to give nothing.
        assert 0 <= self.absent(rank) <= self.nranks - len(self.steps)
        assert result.scatter.expected == self.map.bytes_of(own) * (
            self.nranks - 1 - self.absent(rank))
        sure = maybe = 0
        for chunk in own:
            size = (len(self.counted[rank][chunk]) - 1) * self.map.size(chunk)
            maybe += size
            sure += size if self.truth[chunk] is not None else 0
        assert sure <= result.scatter.received <= maybe, (
            f"{self.where(rank)}: {result.scatter.received} bytes scattered, "
            f"not {sure} to {maybe}")
        for stage in (result.scatter, result.gather):
            assert stage.received + stage.missing == stage.expected
            assert stage.repaired <= stage.received

    def check_ranks(self, rank):
        """Who is in as a whole: each contribution, and the shard."""
        result = self.steps[rank].result
        whole = set(range(self.nranks))
        for chunk in range(self.map.chunks):
            owner = self.map.owner(chunk)
            if owner == rank or self.has_gathered(rank, chunk):
                whole &= self.counted[rank][chunk]
        for chunk in range(self.map.chunks):
            owner = self.map.owner(chunk)
            if owner != rank and not self.has_gathered(rank, chunk):
                whole.discard(owner)
        assert words(result.contributed) == whole, (
            f"{self.where(rank)}: {set(words(result.contributed))} contributed, "
            f"not {whole}")
        left = set(range(self.nranks)) - whole - words(result.missing)
        assert len(left) <= self.absent(rank) and not left & set(self.steps), (
            f"{self.where(rank)}: {left} neither contributed nor missing")
        for chunk in range(self.map.chunks):
            assert self.map.owner(chunk) not in left or self.has_gathered(rank, chunk)

    def check_uncounted(self, rank):
        """A contribution that wasn't counted is never taken for counted; the
        reverse may be, where an acknowledgement was lost."""
        for chunk, found in enumerate(self.truth):
            said = bool(self.steps[rank].uncounted >> chunk & 1)
            if found is not None and self.has_gathered(rank, chunk):
                assert said == (rank not in found), (
                    f"{self.where(rank)}: chunk {chunk} uncounted: {said}, but {found}")
            elif found is not None and rank not in found:
                assert said, f"{self.where(rank)}: chunk {chunk} is lost for ever"

    def check_verdict(self, rank, policy):
        result = self.steps[rank].result
        loss = int(self.steps[rank].loss * 1e6)
        least = policy.get("min_ranks") or (self.nranks - self.absent(rank)) // 2 + 1
        some = set()
        for chunk in range(self.map.chunks):
            # What nobody has gathered may have been reduced too late to count.
            if self.truth[chunk] is not None and (
                    self.has_gathered(rank, chunk) or chunk in self.map.shard(rank)):
                some |= self.counted[rank][chunk]
        behind = result.limit == abi.LIMIT_BEHIND and result.gather.missing
        if len(some) < least and result.scatter.received and not behind:
            return
        if behind:
            want = abi.VERDICT_SKIP
        elif loss > (policy.get("loss_halt") or 500000) or len(some) < least:
            want = abi.VERDICT_HALT
        elif loss > (policy.get("loss_skip") or 100000):
            want = abi.VERDICT_SKIP
        else:
            want = abi.VERDICT_PARTIAL if loss or any(result.missing) else abi.VERDICT_OK
        assert result.verdict == want, (
            f"{self.where(rank)}: verdict {result.verdict}, not {want} ({loss} ppm, "
            f"contributors {some})")
        if self.nranks > 1 and len(some) < 2:
            assert result.verdict >= abi.VERDICT_SKIP, "a sum over one rank is used"


def check(logs, nranks, mean=True, zero=False, policy=None):
    """All ops of all ranks. Returns the Accounts by op."""
    accounts = {}
    for number in sorted({n for log in logs.values() for n in log}):
        steps = {r: log[number] for r, log in logs.items() if number in log}
        account = Account(number, steps, nranks, mean, zero)
        for rank, step in steps.items():
            assert step.result.op == number
            account.check_bytes(rank)
            account.check_ranks(rank)
            account.check_uncounted(rank)
            account.check_verdict(rank, policy or {})
        accounts[number] = account
    return accounts


def check_bound(logs, slack_us=SLACK_US):
    """No call takes longer than was published. Returns the largest overshoot in us,
    that is, below zero when no op has reached its bound."""
    worst = max(((s.over_us, r, n) for r, log in logs.items() for n, s in log.items()
                 if s.result.bound_us), default=(float("-inf"), None, None))
    over, rank, number = worst
    assert over <= slack_us, (
        f"op {number} of rank {rank} took {over:.0f} us more than its bound of "
        f"{logs[rank][number].result.bound_us} us")
    return over
