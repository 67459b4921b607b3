#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Checkpoints that other hosts keep copies of."""
import contextlib
import errno
import select
import time

from lib import areas, tap
from lib.copies import (
    DELAY, SIZE, SLOW, check_all, cut, fails, held, hosts_with, made, mend, save_all,
    seen, state, until)
from lib.sockets import Ranks


def test_pair():
    with hosts_with() as group:
        assert group.areas[0].poll(select.POLLIN | select.POLLOUT) == select.POLLOUT
        for step in (10, 11, 12):
            save_all(group, step, meta=b"world 2")
            check_all(group, step)
            assert group.areas[1].poll(select.POLLIN) == select.POLLIN
            assert bytes(held(group.areas[1], 0, step).meta[:7]) == b"world 2"
        assert sorted(group.areas[1].steps()) == [11, 11, 12, 12]
        for name in ("bad_chunk", "bad_control", "mismatch", "nomem"):
            assert group.total(name) == 0, name


def test_offloads():
    """Trains are taken apart as late as they can be, and are right all the same."""
    with hosts_with(size=1 << 20, offloads=True, netem=None) as group:
        save_all(group, 1, 1 << 20)
        check_all(group, 1, 1 << 20)
        trains = group.total("tx_trains")
        tap.note(f"{group.total('tx_packets')} packets in {trains} trains")


def test_the_owner_is_told():
    """What isn't complete is known not to be, and holds up the next one."""
    with hosts_with() as group:
        own = group.areas[0]
        own.save(1, state(0, 1))
        own.wait(1)
        cut(group, 1)
        own.save(2, state(0, 2))
        own.limit(0.3)
        with fails(own, errno.EAGAIN, "not complete yet"):
            own.wait(2)
        assert not own.poll(select.POLLIN | select.POLLOUT)
        status = own.status()
        assert (status.complete, list(status.step)) == (1, [2, 1]), status.complete
        assert status.acked[0] == 1
        with fails(own, errno.EAGAIN, "generation before"):
            own.commit(3)
        mend(group, 1)
        own.limit(20)
        own.wait(2)
        assert own.status().acked[0] == 3
        own.save(3, state(0, 3))
        own.wait(3)
        assert group.areas[1].load(3, rank=0) == state(0, 3)
        assert group.areas[1].load(2, rank=0, offset=70000, length=5) == \
            state(0, 2)[70000:70005]


def test_roll_back():
    """Holders give up what the owner has given up, and only that."""
    with hosts_with() as group:
        own, keeper = group.areas
        for step in (1, 2):
            own.save(step, state(0, step))
            own.wait(step)
        own.roll_back(1)
        own.wait(1)
        until(lambda: keeper.steps() == [1])
        own.save(2, state(0, 7))
        own.wait(2)
        assert seen(keeper, 0, 2) == state(0, 7)
        assert seen(keeper, 0, 1) == state(0, 1)


@tap.cases(0, 1)
def test_removed_under_way(rank):
    """An owner's area or a holder's goes while a generation travels."""
    with hosts_with(size=SIZE) as group:
        group.areas[0].save(1, state(0, 1))
        group.areas[0].wait(1)
        group.net.hosts[0].netem(SLOW)
        group.areas[0].save(2, state(0, 2))
        time.sleep(0.2)
        begin = time.monotonic()
        areas.remove("ckpt", group.net.hosts[rank])
        assert time.monotonic() - begin < 5
        other = group.areas[1 - rank]
        assert other.steps() == ([2, 1] if rank else [1]), other.steps()
        group.net.hosts[0].netem(DELAY)
        with made(group.net.hosts[rank], rank, 2) as again:
            own = again if rank == 0 else other
            if rank == 0:
                own.save(2, state(0, 2))
            own.wait(2)
            keeper = other if rank == 0 else again
            assert seen(keeper, 0, 2) == state(0, 2)


def resumed(group, own, keeper, interrupt):
    """Interrupts a generation half-way. What had come isn't sent again."""
    group.net.hosts[0].netem(SLOW)
    before = keeper.chunks()
    own.save(1, state(0, 1))
    time.sleep(0.25)
    had = keeper.chunks() - before
    assert 100 < had < 400, had
    interrupt()
    own.wait(1)
    assert seen(group.areas[1], 0, 1) == state(0, 1)
    return had


class Counter:
    """Chunks that have come to rank 1, over several memberships."""

    def __init__(self, group):
        self.group, self.past = group, 0

    def chunks(self):
        return self.past + self.group[1].stats()["rx_data"]


ALL = 9 * 47 + 9	# chunks of SIZE, at an MTU of 1500


def test_resumed_after_a_break():
    with hosts_with() as group:
        group.areas[0].limit(60)

        def break_link():
            cut(group, 1)
            time.sleep(5)
            mend(group, 1)

        counter = Counter(group)
        resumed(group, group.areas[0], counter, break_link)
        # What was in flight, or in blocks that weren't whole, may come twice.
        assert ALL <= counter.chunks() <= ALL + 64 * 2, counter.chunks()


def test_resumed_by_other_processes():
    """The ranks' processes go, and others take their places in a new epoch."""
    with hosts_with() as group, contextlib.ExitStack() as stack:
        counter = Counter(group)

        def restart():
            counter.past = counter.chunks()
            group.close()
            counter.group = stack.enter_context(Ranks(group.net.hosts))
            group.net.hosts[0].netem(DELAY)

        resumed(group, group.areas[0], counter, restart)
        assert counter.chunks() <= ALL + 64 * 2, counter.chunks()


def test_training_goes_on():
    """Ops and generations share the wire; neither harms the other."""
    with hosts_with(4, copies=2) as group:
        for step in range(3):
            save_all(group, step)
            for _ in range(3):
                group.allreduce(16000)
            check_all(group, step)


def test_a_namespace_goes():
    """With an area that is being filled, and one that is being read."""
    with hosts_with() as group:
        group.net.hosts[0].netem(SLOW)
        save_all(group, 1)
        time.sleep(0.2)
        for area in group.areas:
            area.close()
        group.close()
        group.net.close()


tap.main(globals())
