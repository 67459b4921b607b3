#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Bad arguments, one by one: each has its errno and its sentence."""
import contextlib
import ctypes
import errno
import itertools
import mmap
import socket
import struct

from lib import abi, raw, tap
from lib.netns import shared
from lib.sockets import Ranks, Socket, family, join_value, peer, refused

LOCAL = [peer("127.0.0.1", 5000 + i) for i in range(3)]
ALONE = LOCAL[:1]
OPTIONS = [abi.OP, abi.RESULT, abi.RESULTS, abi.GROUP, abi.PEERS, abi.STATS]


def local(**fields):
    return join_value(ALONE, **{"port": 5000, **fields})


# What is refused, the field that the sentence names, and how it is made.
JOINS = (
    ("no peers", errno.EINVAL, "", lambda: b""),
    ("size 0", errno.EINVAL, "size", lambda: local(size=0)),
    ("size of half a structure", errno.EINVAL, "",
     lambda: struct.pack("=I", 52) + local()[4:52]),
    ("size above the value's length", errno.EINVAL, "size",
     lambda: local(size=1 << 20)),
    ("size above the value's length by one", errno.EINVAL, "size",
     lambda: local(size=len(local()) + 1)),
    ("unknown flag", errno.EINVAL, "flags", lambda: local(flags=4)),
    ("all flags", errno.EINVAL, "flags", lambda: local(flags=0xfffffffe)),
    ("nranks 0", errno.EINVAL, "nranks", lambda: local(nranks=0)),
    ("nranks above the limit", errno.EINVAL, "nranks",
     lambda: join_value([LOCAL[0]] * 257, port=5000)),
    ("nranks enormous", errno.EINVAL, "nranks",
     lambda: local(nranks=0xffffffff)),
    ("a peer too few", errno.EINVAL, "", lambda: local(nranks=2)),
    ("a peer too many", errno.EINVAL, "",
     lambda: join_value(LOCAL, nranks=2, port=5000)),
    ("half a peer", errno.EINVAL, "",
     lambda: join_value(LOCAL[:2], port=5000)[:-12]),
    ("rank is nranks", errno.EINVAL, "rank", lambda: local(rank=1)),
    ("rank enormous", errno.EINVAL, "rank", lambda: local(rank=0xffffffff)),
    ("depth 0", errno.EINVAL, "depth", lambda: local(depth=0)),
    ("depth above the limit", errno.EINVAL, "depth", lambda: local(depth=17)),
    ("depth enormous", errno.EINVAL, "depth",
     lambda: local(depth=0xffffffff)),
    ("bucket_max 0", errno.EINVAL, "bucket_max", lambda: local(bucket_max=0)),
    ("bucket_max no multiple of 8", errno.EINVAL, "bucket_max",
     lambda: local(bucket_max=4100)),
    ("bucket_max above the limit", errno.EMSGSIZE, "bucket_max",
     lambda: local(bucket_max=(1 << 30) + 8)),
    ("bucket_max of 4 GiB and a bit", errno.EMSGSIZE, "bucket_max",
     lambda: local(bucket_max=(1 << 32) + 8)),
    ("bucket_max negative", errno.EMSGSIZE, "bucket_max",
     lambda: local(bucket_max=(1 << 64) - 8)),
    ("payload_max below the limit", errno.EINVAL, "payload_max",
     lambda: local(payload_max=511)),
    ("payload_max 1", errno.EINVAL, "payload_max", lambda: local(payload_max=1)),
    ("peer_size 0", errno.EINVAL, "peer_size", lambda: local(peer_size=0)),
    ("peer_size 8", errno.EINVAL, "peer_size", lambda: local(peer_size=8)),
    ("peer_size enormous", errno.EINVAL, "peer_size",
     lambda: local(peer_size=0xffffffff)),
    ("uid in a join", errno.EINVAL, "uid", lambda: local(uid=1000)),
    ("key without its flag", errno.EINVAL, "key",
     lambda: local(key=b"k" * 16)),
    ("reserved 0", errno.EINVAL, "reserved",
     lambda: local(reserved=(1, 0, 0, 0))),
    ("reserved 3", errno.EINVAL, "reserved",
     lambda: local(reserved=(0, 0, 0, 1 << 63))),
    ("scope of an IPv4 peer", errno.EINVAL, "scope",
     lambda: join_value([peer("127.0.0.1", 5000, scope=1)], port=5000)),
    ("scope of a global IPv6 peer", errno.EINVAL, "scope",
     lambda: join_value([peer("::1", 5000, scope=1)], port=5000)),
    ("trailing bytes of an IPv4 peer", errno.EINVAL, "address",
     lambda: local()[:-1] + b"\1"),
)


