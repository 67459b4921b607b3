#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""ORED_POLICY and ORED_UNCOUNTED as options: what they take, and what they refuse."""
import ctypes
import errno
import time

from lib import abi, raw, tap
from lib.netns import shared
from lib.sockets import Ranks, Socket, refused

DEFAULTS = {"loss_skip": 100000, "loss_halt": 500000, "mode": abi.MODE_BOUNDED,
            "deadline": abi.DEADLINE_LOSS, "incast": abi.INCAST_ALL,
            "hadamard": abi.HADAMARD_AUTO, "loss_target": 3000, "floor": 1050000,
            "ceiling": 4000000, "warmup": 20, "bound_us": 0, "wait_ppm": 250000,
            "floor_us": 2000, "ceiling_us": 5000000}

GOOD = (
    {"loss_skip": 1}, {"loss_skip": 1000000}, {"loss_halt": 1000000}, {"min_ranks": 1},
    {"min_ranks": 2}, {"mode": abi.MODE_RELIABLE}, {"deadline": abi.DEADLINE_P95},
    {"incast": abi.INCAST_ADAPT}, {"hadamard": abi.HADAMARD_OFF}, {"loss_target": 1},
    {"loss_target": 500000},
    {"floor": 500000}, {"floor": 4000000}, {"ceiling": 100000000}, {"warmup": 5},
    {"warmup": 64}, {"bound_us": 1}, {"bound_us": 0xffffffff}, {"wait_ppm": 500000},
    {"wait_ppm": abi.WAIT_NONE}, {"floor_us": 1}, {"ceiling_us": 2000},
    {"floor_us": 5000000})

BAD = (
    ("loss_skip", {"loss_skip": 1000001}), ("loss_halt", {"loss_halt": 0xffffffff}),
    ("min_ranks", {"min_ranks": 3}), ("min_ranks", {"min_ranks": 257}),
    ("mode", {"mode": 3}), ("deadline", {"deadline": 2}), ("incast", {"incast": 2}),
    ("hadamard", {"hadamard": 4}), ("loss_target", {"loss_target": 500001}),
    ("floor", {"floor": 499999}), ("floor", {"floor": 4000001}),
    ("ceiling", {"ceiling": 100000001}), ("ceiling", {"ceiling": 1000000}),
    ("warmup", {"warmup": 4}), ("warmup", {"warmup": 65}),
    ("wait_ppm", {"wait_ppm": 500001}), ("wait_ppm", {"wait_ppm": 0xfffffffe}),
    ("floor", {"floor_us": 5000001}), ("ceiling", {"ceiling_us": 1999}),
    ("ceiling_us", {"ceiling_us": 0xffffffff}))


SHORT = [(abi.SOL_ORED, abi.OP, bytes(abi.Op(deadline_us=5000)))]


def fields(sock):
    policy = sock.get(abi.POLICY, abi.Policy)
    return {name: getattr(policy, name) for name, _ in abi.Policy._fields_}


def test_defaults():
    """Zeros stand for them, and reading gives what they stand for."""
    with shared(2) as net, Ranks(net.hosts) as group:
        first = fields(group[0])
        assert {n: first[n] for n in DEFAULTS} == DEFAULTS, first
        group[0].set(abi.POLICY, abi.Policy(warmup=7, bound_us=9))
        group[0].set(abi.POLICY, abi.Policy())
        assert fields(group[0]) == first


@tap.cases(*[(i, str(g)) for i, g in enumerate(GOOD)])
def test_accepted(number, _):
    """The field is as set, and the others are as by default."""
    with shared(2) as net, Ranks(net.hosts) as group:
        before = fields(group[0])
        group[0].set(abi.POLICY, abi.Policy(**GOOD[number]))
        assert fields(group[0]) == {**before, **GOOD[number]}
        assert fields(group[1]) == before, "another rank's has changed"
        group.allreduce(100)


@tap.cases(*[(i, str(b[1])) for i, b in enumerate(BAD)])
def test_refused(number, _):
    """With the field's name, and nothing has changed."""
    word, bad = BAD[number]
    with shared(2) as net, Ranks(net.hosts) as group:
        group[0].set(abi.POLICY, abi.Policy(warmup=9))
        before = fields(group[0])
        with refused(errno.EINVAL, group[0], word):
            group[0].set(abi.POLICY, abi.Policy(**bad))
        assert fields(group[0]) == before


def test_growth():
    """Shorter and longer structures."""
    with shared(2) as net, Ranks(net.hosts) as group:
        value = bytes(abi.Policy(loss_skip=5, ceiling_us=7000000))
        group[0].set(abi.POLICY, value[:4])
        assert fields(group[0])["loss_skip"] == 5
        assert fields(group[0])["ceiling_us"] == DEFAULTS["ceiling_us"]
        group[0].set(abi.POLICY, value + bytes(8))
        assert fields(group[0])["ceiling_us"] == 7000000
        with refused(errno.E2BIG, group[0]):
            group[0].set(abi.POLICY, value + b"\1")
        assert group[0].getsockopt(abi.SOL_ORED, abi.POLICY, 4) == value[:4]


def test_without_a_group():
    """A policy is a membership's."""
    with Socket() as sock:
        with refused(errno.ENOTCONN, sock):
            sock.set(abi.POLICY, abi.Policy())
        with refused(errno.ENOTCONN, sock):
            sock.get(abi.POLICY, abi.Policy)
        with refused(errno.ENOTCONN, sock):
            sock.getsockopt(abi.SOL_ORED, abi.UNCOUNTED, 64)


def test_uncounted():
    """Only of the op whose result was received last."""
    with shared(2) as net, Ranks(net.hosts, mode=abi.MODE_BOUNDED) as group:
        sock, buffer = group[0], (ctypes.c_uint64 * 8)()
        size = ctypes.sizeof(buffer)

        def ask(op, room=size):
            buffer[0] = op
            return raw.getsockopt_at(sock, abi.UNCOUNTED, buffer, room)
        for op in (0, 1, (1 << 64) - 1):
            with refused(errno.ENOENT, sock):
                ask(op)
        group.allreduce(3000)
        assert ask(0) == 24
        head = abi.Uncounted.from_buffer_copy(buffer)
        payload = sock.group().payload
        assert (head.op, head.chunk, head.chunks) == (0, payload, -(-12000 // payload))
        assert buffer[2] == 0
        for room in (8, 16, 23):
            with refused(errno.EMSGSIZE, sock, "24"):
                ask(0, room)
        for room in (0, 7):
            with refused(errno.EINVAL, sock):
                ask(0, room)
        group.allreduce(10)
        with refused(errno.ENOENT, sock):
            ask(0)
        assert ask(1) == 24
        # Peers that go on take the slot, but not the answer.
        for _ in range(3):
            group[1].sendmsg([bytes(40)], SHORT)
            group[1].recv(40)
        time.sleep(0.1)
        assert ask(1) == 24


tap.main(globals())
