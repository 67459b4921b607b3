# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Checkpoint areas: memory of the kernel that outlives the process."""
from __future__ import annotations

import ctypes
import errno
import mmap
import os
import select
import socket
import struct
from typing import Any, List, NamedTuple, Optional, Tuple

from . import abi, buffer, error
from .group import family

_libc = ctypes.CDLL(None, use_errno=True)
_libc.setsockopt.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int,
                             ctypes.c_void_p, ctypes.c_uint32]
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                       ctypes.c_int, ctypes.c_int, ctypes.c_int64]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FAILED = ctypes.c_void_p(-1).value
_PROT_NONE = 0
_MAP_FIXED = 0x10
_HUGE = 2 << 20         # what mappings are aligned to
_LIST_MAX = 1024        # areas that areas() can tell of


class Generation(NamedTuple):
    """A sealed checkpoint."""
    step: int
    bytes: int
    meta: bytes
    rank: int           # whose state it is
    digest: int         # CRC32C over all of it
    complete: bool      # all holders have it
    offset: int         # where in the area to map it


class AreaInfo(NamedTuple):
    """An area of the namespace, as areas() lists it."""
    name: str
    bytes: int          # of the largest generation
    memory: int         # bytes allocated in all
    mode: int
    uid: int
    handles: int        # sockets that have it open
    mapped: bool
    step: Optional[int]     # of the newest generation


