#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Joining has an end, says who is missing and who disagrees."""
import contextlib
import ctypes
import errno
import select
import socket
import time

from lib import abi, raw, tap
from lib.netns import Network, shared
from lib.signals import with_signal
from lib.sockets import (Ranks, Socket, finish_join, join_value, peer, refused,
                         start_join)

MINUTE = 60000


def peers_of(net):
    return [peer(h.address) for h in net.hosts]


def check_missing(sock, missing, address):
    """The sentence and ORED_PEERS both name who never came."""
    sentence = sock.error()
    assert str(missing) in sentence and address in sentence, sentence
    states = sock.peers()
    assert [s.rank for s in states] == list(range(len(states)))
    for state in states:
        if state.rank == missing:
            assert state.status == abi.PEER_UNKNOWN
            assert state.heard_us == (1 << 64) - 1
    return states


@tap.cases("timeout_ms", "SO_RCVTIMEO")
def test_missing_rank(bound):
    """Rank 2 of 3 never comes: ETIMEDOUT in time, and it is named."""
    with shared(3) as net:
        fields = {"timeout_ms": 1500 if bound == "timeout_ms" else MINUTE}
        with Socket(net.hosts[0]) as one, Socket(net.hosts[1]) as two:
            start_join(two, join_value(peers_of(net), rank=1, timeout_ms=MINUTE))
            if bound == "SO_RCVTIMEO":
                one.limit(receive=1.5)
            begin = time.monotonic()
            with refused(errno.ETIMEDOUT, one):
                one.join(join_value(peers_of(net), rank=0, **fields))
            took = time.monotonic() - begin
            assert 1.4 < took < 2.5, took
            states = check_missing(one, 2, net.hosts[2].address)
            assert str(MINUTE) not in one.error(), one.error()
            assert states[1].status in (abi.PEER_HEARD, abi.PEER_LIVE)
            assert states[1].heard_us < 1500000
            assert one.group().state == abi.STATE_FAILED


def test_all_missing_are_named():
    with shared(4) as net, Socket(net.hosts[0]) as sock:
        with refused(errno.ETIMEDOUT, sock):
            sock.join(join_value(peers_of(net), timeout_ms=1000))
        for rank in (1, 2, 3):
            check_missing(sock, rank, net.hosts[rank].address)


def test_nobody_at_that_port():
    """Peers that answer with ICMP are waited for as well: they may be booting."""
    with shared(2) as net, Socket(net.hosts[0]) as one:
        start_join(one, join_value(peers_of(net)))
        assert not one.poll(select.POLLOUT, 1)
        with Socket(net.hosts[1]) as two:
            start_join(two, join_value(peers_of(net), rank=1))
            finish_join(one)
            finish_join(two)


def test_join_after_failure():
    """A socket that failed to join may try again."""
    with shared(2) as net, Socket(net.hosts[0]) as one:
        with refused(errno.ETIMEDOUT, one):
            one.join(join_value(peers_of(net), timeout_ms=500))
        start_join(one, join_value(peers_of(net)))
        with Socket(net.hosts[1]) as two:
            start_join(two, join_value(peers_of(net), rank=1))
            for sock in (one, two):
                finish_join(sock)
                sock.send(b"\0\0\x80\x3f")
            assert one.take(4) == two.take(4) == b"\0\0\0\x40"


def test_nonblocking():
    """EINPROGRESS, then POLLOUT and SO_ERROR; nothing else meanwhile."""
    with shared(2) as net, Socket(net.hosts[0]) as one:
        value = join_value(peers_of(net))
        one.nonblocking()
        with refused(errno.EINPROGRESS):
            one.join(value)
        assert one.group().state == abi.STATE_JOINING
        assert one.group().payload == 0
        assert not one.poll(select.POLLIN | select.POLLOUT)
        with refused(errno.EALREADY, one):
            one.join(value)
        for call in (lambda: one.send(bytes(8)), lambda: one.recv(8)):
            with refused(errno.ENOTCONN, one):
                call()
        with Socket(net.hosts[1]) as two:
            start_join(two, join_value(peers_of(net), rank=1))
            assert one.poll(select.POLLOUT, 10) == select.POLLOUT
            assert one.so_error() == 0
            assert one.group().state == abi.STATE_JOINED
            finish_join(two)


