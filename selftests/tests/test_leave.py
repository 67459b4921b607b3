#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""A rank that goes, well or badly, and one that comes back."""
import errno
import os
import select
import signal
import time

from lib import abi, tap
from lib.netns import Network, shared
from lib.sockets import (Ranks, Socket, finish_join, join_value, peer, refused,
                         reliable, start_join)
from lib.sums import contribution, difference, expected

COUNT = 20000


def rank_in_child(net, rank, ops, then, **fields):
    """A process that is that rank, does some ops and then calls then(sock)."""
    pid = os.fork()
    if pid == 0:
        try:
            sock = Socket(net.hosts[rank])
            sock.join(join_value([peer(h.address) for h in net.hosts],
                                 rank=rank, **fields))
            sock.set(abi.OP, reliable())
            for op in range(ops):
                sock.send(contribution(rank, COUNT, op))
                wrong = difference(sock.take(COUNT * 4),
                                   expected(len(net.hosts), COUNT, op))
                assert not wrong, wrong
            then(sock)
        except BaseException as error:  # nothing may get out of the child
            os.write(2, f"rank {rank}: {error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    return pid


def others(net, but, **fields):
    """Sockets of all ranks but that one, on their way into the group."""
    sockets = {}
    for rank, host in enumerate(net.hosts):
        if rank != but:
            sockets[rank] = Socket(host)
            start_join(sockets[rank], join_value([peer(h.address) for h in net.hosts],
                                                 rank=rank, **fields))
            sockets[rank].set(abi.OP, reliable())
    return sockets


def check_left(sock, rank):
    """The oldest op fails soon and names who left."""
    begin = time.monotonic()
    with refused(errno.ECONNRESET, sock, f"rank {rank}"):
        sock.take(COUNT * 4)
    assert time.monotonic() - begin < 10
    result = sock.result(sock.group().received - 1)
    assert result.error == errno.ECONNRESET
    assert result.rank[0] == rank, list(result.rank)
    assert sock.peers()[rank].status == abi.PEER_LEFT


def ends_without_hanging(sock):
    """Whole, since the rank that left had posted; or reset with its name."""
    try:
        assert not difference(sock.take(COUNT * 4), expected(3, COUNT, 2))
    except ConnectionResetError:
        assert "rank 1" in sock.error()


def test_close_after_the_last_op():
    """Under loss a rank closes at once when it has its result; the others, who
    may still miss packets of it, get theirs."""
    with Network(4, netem="delay 1ms loss 10%", offloads=False) as net:
        for turn in range(5):
            with Ranks(net.hosts, bucket_max=1 << 17, epoch=turn + 1) as group:
                number = group.post(COUNT)
                want = expected(4, COUNT, number)
                for place in range(4):
                    sock = group[(place + turn) % 4]
                    wrong = difference(sock.take(COUNT * 4), want)
                    assert not wrong, wrong
                    sock.close()
    tap.check_nothing_left()


def test_all_close_at_once():
    with Network(4, netem="delay 1ms loss 10%", offloads=False) as net:
        for turn in range(5):
            with Ranks(net.hosts, bucket_max=1 << 17, epoch=turn + 1) as group:
                group.allreduce(COUNT)


def test_close_in_mid_run():
    """An op that a rank never posts fails for all others, with its name."""
    with shared(3) as net, Ranks(net.hosts, bucket_max=1 << 17) as group:
        group.allreduce(COUNT)
        group[0].send(contribution(0, COUNT, 1))
        group[2].send(contribution(2, COUNT, 1))
        assert not group[0].poll(seconds=0.5)
        group[1].close()
        for rank in (0, 2):
            check_left(group[rank], 1)


def test_close_before_others_post():
    """They post later, and fail all the same."""
    with shared(3) as net, Ranks(net.hosts, bucket_max=1 << 17) as group:
        group.allreduce(COUNT)
        group[1].close()
        time.sleep(0.5)
        for rank in (0, 2):
            group[rank].send(contribution(rank, COUNT, 1))
            check_left(group[rank], 1)
            group[rank].send(contribution(rank, COUNT, 2))
            check_left(group[rank], 1)


def test_close_with_an_op_posted():
    """Its contribution is in; what it owns it still reduces and sends."""
    with shared(3) as net, Ranks(net.hosts, bucket_max=1 << 17) as group:
        group[1].send(contribution(1, COUNT))
        time.sleep(0.2)
        group[1].close()
        ends = []
        for rank in (0, 2):
            group[rank].send(contribution(rank, COUNT))
        for rank in (0, 2):
            try:
                wrong = difference(group[rank].take(COUNT * 4), expected(3, COUNT))
                assert not wrong, wrong
                ends.append("whole")
            except ConnectionResetError:
                ends.append("reset")
        tap.note(ends)
        assert len(set(ends)) == 1, f"ranks end differently: {ends}"


def test_several_ops_in_flight():
    """Ops that everybody posted come whole, those after them fail."""
    with shared(3) as net, Ranks(net.hosts, bucket_max=1 << 17, depth=3) as group:
        group.post(COUNT)
        for op in (1, 2):
            for rank in (0, 2):
                group[rank].send(contribution(rank, COUNT, op))
        group.check(COUNT, 0)
        group[1].close()
        for rank in (0, 2):
            check_left(group[rank], 1)
            check_left(group[rank], 1)


@tap.cases("idle", "busy")
def test_kill(when):
    """kill -9 is a close: the kernel says goodbye for the process."""
    with Network(3) as net:
        def wait(sock):
            if when == "busy":
                sock.send(contribution(1, COUNT, 2))
            time.sleep(1000)
        pid = rank_in_child(net, 1, 2, wait, bucket_max=1 << 17)
        sockets = others(net, 1, bucket_max=1 << 17)
        for sock in sockets.values():
            finish_join(sock)
        for op in range(2):
            for rank, sock in sockets.items():
                sock.send(contribution(rank, COUNT, op))
            for sock in sockets.values():
                assert not difference(sock.take(COUNT * 4), expected(3, COUNT, op))
        time.sleep(0.5)
        sockets[0].send(contribution(0, COUNT, 2))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        sockets[2].send(contribution(2, COUNT, 2))
        for sock in sockets.values():
            if when == "idle":
                check_left(sock, 1)
            else:
                ends_without_hanging(sock)
            sock.close()


def test_stop_and_go_on():
    """SIGSTOP isn't leaving: the others wait, and after SIGCONT all goes on."""
    with Network(2) as net:
        def more(sock):
            for op in range(1, 4):
                sock.send(contribution(1, COUNT, op))
                assert not difference(sock.take(COUNT * 4), expected(2, COUNT, op))
        pid = rank_in_child(net, 1, 1, more, bucket_max=1 << 17)
        sock = others(net, 1, bucket_max=1 << 17)[0]
        finish_join(sock)
        os.kill(pid, signal.SIGSTOP)
        for op in range(4):
            sock.send(contribution(0, COUNT, op))
            if op == 0:
                sock.poll(seconds=5)
                os.kill(pid, signal.SIGCONT)
            assert not difference(sock.take(COUNT * 4), expected(2, COUNT, op))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        sock.close()


def test_rejoin_after_kill():
    """A higher epoch on the same port works at once."""
    with Network(3) as net:
        for epoch in range(1, 5):
            pid = rank_in_child(net, 1, 1, lambda _: time.sleep(1000), epoch=epoch,
                                bucket_max=1 << 17)
            sockets = others(net, 1, epoch=epoch, bucket_max=1 << 17)
            begin = time.monotonic()
            for rank, sock in sockets.items():
                finish_join(sock)
                sock.send(contribution(rank, COUNT))
            for sock in sockets.values():
                assert not difference(sock.take(COUNT * 4), expected(3, COUNT))
            took = time.monotonic() - begin
            assert took < 5, f"joining epoch {epoch} took {took:.1f} s"
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            for sock in sockets.values():
                sock.close()


def test_rejoin_with_the_same_epoch():
    """Closed and opened again on all ranks: the session tells the runs apart."""
    with Network(2) as net:
        for _ in range(3):
            with Ranks(net.hosts) as group:
                group.allreduce(1000)


def test_survivors_form_a_smaller_group():
    """After a loss the others go on with N - 1 ranks in a new epoch."""
    with Network(3) as net:
        with Ranks(net.hosts, bucket_max=1 << 17) as group:
            group.allreduce(COUNT)
            group[2].close()
            for rank in (0, 1):
                group[rank].send(contribution(rank, COUNT, 1))
                check_left(group[rank], 2)
        with Ranks(net.hosts[:2], epoch=2, bucket_max=1 << 17) as group:
            group.allreduce(COUNT)


def test_lost_goodbye():
    """Nothing of a leaving rank gets through: it is silent, not gone; a bounded
    recv still ends."""
    with Network(2) as net, Ranks(net.hosts, bucket_max=1 << 17) as group:
        group.allreduce(COUNT)
        net.hosts[1].netem("loss 100%")
        group[1].close()
        group[0].send(contribution(0, COUNT, 1))
        group[0].limit(receive=5)
        try:
            group[0].take(COUNT * 4)
            raise AssertionError("a result without the other rank")
        except OSError as error:
            tap.note(error)
            assert error.errno in (errno.EAGAIN, errno.ECONNRESET, errno.ETIMEDOUT)
        assert group[0].poll(select.POLLIN) in (0, select.POLLIN)


def test_no_hang_at_the_end():
    """One element at the very end, when a peer has gone already."""
    with shared(2) as net, Ranks(net.hosts) as group:
        group.allreduce(100)
        group[1].close()
        group[0].send(contribution(0, 1, 1))
        check_left(group[0], 1)
        begin = time.monotonic()
        group[0].close()
        assert time.monotonic() - begin < 2, "close waits"


tap.main(globals())
