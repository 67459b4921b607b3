#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: kernels=6.1,debug
"""A writer is killed at any of 50 points: what was committed stays, bit for bit.

While it writes, by itself, after so many bytes; or from outside at any time, in the
midst of a commit for example.
"""
import os
import signal
import time

from lib import abi, tap
from lib.areas import Area, in_child, listed, pattern
from lib.seed import SEED, numbers

SIZE = abi.AREA_BLOCK + 100
POINTS = 50	# others with each seed
CHUNK = 4096


def write(a, step, stop):
    """Fills the slot, but for what comes after stop bytes: it dies there."""
    data, mapping = pattern(step, SIZE), a.map()
    for at in range(0, SIZE, CHUNK):
        if at >= stop:
            os.kill(os.getpid(), signal.SIGKILL)
        mapping[at:min(at + CHUNK, SIZE)] = data[at:at + CHUNK]
    if stop < SIZE:
        os.kill(os.getpid(), signal.SIGKILL)


def train(told, steps, stop):
    with Area("a", create=False) as a:
        step = (a.steps() or [0])[0]
        for _ in range(steps):
            step += 1
            write(a, step, SIZE)
            a.commit(step)
            os.write(told, step.to_bytes(8, "little"))
        write(a, step + 1, stop)


def writer(told):
    """Commits for ever."""
    train(told, 1 << 30, SIZE)


def killed_outside(told, random):
    child = os.fork()
    if not child:
        try:
            writer(told)
        finally:
            os._exit(99)
    time.sleep(random.random() * 0.03)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_inside(told, random):
    return in_child(train, told, random.randrange(3), random.randrange(SIZE))


def last_told(told):
    """The newest step of which a writer knew that it was committed."""
    os.set_blocking(told, False)
    step = None
    try:
        while True:
            data = os.read(told, 4096)
            step = int.from_bytes(data[-8:], "little")
    except BlockingIOError:
        return step


def test_points():
    random = numbers("crash")
    told = os.pipe()
    known, ends = 0, {True: 0, False: 0}
    with Area("a", bytes=SIZE) as a:
        for point in range(POINTS):
            inside = bool(random.randrange(2))
            kill = killed_inside if inside else killed_outside
            assert kill(told[1], random) == -signal.SIGKILL
            known = last_told(told[0]) or known
            steps = a.steps()
            # It may not have been able to tell of the last one.
            assert not steps and not known or steps[0] in (known, known + 1), (
                f"point {point}: {steps}, but {known} was committed")
            assert steps == [s for s in (steps or [0])[:1] + [(steps or [0])[0] - 1] if s > 0]
            for step in steps:
                assert a.load(step) == pattern(step, SIZE), f"point {point}: step {step}"
            ends[inside] += 1
        a.remove()
    tap.note(f"seed {SEED}: {ends[True]} died writing, {ends[False]} were killed; {known} steps")
    assert min(ends.values()) > POINTS // 8 and known > POINTS // 8
    for fd in told:
        os.close(fd)


def commit_in_child(a, step, delay=None):
    """Commits in a process that is killed after so long. Returns how it ended."""
    child = os.fork()
    if not child:
        a.commit(step)
        os._exit(0)
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_killed_in_a_commit():
    """At any time of it: either it has happened, or nothing has."""
    random = numbers("commit")
    size = 16 * abi.AREA_BLOCK
    ends = {True: 0, False: 0}
    with Area("a", bytes=size) as a:
        a.map()[:] = pattern(1, size)
        begin = time.monotonic()
        assert commit_in_child(a, 1) == 0
        took = time.monotonic() - begin
        for step in range(2, 32):
            a.map()[:] = pattern(step, size)
            before = a.steps()
            status = commit_in_child(a, step, random.random() * 2 * took)
            happened = a.steps() != before
            assert happened or status == -signal.SIGKILL
            assert a.steps() == ([step] + before[:1] if happened else before)
            for there in a.steps():
                assert a.load(there) == pattern(there, size)
            ends[happened] += 1
        a.remove()
    tap.note(f"{ends[True]} of 30 commits happened")


def stray(a):
    """Maps the open slot and writes until that faults."""
    signal.signal(signal.SIGBUS, signal.SIG_DFL)
    mapping = a.map()
    while True:
        mapping[:] = (os.urandom(8) * (SIZE // 8 + 1))[:SIZE]


def strays(a):
    while True:
        in_child(stray, a)


def test_racing_writers():
    """Others write all the time: what is sealed keeps its digest all the same."""
    with Area("a", bytes=SIZE) as a:
        child = os.fork()
        if not child:
            os.setpgid(0, 0)
            strays(a)
        try:
            for step in range(1, 30):
                tap.wait_for(lambda: listed()["a"].mapped, 20, "a writer")
                time.sleep(0.003)
                a.commit(step)
                for there in a.steps():
                    a.load(there)
        finally:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            a.remove()


tap.main(globals())
