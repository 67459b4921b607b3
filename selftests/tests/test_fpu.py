#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: kernels=debug-smp cpus=2
"""The vector unit under a kernel that checks the FPU's rules, and what takes its
place where it can't be used: the same bits, whichever it is and whenever it changes.
"""
import contextlib
import random
import threading
import time

from lib import abi, module, tap
from lib.log import Log
from lib.netns import shared
from lib.sockets import Ranks, reliable

PARAMETER = "/sys/module/ored/parameters/inject_no_fpu"
CHANGES = 50
COUNT = 20000


def use_fpu(use):
    with open(PARAMETER, "w") as file:
        file.write("N" if use else "Y")


@contextlib.contextmanager
def restored():
    try:
        yield
    finally:
        use_fpu(True)


def test_there_is_a_unit():
    """Else the other cases would say nothing."""
    tap.check_module_unloads()
    with Log() as log:
        module.load()
        told = [line for line in log.lines() if line.startswith("ored: reduces by")]
    tap.note(told[-1])
    assert "integers" not in told[-1], told


@tap.cases("unit", "none")
def test_one_of_them(which):
    with restored(), Ranks([None] * 3, depth=2, bucket_max=COUNT * 4) as group:
        use_fpu(which == "unit")
        for count in (1, 7, COUNT):
            group.allreduce(count)
        for sock in group:
            sock.set(abi.OP, abi.Op(reduction=abi.MEAN, mode=abi.MODE_RELIABLE))
        group.allreduce(COUNT, mean=True)


def test_both_in_turns():
    """It comes and goes in the midst of ops."""
    ended, changes = threading.Event(), 0

    def change():
        nonlocal changes
        while not ended.is_set():
            use_fpu(changes % 2)
            changes += 1
            time.sleep(0.001)

    with restored(), Ranks([None] * 3, depth=2, bucket_max=COUNT * 4) as group:
        thread = threading.Thread(target=change)
        thread.start()
        try:
            ops = 0
            while ops < 10 or changes < CHANGES:
                group.allreduce(COUNT)
                ops += 1
        finally:
            ended.set()
            thread.join()
    tap.note(f"{ops} ops, {changes} changes")


def numbers(rank):
    """Any bits, but for the highest of the exponent: all between -2 and 2"""
    bits = random.Random(rank).randbytes(9000)
    return bytes(byte & 0xbf if at % 2 else byte for at, byte in enumerate(bits))


def transformed(dtype):
    """Two sums of any bits, of a group whose signs are always the same."""
    found = []
    with shared(3) as net, Ranks(net.hosts, epoch=1 << 40) as group:
        for _ in range(2):
            for rank, sock in enumerate(group):
                sock.set(abi.OP, reliable(dtype=dtype, flags=abi.OP_HADAMARD_ON))
                sock.send(numbers(rank))
            found.append({sock.take(9000) for sock in group})
    assert all(len(taken) == 1 for taken in found)
    return found


@tap.cases(abi.F32, abi.F16, abi.BF16)
def test_transform(dtype):
    """It too gives the same bits by the vector unit and without."""
    with restored():
        use_fpu(True)
        by_vectors = transformed(dtype)
        use_fpu(False)
        assert transformed(dtype) == by_vectors


tap.main(globals())
