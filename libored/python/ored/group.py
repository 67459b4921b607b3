# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""A group and its ops."""
from __future__ import annotations

import ctypes
import errno
import mmap
import select
import socket
import struct
import time
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple

from . import abi, address, buffer, error, state
from .address import Peer
from .state import GroupState, PeerState, Result

_libc = ctypes.CDLL(None, use_errno=True)


def family() -> int:
    """Number of the socket family: what the module says, or the default."""
    try:
        with open(abi.FAMILY_PARAMETER, encoding="ascii") as parameter:
            return int(parameter.read())
    except OSError:
        return abi.FAMILY_DEFAULT


class Group:
    """One rank's membership of a group, from joining to close().

    peers: where each rank lives, by rank, the own one included: "10.0.0.1",
        "10.0.0.1:4741", "[fe80::1%eth0]:4741" or ("10.0.0.1", 4741).
    rank: this process's.
    group: id; different groups may share a port.
    epoch: run of the group; a restarted job needs a larger one.
    port: UDP port of all peers that name none; 0: 4741.
    bucket_max: largest bucket in bytes, up to 1 GiB; larger arrays are cut
        into several ops. Rounded up to a multiple of 8. The kernel allocates
        about 3 * bucket_max * (2 * depth + 1).
    depth: ops in flight, 1 to 16.
    timeout: seconds to wait for all peers to join.
    slots: whether to have slots: memory shared with the kernel, in which buckets
        are sent and reduced where they are.

    group, epoch, bucket_max and depth must be the same on every rank.
    Raises Error (see <linux/ored.h>, ORED_JOIN), ValueError. Posting and
    waiting may go on in two threads, but each in one at a time.
    """

    def __init__(self, rank: int, peers: Sequence[Peer], *, group: int = 0,
                 epoch: int = 0, port: int = 0, bucket_max: int = 4 << 20,
                 depth: int = 4, timeout: float = 30.0,
                 slots: bool = False) -> None:
        bucket_max = -(-bucket_max // 8) * 8
        packed = [address.pack(peer) for peer in peers]
        try:
            request = abi.JOIN_STRUCT.pack(
                abi.JOIN_STRUCT.size, abi.JOIN_SLOTS if slots else 0, group, rank,
                len(packed), depth, epoch, bucket_max, _milliseconds(timeout), port, 0,
                abi.PEER_STRUCT.size, 0, bytes(16)) + b"".join(packed)
        except struct.error as err:
            raise ValueError(f"a number is out of range: {err}") from None
        self.rank = rank
        self.size = len(packed)
        self._bucket_max = bucket_max
        self._depth = depth
        self._received = 0      # ops whose results have been fetched
        self._sock = _socket()
        try:
            self._join(request, timeout)
            self._map = self._map_slots() if slots else None
        except BaseException:
            self._sock.close()
            raise

    # Ops

    def allreduce(self, array: Any, op: str = "sum", *,
                  dtype: Optional[str] = None, mode: str = "default",
                  hadamard: str = "default") -> Result:
        """Reduces @array over all ranks, in place.

        array: anything with writable, C-contiguous memory, as numpy arrays
            and array.array have it; else ValueError, and it is untouched.
        op: "sum" or "mean" ("min" and "max" where the module has them).
        dtype: what the elements are, where the array doesn't say: "f32", ...
        mode: "bounded" or "reliable"; "default": as the policy says.
        hadamard: "on": transformed, so that what is lost takes a little from
            all elements; "off"; "default": as the policy says, by what is
            lost. For sums and means of f32, f16 and bf16.

        After an Error, parts of the array may be reduced and others not (one
        of bucket_max or less is as it was). After a Timeout the ops are still
        in flight: fetch them with wait(), or close the group.
        """
        view, dtype = buffer.writable(array, dtype)
        self._check_idle()
        parameters = _parameters(op, dtype, mode, hadamard=hadamard)
        start = time.monotonic()
        results = self._pipeline(buffer.pieces(view, self._bucket_max),
                                 parameters)
        return state.merge_results(results, time.monotonic() - start)

    def reduce_scatter(self, array: Any, out: Any, op: str = "sum", *,
                       dtype: Optional[str] = None, mode: str = "default"
                       ) -> Result:
        """Reduces @array over all ranks, and stores this rank's shard of the
        result in @out: array.ravel()[group.shard(array.size)] says which.

        array: at most bucket_max bytes, and an element for each rank.
        out: room for the shard; it may be a part of @array.
        """
        self._check_idle()
        self.post(array, op, dtype=dtype, mode=mode, kind="reduce_scatter")
        return self.wait(out)

    def all_gather(self, array: Any, out: Any, *, dtype: Optional[str] = None,
                   mode: str = "default") -> Result:
        """Stores the shards of all ranks, @array here, in @out, which has the
        length of all of them together. @array may be this rank's part of it:
        out[group.shard(out.size)].
        """
        view = buffer.target(out)
        self._check_idle()
        self.post(array, dtype=dtype, mode=mode, kind="all_gather",
                  length=len(view))
        return self._receive(view)

    def broadcast(self, array: Any, root: int = 0, *,
                  dtype: Optional[str] = None, mode: str = "default"
                  ) -> Result:
        """Replaces @array, of any length, by that of rank @root."""
        view, dtype = buffer.writable(array, dtype)
        self._check_idle()
        start = time.monotonic()
        results = self._pipeline(
            buffer.pieces(view, self._bucket_max),
            _parameters("sum", dtype, mode, "broadcast", root))
        return state.merge_results(results, time.monotonic() - start)

    def barrier(self, *, mode: str = "default") -> Result:
        """Waits until all ranks have come; of a bounded one, which ends by its
        bound, result.missing says who hasn't."""
        self._check_idle()
        self._send(memoryview(b""), _parameters("sum", "f32", mode, "barrier"))
        return self._receive(memoryview(bytearray(8)))

    def shard(self, count: int, rank: Optional[int] = None) -> slice:
        """This rank's part, or that of @rank, of @count elements, as
        numpy.array_split() deals them out."""
        each, more = divmod(count, self.size)
        rank = self.rank if rank is None else rank
        start = each * rank + min(rank, more)
        return slice(start, start + each + (rank < more))

    def post(self, array: Any, op: str = "sum", *,
             dtype: Optional[str] = None, mode: str = "default",
             hadamard: str = "default", kind: str = "allreduce",
             root: int = 0, length: int = 0) -> None:
        """Posts @array, of at most bucket_max bytes, as the next op.

        It may be changed at once. Waits while depth ops are in flight.
        kind: "allreduce", "reduce_scatter", "all_gather" or "broadcast".
        root: of a broadcast.
        length: bytes that an all_gather gives; 0: as many from each rank.
        """
        view, dtype = buffer.readable(array, dtype)
        self._send(view, _parameters(op, dtype, mode, kind, root, length,
                                     hadamard=hadamard))

    def wait(self, array: Any = None) -> Result:
        """Waits for the oldest op and stores its bucket in @array, which may
        be longer. If it is too short (EMSGSIZE), the op stays. The result of an
        op of a slot is in its slot then, and no @array is needed."""
        # Python does nothing at all for a buffer without any room
        return self._receive(buffer.target(
            bytearray(1) if array is None else array))

    @property
    def slots(self) -> Tuple[memoryview, ...]:
        """The slots, of bucket_max bytes each: numpy.frombuffer() makes arrays of
        them. There is one more than ops can be in flight. While an op has one
        it isn't to be touched."""
        if self._map is None:
            raise ValueError("the group was joined without slots=True")
        stride = len(self._map) // (self._depth + 1)
        return tuple(memoryview(self._map)[i:i + self._bucket_max]
                     for i in range(0, len(self._map), stride))

    def post_slot(self, slot: int, nbytes: int, op: str = "sum", *,
                  dtype: str = "f32", mode: str = "default",
                  kind: str = "allreduce", root: int = 0,
                  hadamard: str = "default") -> None:
        """Posts the first @nbytes of slot number @slot as the next op, without a
        copy; for an all_gather, of which this rank's shard is in its place."""
        self._send(memoryview(b""), _parameters(op, dtype, mode, kind, root,
                                                nbytes, slot, hadamard=hadamard))

    # State

    def state(self) -> GroupState:
        """What the kernel knows of the group."""
        return state.parse_group(self._get(abi.GROUP, abi.GROUP_STRUCT.size))

    def peers(self) -> Tuple[PeerState, ...]:
        """What the kernel knows of each rank."""
        size = self.size * abi.PEER_STATE_STRUCT.size
        return state.parse_peers(self._get(abi.PEERS, size))

    def stats(self) -> Dict[str, int]:
        """Counters, by name; an older module has fewer."""
        data = self._get(abi.STATS, 8 * len(abi.COUNTERS))
        return dict(zip(abi.COUNTERS, struct.unpack(f"={len(data) // 8}Q",
                                                    data)))

    def result(self, op: int) -> Result:
        """What became of op number @op, for the last few (else ENOENT)."""
        return state.parse_result(self._get_of(abi.RESULT, op,
                                               abi.RESULT_STRUCT.size))

    def uncounted(self, op: int) -> List[slice]:
        """Bytes of this rank's bucket of op number @op that others went
        without, as slices of them: what to add to the next bucket, so that
        loss doesn't add up (error feedback). Ask before the next post(),
        which may use the op's slot again (else ENOENT). The last one may
        reach beyond the bucket. An empty list, if all was counted."""
        head = abi.UNCOUNTED_STRUCT
        words = self._bucket_max // abi.PAYLOAD_MIN // 64 + 1
        data = self._get_of(abi.UNCOUNTED, op, head.size + 8 * words)
        _, chunk, _ = head.unpack_from(data)
        bits = int.from_bytes(data[head.size:], "little")
        return state.runs(bits, chunk)

    def policy(self) -> Dict[str, int]:
        """struct ored_policy by field, with all defaults filled in."""
        data = self._get(abi.POLICY, abi.POLICY_STRUCT.size)
        return dict(zip(abi.POLICY_FIELDS, abi.POLICY_STRUCT.unpack(data)))

    def set_policy(self, **fields: int) -> None:
        """Changes some fields of it, from the next op on; 0: the default."""
        unknown = set(fields) - set(abi.POLICY_FIELDS)
        if unknown:
            raise TypeError(f"a policy has no {', '.join(sorted(unknown))}")
        policy = {**self.policy(), **fields}
        try:
            data = abi.POLICY_STRUCT.pack(*policy.values())
        except struct.error as err:
            raise ValueError(f"a number is out of range: {err}") from None
        try:
            self._sock.setsockopt(abi.SOL_ORED, abi.POLICY, data)
        except OSError as err:
            error.fail(self._sock, err.errno)

    @property
    def bucket_max(self) -> int:
        """Bytes of the largest op."""
        return self._bucket_max

    @property
    def depth(self) -> int:
        """Ops that may be in flight."""
        return self._depth

    def settimeout(self, seconds: Optional[float]) -> None:
        """Limits each wait for the kernel; None: no limit. It is a limit of
        the socket (SO_RCVTIMEO, SO_SNDTIMEO), whoever uses it."""
        if seconds is not None and seconds <= 0:
            raise ValueError("a timeout is None or more than 0 seconds")
        micros = max(1, round(seconds * 1e6)) if seconds is not None else 0
        timeval = struct.pack("@ll", *divmod(micros, 1_000_000))
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self._sock.setsockopt(socket.SOL_SOCKET, option, timeval)

    def fileno(self) -> int:
        """The socket's descriptor, for poll() and the like."""
        return self._sock.fileno()

    def close(self) -> None:
        """Leaves the group. Ops in flight here fail on the other ranks.

        BufferError: arrays or views of slots are in use, so that they can't be
        unmapped: delete them and close again. Till then the rank serves its
        peers, but takes part in nothing any more.
        """
        if self._map is not None:
            if self._sock.fileno() >= 0:
                self._sock.shutdown(socket.SHUT_RDWR)
            self._map.close()
            self._map = None
        self._sock.close()

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "closed" if self.fileno() < 0 else f"fd {self.fileno()}"
        return f"<ored.Group rank {self.rank} of {self.size}, {where}>"

    # How

    def _join(self, request: bytes, timeout: float) -> None:
        """Joins without blocking, since setsockopt() holds the interpreter's
        lock: other threads, and Ctrl-C, would have to wait."""
        self._sock.setblocking(False)
        try:
            self._sock.setsockopt(abi.SOL_ORED, abi.JOIN, request)
        except BlockingIOError:         # EINPROGRESS
            self._await_join(timeout)
        except OSError as err:
            error.fail(self._sock, err.errno)
        self._sock.setblocking(True)

    def _map_slots(self) -> mmap.mmap:
        length = (self._depth + 1) * -(-self._bucket_max // mmap.PAGESIZE)
        try:
            return mmap.mmap(self.fileno(), length * mmap.PAGESIZE)
        except OSError as err:
            error.fail(self._sock, err.errno)

    def _await_join(self, timeout: float) -> None:
        poll = select.poll()
        poll.register(self._sock, select.POLLOUT)
        # The kernel keeps the time; this is for a kernel that doesn't
        if not poll.poll(_milliseconds(timeout) + 10_000):
            raise error.Timeout(errno.ETIMEDOUT,
                                "the kernel's own timeout hasn't fired")
        failed = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            error.fail(self._sock, failed)

    def _check_idle(self) -> None:
        """Raises Error (EBUSY) while ops are in flight, whose results would be
        taken for those of another."""
        in_flight = self.state().in_flight
        if in_flight:
            raise error.Error(errno.EBUSY, f"{in_flight} ops are in flight: "
                              "wait() for them first")

    def _pipeline(self, pieces: List[memoryview], parameters: bytes
                  ) -> List[Result]:
        """Keeps depth ops in flight until all pieces are done."""
        results: List[Result] = []
        try:
            for posted, piece in enumerate(pieces):
                if posted - len(results) == self._depth:
                    results.append(self._receive(pieces[len(results)]))
                self._send(piece, parameters)
            while len(results) < len(pieces):
                results.append(self._receive(pieces[len(results)]))
        except error.Timeout:
            raise
        except error.Error:
            self._drain()
            raise
        return results

    def _drain(self) -> None:
        """After a failed op: fetches and forgets those behind it, or they
        would be taken for the next array's."""
        scratch = bytearray(self._bucket_max)
        for _ in range(self.state().in_flight):
            try:
                self._receive(memoryview(scratch))
            except error.Timeout:
                return
            except error.Error:
                pass

    def _send(self, view: memoryview, parameters: bytes) -> None:
        try:
            self._sock.sendmsg([view], [(abi.SOL_ORED, abi.OP, parameters)])
        except OSError as err:
            error.fail(self._sock, err.errno)

    def _receive(self, view: memoryview) -> Result:
        try:
            length = self._sock.recv_into(view)
        except OSError as err:
            self._fail_op(err.errno)
        if not length:
            raise error.Error(errno.EPIPE, "the socket is shut down")
        self._received += 1
        return self.result(self._received - 1)

    def _fail_op(self, number: int) -> NoReturn:
        """Raises a failed recv()'s error, with the result of the op if it was
        one that failed."""
        try:
            error.fail(self._sock, number)
        except error.Error as err:
            if self.state().received > self._received:
                err.result = self.result(self._received)
                self._received += 1
            raise

    def _get_of(self, option: int, op: int, size: int) -> bytes:
        """An option that is about an op: the kernel reads its number from the
        place it writes to. socket.getsockopt() can't pass it in, and
        socket.recvmsg(), which could get a result otherwise, refuses unknown
        families."""
        data = bytearray(size)
        struct.pack_into("=Q", data, 0, op)
        length = ctypes.c_uint32(len(data))
        if _libc.getsockopt(self.fileno(), abi.SOL_ORED, option,
                            (ctypes.c_ubyte * len(data)).from_buffer(data),
                            ctypes.byref(length)):
            error.fail(self._sock, ctypes.get_errno())
        return bytes(data[:length.value])

    def _get(self, option: int, size: int) -> bytes:
        try:
            return self._sock.getsockopt(abi.SOL_ORED, option, size)
        except OSError as err:
            error.fail(self._sock, err.errno)


def _socket() -> socket.socket:
    try:
        return socket.socket(family(), socket.SOCK_SEQPACKET, abi.PROTO_REDUCE)
    except OSError as err:
        raise error.own(err.errno) from None


def _milliseconds(seconds: float) -> int:
    if not 0 < seconds < 4_000_000:
        raise ValueError("timeout: more than 0 seconds, and finite")
    return max(1, round(seconds * 1000))


def _parameters(op: str, dtype: str, mode: str, kind: str = "allreduce",
                root: int = 0, length: int = 0,
                slot: Optional[int] = None, *,
                hadamard: str = "default") -> bytes:
    """struct ored_op."""
    for what, name, known in (("op", op, abi.REDUCTIONS),
                              ("mode", mode, abi.MODES),
                              ("kind", kind, abi.KINDS),
                              ("hadamard", hadamard, abi.HADAMARD)):
        if name not in known:
            raise ValueError(f"{what} is {name!r}: one of {', '.join(known)}")
    try:
        return abi.OP_STRUCT.pack(abi.KINDS[kind], abi.DTYPES[dtype],
                                  abi.REDUCTIONS[op], abi.MODES[mode],
                                  abi.HADAMARD[hadamard] |
                                  (0 if slot is None else abi.OP_SLOT), root,
                                  slot or 0, 0, 0, length)
    except struct.error as err:
        raise ValueError(f"a number is out of range: {err}") from None
