#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Reading what other ranks have, and finding the step to go back to."""
import contextlib
import errno
import threading
import time

from lib import abi, areas, tap
from lib.copies import (
    SIZE, SLOW, cut, fails, hosts_with, made, mend, save_all, state, until)
from lib.sockets import Ranks

BLOCK = abi.AREA_BLOCK


def newest(area):
    value = area.get(abi.AREA_NEWEST, abi.AreaNewest)
    return value.step, value.holders[0]


def fill(area, step, length, rank=0, offset=0, holder=abi.ANY_HOLDER):
    """Into the open slot."""
    areas.raw.setsockopt(area, abi.AREA_READ, areas.ctypes.byref(abi.AreaRead(
        step=step, offset=offset, length=length, rank=rank, holder=holder)),
        areas.ctypes.sizeof(abi.AreaRead))


def wait_all(group, step):
    for area in group.areas:
        area.wait(step)


def test_from_any_holder():
    """Ranks that keep no copy read any range from who has one."""
    with hosts_with(4) as group:
        save_all(group, 7)
        wait_all(group, 7)
        reader, want = group.areas[3], state(0, 7)
        for holder in (0, 1, abi.ANY_HOLDER):
            for offset, length in ((0, SIZE), (0, 1), (SIZE - 1, 1), (BLOCK - 3, 6),
                                   (3 * BLOCK, BLOCK), (BLOCK + 1, 5 * BLOCK)):
                got = reader.load(7, offset, length, 0, holder)
                assert got == want[offset:offset + length], (holder, offset, length)
        with fails(reader, errno.ENOENT, "rank 2 doesn't have step 7 of rank 0"):
            reader.load(7, 0, 1, 0, 2)
        with fails(reader, errno.ENOENT, "step 8 of rank 0", "none of 4 ranks", "4 have answered"):
            reader.load(8, 0, 1, 0)
        with fails(reader, errno.ENOENT, "no rank 4"):
            reader.load(7, 0, 1, 4)
        for holder in (0, abi.ANY_HOLDER):
            for offset, length in ((SIZE, 1), (0, SIZE + 1), (1 << 63, 1)):
                with fails(reader, errno.ERANGE, SIZE):
                    reader.set(abi.AREA_READ, abi.AreaRead(
                        step=7, offset=offset, length=length, holder=holder))
        with fails(reader, errno.EFAULT):
            reader.set(abi.AREA_READ, abi.AreaRead(step=7, length=1, holder=0,
                                                   buffer=areas.raw.BAD))


def test_large():
    """More than is taken at once, to a buffer and to the slot."""
    size = (5 << 20) + 77
    with hosts_with(2, size=size, offloads=True, netem=None) as group:
        group.areas[0].save(1, state(0, 1, size))
        group.areas[0].wait(1)
        areas.remove("ckpt", group.net.hosts[1])
        with made(group.net.hosts[1], 1, 2, size) as reader:
            assert reader.load(1, 0, size, 0, 0) == state(0, 1, size)
            fill(reader, 1, size, holder=0)
            assert reader.map()[:] == state(0, 1, size)
            # Parts of blocks leave the rest of the slot as it is.
            reader.map()[:] = bytes(size)
            fill(reader, 1, 100, offset=50, holder=0)
            got = reader.map()[:300]
            assert got == bytes(50) + state(0, 1, size)[50:150] + bytes(150)


def test_a_lost_host():
    """Its replacement fetches the state of its rank, and goes on from there."""
    with hosts_with(3, copies=2) as group:
        for step in (1, 2):
            save_all(group, step, meta=b"run 7")
            wait_all(group, step)
        areas.remove("ckpt", group.net.hosts[0])
        with made(group.net.hosts[0], 0, 3) as fresh:
            step, answered = newest(fresh)
            assert (step, answered) == (2, 7), (step, answered)
            fill(fresh, step, SIZE)
            assert fresh.map()[:] == state(0, 2)
            fresh.commit(step)
            fresh.wait(step)
            assert fresh.load(2) == state(0, 2)


def test_damaged():
    """A changed bit is always found. The next holder is asked, or named."""
    with hosts_with(4) as group:
        own = group.areas[0]
        mapping = own.save(1, state(0, 1), flags=abi.COMMIT_DIGEST_ONLY)
        own.wait(1)
        bad = 4 * BLOCK + 100
        mapping[bad] = bytes([mapping[bad] ^ 1])
        reader = group.areas[2]
        for _ in range(3):
            with fails(reader, errno.EBADMSG, "held by rank 0", 4 * BLOCK, 5 * BLOCK - 1,
                       "ask rank 1"):
                reader.load(1, 0, SIZE, 0, 0)
        assert reader.load(1, 0, 4 * BLOCK, 0, 0) == state(0, 1)[:4 * BLOCK]
        assert reader.load(1, 0, SIZE, 0) == state(0, 1)
        fill(reader, 1, SIZE)
        assert reader.map()[:] == state(0, 1)
        # The owner himself gets it from the holder.
        assert own.load(1) == state(0, 1)
        areas.remove("ckpt", group.net.hosts[1])
        for again in (reader, own):
            with fails(again, errno.EBADMSG, "held by rank 0", "no other rank"):
                again.load(1, 0, SIZE, 0)


