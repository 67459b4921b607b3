# SPDX-License-Identifier: GPL-2.0
"""Sockets of the family, straight over the system calls."""
import array
import contextlib
import errno
import fcntl
import ipaddress
import itertools
import os
import select
import socket
import struct
import termios

from . import abi, module, raw
from .sums import contribution, difference, expected

WAIT = 60	# seconds that any wait of a helper may take
epochs = itertools.count(1)	# each group of Ranks is a run of its own


def family():
    with open(module.PARAMETER) as file:
        return int(file.read())


class Socket(socket.socket):
    """A socket of the family; made in host's namespace, if one is given."""

    def __init__(self, host=None, proto=abi.PROTO_REDUCE, flags=0, number=None):
        with host or contextlib.nullcontext():
            super().__init__(number or family(), socket.SOCK_SEQPACKET | flags,
                             proto)
        self.limit(WAIT)

    def limit(self, seconds=None, receive=None, send=None):
        """SO_RCVTIMEO and SO_SNDTIMEO; 0 is for ever."""
        for option, value in ((socket.SO_RCVTIMEO, receive),
                              (socket.SO_SNDTIMEO, send)):
            value = seconds if value is None else value
            if value is not None:
                self.setsockopt(socket.SOL_SOCKET, option, struct.pack(
                    "ll", int(value), int(value % 1 * 1e6)))

    def nonblocking(self, on=True):
        """O_NONBLOCK without what Python does on top of it."""
        flags = fcntl.fcntl(self, fcntl.F_GETFL) & ~os.O_NONBLOCK
        fcntl.fcntl(self, fcntl.F_SETFL, flags | (os.O_NONBLOCK if on else 0))

    def set(self, option, value):
        self.setsockopt(abi.SOL_ORED, option,
                        value if isinstance(value, (bytes, int)) else bytes(value))

    def get(self, option, kind, count=None):
        """One structure, or a list of count."""
        if count is None:
            return raw.getsockopt(self, option, kind())
        return list(raw.getsockopt(self, option, (kind * count)()))

    def join(self, join):
        self.set(abi.JOIN, join)

    def error(self):
        """The sentence of the last error."""
        value = self.getsockopt(abi.SOL_ORED, abi.ERROR, abi.ERROR_MAX)
        return value.split(b"\0")[0].decode()

    def so_error(self):
        return self.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def read(self, length, flags=0, control=0):
        """recvmsg(), which Python has only for families that it knows."""
        return raw.recvmsg(self, length, flags, control)

    def group(self):
        return self.get(abi.GROUP, abi.Group)

    def peers(self):
        return self.get(abi.PEERS, abi.PeerState, self.group().nranks)

    def stats(self):
        size = len(abi.COUNTERS) * 8
        value = self.getsockopt(abi.SOL_ORED, abi.STATS, size)
        return dict(zip(abi.COUNTERS, struct.unpack(f"{len(value) // 8}Q", value)))

    def result(self, number):
        """ORED_RESULT reads the op number that it is asked for."""
        return raw.getsockopt(self, abi.RESULT, abi.Result(op=number))

    def poll(self, events=select.POLLIN, seconds=0):
        """Events that are true within seconds, asked-for ones and errors."""
        poll = select.poll()
        poll.register(self, events)
        ready = poll.poll(seconds * 1000)
        return ready[0][1] if ready else 0

    def ioctl_int(self, request):
        value = array.array("i", [-1])
        fcntl.ioctl(self, request, value)
        return value[0]

    def inq(self):
        return self.ioctl_int(termios.FIONREAD)

    def outq(self):
        return self.ioctl_int(termios.TIOCOUTQ)

    def take(self, length, flags=0):
        """recv() of a bucket into a buffer with canaries around it."""
        guard = b"\xa5" * 64
        memory = bytearray(guard + b"\x5a" * length + guard)
        with memoryview(memory) as view:
            got = self.recv_into(view[64:64 + length], length, flags)
        assert memory[:64] == guard and memory[-64:] == guard, "canary overwritten"
        tail = memory[64 + got:64 + length]
        assert tail == b"\x5a" * (length - got), "written beyond the bucket"
        return bytes(memory[64:64 + got])


