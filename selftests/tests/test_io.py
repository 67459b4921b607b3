#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""send and recv keep to the flags, time-outs and signals of any socket."""
import contextlib
import ctypes
import errno
import os
import select
import signal
import socket
import struct
import threading
import time

from lib import abi, raw, tap
from lib.netns import Network, shared
from lib.signals import with_signal
from lib.sockets import Ranks, Socket, refused
from lib.sums import contribution, difference, expected

COUNT = 3000


@contextlib.contextmanager
def pair(**fields):
    """A group of two."""
    with shared(2) as net, Ranks(net.hosts, **fields) as group:
        yield group


def lasts(seconds, function, *arguments):
    """The call fails with EAGAIN after that time and not before."""
    begin = time.monotonic()
    with refused(errno.EAGAIN):
        function(*arguments)
    took = time.monotonic() - begin
    assert seconds * 0.9 <= took <= seconds + 0.5, f"{took:.3f} s"


def test_dontwait():
    with pair() as group:
        lasts(0, group[0].recv, 8, socket.MSG_DONTWAIT)
        group[0].send(contribution(0, COUNT), socket.MSG_DONTWAIT)
        lasts(0, group[0].send, contribution(0, COUNT), socket.MSG_DONTWAIT)


def test_nonblocking():
    with pair() as group:
        group[0].nonblocking()
        lasts(0, group[0].recv, 8)
        group[0].send(contribution(0, COUNT))
        lasts(0, group[0].send, contribution(0, COUNT))
        group[0].nonblocking(False)
        group[1].send(contribution(1, COUNT))
        group.check(COUNT, 0)


@tap.cases(0.05, 1.5)
def test_receive_timeout(seconds):
    with pair() as group:
        group[0].limit(receive=seconds)
        lasts(seconds, group[0].recv, 8)
        group[0].send(contribution(0, COUNT))
        lasts(seconds, group[0].recv, COUNT * 4)
        group[1].send(contribution(1, COUNT))
        group.check(COUNT, 0)		# the time-outs lost nothing


@tap.cases(0.05, 1.5)
def test_send_timeout(seconds):
    with pair() as group:
        group[0].limit(send=seconds)
        group[0].send(contribution(0, COUNT))
        lasts(seconds, group[0].send, contribution(0, COUNT, 1))
        group[1].send(contribution(1, COUNT))
        group.ops = 1
        group.check(COUNT, 0)
        group.allreduce(COUNT)


def test_signal_while_receiving():
    """Without a time-out, since with one the kernel never restarts a call."""
    memory = ctypes.create_string_buffer(COUNT * 4)
    with pair() as group:
        group[0].limit(0)
        with_signal(raw.recv, group[0], memory, COUNT * 4)
        group.allreduce(COUNT)


def test_signal_while_sending():
    memory = ctypes.create_string_buffer(COUNT * 4)
    with pair() as group:
        group[0].limit(0)
        group.post(COUNT)
        assert group[0].poll(seconds=10)
        with_signal(raw.send, group[0], memory, COUNT * 4)
        group.check(COUNT, 0)
        group.allreduce(COUNT)


def test_restarted_system_call():
    """With SA_RESTART a receive goes on after the handler."""
    with pair() as group:
        group[0].limit(0)
        before = signal.signal(signal.SIGUSR1, lambda *_: None)
        signal.siginterrupt(signal.SIGUSR1, False)
        threading.Timer(0.2, signal.pthread_kill,
                        (threading.get_ident(), signal.SIGUSR1)).start()
        threading.Timer(0.6, group.post, (COUNT,)).start()
        memory = ctypes.create_string_buffer(COUNT * 4)
        got = raw.recv(group[0], memory, COUNT * 4)
        signal.signal(signal.SIGUSR1, before)
        assert memory.raw[:got] == expected(2, COUNT)


def test_short_buffer():
    """EMSGSIZE, nothing written, and the result stays for a larger buffer."""
    with pair() as group:
        group.post(COUNT)
        for length in (0, 1, 4, COUNT * 4 - 4, COUNT * 4 - 1):
            memory = ctypes.create_string_buffer(b"\x5a" * (COUNT * 4))
            with refused(errno.EMSGSIZE, group[0]):
                raw.recv(group[0], memory, length)
            assert memory.raw[:-1] == b"\x5a" * (COUNT * 4)
        group.check(COUNT, 0)


