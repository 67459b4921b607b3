#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Bounded ops of ranks in one process: what the kernel itself says of them."""
import errno
import socket
import time

from lib import abi, ledger, tap
from lib.netns import Network
from lib.sockets import Ranks, refused
from lib.sums import contribution, difference, expected

DELAY = "delay 100us"
RANKS, BOUND_US = 4, 50000
SLACK_NS = 200000


def group_of(net):
    """Means, with a bound of their own and no wait for late posters."""
    group = Ranks(net.hosts, mode=abi.MODE_BOUNDED)
    for sock in group:
        sock.set(abi.OP, abi.Op(reduction=abi.MEAN, deadline_us=BOUND_US,
                                flags=abi.OP_NO_WAIT | abi.OP_HADAMARD_OFF))
    return group


def test_quiet():
    with Network(RANKS, netem=DELAY, offloads=False) as net, group_of(net) as group:
        for op in range(5):
            for rank, sock in enumerate(group):
                sock.send(contribution(rank, 6000, op))
            for sock in group:
                assert not difference(sock.take(24000), expected(RANKS, 6000, op, mean=True))
                result = sock.result(op)
                assert result.limit == abi.LIMIT_COMPLETE
                assert result.verdict == abi.VERDICT_OK
                assert result.mode == abi.MODE_BOUNDED
                assert result.bound_us == BOUND_US


def test_late():
    """A rank doesn't post: its bound ends the op, with the mean of the others, and
    with the own numbers where that rank would have reduced."""
    count, there, over = 6000, range(RANKS - 1), -BOUND_US * 1000
    with Network(RANKS, netem=DELAY, offloads=False) as net, group_of(net) as group:
        parts = ledger.Map(count * 4, group[0].group().payload, RANKS)
        for op in range(4):
            for rank in there:
                group[rank].send(contribution(rank, count, op))
            mean = expected(list(there), count, op, mean=True)
            for rank in there:
                got, own = group[rank].take(count * 4), contribution(rank, count, op)
                result = group[rank].result(op)
                for chunk in range(parts.chunks):
                    begin = chunk * parts.payload
                    end = begin + parts.size(chunk)
                    want = own if parts.owner(chunk) == RANKS - 1 else mean
                    assert got[begin:end] == want[begin:end], (op, rank, chunk)
                # Two ops that it has missed, and it isn't waited for any more.
                assert result.limit == (abi.LIMIT_HARD if op < 2 else abi.LIMIT_COMPLETE)
                over = max(over, result.elapsed_ns - BOUND_US * 1000)
                assert ledger.words(result.contributed) == set(there)
                assert ledger.words(result.missing) == {RANKS - 1}
                assert result.gather.missing == parts.bytes_of(parts.shard(RANKS - 1))
                assert result.scatter.missing == parts.bytes_of(parts.shard(rank))
        assert group[0].peers()[RANKS - 1].status == abi.PEER_STALLED
    tap.note(f"{over // 1000} us over the bound at most")
    assert over <= SLACK_NS


def test_overtaken():
    """Ops that the others have left long ago are to be skipped, even if nothing of
    them has come: that is no reason to halt."""
    count, late = 6000, RANKS - 1
    with Network(RANKS, netem=DELAY, offloads=False) as net, \
            group_of(net) as group:
        for op in range(8):
            for rank in range(late):
                group[rank].send(contribution(rank, count, op))
            for rank in range(late):
                group[rank].take(count * 4)
        for op in range(7):
            group[late].send(contribution(late, count, op))
            assert group[late].take(count * 4)
            result = group[late].result(op)
            if op < 2:	# their data were taken in before the post
                continue
            assert result.limit == abi.LIMIT_BEHIND and result.behind, (op, result.limit)
            assert result.gather.received == 0 == result.scatter.received
            assert result.verdict == abi.VERDICT_SKIP, (op, result.verdict)
            assert result.flags & abi.RESULT_RESYNC


def test_passed_over():
    """A rank that serves its shard, and still tells of an op that has failed, tells
    nothing of those that it passes over: there is nothing that it could say."""
    last = RANKS - 1
    with Network(RANKS, netem=DELAY, offloads=False) as net, \
            Ranks(net.hosts, depth=4) as group:
        group[0].send(contribution(0, 5000))
        group[last].send(contribution(0, 6000))
        with refused(errno.EPROTO, group[last]):
            group[last].recv(24000)
        group[last].shutdown(socket.SHUT_WR)
        with refused(errno.EPROTO, group[0]):
            group[0].recv(24000)
        # It hears that there are ops, and sees nothing of them.
        net.hosts[last].drop("input", "udp dport 4741 @th,72,8 & 0xf0 == 0x20")
        alone = bytes(abi.Op(mode=abi.MODE_BOUNDED, deadline_us=BOUND_US))
        for _ in range(3):
            group[0].sendmsg([contribution(0, 5000)], [(abi.SOL_ORED, abi.OP, alone)])
            group[0].take(20000)
        tap.wait_for(lambda: group[last].group().posted > 1, 5, "ops to be passed over")
        time.sleep(2)
        for sock in group:
            assert sock.stats()["bad_control"] == 0, "it has told nonsense"


def test_early_finisher_serves():
    """One that has no more data, but keeps its socket open, still reduces its shard:
    the others have whole means, over those who are still there."""
    count = 6000
    with Network(RANKS, netem=DELAY, offloads=False) as net, \
            group_of(net) as group:
        for op in range(12):
            there = range(RANKS) if op < 4 else range(RANKS - 1)
            for rank in there:
                group[rank].send(contribution(rank, count, op))
            for rank in there:
                got = group[rank].take(count * 4)
                result = group[rank].result(op)
                assert not difference(got, expected(list(there), count, op, mean=True))
                assert result.verdict == abi.VERDICT_OK, (op, rank, result.verdict)
                assert result.limit == abi.LIMIT_COMPLETE
                assert ledger.words(result.contributed) == set(there)
                assert not ledger.words(result.missing)
            if op == 3:
                group[RANKS - 1].shutdown(socket.SHUT_WR)
        assert group[0].peers()[RANKS - 1].status == abi.PEER_LEFT
        assert group[RANKS - 1].recv(count * 4) == b"", "results after the end"
        # Once the socket is closed the shard is nobody's.
        group[RANKS - 1].close()
        for rank in there:
            group[rank].send(contribution(rank, count, 12))
        for rank in there:
            group[rank].take(count * 4)
            result = group[rank].result(12)
            assert ledger.words(result.missing) == {RANKS - 1}, rank
            assert result.verdict == abi.VERDICT_SKIP


tap.main(globals())
