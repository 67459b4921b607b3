# SPDX-License-Identifier: GPL-2.0
"""System calls with the pointers, lengths and errnos that Python would mend."""
import ctypes
import errno
import os

from . import abi

libc = ctypes.CDLL(None, use_errno=True)
libc.recv.restype = libc.send.restype = ctypes.c_ssize_t
libc.recv.argtypes = libc.send.argtypes = [ctypes.c_int, ctypes.c_void_p,
                                           ctypes.c_size_t, ctypes.c_int]
libc.setsockopt.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int,
                            ctypes.c_void_p, ctypes.c_uint32]
libc.getsockopt.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int,
                            ctypes.c_void_p, ctypes.c_void_p]
libc.bind.argtypes = libc.connect.argtypes = [ctypes.c_int, ctypes.c_void_p,
                                              ctypes.c_uint32]
BAD = 16	# an address that is never mapped


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class Message(ctypes.Structure):
    """struct msghdr of the C library."""
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint32),
                ("vectors", ctypes.POINTER(Vector)), ("count", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t),
                ("flags", ctypes.c_int)]


class ControlHead(ctypes.Structure):
    _fields_ = [("length", ctypes.c_size_t), ("level", ctypes.c_int),
                ("kind", ctypes.c_int)]


libc.recvmsg.restype = libc.sendmsg.restype = ctypes.c_ssize_t
libc.recvmsg.argtypes = libc.sendmsg.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]


def checked(value):
    """The value, or OSError; EINTR is raised too and never retried."""
    if value < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return value


def recv(sock, pointer, length, flags=0):
    return checked(libc.recv(sock.fileno(), pointer, length, flags))


def send(sock, pointer, length, flags=0):
    return checked(libc.send(sock.fileno(), pointer, length, flags))


def bind(sock, structure, length=None):
    length = ctypes.sizeof(structure) if length is None else length
    checked(libc.bind(sock.fileno(), ctypes.byref(structure), length))


def setsockopt(sock, option, pointer, length):
    checked(libc.setsockopt(sock.fileno(), abi.SOL_ORED, option, pointer, length))


def getsockopt_at(sock, option, pointer, length):
    """Returns the length that the kernel left."""
    size = ctypes.c_uint32(length)
    checked(libc.getsockopt(sock.fileno(), abi.SOL_ORED, option, pointer,
                            ctypes.byref(size)))
    return size.value


def getsockopt(sock, option, structure):
    """Fills the structure, whose content the kernel may read first."""
    size = ctypes.sizeof(structure)
    got = getsockopt_at(sock, option, ctypes.byref(structure), size)
    assert got == size, f"getsockopt left {got} of {size} bytes"
    return structure


def interrupted(function, *arguments):
    """True if the call ended with EINTR."""
    try:
        function(*arguments)
    except InterruptedError as error:
        return error.errno == errno.EINTR
    return False


def control_messages(data):
    """(level, type, value) of each ancillary message."""
    head, found = ctypes.sizeof(ControlHead), []
    while len(data) >= head:
        this = ControlHead.from_buffer_copy(data)
        assert head <= this.length <= len(data), "malformed ancillary data"
        found.append((this.level, this.kind, data[head:this.length]))
        data = data[-(-this.length // 8) * 8:]
    return found


def sendmsg(sock, data, control=b"", name=b""):
    """Ancillary data and an address as they are, malformed ones included."""
    bucket = ctypes.create_string_buffer(data, len(data))
    ancillary = ctypes.create_string_buffer(control, len(control)) if control else None
    to = ctypes.create_string_buffer(name, len(name)) if name else None
    message = Message(
        name=to and ctypes.addressof(to), namelen=len(name), count=1,
        vectors=ctypes.pointer(Vector(ctypes.addressof(bucket), len(data))),
        control=ancillary and ctypes.addressof(ancillary), controllen=len(control))
    return checked(libc.sendmsg(sock.fileno(), ctypes.byref(message), 0))


def recvmsg(sock, lengths, flags=0, control=0):
    """The bucket, ancillary messages and flags. lengths: of the buffers."""
    lengths = [lengths] if isinstance(lengths, int) else lengths
    buffers = [ctypes.create_string_buffer(max(n, 1)) for n in lengths]
    vectors = (Vector * len(lengths))(*[
        Vector(ctypes.addressof(b), n) for b, n in zip(buffers, lengths)])
    ancillary = ctypes.create_string_buffer(max(control, 1))
    name = ctypes.create_string_buffer(b"\xa5" * 128)
    message = Message(name=ctypes.addressof(name), namelen=128, vectors=vectors,
                      count=len(lengths), control=ctypes.addressof(ancillary),
                      controllen=control)
    got = checked(libc.recvmsg(sock.fileno(), ctypes.byref(message), flags))
    assert message.namelen == 0, "a result has no sender's address"
    whole = b"".join(b.raw[:n] for b, n in zip(buffers, lengths))
    return (whole[:got], control_messages(ancillary.raw[:message.controllen]),
            message.flags)
