#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: kernels=debug virtual-time
"""Faults that the module itself makes: packets lost, doubled, damaged or late.

Unlike a network's faults these come behind the last checksum, on the loopback
too. Lost, doubled and late ones never show in a result; damaged ones may, since
what passes the checksum and carries the session's number is believed.
"""
import contextlib
import errno
import socket
import time

from lib import abi, module, tap
from lib.netns import Namespace, live
from lib.sockets import Ranks, Socket, join_value, peer, start_join

PARAMETERS = "/sys/module/ored/parameters/inject_"
COUNT = 4000
PAYLOAD = 1024
# How an op that was misled may end: as a failed one, or not within its limit.
HELD_MOST = 1024	# as the module has it
HOUR_US = 3600 * 10 ** 6
MISLED = errno.EPROTO, errno.ECONNRESET, errno.EAGAIN


def parameter(name, value=None):
    """Its value, before it is set if there is a new one."""
    with open(PARAMETERS + name, "r+") as file:
        before = file.read().strip()
        if value is not None:
            file.write(str(value))
    return before


@contextlib.contextmanager
def inject(**values):
    """inject(drop=10): of 10 packets that come one is dropped."""
    module.modprobe()
    before = {name: parameter(name) for name in values}
    try:
        for name, value in values.items():
            parameter(name, value)
        yield
    finally:
        for name, value in before.items():
            if module.loaded():
                parameter(name, value)


def group_of(ranks, **fields):
    return Ranks([None] * ranks, payload_max=PAYLOAD, **fields)


def run(group, ops=8):
    for count in (1, 100, COUNT):
        for _ in range(ops):
            group.allreduce(count)
    numbers = [group.post(COUNT) for _ in range(2)]
    for number in numbers:
        group.check(COUNT, number)


@tap.cases(20, 3)
def test_drop(one_in):
    with inject(drop=one_in), group_of(3, depth=2) as group:
        run(group)
        assert group.total("resent") > 0, "nothing was lost"


@tap.cases(3, 1)
def test_duplicate(one_in):
    """1: every packet comes twice, those of joining and leaving too."""
    with inject(duplicate=one_in), group_of(3, depth=2) as group:
        run(group)
        assert group.total("duplicate") > 0, "nothing was doubled"


def test_drop_and_duplicate():
    with inject(drop=5, duplicate=5), group_of(5, depth=2) as group:
        run(group)
        assert group.total("duplicate") > 0 and group.total("resent") > 0


def test_none():
    """The three above find what they look for, and not noise."""
    with group_of(3, depth=2) as group:
        run(group)
        assert group.total("duplicate") == group.total("resent") == 0


def elapsed_us(group, count=COUNT):
    """How long the slowest rank's op takes: in virtual time all by waiting."""
    op = group.post(count)
    group.check(count, op)
    return max(sock.result(op).elapsed_ns for sock in group) / 1000


@tap.cases(1, 3)
def test_delay(one_in):
    """Packets come late and in another order; nothing else becomes of them."""
    with group_of(3, depth=2) as group:
        assert elapsed_us(group) < 100, "an op takes time by itself"
        with inject(delay=one_in, delay_us=3000):
            took = [elapsed_us(group) for _ in range(20)]
            run(group)
        tap.note(f"{min(took):.0f} to {max(took):.0f} us, "
                 f"spurious {group.total('duplicate')} of {group.total('resent')} resent")
        # Half a dozen packets in a row wait for 1.5 ms on average.
        assert max(took) > 1000, "nothing was late"
        # Some ACK or chunk is always late by no more than that.
        assert max(took) < 100000, "something was later than it may be"
        # The first op may still have to do with what was slow before.
        assert min(elapsed_us(group) for _ in range(10)) < 3000, (
            "what was held came after the delays ended")


def test_delay_of_nothing():
    """No time to wait is no delay, and no division by zero."""
    with inject(delay=1, delay_us=0), group_of(3) as group:
        assert elapsed_us(group) < 100
        assert group.total("resent") == 0


def test_delay_and_loss():
    """All at once, joining and leaving included."""
    with inject(delay=2, delay_us=5000, drop=20, duplicate=10), group_of(4, depth=2) as group:
        run(group)
        assert group.total("duplicate") > 0 and group.total("resent") > 0