class Area:
    """A handle on a named area, which is made if there is none.

    name: up to 63 bytes; areas of a network namespace have different ones.
    bytes: size of the largest checkpoint; None: only an area that is there.
    mode: permission bits, as of a file; for a new one.
    readonly: never writes or commits.
    exclusive: fails if there is one (EEXIST).
    group, rank, nranks: the rank of a group whose state it is.
    copies: in all, this one included; other ranks keep the others.
    placement, jump: which ranks, see ored-ckpt(7).

    The kernel allocates three times @bytes at once, for each copy. Raises Error (see
    <linux/ored.h>, ORED_AREA_OPEN). close() leaves the area: remove() ends it.

        with ored.Area("model", bytes=len(state)) as area:
            area.save(step, state)
            ...
            step, state = area.load()       # also after a crash
    """

    def __init__(self, name: str, bytes: Optional[int] = None, *,
                 mode: int = 0o600, readonly: bool = False,
                 exclusive: bool = False, group: int = 0, rank: int = 0,
                 nranks: int = 0, copies: int = 0,
                 placement: int = abi.PLACE_GROUP, jump: int = 0) -> None:
        flags = (abi.AREA_CREATE if bytes is not None else 0) | \
            (abi.AREA_READONLY if readonly else 0) | \
            (abi.AREA_EXCLUSIVE if exclusive else 0)
        self.name = name
        self._mapped = 0        # bytes at _address
        self._address: Optional[int] = None
        self._sock = _socket()
        try:
            self._set(abi.AREA_OPEN, _conf(
                name, flags, mode, bytes or 0,
                (group, rank, copies, nranks, placement, jump)))
            conf = abi.AREA_CONF_STRUCT.unpack(
                self._get(abi.AREA_OPEN, abi.AREA_CONF_STRUCT.size))
        except BaseException:
            self._sock.close()
            raise
        self._bytes = conf[3]
        self._owner = conf[6]

    # Writing

    def slot(self) -> memoryview:
        """The slot that is open, to be filled in place. It is of no use after
        commit() and abort(): who touches it then is killed (SIGBUS)."""
        if self._address is None:
            self._address, self._mapped = _map_aligned(
                self._sock, self._bytes, mmap.PROT_READ | mmap.PROT_WRITE, 0)
        array = (ctypes.c_ubyte * self._bytes).from_address(self._address)
        return memoryview(array).cast("B")

    def commit(self, step: int, length: int = 0, meta: bytes = b"", *,
               digest_only: bool = False) -> None:
        """Seals the first @length bytes of the slot (0: all) as @step, which
        must be larger than the last one's. meta: up to 256 bytes to keep with
        it. digest_only: slot() stays mapped; who reads the generation finds out
        whether it has been changed."""
        try:
            request = abi.COMMIT_STRUCT.pack(
                step, abi.COMMIT_DIGEST_ONLY if digest_only else 0, len(meta),
                length, meta)
        except struct.error as err:
            raise ValueError(f"a number is out of range: {err}") from None
        if len(meta) > abi.AREA_META_MAX:
            raise ValueError(f"meta has more than {abi.AREA_META_MAX} bytes")
        self._set(abi.AREA_COMMIT, request)     # the slot stays if it fails
        self._unmap()

    def save(self, step: int, data: Any, meta: bytes = b"") -> None:
        """Copies contiguous memory into the slot and commits it."""
        view = buffer.contiguous(data)
        if len(view) > self._bytes:
            raise ValueError(f"{len(view)} bytes don't fit the area's "
                             f"{self._bytes}")
        self.slot()[:len(view)] = view
        self.commit(step, len(view), meta)

    def abort(self) -> None:
        """Gives up what has been written since the last commit."""
        self._set(abi.AREA_ABORT, b"")
        self._unmap()

    def roll_back(self, step: int) -> None:
        """Forgets all generations after @step."""
        self._set(abi.AREA_ROLL_BACK, struct.pack("=Q", step))

    def wait(self, timeout: Optional[float] = None) -> None:
        """Waits until all holders have the newest generation."""
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        if not poll.poll(None if timeout is None else timeout * 1000):
            raise error.Timeout(errno.EAGAIN, "it is not complete yet")

    # Reading

    def generations(self) -> Tuple[Generation, ...]:
        """What is there: the own ones, the newest first, then other ranks'."""
        size = abi.GENERATION_STRUCT.size
        data = self._get(abi.AREA_GENERATIONS, 64 * size)
        return tuple(_generation(data[i:i + size])
                     for i in range(0, len(data), size))

    def load(self, step: Optional[int] = None) -> Tuple[int, bytearray]:
        """Step and verified copy of a generation that is here; None: the newest.
        ENOENT if there is none, EBADMSG if it is damaged."""
        gen = self._find(step)
        data = bytearray(gen.bytes)
        self.read_into(data, gen.step)
        return gen.step, data

    def read_into(self, target: Any, step: int, offset: int = 0, *,
                  rank: Optional[int] = None,
                  holder: Optional[int] = None) -> None:
        """Fills memory with a verified part of a generation: of any rank's state
        (None: of the area's own), from any rank of the group that has it (None:
        from this area, its owner, or a holder, the nearest first)."""
        view = buffer.target(target)
        if view.nbytes:
            memory = (ctypes.c_ubyte * view.nbytes).from_buffer(view)
            self._read(step, offset, view.nbytes, rank, holder,
                       ctypes.addressof(memory))

    def fetch(self, step: int, length: int, *, rank: Optional[int] = None,
              holder: Optional[int] = None) -> memoryview:
        """Fills slot() with the first @length bytes of a generation, as
        read_into() does, without a copy on the way from another host, and returns
        that part of it. commit() makes it an own generation."""
        if not 0 < length <= self._bytes:
            raise ValueError(f"{length} bytes don't fit the area's {self._bytes}")
        self._read(step, 0, length, rank, holder, 0)
        return self.slot()[:length]

    def newest(self, timeout: float = 2.0) -> Optional[int]:
        """The newest step of which every rank's generation is whole somewhere,
        or None. timeout: how long to wait for ranks that don't answer, seconds;
        what only they have isn't counted."""
        seconds = int(max(timeout, 0.001))
        micros = int(max(timeout, 0.001) % 1 * 1e6)
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO,
                              struct.pack("=qq", seconds, micros))
        step = abi.AREA_NEWEST_STRUCT.unpack(
            self._get(abi.AREA_NEWEST, abi.AREA_NEWEST_STRUCT.size))[0]
        return None if step == abi.NO_STEP else step

    def view(self, step: Optional[int] = None) -> View:
        """A generation as it is in memory, without a copy and unverified."""
        gen = self._find(step)
        return View(*_map_aligned(self._sock, gen.bytes, mmap.PROT_READ,
                                  gen.offset), gen.bytes)

    # The area

    @property
    def capacity(self) -> int:
        """Bytes of the largest generation."""
        return self._bytes

    def remove(self) -> None:
        """Ends the area, whoever has it open."""
        self._unmap()
        self._set(abi.AREA_REMOVE, bytes(abi.AREA_CONF_STRUCT.size))

    def fileno(self) -> int:
        """The socket's descriptor, for poll() and to be handed on."""
        return self._sock.fileno()

    def close(self) -> None:
        """Gives up the handle; the area stays."""
        self._unmap()
        self._sock.close()

    def __enter__(self) -> Area:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "closed" if self.fileno() < 0 else f"fd {self.fileno()}"
        return f"<ored.Area {self.name!r} of {self._bytes} bytes, {where}>"

    # How

    def _find(self, step: Optional[int]) -> Generation:
        for gen in self.generations():
            if gen.rank == self._owner and step in (None, gen.step):
                return gen
        raise error.Error(errno.ENOENT, "there is no generation yet"
                          if step is None else f"step {step} is not there")

    def _read(self, step: int, offset: int, length: int, rank: Optional[int],
              holder: Optional[int], address: int) -> None:
        try:
            request = abi.AREA_READ_STRUCT.pack(
                step, offset, length, self._owner if rank is None else rank,
                abi.ANY_HOLDER if holder is None else holder, address)
        except struct.error as err:
            raise ValueError(f"a number is out of range: {err}") from None
        self._set(abi.AREA_READ, request)

    def _unmap(self) -> None:
        if self._address is not None:
            _libc.munmap(self._address, self._mapped)
        self._address = None

    def _set(self, option: int, value: bytes) -> None:
        """Not by socket.setsockopt(), which lets no other thread run while the
        kernel digests gigabytes."""
        if _libc.setsockopt(self.fileno(), abi.SOL_ORED, option,
                            ctypes.c_char_p(value), len(value)):
            error.fail(self._sock, ctypes.get_errno())

    def _get(self, option: int, size: int) -> bytes:
        return _get(self._sock, option, size)


