#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""dup, fork, SCM_RIGHTS, epoll and select: the socket is a file like any other."""
import array
import itertools
import os
import select
import socket
import threading
import time

from lib import abi, module, tap
from lib.netns import shared
from lib.sockets import Ranks, Socket
from lib.sums import contribution, difference, expected

COUNT = 3000


def in_child(function):
    """Runs it in a forked process; its exit status says whether it returned."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            function()
            status = 0
        except BaseException as error:  # nothing may get out of the child
            os.write(2, f"child: {error!r}\n".encode())
        os._exit(status)
    return pid


def ended_well(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def pass_on(descriptor):
    """The descriptor, sent to oneself."""
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, two:
        rights = array.array("i", [descriptor])
        one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        _, [(_, _, data)], _, _ = two.recvmsg(1, socket.CMSG_SPACE(4))
        return array.array("i", data)[0]


def test_dup():
    """One op goes in by one descriptor and out by the other."""
    with shared(2) as net, Ranks(net.hosts) as group:
        twin = os.dup(group[0].fileno())
        os.write(twin, contribution(0, COUNT))
        group[1].send(contribution(1, COUNT))
        group.check(COUNT, 0)
        group.ops = 1
        os.close(twin)
        group.allreduce(COUNT)


@tap.cases(*itertools.permutations("abc"))
def test_close_in_any_order(*order):
    """An original, a dup and a descriptor that was passed; the last one works."""
    with shared(2) as net, Ranks(net.hosts) as group:
        own = group[0].detach()
        files = dict(a=own, b=os.dup(own), c=pass_on(own))
        for op, name in enumerate(order):
            os.write(files[name], contribution(0, COUNT, op))
            group[1].send(contribution(1, COUNT, op))
            assert not difference(os.read(files[name], 1 << 16),
                                  expected(2, COUNT, op))
            group[1].take(COUNT * 4)
            os.close(files[name])


def test_fork():
    """The child uses the socket; its exit doesn't close it for the parent."""
    with shared(2) as net, Ranks(net.hosts) as group:
        def child():
            group[0].send(contribution(0, COUNT))
            data = group[0].take(COUNT * 4)
            assert not difference(data, expected(2, COUNT))
        pid = in_child(child)
        group[1].send(contribution(1, COUNT))
        assert not difference(group[1].take(COUNT * 4), expected(2, COUNT))
        assert ended_well(pid)
        group.ops = 1
        group.allreduce(COUNT)


def test_child_outlives_parent_descriptor():
    with shared(2) as net, Ranks(net.hosts) as group:
        release, hold = os.pipe()

        def child():
            os.close(hold)
            os.read(release, 1)
            group[0].send(contribution(0, COUNT))
            assert not difference(group[0].take(COUNT * 4), expected(2, COUNT))
        pid = in_child(child)
        group[0].close()
        os.close(hold)
        os.close(release)
        group[1].send(contribution(1, COUNT))
        assert not difference(group[1].take(COUNT * 4), expected(2, COUNT))
        assert ended_well(pid)


def test_descriptor_in_flight():
    """A socket whose only reference is a message is closed with the message."""
    sock = Socket()
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    rights = array.array("i", [sock.fileno()])
    one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    sock.close()
    assert module.references() > 0
    one.close()
    two.close()
    tap.check_nothing_left()


def test_close_in_another_thread():
    """A receiver that waits isn't hurt when its descriptor is closed."""
    with shared(2) as net, Ranks(net.hosts) as group:
        twin = os.dup(group[0].fileno())
        got = []
        thread = threading.Thread(target=lambda: got.append(os.read(twin, 1 << 16)))
        thread.start()
        time.sleep(0.2)
        os.close(twin)
        group.post(COUNT)
        thread.join(20)
        assert not difference(got[0], expected(2, COUNT))
        group[1].take(COUNT * 4)


def test_close_on_exec():
    with Socket(flags=socket.SOCK_CLOEXEC) as sock:
        assert not os.get_inheritable(sock.fileno())


@tap.cases("level", "edge")
def test_epoll(trigger):
    edge = select.EPOLLET if trigger == "edge" else 0
    with shared(2) as net, Ranks(net.hosts, depth=2) as group, \
            select.epoll() as poll:
        sock = group[0]
        poll.register(sock, select.EPOLLIN | edge)
        assert not poll.poll(0)
        for op in range(2):
            group.post(COUNT)
            group[1].take(COUNT * 4)
            assert poll.poll(10) == [(sock.fileno(), select.EPOLLIN)]
            again = poll.poll(0)
            assert bool(again) == (trigger == "level"), again
            assert not difference(sock.take(COUNT * 4), expected(2, COUNT, op))
            assert not poll.poll(0)


def test_edge_for_every_result():
    """Two results that come one after the other are two edges."""
    with shared(2) as net, Ranks(net.hosts, depth=2) as group, \
            select.epoll() as poll:
        poll.register(group[0], select.EPOLLIN | select.EPOLLET)
        for op in range(2):
            group.post(COUNT)
            assert poll.poll(10)
            assert not poll.poll(0.5)
        group.check(COUNT, 0)
        group.check(COUNT, 1)


def test_epoll_out():
    """Writable again when recv() has freed a place."""
    with shared(2) as net, Ranks(net.hosts) as group, select.epoll() as poll:
        poll.register(group[0], select.EPOLLOUT | select.EPOLLET)
        assert poll.poll(0)
        group.post(COUNT)
        assert group[0].poll(seconds=10)
        poll.modify(group[0], select.EPOLLOUT | select.EPOLLET)
        assert not poll.poll(0)
        group.check(COUNT, 0)
        assert poll.poll(10) == [(group[0].fileno(), select.EPOLLOUT)]


def test_poll_of_a_new_socket():
    """Not joined: neither readable nor writable, hung up as an unconnected one."""
    with Socket() as sock:
        events = sock.poll(select.POLLIN | select.POLLOUT)
        assert not events & select.POLLOUT, events
        assert sock.group().state == abi.STATE_NEW


def test_select():
    with shared(2) as net, Ranks(net.hosts) as group:
        assert select.select([group[0]], [group[0]], [], 0) == ([], [group[0]], [])
        group.post(COUNT)
        assert group[1].poll(seconds=10)
        assert group[0].poll(seconds=10)
        assert select.select([group[0]], [group[0]], [], 0) == ([group[0]], [], [])


tap.main(globals())