def hold_hellos(port):
    """Joins that come to nothing: each HELLO is held. Return: the sockets."""
    peers = [peer("127.0.0.1", port + i) for i in range(2)]
    pair = [Socket(), Socket()]
    for rank, sock in enumerate(pair):
        start_join(sock, join_value(peers, rank=rank, port=port + rank, timeout_ms=300))
    for sock in pair:
        sock.poll(0, 5)
        assert sock.so_error() == errno.ETIMEDOUT
    return pair


def test_held_when_the_namespace_ends():
    """What it holds for an hour goes with it, at once."""
    before = live()
    host = Namespace()
    with inject(delay=1, delay_us=HOUR_US):
        with host:
            for sock in hold_hellos(5000):
                sock.close()
        host.close()
        tap.wait_for(lambda: live() <= before, 20, "the namespace to end")


def test_held_when_the_module_goes():
    """It is unloaded at once, and nothing fires afterwards."""
    with inject(delay=1, delay_us=2 * 10 ** 6):
        for sock in hold_hellos(5100):
            sock.close()
        tap.check_module_unloads()
        time.sleep(5)
    module.load()
    with group_of(3) as group:
        group.allreduce(COUNT)
        assert group.total("resent") == 0


def test_freed_when_the_module_goes():
    """A membership that has left all lists and isn't freed yet is waited for."""
    with inject(free_ms=500):
        group_of(1).close()
        time.sleep(0.2)
        begin = time.monotonic()
        module.unload()
        took = time.monotonic() - begin
        assert 0.2 < took < 2, f"unloaded after {took} s"
        time.sleep(1)
    module.load()


def test_more_than_can_be_held():
    """The queue is bounded: what comes beyond it isn't late."""
    flood = 3 * HELD_MOST
    with group_of(3) as group, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        before = group[0].stats()["ns_short"]
        with inject(delay=1, delay_us=HOUR_US):
            for _ in range(flood):
                sender.sendto(b"x", ("127.0.0.1", 5000))
            short = group[0].stats()["ns_short"] - before
            assert short == flood - HELD_MOST, short
            assert elapsed_us(group) < 100, "the queue has no end"
    tap.check_module_unloads()
    module.load()


@tap.cases("Y", "N")
def test_no_fpu(value):
    """Sums are the same bits without it; it can be said at any time."""
    with group_of(3, depth=2) as group, inject(no_fpu=value):
        assert parameter("no_fpu") == value
        group.allreduce(COUNT)
        for sock in group:
            sock.set(abi.OP, abi.Op(reduction=abi.MEAN))
        group.allreduce(COUNT, mean=True)
    assert parameter("no_fpu") == "N"


def misled(call, *arguments):
    """1 if the call ends as one that was misled may, else 0."""
    try:
        call(*arguments)
    except OSError as error:
        assert error.errno in MISLED, error
        return 1
    return 0


@tap.cases(50, 5, 1)
def test_corrupt(one_in):
    """Whatever becomes of the ops, each call ends and nothing is left behind."""
    failures = 0
    for _ in range(3):
        # Joining is not what is tested: without it there are no ops.
        with group_of(3, depth=2) as group, inject(corrupt=one_in):
            for sock in group:
                sock.limit(2)
            for _ in range(6):
                for sock in group:
                    failures += misled(sock.send, bytes(COUNT * 4))
                for sock in group:
                    failures += misled(sock.take, COUNT * 4)
            names = ("bad_source", "bad_chunk", "bad_control", "mismatch", "ns_version",
                     "ns_type", "ns_group")
            noticed = {name: group.total(name) for name in names}
        assert any(noticed.values()), "nothing was damaged"
        tap.note(f"{failures} calls failed, {noticed}")
    with group_of(3, depth=2) as group:
        run(group)


@tap.cases(5, 1)
def test_corrupt_joining(one_in):
    """It ends in its time, joined or not."""
    joined = 0
    with inject(corrupt=one_in):
        for _ in range(10):
            try:
                group_of(3, timeout_ms=500).close()
                joined += 1
            except OSError as error:
                assert error.errno in (errno.ETIMEDOUT, errno.EPROTO, errno.EMSGSIZE), error
    tap.note(f"{joined} of 10 groups joined")
    with group_of(3, depth=2) as group:
        run(group)


tap.main(globals())