def test_large_buffer():
    with pair() as group:
        group.post(COUNT)
        data = group[0].take(COUNT * 4 + 1000)
        assert not difference(data, expected(2, COUNT))
        assert group[1].take(1 << 20) == data


def test_peek():
    """MSG_PEEK leaves the result; with MSG_TRUNC a short buffer tells its length."""
    with pair() as group:
        group.post(COUNT)
        sock = group[0]
        assert sock.poll(seconds=10)
        for length in (0, 1, 64):
            memory = ctypes.create_string_buffer(max(length, 1))
            assert raw.recv(sock, memory, length,
                            socket.MSG_PEEK | socket.MSG_TRUNC) == COUNT * 4
        for _ in range(2):
            data = sock.take(COUNT * 4, socket.MSG_PEEK)
            assert not difference(data, expected(2, COUNT))
        data, _, flags = sock.read(8, socket.MSG_PEEK)
        assert data == expected(2, COUNT)[:8] and flags & socket.MSG_TRUNC
        group[1].take(COUNT * 4)
        with refused(errno.EAGAIN):
            group[1].recv(8, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        assert group[0].group().received == 0
        assert not difference(sock.take(COUNT * 4), expected(2, COUNT))


def test_truncated_flag():
    """MSG_TRUNC alone never takes a result apart."""
    with pair() as group:
        group.post(COUNT)
        with refused(errno.EMSGSIZE):
            group[0].recv(8, socket.MSG_TRUNC)
        group.check(COUNT, 0)


def test_wait_all():
    """MSG_WAITALL on an exact buffer is one result, not two."""
    with pair(depth=2) as group:
        group.post(COUNT)
        group.post(COUNT)
        assert not difference(group[0].take(COUNT * 4, socket.MSG_WAITALL),
                              expected(2, COUNT, 0))
        assert not difference(group[0].take(COUNT * 4, socket.MSG_WAITALL),
                              expected(2, COUNT, 1))


def test_vectors():
    """Buckets in pieces of any length and alignment, both ways."""
    with pair() as group:
        whole = contribution(0, COUNT)
        pieces = [whole[:1], whole[1:7], b"", whole[7:5000], whole[5000:]]
        assert group[0].sendmsg(pieces) == COUNT * 4
        group[1].send(contribution(1, COUNT))
        want = expected(2, COUNT)
        data, control, flags = group[0].read([3, 0, 6001, COUNT * 4])
        assert data == want and not control
        assert not flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC)
        assert group[1].take(COUNT * 4) == want


def test_unaligned_buffers():
    with pair() as group:
        memory = ctypes.create_string_buffer(COUNT * 4 + 16)
        base = ctypes.addressof(memory)
        for offset in (1, 2, 3, 7):
            op = group.ops
            ctypes.memmove(base + offset, contribution(0, COUNT, op), COUNT * 4)
            raw.send(group[0], base + offset, COUNT * 4)
            group[1].send(contribution(1, COUNT, op))
            group.ops += 1
            got = raw.recv(group[0], base + offset, COUNT * 4)
            assert ctypes.string_at(base + offset, got) == expected(2, COUNT, op)
            group[1].take(COUNT * 4)


def test_sent_bytes_are_the_callers_again():
    """After send() the buffer may be overwritten: resends come from a copy."""
    with Network(2, netem="delay 200us loss 20%", offloads=False) as net, \
            Ranks(net.hosts) as group:
        memory = bytearray(contribution(0, COUNT))
        group[0].send(memory)
        memory[:] = b"\xff" * len(memory)
        group[1].send(contribution(1, COUNT))
        group.check(COUNT, 0)


def test_read_and_write():
    """The plain system calls do too."""
    with pair() as group:
        os.write(group[0].fileno(), contribution(0, COUNT))
        os.write(group[1].fileno(), contribution(1, COUNT))
        assert os.read(group[0].fileno(), 1 << 16) == expected(2, COUNT)
        assert os.readv(group[1].fileno(), [bytearray(COUNT * 4)]) == COUNT * 4


