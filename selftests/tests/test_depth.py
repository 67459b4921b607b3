#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Several ops in flight: their limit, their order, and what poll says."""
import errno
import select
import socket
import threading
import time

from lib import abi, tap
from lib.netns import shared
from lib.sockets import Ranks, refused
from lib.sums import contribution, difference, expected

COUNT = 3000


@tap.cases(1, 2, 3, 4, 5, 6, 7, 8, 16)
def test_full(depth):
    """depth ops go in without a wait, one more is EAGAIN, order is kept."""
    with shared(2) as net, Ranks(net.hosts, depth=depth) as group:
        for _ in range(2):
            # Only rank 0 posts: nothing can finish.
            first = group.ops
            for i in range(depth):
                # A slot is free when its last op's peers have left it, too.
                assert group[0].poll(select.POLLOUT, 10) == select.POLLOUT
                group[0].send(contribution(0, COUNT + i, first + i),
                              socket.MSG_DONTWAIT)
            assert not group[0].poll(select.POLLOUT | select.POLLIN)
            with refused(errno.EAGAIN):
                group[0].send(contribution(0, COUNT), socket.MSG_DONTWAIT)
            with refused(errno.EAGAIN):
                group[0].recv(16, socket.MSG_DONTWAIT)
            for i in range(depth):
                group[1].send(contribution(1, COUNT + i, first + i))
            group.ops += depth
            for i in range(depth):
                group.check(COUNT + i, first + i)
        assert group[0].group().posted == group[0].group().received == 2 * depth


def test_poll_in():
    """POLLIN exactly while a result is there."""
    with shared(2) as net, Ranks(net.hosts, depth=2) as group:
        sock = group[0]
        assert sock.poll(select.POLLIN | select.POLLOUT) == select.POLLOUT
        group.post(COUNT)
        assert sock.poll(select.POLLIN, 10) == select.POLLIN
        sock.take(COUNT * 4)
        assert not sock.poll(select.POLLIN)
        group[1].take(COUNT * 4)


def test_result_frees_a_place():
    """Finishing isn't enough: a place is free when recv has returned the result."""
    with shared(2) as net, Ranks(net.hosts, depth=2) as group:
        group.post(COUNT)
        group.post(COUNT)
        assert group[0].poll(select.POLLIN, 10)
        time.sleep(1)
        assert group[0].group().finished == 2
        assert not group[0].poll(select.POLLOUT)
        with refused(errno.EAGAIN):
            group[0].send(contribution(0, COUNT, 2), socket.MSG_DONTWAIT)
        group.check(COUNT, 0)
        assert group[0].poll(select.POLLOUT, 10)
        group.post(COUNT)
        group.check(COUNT, 1)
        group.check(COUNT, 2)


def test_recv_wakes_send():
    """A send that waits for a place goes on when another thread receives."""
    with shared(2) as net, Ranks(net.hosts, depth=1) as group:
        group.post(COUNT)
        sent = []

        def send():
            sent.append(group[0].send(contribution(0, COUNT, 1)))
        thread = threading.Thread(target=send)
        thread.start()
        time.sleep(0.3)
        assert not sent, "sent without a place"
        group.check(COUNT, 0)
        thread.join(20)
        assert sent == [COUNT * 4]
        group[1].send(contribution(1, COUNT, 1))
        group.check(COUNT, 1)


def test_uneven_speeds():
    """One rank runs ahead by depth: its contributions wait in the slots."""
    with shared(3) as net, Ranks(net.hosts, depth=4) as group:
        for i in range(4):
            group[0].send(contribution(0, COUNT, i))
        time.sleep(0.5)
        for i in range(4):
            group[1].send(contribution(1, COUNT, i))
        assert not group[0].poll(select.POLLIN, 0.5)
        for i in range(4):
            group[2].send(contribution(2, COUNT, i))
        for i in range(4):
            group.check(COUNT, i)


def test_many_threads():
    """Senders and receivers in threads of their own; depth bounds them."""
    ops = 30
    with shared(2) as net, Ranks(net.hosts, depth=3) as group:
        wrong = []

        def receive(sock):
            for i in range(ops):
                found = difference(sock.take(COUNT * 4), expected(2, COUNT, i))
                if found:
                    wrong.append(f"op {i}: {found}")
        threads = [threading.Thread(target=receive, args=(s,)) for s in group]
        for thread in threads:
            thread.start()
        for _ in range(ops):
            group.post(COUNT)
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        assert not wrong, wrong
        assert [s.group().received for s in group] == [ops, ops]


def test_numbers_of_a_group():
    """posted, finished and received count ops; memory is what was promised."""
    with shared(2) as net, Ranks(net.hosts, depth=2, bucket_max=1 << 18) as group:
        state = group[1].group()
        assert (state.posted, state.finished, state.received) == (0, 0, 0)
        assert state.memory >= 2 * (1 << 18)
        # Three times the bucket for each of 2 * depth + 1 slots, another one for
        # the Hadamard transform and twice 256 KiB, and a little
        assert state.memory <= (5.5 * 3 + 1) * (1 << 18) + (1 << 19), state.memory
        group.post(COUNT)
        assert group[1].poll(select.POLLIN, 10)
        state = group[1].group()
        assert (state.posted, state.finished, state.received) == (1, 1, 0)
        group.check(COUNT, 0)
        assert group[1].group().received == 1
        assert group[1].group().state == abi.STATE_JOINED


tap.main(globals())
