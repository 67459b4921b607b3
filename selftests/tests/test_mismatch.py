#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Ranks that disagree about an op: EPROTO with both values everywhere, nothing
is mixed, and the next op works."""
import errno

from lib import abi, tap
from lib.netns import Network, shared
from lib.sockets import Ranks, refused, reliable
from lib.sums import contribution


def run(nranks, odd, field, values, send, depth=1):
    """Rank odd posts its first op by send(sock, odd), the others as group does."""
    with shared(nranks) as net, \
            Ranks(net.hosts, bucket_max=1 << 18, depth=depth) as group:
        for rank, sock in enumerate(group):
            send(sock, rank == odd)
        for rank, sock in enumerate(group):
            with refused(errno.EPROTO, sock, values):
                sock.take(1 << 18)
            result = sock.result(0)
            assert result.error == errno.EPROTO
            assert result.limit == abi.LIMIT_NONE
            assert result.field == field, f"rank {rank}: field {result.field}"
            assert set(result.value) == set(values), list(result.value)
            assert odd in result.rank, list(result.rank)
            assert result.value[list(result.rank).index(odd)] == values[1]
            assert len(set(result.rank)) == 2
        for sock in group:
            sock.set(abi.OP, reliable())
        group.ops = 1
        group.allreduce(10000)
        group.allreduce(1)


@tap.cases((2, 0), (2, 1), (4, 2), (5, 4))
def test_bytes(nranks, odd):
    def send(sock, is_odd):
        sock.send(contribution(0, 5000 if is_odd else 6000))
    run(nranks, odd, abi.FIELD_BYTES, (24000, 20000), send)


@tap.cases((2, 0), (2, 1), (4, 0), (4, 2))
def test_one_element_against_two(nranks, odd):
    """So short that not everyone is sent a contribution."""
    def send(sock, is_odd):
        sock.send(contribution(0, 2 if is_odd else 1))
    run(nranks, odd, abi.FIELD_BYTES, (4, 8), send)


@tap.cases((2, 1), (4, 0), (4, 3))
def test_reduction(nranks, odd):
    def send(sock, is_odd):
        if is_odd:
            sock.set(abi.OP, reliable(reduction=abi.MEAN))
        sock.send(contribution(0, 8000))
    run(nranks, odd, abi.FIELD_REDUCTION, (abi.SUM, abi.MEAN), send)


@tap.cases((2, 0), (3, 1), (4, 3))
def test_reduction_of_one_element(nranks, odd):
    """Only rank 0, the owner of the one chunk, is sent contributions."""
    def send(sock, is_odd):
        if is_odd:
            sock.set(abi.OP, reliable(reduction=abi.MEAN))
        sock.send(contribution(0, 1))
    run(nranks, odd, abi.FIELD_REDUCTION, (abi.SUM, abi.MEAN), send)


def test_one_large_against_small():
    """A rank that posted little gets chunks far outside of its bucket."""
    def send(sock, is_odd):
        sock.send(contribution(0, 1 if is_odd else 1 << 16))
    run(3, 1, abi.FIELD_BYTES, (1 << 18, 4), send)


def test_late_poster():
    """The odd one posts after the others have failed: it fails too, at once."""
    with shared(3) as net, Ranks(net.hosts, bucket_max=1 << 18) as group:
        group[0].send(contribution(0, 8000))
        group[1].send(contribution(1, 4000))
        for sock in group[:2]:
            with refused(errno.EPROTO, sock):
                sock.take(1 << 18)
        group[2].send(contribution(2, 8000))
        with refused(errno.EPROTO, group[2]):
            group[2].take(1 << 18)
        group.ops = 1
        group.allreduce(5000)


def test_other_ops_in_flight():
    """Of three ops in flight only the one they disagree about fails."""
    with shared(3) as net, Ranks(net.hosts, depth=3) as group:
        for op in range(3):
            for rank, sock in enumerate(group):
                odd = op == 1 and rank == 2
                sock.send(contribution(rank, 4000 if odd else 5000, op))
        group.check(5000, 0)
        for sock in group:
            with refused(errno.EPROTO, sock, (20000, 16000)):
                sock.take(1 << 16)
        group.check(5000, 2)


def test_under_loss():
    with Network(3, netem="delay 200us loss 10%", offloads=False) as net, \
            Ranks(net.hosts) as group:
        for op in range(0, 6, 2):
            for rank, sock in enumerate(group):
                sock.send(contribution(rank, 3000 if rank == op // 2 else 6000))
            for sock in group:
                with refused(errno.EPROTO, sock, (24000, 12000)):
                    sock.take(1 << 16)
            group.ops = op + 1
            group.allreduce(6000)


tap.main(globals())
