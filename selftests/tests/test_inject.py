#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: kernels=debug virtual-time
"""Packets that the module itself loses, doubles or damages as they come in.

Unlike a network's faults these come behind the last checksum, on the loopback
too. Lost and doubled ones never show in a result; damaged ones may, since what
passes the checksum and carries the session's number is believed.
"""
import contextlib
import errno

from lib import module, tap
from lib.sockets import Ranks

PARAMETERS = "/sys/module/ored/parameters/inject_"
COUNT = 4000
PAYLOAD = 1024
# How an op that was misled may end: as a failed one, or not within its limit.
MISLED = errno.EPROTO, errno.ECONNRESET, errno.EAGAIN


@contextlib.contextmanager
def inject(**one_in):
    """inject(drop=10): of 10 packets that come one is dropped."""
    module.modprobe()
    try:
        for name, value in one_in.items():
            with open(PARAMETERS + name, "w") as file:
                file.write(str(value))
        yield
    finally:
        for name in one_in:
            with open(PARAMETERS + name, "w") as file:
                file.write("0")


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