@tap.cases(*[j[0] for j in JOINS])
def test_join(name):
    _, code, word, make = next(j for j in JOINS if j[0] == name)
    with Socket() as sock:
        with refused(code, sock, word):
            sock.join(make())
        state = sock.group()
        assert state.state == abi.STATE_NEW, state.state
        assert sock.so_error() == 0
        sock.join(local())		# and it can still join
        assert sock.group().state == abi.STATE_JOINED


def test_join_twice():
    with Socket() as sock:
        sock.join(local())
        with refused(errno.EISCONN, sock):
            sock.join(local())
        with refused(errno.EISCONN, sock):
            sock.join(local(group=2))
        assert sock.group().group == 1


# ABI growth: every settable structure.

def test_short_join():
    """A caller of an older header: what is absent counts as zero."""
    with Socket() as sock:
        short = abi.join_size - 32	# without reserved
        value = local(size=short)
        sock.join(value[:short] + value[abi.join_size:])
        sock.send(b"\0\0\x80\x3f")
        assert sock.take(4) == b"\0\0\x80\x3f"


def test_long_join():
    """A caller of a newer header: its excess must be zero."""
    with Socket() as sock:
        value = local(size=abi.join_size + 8)
        head, peers = value[:abi.join_size], value[abi.join_size:]
        with refused(errno.E2BIG, sock):
            sock.join(head + b"\0\0\0\0\0\0\0\1" + peers)
        sock.join(head + bytes(8) + peers)


def test_teardown_is_only_a_name():
    with Socket() as sock:
        with refused(errno.EINVAL, sock, "TEARDOWN"):
            sock.set(abi.TEARDOWN, local())
        with refused(errno.EINVAL, sock, "TEARDOWN"):
            sock.set(abi.TEARDOWN, join_value([], flags=1))
        with refused(errno.EINVAL, sock, "reserved"):
            sock.set(abi.TEARDOWN, join_value([], reserved=(0, 0, 1, 0)))
        with refused(errno.ENOENT, sock):
            sock.set(abi.TEARDOWN, join_value([]))


def test_long_peers():
    with Socket() as sock:
        value = join_value(ALONE, port=5000, peer_size=abi.peer_size + 8)
        with refused(errno.E2BIG, sock):
            sock.join(value + b"\1" + bytes(7))
        sock.join(value + bytes(8))


@tap.cases(0, 1, 3, 4, 8, 47, 48)
def test_short_op(length):
    """From the first byte on, what is absent is zero."""
    with Socket() as sock:
        sock.set(abi.OP, bytes(abi.Op(reduction=abi.MEAN)))
        sock.set(abi.OP, bytes(length))
        assert sock.get(abi.OP, abi.Op).reduction == abi.SUM


def test_long_op():
    with Socket() as sock:
        value = bytes(abi.Op(reduction=abi.MEAN))
        sock.set(abi.OP, value + bytes(100))
        assert sock.get(abi.OP, abi.Op).reduction == abi.MEAN
        with refused(errno.E2BIG, sock):
            sock.set(abi.OP, value + bytes(99) + b"\1")
        with refused(errno.E2BIG, sock):
            sock.set(abi.OP, value + b"\1")


OPS = (
    ("kind", errno.EINVAL, {"kind": 5}), ("kind 255", errno.EINVAL, {"kind": 255}),
    ("dtype", errno.EINVAL, {"dtype": 6}), ("reduction", errno.EINVAL, {"reduction": 4}),
    ("mode", errno.EINVAL, {"mode": 3}), ("flags", errno.EINVAL, {"flags": 32}),
    ("root", errno.EINVAL, {"root": 1}), ("slot", errno.EINVAL, {"slot": 1}),
    ("length", errno.EINVAL, {"length": 8}),
    ("deadline of a reliable op", errno.EINVAL,
     {"mode": abi.MODE_RELIABLE, "deadline_us": 1}),
    ("deadline (wait_us) of a reliable op", errno.EINVAL,
     {"mode": abi.MODE_RELIABLE, "wait_us": 1}),
    ("wait_us and none", errno.EINVAL, {"wait_us": 1, "flags": abi.OP_NO_WAIT}),
    ("reserved", errno.EINVAL, {"reserved": (abi.c_uint64 * 2)(0, 1)}),
)


