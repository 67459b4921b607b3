# SPDX-License-Identifier: GPL-2.0
"""Mapped slots of sockets, as numpy arrays."""
import ctypes
import errno
import mmap
import os

import numpy

from . import abi, raw
from .sockets import Ranks

JOIN = {"flags": abi.JOIN_SLOTS}


class Slots:
    """All slots of a socket, mapped."""

    def __init__(self, sock, prot=mmap.PROT_READ | mmap.PROT_WRITE):
        group = sock.group()
        self.count, self.stride, self.sock = group.slots, group.slot_stride, sock
        self.map = mmap.mmap(sock.fileno(), self.count * self.stride, mmap.MAP_SHARED, prot)

    def array(self, index, count, dtype="f4"):
        return numpy.frombuffer(self.map, dtype, count, index * self.stride)

    def bytes(self, index, length, start=0):
        at = index * self.stride + start
        return self.map[at:at + length]

    def write(self, index, data, start=0):
        at = index * self.stride + start
        self.map[at:at + len(data)] = data

    def post(self, index, length, **fields):
        op = abi.Op(slot=index, length=length, **fields)
        op.flags |= abi.OP_SLOT
        sent = self.sock.sendmsg([], [(abi.SOL_ORED, abi.OP, bytes(op))])
        assert sent == 0, sent

    def wait(self):
        """recv() of a result that stays where it is; its length. Python does nothing
        at all for a buffer without room."""
        return self.sock.recv_into(bytearray(1))


class Group(Ranks):
    """Ranks with their slots in .slots"""

    def __init__(self, places, **fields):
        super().__init__(places, **{**JOIN, **fields})
        self.slots = [Slots(sock) for sock in self]

    def close(self):
        for slots in getattr(self, "slots", []):
            slots.map.close()
        super().close()


def map_raw(sock, length, prot, flags, offset=0):
    """mmap() itself: its address, or OSError"""
    raw.libc.mmap.restype = ctypes.c_void_p
    where = raw.libc.mmap(None, ctypes.c_size_t(length), prot, flags, sock.fileno(),
                          ctypes.c_long(offset))
    if where == ctypes.c_void_p(-1).value:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return where


def unmap_raw(where, length):
    raw.checked(raw.libc.munmap(ctypes.c_void_p(where), ctypes.c_size_t(length)))


def protect(where, length, prot):
    """mprotect(): 0 or its errno"""
    if raw.libc.mprotect(ctypes.c_void_p(where), ctypes.c_size_t(length), prot):
        return ctypes.get_errno() or errno.EINVAL
    return 0