def test_nonblocking_failure():
    with shared(2) as net, Socket(net.hosts[0]) as one:
        start_join(one, join_value(peers_of(net), timeout_ms=700))
        assert one.poll(select.POLLOUT, 10) & (select.POLLOUT | select.POLLERR)
        assert one.so_error() == errno.ETIMEDOUT
        assert one.so_error() == 0, "SO_ERROR is read once"
        check_missing(one, 1, net.hosts[1].address)
        assert one.group().state == abi.STATE_FAILED
        with refused(errno.ENOTCONN):
            one.send(bytes(8))


def test_signal():
    """EINTR; the group isn't half joined, and the same socket may try again."""
    with shared(2) as net, Socket(net.hosts[0]) as one:
        one.limit(0)
        value = join_value(peers_of(net), timeout_ms=MINUTE)
        memory = ctypes.create_string_buffer(value, len(value))
        with_signal(raw.setsockopt, one, abi.JOIN, memory, len(value))
        assert one.group().state == abi.STATE_FAILED
        start_join(one, value)
        with Socket(net.hosts[1]) as two:
            start_join(two, join_value(peers_of(net), rank=1))
            finish_join(one)
            finish_join(two)


def test_close_while_joining():
    with shared(2) as net:
        for _ in range(3):
            one = Socket(net.hosts[0])
            start_join(one, join_value(peers_of(net)))
            time.sleep(0.1)
            one.close()
        with Ranks(net.hosts) as group:
            group.allreduce(10)


def test_shutdown_while_joining():
    """There is nothing to shut down yet, and joining goes on."""
    with shared(2) as net, Socket(net.hosts[0]) as one:
        start_join(one, join_value(peers_of(net)))
        with refused(errno.ENOTCONN, one):
            one.shutdown(socket.SHUT_RDWR)
        with Socket(net.hosts[1]) as two:
            start_join(two, join_value(peers_of(net), rank=1))
            finish_join(one)
            finish_join(two)


def test_late_rank():
    """Ranks may come seconds apart."""
    with shared(3) as net:
        sockets = []
        for rank, host in enumerate(net.hosts):
            sockets.append(Socket(host))
            start_join(sockets[-1], join_value(peers_of(net), rank=rank))
            time.sleep(3)
        for sock in sockets:
            finish_join(sock)
            sock.close()


def test_under_loss():
    with Network(4, netem="delay 300us loss 20%", offloads=False) as net:
        with Ranks(net.hosts) as group:
            group.allreduce(100)


def test_one_way_silence():
    """What rank 0 sends is lost for a while, as when ARP is slow: rank 0 hears
    rank 1 meanwhile. That says nothing about sizes, so the payload stays full."""
    with Network(2) as net:
        net.hosts[1].drop("input", "udp dport 4741")
        with Socket(net.hosts[0]) as one, Socket(net.hosts[1]) as two:
            for rank, sock in enumerate((one, two)):
                start_join(sock, join_value(peers_of(net), rank=rank))
            assert not one.poll(select.POLLOUT, 4), one.error()
            assert one.peers()[1].status == abi.PEER_HEARD
            net.hosts[1].drop_no_more()
            for sock in (one, two):
                finish_join(sock)
                group = sock.group()
                assert group.payload + group.header + 28 > 1490, group.payload


@tap.cases("nranks", "depth", "bucket_max")
def test_disagreement(field):
    """Peers that disagree about the group: EPROTO on both, with both values."""
    values = {"nranks": (2, 3), "depth": (2, 5), "bucket_max": (65536, 32768)}[field]
    with shared(3) as net:
        peers = peers_of(net)
        ours, theirs = [{"depth": 2, field: v} for v in values]
        lists = (peers[:2], peers if field == "nranks" else peers[:2])
        with Socket(net.hosts[0]) as one, Socket(net.hosts[1]) as two:
            start_join(one, join_value(lists[0], rank=0, **ours))
            start_join(two, join_value(lists[1], rank=1, **theirs))
            for sock in (one, two):
                with refused(errno.EPROTO, sock, values):
                    finish_join(sock)
                assert sock.group().state == abi.STATE_FAILED
            assert one.peers()[1].status == abi.PEER_REFUSED