@tap.cases(*[o[0] for o in OPS])
def test_op(name):
    """Both ways in: the option, and ancillary data of one send."""
    _, code, fields = next(o for o in OPS if o[0] == name)
    with Socket() as sock:
        sock.join(local())
        with refused(code, sock, name.split()[0]):
            sock.set(abi.OP, bytes(abi.Op(**fields)))
        with refused(code, sock, name.split()[0]):
            sock.sendmsg([bytes(8)], [(abi.SOL_ORED, abi.OP, bytes(abi.Op(**fields)))])
        assert bytes(sock.get(abi.OP, abi.Op)) == bytes(abi.Op())
        assert sock.group().posted == 0


@tap.cases(65537, 0x7fffffff)
def test_option_too_long(length):
    """No structure will ever be so long; the value isn't even looked at."""
    with Socket() as sock, refused(errno.E2BIG, sock, length):
        raw.setsockopt(sock, abi.OP, raw.BAD, length)


@tap.cases(2, -1, 256)
def test_results_option(value):
    with Socket() as sock, refused(errno.EINVAL, sock):
        sock.set(abi.RESULTS, value)


def test_results_length():
    with Socket() as sock:
        for length in (0, 1, 3):
            with refused(errno.EINVAL, sock):
                raw.setsockopt(sock, abi.RESULTS, bytes(8), length)
        sock.set(abi.RESULTS, 1)
        assert sock.getsockopt(abi.SOL_ORED, abi.RESULTS) == 1
        sock.set(abi.RESULTS, 0)
        assert sock.getsockopt(abi.SOL_ORED, abi.RESULTS) == 0


@tap.cases(0, 14, 31, 39, 1000, -1)
def test_unknown_option(option):
    with Socket() as sock:
        with refused(errno.ENOPROTOOPT, sock):
            sock.set(option, bytes(64))
        with refused(errno.ENOPROTOOPT, sock):
            sock.getsockopt(abi.SOL_ORED, option, 64)


@tap.cases(*itertools.product((abi.PROTO_REDUCE, abi.PROTO_CKPT), (0, 6, 17, 299, 301)))
def test_unknown_level(proto, level):
    with Socket(proto=proto) as sock:
        with refused(errno.ENOPROTOOPT):
            sock.setsockopt(level, 1, 1)
        with refused(errno.ENOPROTOOPT):
            sock.getsockopt(level, 1, 4)


@tap.cases(abi.ERROR, abi.GROUP, abi.PEERS, abi.STATS, abi.RESULT)
def test_option_that_is_only_read(option):
    with Socket() as sock, refused(errno.ENOPROTOOPT, sock):
        sock.set(option, bytes(256))


@tap.cases(abi.JOIN, abi.SETUP, abi.TEARDOWN)
def test_option_that_is_only_set(option):
    with Socket() as sock, refused(errno.ENOPROTOOPT, sock):
        sock.getsockopt(abi.SOL_ORED, option, 256)


def test_getsockopt_lengths():
    """At most the caller's length is written; the length comes back cut to it."""
    with shared(2) as net, Ranks(net.hosts) as group:
        sock = group[0]
        group.allreduce(10)
        whole = {abi.GROUP: abi.sizeof(abi.Group), abi.OP: abi.sizeof(abi.Op),
                 abi.PEERS: 2 * abi.sizeof(abi.PeerState), abi.RESULTS: 4,
                 abi.STATS: 8 * len(abi.COUNTERS),
                 abi.RESULT: abi.sizeof(abi.Result)}
        for option, size in whole.items():
            for length in (8, size - 1, size, size + 1, size + 4096):
                if option == abi.RESULTS and length == 3:
                    continue
                memory = (ctypes.c_uint8 * (length + 8))(*bytes(8), *[0xa5] * length)
                got = raw.getsockopt_at(sock, option, memory, length)
                assert got == min(length, size), f"option {option}: {got}"
                assert bytes(memory)[max(got, 8):] == b"\xa5" * (length + 8 - max(got, 8))


def test_error_lengths():
    """The sentence ends with a NUL, unless the caller's length cuts it."""
    with Socket() as sock:
        with refused(errno.EINVAL, sock):
            sock.join(local(depth=0))
        sentence = sock.error()
        value = sock.getsockopt(abi.SOL_ORED, abi.ERROR, 1000)
        assert value.rstrip(b"\0").decode() == sentence
        short = sock.getsockopt(abi.SOL_ORED, abi.ERROR, 10)
        assert short == sentence.encode()[:10]