class View:
    """Read-only memory of a generation; use it as a context manager, or end it
    by close(). It is of no use once two newer generations have been committed:
    who touches it then is killed (SIGBUS)."""

    def __init__(self, address: int, mapped: int, length: int) -> None:
        self._address: Optional[int] = address
        self._mapped = mapped
        array = (ctypes.c_ubyte * length).from_address(address)
        self.memory = memoryview(array).cast("B").toreadonly()

    def close(self) -> None:
        """Unmaps it."""
        if self._address is not None:
            self.memory.release()
            _libc.munmap(self._address, self._mapped)
        self._address = None

    def __enter__(self) -> memoryview:
        return self.memory

    def __exit__(self, *exc: object) -> None:
        self.close()


def areas() -> List[AreaInfo]:
    """All areas of this network namespace; those without handles and mappings
    are orphans."""
    size = abi.AREA_ENTRY_STRUCT.size
    with _socket() as sock:
        data = _get(sock, abi.AREA_LIST, _LIST_MAX * size)
    return [_entry(data[i:i + size]) for i in range(0, len(data), size)]


def remove_area(name: str) -> None:
    """Ends an area by its name."""
    with _socket() as sock:
        try:
            sock.setsockopt(abi.SOL_ORED, abi.AREA_REMOVE, _conf(name, 0, 0, 0))
        except OSError as err:
            error.fail(sock, err.errno)


def _socket() -> socket.socket:
    try:
        return socket.socket(family(), socket.SOCK_SEQPACKET, abi.PROTO_CKPT)
    except OSError as err:
        raise error.own(err.errno) from None


def _get(sock: socket.socket, option: int, size: int) -> bytes:
    """Not by socket.getsockopt(), which takes no more than a kilobyte."""
    data = ctypes.create_string_buffer(size)
    length = ctypes.c_uint32(size)
    if _libc.getsockopt(sock.fileno(), abi.SOL_ORED, option, data,
                        ctypes.byref(length)):
        error.fail(sock, ctypes.get_errno())
    return data.raw[:length.value]


def _conf(name: str, flags: int, mode: int, length: int,
          shared: Tuple[int, ...] = (0,) * 6) -> bytes:
    encoded = os.fsencode(name)
    if not 0 < len(encoded) < abi.AREA_NAME_MAX or b"\0" in encoded:
        raise ValueError(f"a name has 1 to {abi.AREA_NAME_MAX - 1} bytes")
    try:
        return abi.AREA_CONF_STRUCT.pack(encoded, flags, mode, length, 0,
                                         *shared)
    except struct.error as err:
        raise ValueError(f"a number is out of range: {err}") from None


def _map_aligned(sock: socket.socket, length: int, prot: int, offset: int
                 ) -> Tuple[int, int]:
    """Maps it where huge pages can be used. Returns address and length of all
    that is to be unmapped."""
    align = _HUGE if length >= _HUGE else mmap.PAGESIZE
    room = length + align
    base = _libc.mmap(None, room, _PROT_NONE,
                      mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    if base == _FAILED:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    address = -(-base // align) * align
    if _libc.mmap(address, length, prot, mmap.MAP_SHARED | _MAP_FIXED,
                  sock.fileno(), offset) == _FAILED:
        number = ctypes.get_errno()
        _libc.munmap(base, room)
        error.fail(sock, number)
    # Nothing but the mapping is kept.
    end = -(-(address + length) // mmap.PAGESIZE) * mmap.PAGESIZE
    if address > base:
        _libc.munmap(base, address - base)
    if base + room > end:
        _libc.munmap(end, base + room - end)
    return address, length


def _generation(data: bytes) -> Generation:
    step, length, offset, rank, digest, flags, meta_len, meta = \
        abi.GENERATION_STRUCT.unpack(data)
    return Generation(step, length, meta[:meta_len], rank, digest,
                      bool(flags & abi.GENERATION_COMPLETE), offset)


def _entry(data: bytes) -> AreaInfo:
    (name, _flags, mode, length, memory, _group, _owner, _copies, _nranks,
     _placement, _jump, uid, _gid, handles, mapped, step, _previous) = \
        abi.AREA_ENTRY_STRUCT.unpack(data)
    return AreaInfo(os.fsdecode(name.split(b"\0")[0]), length, memory, mode,
                    uid, handles, bool(mapped),
                    None if step == abi.NO_STEP else step)