def peer(address, port=0, scope=0):
    """struct ored_peer of an address in text."""
    parsed = ipaddress.ip_address(address)
    kind = socket.AF_INET if parsed.version == 4 else socket.AF_INET6
    return abi.Peer(family=kind, port=port, scope_id=scope,
                    addr=(abi.c_uint8 * 16)(*parsed.packed))


def join_value(peers, **fields):
    """The value of ORED_JOIN or ORED_SETUP; fields replace the defaults."""
    join = abi.Join(size=abi.join_size, group=1, nranks=len(peers), depth=1,
                    epoch=1, bucket_max=1 << 16, timeout_ms=20000,
                    peer_size=abi.peer_size)
    for name, value in fields.items():
        if name == "key":
            value = (abi.c_uint8 * 16)(*value)
        elif name == "reserved":
            value = (abi.c_uint64 * 4)(*value)
        setattr(join, name, value)
    return bytes(join) + b"".join(bytes(p) for p in peers)


def start_join(sock, value):
    """Begins to join without waiting."""
    sock.nonblocking()
    try:
        sock.join(value)
    except BlockingIOError as error:
        assert error.errno == errno.EINPROGRESS, error
    finally:
        sock.nonblocking(False)


def finish_join(sock, seconds=WAIT):
    """Waits for what start_join() began; raises what joining failed with."""
    assert sock.poll(select.POLLOUT, seconds), "joining has no end"
    error = sock.so_error()
    if error:
        raise OSError(error, sock.error())


def reliable(**fields):
    """An ORED_OP whose loss is repaired until nothing is missing."""
    return bytes(abi.Op(mode=abi.MODE_RELIABLE, **fields))


class Ranks(list):
    """Sockets of all ranks of a group, joined, in one process.

    places are Hosts (or None for this namespace), one for each rank. Ops are
    reliable unless another mode is given.
    """

    def __init__(self, places, peers=None, each=None, mode=abi.MODE_RELIABLE,
                 **fields):
        super().__init__()
        peers = peers or [peer(p.address if p else "127.0.0.1",
                               0 if p else 5000 + i)
                          for i, p in enumerate(places)]
        fields.setdefault("epoch", next(epochs))
        self.peers, self.fields, self.ops = peers, fields, 0
        try:
            for rank, place in enumerate(places):
                own = {"port": peers[rank].port, **fields,
                       **(each(rank) if each else {})}
                self.append(Socket(place))
                start_join(self[-1], join_value(peers, rank=rank, **own))
            for sock in self:
                finish_join(sock)
                sock.set(abi.OP, abi.Op(mode=mode))
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for sock in self:
            sock.close()

    def post(self, count, op=None):
        """Every rank sends its op-th bucket (default: the next) of count floats."""
        op = self.ops if op is None else op
        self.ops = op + 1
        for rank, sock in enumerate(self):
            sent = sock.send(contribution(rank, count, op))
            assert sent == count * 4, f"send returned {sent}"
        return op

    def check(self, count, op, mean=False):
        """Every rank receives that op's result, and it is right."""
        want = expected(len(self), count, op, mean)
        for rank, sock in enumerate(self):
            wrong = difference(sock.take(count * 4), want)
            assert not wrong, f"rank {rank}, op {op}, {count} elements: {wrong}"

    def allreduce(self, count, mean=False):
        self.check(count, self.post(count), mean)

    def total(self, counter):
        return sum(sock.stats()[counter] for sock in self)


@contextlib.contextmanager
def refused(code, sock=None, words=()):
    """The block raises OSError(code), and the socket has a sentence about it."""
    words = [words] if isinstance(words, (str, int)) else words
    try:
        yield
    except OSError as error:
        assert error.errno == code, (
            f"{errno.errorcode.get(error.errno)} instead of {errno.errorcode[code]}"
            f" ({sock.error() if sock and sock.fileno() >= 0 else ''})")
        if sock is None:
            return
        sentence = sock.error()
        assert len(sentence) > 8, f"no sentence: {sentence!r}"
        for word in words:
            assert str(word).lower() in sentence.lower(), (
                f"no {word!r} in the sentence {sentence!r}")
        return
    raise AssertionError(f"accepted instead of {errno.errorcode[code]}")