def test_no_error_yet():
    with Socket() as sock:
        assert sock.error() == ""


def test_error_is_the_last_one():
    """Of this socket and no other; a refusal replaces the sentence before."""
    with Socket() as one, Socket() as two:
        with refused(errno.EINVAL, one, "depth"):
            one.join(local(depth=0))
        with refused(errno.EINVAL, two, "nranks"):
            two.join(local(nranks=0))
        assert "depth" in one.error()
        with refused(errno.EINVAL, one, "payload_max"):
            one.join(local(payload_max=7))


def test_bad_pointers():
    with shared(2) as net, Ranks(net.hosts) as group:
        sock = group[0]
        for option in (abi.JOIN, abi.OP, abi.RESULTS):
            if option == abi.JOIN:
                continue		# EISCONN comes first here
            with refused(errno.EFAULT):
                raw.setsockopt(sock, option, raw.BAD, 128)
        for option in OPTIONS:
            with refused(errno.EFAULT):
                raw.getsockopt_at(sock, option, raw.BAD, 4096)
        with refused(errno.EFAULT):
            raw.send(sock, raw.BAD, 64)
        assert sock.group().posted == 0, "a bucket that wasn't there was posted"
        group.post(16)
        assert sock.poll(seconds=10)
        with refused(errno.EFAULT):
            raw.recv(sock, raw.BAD, 64)
        group.check(16, 0)		# the result is still there
        group.allreduce(100)


def test_bad_pointer_in_join():
    with Socket() as sock, refused(errno.EFAULT):
        raw.setsockopt(sock, abi.JOIN, raw.BAD, 200)


def test_bad_pointer_to_a_length():
    memory = ctypes.create_string_buffer(256)
    with Socket() as sock, refused(errno.EFAULT, sock, "length"):
        raw.checked(raw.libc.getsockopt(sock.fileno(), abi.SOL_ORED, abi.GROUP, memory,
                                        raw.BAD))


def test_result_without_an_op():
    """ORED_RESULT reads the op's number: there must be room for one."""
    with Socket() as sock:
        sock.join(local())
        with refused(errno.EINVAL, sock, "op"):
            raw.getsockopt_at(sock, abi.RESULT, ctypes.create_string_buffer(8), 7)


@contextlib.contextmanager
def hole():
    """The address of a page that is no memory, right behind one that is."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + page
    raw.checked(raw.libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(page)))
    yield address
    raw.libc.mmap.restype = ctypes.c_void_p
    # Put the hole back, so that closing the mmap object unmaps what is its own.
    raw.libc.mmap(ctypes.c_void_p(address), ctypes.c_size_t(page), 3,
                  0x32, -1, ctypes.c_long(0))


def test_buffer_that_ends_in_a_hole():
    """The second half of the bucket is no memory: all or nothing."""
    with shared(2) as net, Ranks(net.hosts) as group, hole() as end:
        with refused(errno.EFAULT):
            raw.send(group[0], end - 64, 128)
        group.post(32)
        assert group[0].poll(seconds=10)
        with refused(errno.EFAULT):
            raw.recv(group[0], end - 64, 128)
        group.check(32, 0)
        group.allreduce(100)


@tap.cases(1, 8, 9, abi.peer_size + 8)
def test_peers_that_end_in_a_hole(lacks):
    """What this kernel doesn't know of the last peer, or what it knows."""
    value = join_value(ALONE, port=5000, peer_size=abi.peer_size + 8) + bytes(8)
    with Socket() as sock, hole() as end:
        there = len(value) - lacks
        ctypes.memmove(end - there, value, there)
        with refused(errno.EFAULT, sock, "can't be read"):
            raw.setsockopt(sock, abi.JOIN, end - there, len(value))
        assert sock.group().state == abi.STATE_NEW
        sock.join(value)


def test_enormous_lengths():
    memory = ctypes.create_string_buffer(64)
    with Socket() as sock:
        sock.join(local())
        # The kernel cuts what is longer to a page less than 2 GiB.
        for length in ((1 << 30) + 8, 1 << 31, 1 << 32, 1 << 63, (1 << 64) - 8):
            with refused(errno.EMSGSIZE, sock):
                raw.send(sock, memory, length)
        with refused(errno.EINVAL):
            raw.setsockopt(sock, abi.OP, bytes(64), 0xffffffff)
        with refused(errno.EINVAL):
            raw.getsockopt_at(sock, abi.GROUP, bytes(64), 0xffffffff)
        assert sock.group().posted == 0