def test_who_disagrees():
    """Of three ranks one is at odds with the others: it is the one that is named."""
    with shared(3) as net:
        with contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(Socket(host)) for host in net.hosts]
            for rank, sock in enumerate(sockets):
                start_join(sock, join_value(peers_of(net), rank=rank,
                                            depth=7 if rank == 2 else 3))
            for sock in sockets[:2]:
                with refused(errno.EPROTO, sock, ("rank 2", net.hosts[2].address,
                                                  "depth", "says 7, here it is 3")):
                    finish_join(sock)
                assert "rank 1" not in sock.error() and "rank 0" not in sock.error()


def test_peers_that_do_not_hear_each_other():
    """Everybody answers rank 0, but ranks 1 and 2 have no path: nobody joins."""
    with Network(3) as net, contextlib.ExitStack() as stack:
        net.hosts[1].drop("input", f"ip saddr {net.hosts[2].address}")
        net.hosts[2].drop("input", f"ip saddr {net.hosts[1].address}")
        sockets = [stack.enter_context(Socket(host)) for host in net.hosts]
        for rank, sock in enumerate(sockets):
            start_join(sock, join_value(peers_of(net), rank=rank, timeout_ms=1500))
        with refused(errno.ETIMEDOUT, sockets[0], "not all of them have heard each other"):
            finish_join(sockets[0])
        with refused(errno.ETIMEDOUT, sockets[1], ("rank 2", net.hosts[2].address)):
            finish_join(sockets[1])


def test_missing_ipv6():
    with shared(2) as net, Socket(net.hosts[0]) as sock:
        peers = [peer(h.address6) for h in net.hosts]
        with refused(errno.ETIMEDOUT, sock, f"rank 1 ({net.hosts[1].address6})"):
            sock.join(join_value(peers, timeout_ms=300))


def test_more_missing_than_can_be_named():
    """The sentence names the first ones, says that there are more, and ends."""
    peers = [peer("127.0.0.1", 5000 + i) for i in range(100)]
    with Socket() as sock:
        with refused(errno.ETIMEDOUT, sock, ("rank 1 (", "rank 2 (", "and others did not")):
            sock.join(join_value(peers, port=5000, timeout_ms=300, payload_max=1400))
        assert sock.error().endswith("did not answer within 300 ms"), sock.error()
        assert "rank 99" not in sock.error()


def test_started_again():
    """A rank that starts again in the same run is not let in, and nobody is hurt."""
    with Network(3) as net, Ranks(net.hosts, epoch=77) as group:
        group.allreduce(1000)
        before = group[0].stats()["bad_control"]
        group.pop(1).close()
        with Socket(net.hosts[1]) as again:
            with refused(errno.ETIMEDOUT, again, net.hosts[0].address):
                again.join(join_value(peers_of(net), rank=1, epoch=77, timeout_ms=1000))
        assert group[0].stats()["bad_control"] > before
        assert group[0].group().state == abi.STATE_JOINED


def test_another_epoch():
    """A peer of another run isn't a peer: counted, and waited for."""
    with shared(2) as net:
        with Socket(net.hosts[0]) as one, Socket(net.hosts[1]) as two:
            for rank, sock in enumerate((one, two)):
                start_join(sock, join_value(peers_of(net), rank=rank,
                                            epoch=rank + 1, timeout_ms=1500))
            for sock in (one, two):
                with refused(errno.ETIMEDOUT, sock):
                    finish_join(sock)
            # The counter is the namespace's; it outlives the attempt.
            assert one.stats()["ns_epoch"] > 0


def test_wrong_address_of_a_peer():
    """One rank has another's address wrong: it never gets an answer."""
    with shared(3) as net:
        wrong = [peer(net.hosts[0].address), peer(net.hosts[2].address)]
        with Socket(net.hosts[0]) as one, Socket(net.hosts[1]) as two:
            start_join(two, join_value(peers_of(net)[:2], rank=1))
            with refused(errno.ETIMEDOUT, one):
                one.join(join_value(wrong, rank=0, timeout_ms=1500))


def test_memory():
    """What can't be allocated is ENOMEM at once, not an OOM killer later."""
    with shared(1) as net, Socket(net.hosts[0]) as sock:
        with refused(errno.ENOMEM, sock):
            sock.join(join_value(peers_of(net) * 8, depth=16, bucket_max=1 << 30))
        assert sock.group().state == abi.STATE_NEW


def test_large_group():
    """32 ranks behind one address."""
    with Ranks([None] * 32, [peer("127.0.0.1")] * 32, bucket_max=1 << 15,
               payload_max=1400) as group:
        group.allreduce(8192)


tap.main(globals())
