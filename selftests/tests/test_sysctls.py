#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""net.ored.*: what the manual says of them is so, and new groups take them."""
import errno
import os
import re

from lib import abi, tap
from lib.netns import Namespace, Network
from lib.sockets import Ranks

FOLDER = "/proc/sys/net/ored"
TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../..")
ROW = re.compile(r"\.It net\.ored\.(\w+) Ta (\d+) Ta ")

# By name: a few that are taken, those at the ends of the range included, and some
# just beyond it, with all others as by default
RANGES = {
    "loss_skip": ((1, 1000000), (1000001, 1 << 32)),
    "loss_halt": ((0, 1000000), (1000001,)),
    "min_ranks": ((0, 1, 256), (257,)),
    "mode": ((1, 2), (0, 3, 256)),
    "deadline": ((0, 1), (2, 256)),
    "incast": ((0, 1), (2, 256)),
    "hadamard": ((1, 2, 3), (0, 4, 256)),
    "loss_target": ((1, 500000), (0, 500001)),
    "floor": ((500000, 4000000), (499999, 4000001)),
    "ceiling": ((1050000, 100000000), (1049999, 100000001)),
    "warmup": ((5, 64), (4, 65)),
    "bound_us": ((0, 1, 4294967295), (4294967296,)),
    "wait_ppm": ((0, 500000, 4294967295), (500001, 4294967294)),
    "floor_us": ((1, 5000000), (0, 5000001)),
    "ceiling_us": ((2000, 274877906), (1999, 274877907)),
}
NONSENSE = ("-1", "x", "1x")
# Not of the policy: its default depends on the machine; test_areas tries it.
CAP = "ckpt_max_bytes"


def read(namespace, name):
    with namespace, open(f"{FOLDER}/{name}") as file:
        return int(file.read())


def everything(namespace):
    """The policy's."""
    with namespace:
        names = sorted(set(os.listdir(FOLDER)) - {CAP})
    return {name: read(namespace, name) for name in names}


def write(namespace, name, value):
    with namespace:
        fd = os.open(f"{FOLDER}/{name}", os.O_WRONLY)
        try:
            os.write(fd, f"{value}\n".encode())
        finally:
            os.close(fd)


def refused(namespace, name, value):
    try:
        write(namespace, name, value)
    except OSError as error:
        return error.errno == errno.EINVAL
    return False


def test_manual():
    """Its table has the names and the defaults of a new namespace."""
    with open(f"{TOP}/libored/man/ored.7") as file:
        manual = file.read()
    told = dict(ROW.findall(manual))
    assert f".It net.ored.{CAP} Ta" in manual
    have = everything(Namespace())
    assert {name: int(value) for name, value in told.items()} == have, (told, have)
    assert set(have) == set(RANGES)


@tap.cases(*RANGES)
def test_range(name):
    namespace = Namespace()
    first = everything(namespace)
    good, bad = RANGES[name]
    for value in good:
        write(namespace, name, value)
        assert read(namespace, name) == value
    for value in bad + NONSENSE:
        assert refused(namespace, name, value), f"{name} takes {value!r}"
        assert read(namespace, name) == good[-1], f"{value!r} has changed {name}"
    write(namespace, name, first[name])
    assert everything(namespace) == first, "another one has changed"


def test_together():
    """What fits by itself may not fit the others; then nothing changes."""
    namespace = Namespace()
    write(namespace, "ceiling", 1500000)
    assert refused(namespace, "floor", 1500001)
    write(namespace, "floor", 1500000)
    assert refused(namespace, "ceiling", 1499999)
    assert (read(namespace, "floor"), read(namespace, "ceiling")) == (1500000, 1500000)


def test_namespaces():
    """Each has its own, and a new one doesn't inherit."""
    one, other = Namespace(), Namespace()
    before = everything(other)
    for name, (good, _) in RANGES.items():
        if name != "ceiling":	# the floors are at the old ones
            write(one, name, good[-1])
    assert everything(other) == before
    assert everything(Namespace()) == before


def test_new_groups():
    """Groups have what was set when they were joined, and ORED_POLICY's zeros mean
    what is set now."""
    values = {"loss_skip": 7, "loss_halt": 8, "min_ranks": 1, "mode": abi.MODE_RELIABLE,
              "deadline": abi.DEADLINE_P95, "incast": abi.INCAST_ADAPT,
              "hadamard": abi.HADAMARD_OFF, "loss_target": 9,
              "floor": 1100000, "ceiling": 1200000, "warmup": 6, "bound_us": 30000,
              "wait_ppm": 10000, "floor_us": 11, "ceiling_us": 1200000}
    assert set(values) == set(RANGES)

    def policy(sock):
        got = sock.get(abi.POLICY, abi.Policy)
        return {name: getattr(got, name) for name in RANGES}
    with Network(2) as net, Ranks(net.hosts, port=4700) as old:
        before = policy(old[0])
        for name, value in values.items():
            write(net.hosts[0], name, value)
        with Ranks(net.hosts, group=2) as new:
            assert policy(old[0]) == before, "a group that was there has changed"
            assert policy(new[0]) == values, policy(new[0])
            assert policy(new[1]) == before, "another namespace's group has changed"
            # And it runs by them: a mode that the op doesn't name.
            for sock in new:
                sock.set(abi.OP, abi.Op(mode=0 if sock is new[0] else abi.MODE_RELIABLE))
            new.allreduce(100)
            assert new[0].result(0).mode == abi.MODE_RELIABLE
        old[0].set(abi.POLICY, abi.Policy(warmup=8))
        assert policy(old[0]) == {**values, "warmup": 8}


tap.main(globals())