def test_before_joining():
    with Socket() as sock:
        for call in (lambda: sock.send(bytes(8)), lambda: sock.recv(8),
                     lambda: sock.recv(8, socket.MSG_DONTWAIT)):
            with refused(errno.ENOTCONN, sock):
                call()
        assert sock.group().state == abi.STATE_NEW
        with refused(errno.ENOTCONN, sock):
            sock.getsockopt(abi.SOL_ORED, abi.PEERS, 1024)
        with refused(errno.ENOENT, sock):
            sock.result(0)
        assert sock.get(abi.GROUP, abi.Group).abi == abi.ABI_VERSION


@tap.cases(socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_RDM)
def test_socket_type(kind):
    with refused(errno.ESOCKTNOSUPPORT):
        socket.socket(family(), kind, 0)


@tap.cases(2, 17, 255)
def test_socket_protocol(proto):
    with refused(errno.EPROTONOSUPPORT):
        socket.socket(family(), socket.SOCK_SEQPACKET, proto)


def test_calls_of_other_families():
    """What makes no sense here says so and does nothing."""
    name = abi.SockaddrOred(sored_family=family())
    with Socket() as sock:
        with refused(errno.EOPNOTSUPP):
            sock.listen()
        with refused(errno.EOPNOTSUPP):
            raw.checked(raw.libc.connect(sock.fileno(), ctypes.byref(name), 24))
        with refused(errno.EOPNOTSUPP):
            raw.checked(raw.libc.accept(sock.fileno(), None, None))
        with refused(errno.ENOTCONN):
            raw.libc.mmap.restype = ctypes.c_void_p
            where = raw.libc.mmap(None, ctypes.c_size_t(4096), 1, 1, sock.fileno(),
                                  ctypes.c_long(0))
            raw.checked(-1 if where == ctypes.c_void_p(-1).value else 0)
    with refused(errno.EOPNOTSUPP):
        socket.socketpair(family(), socket.SOCK_SEQPACKET)


@tap.cases(socket.MSG_OOB, socket.MSG_ERRQUEUE)
def test_message_flags(flag):
    with Socket() as sock:
        sock.join(local())
        with refused(errno.EOPNOTSUPP, sock):
            sock.recv(8, flag)
        if flag == socket.MSG_OOB:
            with refused(errno.EOPNOTSUPP, sock):
                sock.send(bytes(8), flag)


@tap.cases(-1, 3, 1 << 30)
def test_shutdown_of_no_kind(how):
    with Socket() as sock:
        sock.join(local())
        with refused(errno.EINVAL, sock, str(how)):
            sock.shutdown(how)
        assert sock.group().state == abi.STATE_JOINED


def test_send_to_somebody():
    """A bucket goes to the group: an address is refused as on a connected socket."""
    with Socket() as sock:
        sock.join(local())
        with refused(errno.EISCONN, sock, "address"):
            raw.sendmsg(sock, bytes(8), name=bytes(abi.SockaddrOred(
                sored_family=family())))
        assert sock.group().posted == 0


@tap.cases(0, 15, 17 + 8, 1 << 40)
def test_malformed_control_message(length):
    """Shorter than its own head, or longer than what there is."""
    head = bytes(raw.ControlHead(length=length, level=abi.SOL_ORED, kind=abi.OP))
    with Socket() as sock:
        sock.join(local())
        with refused(errno.EINVAL, sock, "malformed"):
            raw.sendmsg(sock, bytes(8), control=head + bytes(8))
        assert sock.group().posted == 0
        sock.send(bytes(8))
        assert sock.take(8) == bytes(8)


def test_control_messages():
    """Unknown ancillary data is refused, and so is a malformed one."""
    op = bytes(abi.Op())
    with Socket() as sock:
        sock.join(local())
        for control in ([(abi.SOL_ORED, abi.RESULT, op)], [(abi.SOL_ORED, 99, op)],
                        [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                          struct.pack("i", sock.fileno()))]):
            with refused(errno.EINVAL, sock):
                sock.sendmsg([bytes(8)], control)
        with refused(errno.E2BIG, sock):
            sock.sendmsg([bytes(8)], [(abi.SOL_ORED, abi.OP, op + b"\1")])
        assert sock.group().posted == 0
        sock.sendmsg([bytes(8)], [(abi.SOL_ORED, abi.OP, op[:8])])
        assert sock.take(8) == bytes(8)


tap.main(globals())
