# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What the kernel reports, as Python objects."""
from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Iterable, List, Optional, Sequence, Tuple

from . import abi


@dataclass(frozen=True)
class Stage:
    """Bytes of one stage of an op, as seen by this rank."""

    expected: int
    received: int
    repaired: int       # received only after it had been sent again
    missing: int


@dataclass(frozen=True)
class Result:
    """What became of an op, or of the ops that a large array was cut into."""

    op: int             # number of the (first) op; a group's first is 0
    ops: int            # how many ops: 1 unless larger than bucket_max
    bytes: int
    elapsed: float      # seconds, from post to finish
    limit: str          # what ended it: none, complete, early, hard, behind
    verdict: str        # what to do with it: ok, partial, skip, halt
    bound: float        # seconds it might have taken at most; 0: no bound
    contributed: Tuple[int, ...]    # ranks that are in it as a whole
    missing: Tuple[int, ...]        # ranks of which something is missing
    scatter: Stage      # first stage
    gather: Stage       # second stage
    behind: int         # ops skipped because the group had gone on
    resync: bool        # a result was missed: run a reliable op
    duplicates: int     # packets that came twice
    resent: int         # packets that this rank sent again
    hadamard: bool      # it was transformed ...
    hadamard_time: float    # ... and that took so many seconds here
    error: int          # errno of a failed op, or 0
    differ: Tuple[int, ...] = ()    # EPROTO: the two ranks that differ ...
    values: Tuple[int, ...] = ()    # ... and their values

    @property
    def ok(self) -> bool:
        """Nothing is missing."""
        return self.verdict == "ok" and not self.error


@dataclass(frozen=True)
class GroupState:
    """struct ored_group."""

    abi: int
    state: str
    group: int
    rank: int
    nranks: int
    depth: int
    epoch: int
    bucket_max: int
    payload: int
    header: int
    port: int
    family: int
    ifindex: int
    posted: int
    finished: int
    received: int
    memory: int
    slots: int
    slot_stride: int

    @property
    def in_flight(self) -> int:
        """Ops posted whose results haven't been fetched."""
        return self.posted - self.received


@dataclass(frozen=True)
class PeerState:
    """struct ored_peer_state."""

    rank: int
    status: str
    posted: int
    finished: int
    heard: Optional[float]      # seconds since it was last heard; None: never
    srtt: Optional[float]       # seconds of a round trip; None: not measured
    window: int
    inflight: int
    path_payload: int
    sent: int
    resent: int
    received: int
    duplicates: int
    local_drops: int


def _unpack(layout: struct.Struct, data: bytes) -> Tuple:
    """An older module's structure is shorter: what is absent is zero."""
    return layout.unpack(data[:layout.size].ljust(layout.size, b"\0"))


def _name(names: Sequence[str], number: int) -> str:
    return names[number] if number < len(names) else str(number)


def _ranks(words: Sequence[int]) -> Tuple[int, ...]:
    return tuple(64 * i + bit for i, word in enumerate(words) if word
                 for bit in range(64) if word >> bit & 1)


def parse_result(data: bytes) -> Result:
    f = _unpack(abi.RESULT_STRUCT, data)
    n = 11 + abi.RANK_WORDS
    contributed, missing = f[11:n], f[n:n + abi.RANK_WORDS]
    (error, limit, verdict, _, _, _, _, flags, bound, behind, field, rank0,
     rank1, value0, value1, duplicates, resent, hadamard_ns) = f[n + abi.RANK_WORDS:]
    return Result(
        op=f[0], ops=1, bytes=f[2], elapsed=f[1] / 1e9,
        limit=_name(abi.LIMITS, limit), verdict=_name(abi.VERDICTS, verdict),
        bound=bound / 1e6, contributed=_ranks(contributed),
        missing=_ranks(missing), scatter=Stage(*f[3:7]),
        gather=Stage(*f[7:11]), behind=behind,
        resync=bool(flags & abi.RESULT_RESYNC), duplicates=duplicates,
        resent=resent, hadamard=bool(flags & abi.RESULT_HADAMARD),
        hadamard_time=hadamard_ns / 1e9, error=error,
        differ=(rank0, rank1) if field else (),
        values=(value0, value1) if field else ())


def _sum_stages(stages: Iterable[Stage]) -> Stage:
    totals = [0, 0, 0, 0]
    for s in stages:
        for i, value in enumerate((s.expected, s.received, s.repaired,
                                   s.missing)):
            totals[i] += value
    return Stage(*totals)


def merge_results(results: Sequence[Result], elapsed: float) -> Result:
    """One result of the ops that an array was cut into: the worst of each."""
    if len(results) == 1:
        return results[0]

    def worst(names, values):
        return max(values, key=lambda v: names.index(v) if v in names else -1)

    contributed = set(results[0].contributed)
    missing = set()
    for r in results:
        contributed &= set(r.contributed)
        missing |= set(r.missing)
    return Result(
        op=results[0].op, ops=len(results),
        bytes=sum(r.bytes for r in results), elapsed=elapsed,
        limit=worst(abi.LIMITS, [r.limit for r in results]),
        verdict=worst(abi.VERDICTS, [r.verdict for r in results]),
        bound=sum(r.bound for r in results),
        contributed=tuple(sorted(contributed)),
        missing=tuple(sorted(missing)),
        scatter=_sum_stages(r.scatter for r in results),
        gather=_sum_stages(r.gather for r in results),
        behind=sum(r.behind for r in results), resync=results[-1].resync,
        duplicates=sum(r.duplicates for r in results),
        resent=sum(r.resent for r in results),
        hadamard=any(r.hadamard for r in results),
        hadamard_time=sum(r.hadamard_time for r in results), error=0)


def runs(bits: int, chunk: int) -> List[slice]:
    """Where chunks of that many bytes are whose bits are set, those side by
    side in one slice."""
    return [slice(ones.start() * chunk, ones.end() * chunk)
            for ones in re.finditer("1+", f"{bits:b}"[::-1])]


def parse_group(data: bytes) -> GroupState:
    f = list(_unpack(abi.GROUP_STRUCT, data))
    f[1] = _name(abi.STATES, f[1])
    return GroupState(*f)


def parse_peers(data: bytes) -> Tuple[PeerState, ...]:
    size = abi.PEER_STATE_STRUCT.size
    return tuple(_parse_peer(data[i:i + size])
                 for i in range(0, len(data) - size + 1, size))


def _parse_peer(data: bytes) -> PeerState:
    f = list(_unpack(abi.PEER_STATE_STRUCT, data))
    f[1] = _name(abi.PEER_STATUSES, f[1])
    f[4] = None if f[4] == (1 << 64) - 1 else f[4] / 1e6
    f[5] = f[5] / 1e6 if f[5] else None
    return PeerState(*f)
