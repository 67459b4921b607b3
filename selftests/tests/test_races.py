#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: cpus=2
"""What two processors do to one socket at the same time.

Nothing here has one right outcome; every case has a right invariant: no
splat, no hang, no wrong sum, and only the errors that are listed.
"""
import errno
import os
import socket
import threading
import time

from lib import abi, seed, tap
from lib.netns import shared
from lib.sockets import Ranks, Socket, finish_join, join_value, peer, start_join
from lib.sums import contribution, difference, expected

COUNT = 4000
SECONDS = 4


class Crew:
    """Threads that call functions until the time is over; keeps what went wrong."""

    def __init__(self, allowed=()):
        self.allowed, self.wrong, self.calls = allowed, [], 0
        self.end = time.monotonic() + SECONDS
        self.threads = []

    def add(self, function):
        def loop():
            while time.monotonic() < self.end and not self.wrong:
                try:
                    function()
                    self.calls += 1
                except OSError as error:
                    if error.errno not in self.allowed:
                        self.wrong.append(f"{function.__name__}: {error!r}")
                        return
                except Exception as error:  # told by wait()
                    self.wrong.append(f"{function.__name__}: {error!r}")
                    return
        self.threads.append(threading.Thread(target=loop))

    def wait(self):
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join(SECONDS + 60)
            assert not thread.is_alive(), "a thread hangs"
        assert not self.wrong, self.wrong
        assert self.calls > 0, "nothing ever worked"
        tap.note(f"{self.calls} calls")


def test_many_receivers():
    """Every result goes to exactly one of the receivers."""
    ops = 200
    with shared(2) as net, Ranks(net.hosts, depth=4) as group:
        got, lock = [], threading.Lock()
        left = [ops]

        def receive():
            while True:
                with lock:
                    if not left[0]:
                        return
                    left[0] -= 1
                data = group[0].take(COUNT * 4)
                with lock:
                    got.append(data)
        threads = [threading.Thread(target=receive) for _ in range(4)]
        for thread in threads:
            thread.start()

        def other():
            for op in range(ops):
                group[1].take(COUNT * 4)
        threads.append(threading.Thread(target=other))
        threads[-1].start()
        for op in range(ops):
            group.post(COUNT)
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a receiver hangs"
        want = {expected(2, COUNT, op) for op in range(ops)}
        assert len(got) == ops
        assert set(got) == want, "a result came twice or was mixed"


def test_looking_while_working():
    """All getsockopt()s and ioctls from other threads while ops run."""
    with shared(2) as net, Ranks(net.hosts, depth=2) as group:
        crew = Crew(allowed=(errno.ENOENT,))

        def work():
            group.allreduce(COUNT)

        def look():
            for sock in group:
                state = sock.group()
                assert state.received <= state.finished <= state.posted
                assert state.posted - state.received <= 2
                sock.peers()
                sock.stats()
                sock.inq()
                sock.outq()
                sock.poll()

        def results():
            group[0].result(max(0, group[0].group().finished - 1))
        for function in (work, look, results):
            crew.add(function)
        crew.wait()


def test_close_against_packets():
    """Ranks close while contributions for them are on their way."""
    random_ = seed.numbers("close")
    with shared(3) as net:
        for turn in range(25):
            with Ranks(net.hosts, epoch=turn + 1, depth=2,
                       bucket_max=1 << 16) as group:
                group.post(COUNT * 4)
                time.sleep(random_.random() * 0.01)
                for rank in random_.sample(range(3), 3):
                    group[rank].close()