def test_silent_holder():
    with hosts_with(3) as group:
        save_all(group, 3)
        wait_all(group, 3)
        cut(group, 1)
        reader = group.areas[2]
        begin = time.monotonic()
        with fails(reader, errno.ETIMEDOUT, "rank 1 doesn't answer"):
            reader.load(3, 0, SIZE, 0, 1)
        assert 1.5 < time.monotonic() - begin < 4
        assert reader.load(3, 0, SIZE, 0) == state(0, 3)
        reader.limit(0.5)
        step, answered = newest(reader)
        assert (step, answered) == (3, 5), (step, answered)
        mend(group, 1)


def test_newest():
    """Mixed steps, ranks that lack theirs, and areas that are gone."""
    with hosts_with(4) as group:
        assert newest(group.areas[0]) == (abi.NO_STEP, 15)
        save_all(group, 1)
        wait_all(group, 1)
        assert newest(group.areas[3]) == (1, 15)
        for rank in (0, 1, 2):
            group.areas[rank].save(2, state(rank, 2))
            group.areas[rank].wait(2)
        assert newest(group.areas[1]) == (1, 15)
        group.areas[3].save(2, state(3, 2))
        group.areas[3].wait(2)
        group.areas[0].save(3, state(0, 3))
        assert newest(group.areas[1]) == (2, 15)
        # Its state is with rank 1 too, that of rank 1 with nobody any more.
        areas.remove("ckpt", group.net.hosts[0])
        assert newest(group.areas[1]) == (2, 15)
        areas.remove("ckpt", group.net.hosts[1])
        assert newest(group.areas[2]) == (abi.NO_STEP, 15)
        with made(group.net.hosts[1], 1, 4) as again:
            assert newest(again)[0] == abi.NO_STEP


def test_newest_alone():
    with areas.Area("a", bytes=100) as area:
        assert newest(area) == (abi.NO_STEP, 1)
        area.save(4, b"x")
        assert newest(area) == (4, 1)
        area.remove()
        with fails(area, errno.ENODEV):
            newest(area)


def test_without_a_membership():
    with hosts_with() as group:
        save_all(group, 1)
        wait_all(group, 1)
        group.close()
        area = group.areas[0]
        with fails(area, errno.ENOTCONN, "group 1"):
            newest(area)
        with fails(area, errno.ENOTCONN, "group 1"):
            area.load(1, 0, 1, 0, 1)
        with fails(area, errno.ENOENT, "step 9 of rank 0 is not here"):
            area.load(9, 0, 1)
        assert area.load(1, 0, SIZE, 1) == state(1, 1)


def test_permuted_hosts():
    """Ranks that come back on other hosts find what they have left."""
    with hosts_with(4) as group:
        save_all(group, 5)
        wait_all(group, 5)
        group.close()
        hosts = group.net.hosts[2:] + group.net.hosts[:2]
        with Ranks(hosts), contextlib.ExitStack() as stack:
            for rank, host in enumerate(hosts):
                fresh = stack.enter_context(made(host, rank, 4, name="again"))
                assert newest(fresh) == (5, 15), rank
                fill(fresh, 5, SIZE, rank=rank)
                assert fresh.map()[:] == state(rank, 5), rank


class Reading(threading.Thread):
    """In the background; it takes half a second."""

    def __init__(self, area):
        super().__init__()
        self.area, self.error = area, None
        self.start()

    def run(self):
        try:
            fill(self.area, 1, SIZE, holder=0)
        except OSError as error:
            self.error = error.errno


@contextlib.contextmanager
def slow_reading():
    with hosts_with(4) as group:
        group.areas[0].save(1, state(0, 1))
        group.areas[0].wait(1)
        group.net.hosts[0].netem(SLOW)
        reading = Reading(group.areas[3])
        time.sleep(0.2)
        yield group, reading
        reading.join()


def test_the_slot_is_taken():
    """Nobody seals what is half there."""
    with slow_reading() as (group, reading):
        for call in (lambda: group.areas[3].commit(1), group.areas[3].abort,
                     lambda: fill(group.areas[3], 1, SIZE, holder=0)):
            with fails(group.areas[3], errno.EBUSY, "read into"):
                call()
        reading.join()
        assert reading.error is None
        group.areas[3].commit(1)
        assert group.areas[3].load(1, 0, SIZE, 3) == state(0, 1)


@tap.cases(0, 3)
def test_removed_under_way(rank):
    with slow_reading() as (group, reading):
        begin = time.monotonic()
        areas.remove("ckpt", group.net.hosts[rank])
        reading.join()
        assert time.monotonic() - begin < 5
        assert reading.error == (errno.ENODEV if rank else errno.ENOENT), reading.error


def test_left_under_way():
    with slow_reading() as (group, reading):
        group.close()
        reading.join()
        assert reading.error == errno.ENOTCONN, reading.error
        assert group.areas[3].steps() == []


@tap.cases("loss 20%", "duplicate 20%", "corrupt 5%")
def test_bad_network(how):
    with hosts_with(4) as group:
        group.areas[0].save(1, state(0, 1))
        group.areas[0].wait(1)
        group.net.netem(f"delay 200us {how}")
        assert group.areas[3].load(1, 0, SIZE, 0) == state(0, 1)


def test_beside_training():
    with hosts_with(4) as group:
        group.areas[0].save(1, state(0, 1))
        group.areas[0].wait(1)
        reading = Reading(group.areas[3])
        for _ in range(5):
            group.allreduce(16000)
        reading.join()
        assert reading.error is None
        until(lambda: group.areas[3].map()[:] == state(0, 1))


tap.main(globals())
