# SPDX-License-Identifier: GPL-2.0
"""Handles on checkpoint areas, straight over the system calls."""
import ctypes
import mmap
import os
import signal
import traceback

from . import abi, raw
from .sockets import Socket

libc = raw.libc
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                      ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
NOTHING = ctypes.c_void_p(-1).value
PAGE = mmap.PAGESIZE
SYSCTL = "/proc/sys/net/ored/ckpt_max_bytes"
TABLE = []


def pattern(step, length):
    """Bytes that differ from step to step and from place to place."""
    unit = b"".join((step * 1000003 + i * 7919).to_bytes(8, "little") for i in range(512))
    return (unit * (length // len(unit) + 1))[:length]


def crc32c(data):
    """Castagnoli's, bit by bit in a table: the kernel's isn't asked."""
    if not TABLE:
        for byte in range(256):
            for _ in range(8):
                byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
            TABLE.append(byte)
    crc = 0xffffffff
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


class Mapping:
    """mmap() by the system call: Python's own keeps a descriptor beside it."""

    def __init__(self, sock, length, prot, flags=mmap.MAP_SHARED, offset=0):
        self.length = length
        self.address = libc.mmap(None, length, prot, flags, sock.fileno(), offset)
        if self.address == NOTHING:
            self.address = None
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))

    def memory(self):
        return (ctypes.c_char * self.length).from_address(self.address)

    def __getitem__(self, at):
        return self.memory()[at] if isinstance(at, slice) else self.memory()[at][0]

    def __setitem__(self, at, value):
        self.memory()[at] = value

    def close(self):
        if self.address:
            libc.munmap(self.address, self.length)
        self.address = None

    __del__ = close


def conf(name, **fields):
    value = abi.AreaConf(**fields)
    value.name = (abi.c_uint8 * abi.AREA_NAME_MAX)(*name.encode())
    return value


class Area(Socket):
    """create=False: only one that is there."""

    def __init__(self, name, host=None, create=True, flags=0, **fields):
        super().__init__(host, abi.PROTO_CKPT)
        self.name = name
        try:
            self.set(abi.AREA_OPEN, conf(
                name, flags=flags | (abi.AREA_CREATE if create else 0), **fields))
        except OSError as error:
            error.strerror = self.error()
            self.close()
            raise

    def conf(self):
        return self.get(abi.AREA_OPEN, abi.AreaConf)

    def status(self):
        return self.get(abi.AREA_STATUS, abi.AreaStatus)

    def generations(self):
        return several(self, abi.AREA_GENERATIONS, abi.Generation)

    def steps(self):
        return [g.step for g in self.generations()]

    def map(self, length=None, offset=0):
        """The open slot, to be written."""
        return Mapping(self, length or self.conf().bytes,
                       mmap.PROT_READ | mmap.PROT_WRITE, offset=offset)

    def view(self, step):
        """A generation, to be read."""
        gen = next(g for g in self.generations() if g.step == step)
        return Mapping(self, gen.bytes, mmap.PROT_READ, offset=gen.offset)

    def commit(self, step, length=0, meta=b"", flags=0):
        self.set(abi.AREA_COMMIT, abi.Commit(
            step=step, bytes=length, flags=flags, meta_len=len(meta),
            meta=(abi.c_uint8 * abi.AREA_META_MAX)(*meta)))

    def save(self, step, data, meta=b"", flags=0):
        """Writes it all and commits. Returns the mapping, which is worth nothing now."""
        mapping = self.map()
        mapping[:len(data)] = data
        self.commit(step, len(data), meta, flags)
        return mapping

    def load(self, step, offset=0, length=None, rank=0, holder=abi.ANY_HOLDER):
        """Read and verified by the kernel."""
        if length is None:
            length = next(g.bytes for g in self.generations() if g.step == step) - offset
        buffer = ctypes.create_string_buffer(max(length, 1))
        self.set(abi.AREA_READ, abi.AreaRead(
            step=step, offset=offset, length=length, rank=rank, holder=holder,
            buffer=ctypes.addressof(buffer)))
        return buffer.raw[:length]

    def roll_back(self, step):
        self.set(abi.AREA_ROLL_BACK, step.to_bytes(8, "little"))

    def wait(self, step):
        # Not by Python's setsockopt(), which lets no other thread run meanwhile.
        raw.setsockopt(self, abi.AREA_WAIT, ctypes.byref(ctypes.c_uint64(step)), 8)

    def abort(self):
        self.set(abi.AREA_ABORT, b"")

    def remove(self):
        self.set(abi.AREA_REMOVE, bytes(ctypes.sizeof(abi.AreaConf)))


def several(sock, option, kind):
    size = ctypes.sizeof(kind)
    buffer = ctypes.create_string_buffer(64 * size)
    got = raw.getsockopt_at(sock, option, buffer, len(buffer))
    assert got % size == 0, got
    return [kind.from_buffer_copy(buffer, i * size) for i in range(got // size)]


def listed(host=None):
    """{name: entry} of all areas of a namespace."""
    with Socket(host, abi.PROTO_CKPT) as sock:
        return {bytes(e.conf.name).split(b"\0")[0].decode(): e
                for e in several(sock, abi.AREA_LIST, abi.AreaEntry)}


def remove(name, host=None):
    with Socket(host, abi.PROTO_CKPT) as sock:
        try:
            sock.set(abi.AREA_REMOVE, conf(name))
        except OSError as error:
            error.strerror = sock.error()
            raise


def remove_all(host=None):
    for name in listed(host):
        remove(name, host)


def in_child(function, *arguments):
    """Runs it in a forked process. Returns its exit status, or minus the signal."""
    child = os.fork()
    if not child:
        status = 99
        try:
            status = function(*arguments) or 0
        except OSError as error:
            status = error.errno
        except BaseException:  # nothing may go on as if it were the parent
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def read_byte(mapping, at=0):
    # What Python prints about the fault would only look like an accident.
    signal.signal(signal.SIGBUS, signal.SIG_DFL)
    mapping[at]


def write_byte(mapping, at=0):
    signal.signal(signal.SIGBUS, signal.SIG_DFL)
    mapping[at] = mapping[at]


def faults(mapping, at=0):
    """Does any access to it fault, as seen by a forked child?"""
    ends = {in_child(read_byte, mapping, at), in_child(write_byte, mapping, at)}
    assert ends in ({-signal.SIGBUS}, {0}), ends
    return ends == {-signal.SIGBUS}