def test_bytes_waiting():
    """SIOCINQ is the next result's length; SIOCOUTQ what is posted but unfinished."""
    with pair(depth=2) as group:
        sock = group[0]
        assert (sock.inq(), sock.outq()) == (0, 0)
        sock.send(contribution(0, COUNT))
        assert (sock.inq(), sock.outq()) == (0, COUNT * 4)
        sock.send(contribution(0, 100, 1))
        assert (sock.inq(), sock.outq()) == (0, COUNT * 4 + 400)
        group[1].send(contribution(1, COUNT))
        group[1].send(contribution(1, 100, 1))
        group.check(COUNT, 0)
        assert sock.poll(seconds=10)
        assert (sock.inq(), sock.outq()) == (400, 0)
        group.check(100, 1)
        assert (sock.inq(), sock.outq()) == (0, 0)


def test_unknown_ioctl():
    with pair() as group, refused(errno.ENOTTY):
        group[0].ioctl_int(0x54ff)


def test_shutdown_write():
    """No more sends; what is in flight still comes, then end of file."""
    with pair(depth=2) as group:
        group.post(COUNT)
        group[0].shutdown(socket.SHUT_WR)
        with refused(errno.EPIPE):
            group[0].send(contribution(0, COUNT), socket.MSG_NOSIGNAL)
        group.check(COUNT, 0)
        assert group[0].recv(16) == b""
        assert group[0].recv(16) == b""
        assert group[0].poll(select.POLLIN) & select.POLLIN


def test_sigpipe():
    """EPIPE comes without a signal, as from other SOCK_SEQPACKET sockets."""
    seen = []
    before = signal.signal(signal.SIGPIPE, lambda *_: seen.append(1))
    with pair() as group:
        group[0].shutdown(socket.SHUT_WR)
        for flags in (0, socket.MSG_NOSIGNAL):
            with refused(errno.EPIPE):
                group[0].send(bytes(8), flags)
        assert not seen
    signal.signal(signal.SIGPIPE, before)


def test_shutdown_both():
    """Everybody who waits on the socket goes home."""
    with pair() as group:
        ends = []
        waiter = threading.Thread(target=lambda: ends.append(group[0].recv(COUNT * 4)))
        waiter.start()
        time.sleep(0.3)
        group[0].shutdown(socket.SHUT_RDWR)
        waiter.join(10)
        assert ends == [b""], ends
        assert group[0].group().state == abi.STATE_LEFT
        assert group[0].poll(select.POLLIN) & select.POLLHUP
        with refused(errno.EPIPE):
            group[0].send(contribution(0, COUNT), socket.MSG_NOSIGNAL)


def test_shutdown_of_a_new_socket():
    with Socket() as sock, refused(errno.ENOTCONN):
        sock.shutdown(socket.SHUT_RDWR)


def test_shutdown_wakes_send():
    with pair() as group:
        group.post(COUNT)
        ends = []

        def send():
            try:
                group[0].send(contribution(0, COUNT, 1), socket.MSG_NOSIGNAL)
            except OSError as error:
                ends.append(error.errno)
        thread = threading.Thread(target=send)
        thread.start()
        time.sleep(0.3)
        group[0].shutdown(socket.SHUT_RDWR)
        thread.join(10)
        assert ends == [errno.EPIPE], ends


def test_socket_options():
    """SO_TYPE, SO_PROTOCOL and SO_DOMAIN say what the socket is."""
    with Socket() as sock:
        def get(name):
            return sock.getsockopt(socket.SOL_SOCKET, name)
        assert get(socket.SO_TYPE) == socket.SOCK_SEQPACKET
        assert get(socket.SO_PROTOCOL) == abi.PROTO_REDUCE
        assert get(socket.SO_DOMAIN) == abi.FAMILY_DEFAULT
        assert get(socket.SO_ERROR) == 0
        assert get(socket.SO_ACCEPTCONN) == 0
        wait = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16)
        assert struct.unpack("ll", wait) == (60, 0)


def test_names():
    """getsockname tells group, rank and epoch; there is no one peer."""
    with pair(group=77, epoch=5) as group:
        name = abi.SockaddrOred()
        length = ctypes.c_uint32(ctypes.sizeof(name))
        raw.checked(raw.libc.getsockname(group[1].fileno(), ctypes.byref(name),
                                         ctypes.byref(length)))
        assert length.value == ctypes.sizeof(name)
        assert name.sored_family == abi.FAMILY_DEFAULT
        assert (name.sored_group, name.sored_rank, name.sored_epoch) == (77, 1, 5)
        with refused(errno.ENOTCONN):
            raw.checked(raw.libc.getpeername(group[1].fileno(), ctypes.byref(name),
                                             ctypes.byref(length)))


tap.main(globals())