def test_shutdown_against_everything():
    """shutdown() in one thread, send, recv and poll in others."""
    allowed = {errno.EPIPE, errno.ENOTCONN, errno.ECONNRESET, errno.EAGAIN}
    with shared(2) as net:
        for turn in range(10):
            with Ranks(net.hosts, epoch=turn + 1, depth=2) as group:
                wrong = []

                def use(sock, function):
                    try:
                        while function(sock):
                            pass
                    except OSError as error:
                        if error.errno not in allowed:
                            wrong.append(repr(error))
                threads = []
                for sock in group:
                    for function in (lambda s: s.send(bytes(4000), socket.MSG_NOSIGNAL),
                                     lambda s: s.recv(4000),
                                     lambda s: s.poll() & 16 == 0):
                        threads.append(threading.Thread(target=use,
                                                        args=(sock, function)))
                for thread in threads:
                    thread.start()
                time.sleep(0.1)
                for sock in group:
                    sock.shutdown(socket.SHUT_RDWR)
                for thread in threads:
                    thread.join(30)
                    assert not thread.is_alive(), "a thread hangs"
                assert not wrong, wrong


def test_join_against_join():
    """Two threads join one socket: one of them wins, the group works."""
    peers = [peer("127.0.0.1", 5000)]
    for turn in range(20):
        with Socket() as sock:
            ends = []
            value = join_value(peers, port=5000, epoch=turn + 1)

            def join():
                try:
                    sock.join(value)
                    ends.append(0)
                except OSError as error:
                    ends.append(error.errno)
            threads = [threading.Thread(target=join) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
            assert sorted(ends)[0] == 0, ends
            assert set(ends) <= {0, errno.EISCONN, errno.EALREADY}, ends
            assert ends.count(0) == 1, ends
            assert sock.group().state == abi.STATE_JOINED


def test_groups_come_and_go():
    """Groups are made and dropped on one port while another one works."""
    with shared(2) as net, Ranks(net.hosts, group=1) as steady:
        crew = Crew()
        epochs = iter(range(1, 1 << 30))

        def come_and_go():
            with Ranks(net.hosts, group=2, epoch=next(epochs)) as group:
                group.allreduce(100)

        def work():
            steady.allreduce(COUNT)
        crew.add(come_and_go)
        crew.add(work)
        crew.wait()


def test_setup_and_teardown():
    """Administrators in each other's way."""
    value = join_value([peer("127.0.0.1", 5000)], port=5000, uid=abi.ANYONE)
    crew = Crew(allowed=(errno.EEXIST, errno.ENOENT))
    with Socket() as one, Socket() as two:
        def up():
            one.set(abi.SETUP, value)

        def down():
            two.set(abi.TEARDOWN, join_value([]))
        crew.add(up)
        crew.add(down)
        crew.add(up)
        crew.wait()
        try:
            down()
        except FileNotFoundError:
            pass


def test_killed_in_the_middle():
    """kill -9 at any moment of joining, posting and receiving."""
    random_ = seed.numbers("kill")
    peers = [peer("127.0.0.1", 5000 + i) for i in range(2)]
    for turn in range(25):
        pid = os.fork()
        if pid == 0:
            sockets = [Socket(), Socket()]
            for rank, sock in enumerate(sockets):
                start_join(sock, join_value(peers, rank=rank, port=5000 + rank,
                                            epoch=turn + 1))
            for sock in sockets:
                finish_join(sock)
            for op in range(10000):
                for rank, sock in enumerate(sockets):
                    sock.send(contribution(rank, COUNT, op))
                for sock in sockets:
                    sock.take(COUNT * 4)
            os._exit(0)
        time.sleep(random_.random() * 0.3)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    tap.check_nothing_left()


def spinner():
    pid = os.fork()
    while pid == 0:
        pass
    return pid


def test_under_load():
    """Busy processors: sums stay right and ops still end."""
    spinners = [spinner() for _ in range(3)]
    try:
        with shared(3) as net, Ranks(net.hosts, depth=3) as group:
            for _ in range(10):
                numbers = [group.post(COUNT * 4) for _ in range(3)]
                for number in numbers:
                    for rank, sock in enumerate(group):
                        wrong = difference(sock.take(COUNT * 16),
                                           expected(3, COUNT * 4, number))
                        assert not wrong, f"rank {rank}: {wrong}"
    finally:
        for pid in spinners:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


tap.main(globals(), seconds=90)
