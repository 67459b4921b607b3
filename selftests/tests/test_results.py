#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""What became of an op: by its number, as ancillary data, and of one send."""
import errno
import socket
import struct
import time

from lib import abi, tap
from lib.netns import Network, shared
from lib.sockets import Ranks, refused, reliable
from lib.sums import contribution, difference, expected

COUNT = 3000
CONTROL = socket.CMSG_SPACE(abi.sizeof(abi.Result))


def check_complete(result, op, count, nranks, reduction=abi.SUM):
    everyone = (1 << nranks) - 1
    assert result.op == op
    assert result.bytes == count * 4
    # In UML's time travel, what only takes processor time takes none.
    assert 0 <= result.elapsed_ns < 10**10, result.elapsed_ns
    assert list(result.contributed) == [everyone, 0, 0, 0]
    assert list(result.missing) == [0] * 4
    assert result.error == 0
    assert result.limit == abi.LIMIT_COMPLETE
    assert result.verdict == abi.VERDICT_OK
    assert (result.kind, result.dtype) == (abi.ALLREDUCE, abi.F32)
    assert result.reduction == reduction
    assert result.mode == abi.MODE_RELIABLE
    assert (result.bound_us, result.behind, result.field) == (0, 0, abi.FIELD_NONE)
    assert result.flags == 0 and not any(result.reserved)
    assert list(result.rank) == [0, 0] and list(result.value) == [0, 0]


def stages(group, op):
    """(scatter, gather) bytes expected, over all ranks; nothing is missing."""
    total = [0, 0]
    for sock in group:
        result = sock.result(op)
        for i, stage in enumerate((result.scatter, result.gather)):
            assert stage.received == stage.expected and stage.missing == 0
            total[i] += stage.expected
    return total


@tap.cases(2, 3, 5)
def test_by_number(nranks):
    with shared(nranks) as net, Ranks(net.hosts) as group:
        for count in (COUNT, 1, 16384):
            group.allreduce(count)
        for op, count in enumerate((COUNT, 1, 16384)):
            for sock in group:
                check_complete(sock.result(op), op, count, nranks)
            # Each byte is contributed to its owner by all others, and comes
            # back to all others.
            whole = (nranks - 1) * count * 4
            assert stages(group, op) == [whole, whole]


def test_by_two_plain_options():
    """ORED_RESULT_OF: for languages whose getsockopt() passes nothing in."""
    size = abi.sizeof(abi.Result)
    with shared(2) as net, Ranks(net.hosts) as group:
        sock = group[0]
        with refused(errno.ENOENT, sock):
            sock.getsockopt(abi.SOL_ORED, abi.RESULT_OF, size)
        for count in (COUNT, 1, 50):
            group.allreduce(count)
            value = sock.getsockopt(abi.SOL_ORED, abi.RESULT_OF, size)
            assert value == bytes(sock.result(group.ops - 1)), "not the last op"
        for number in (1, 0, 2):
            sock.set(abi.RESULT_OF, struct.pack("=Q", number))
            value = sock.getsockopt(abi.SOL_ORED, abi.RESULT_OF, size)
            assert value == bytes(sock.result(number))
        sock.set(abi.RESULT_OF, struct.pack("=Q", 3))
        with refused(errno.ENOENT, sock):
            sock.getsockopt(abi.SOL_ORED, abi.RESULT_OF, size)
        for length in (0, 4, 7):
            with refused(errno.EINVAL, sock):
                sock.set(abi.RESULT_OF, bytes(length))


def test_unfinished_and_forgotten():
    with shared(2) as net, Ranks(net.hosts, depth=2) as group:
        for number in (0, 1, 1 << 40, (1 << 64) - 1):
            with refused(errno.ENOENT, group[0]):
                group[0].result(number)
        group[0].send(contribution(0, COUNT))
        with refused(errno.ENOENT, group[0]):
            group[0].result(0)
        group[1].send(contribution(1, COUNT))
        group.ops = 1
        group.check(COUNT, 0)
        for _ in range(2 * abi.MAX_DEPTH):
            group.allreduce(1)
        last = group.ops - 1
        for number in range(last - abi.MAX_DEPTH + 1, last + 1):
            assert group[0].result(number).op == number
        for number in (0, last - abi.MAX_DEPTH, last + 1):
            with refused(errno.ENOENT, group[0]):
                group[0].result(number)


def test_finished_but_not_received():
    """A finished op's result can be read before recv()."""
    with shared(2) as net, Ranks(net.hosts, depth=2) as group:
        group.post(COUNT)
        assert group[0].poll(seconds=10)
        check_complete(group[0].result(0), 0, COUNT, 2)
        group.check(COUNT, 0)


def test_ancillary():
    """With ORED_RESULTS recvmsg() carries the result, and only then."""
    with shared(2) as net, Ranks(net.hosts) as group:
        sock = group[0]
        group.post(COUNT)
        data, control, flags = sock.read(COUNT * 4, control=CONTROL)
        assert not control and not flags & socket.MSG_CTRUNC
        group[1].take(COUNT * 4)
        sock.set(abi.RESULTS, 1)
        for op in (1, 2):
            group.post(COUNT)
            data, control, flags = sock.read(COUNT * 4, control=CONTROL)
            assert not difference(data, expected(2, COUNT, op))
            [(level, kind, value)] = control
            assert (level, kind) == (abi.SOL_ORED, abi.RESULT)
            assert len(value) == abi.sizeof(abi.Result)
            check_complete(abi.Result.from_buffer_copy(value), op, COUNT, 2)
            assert bytes(sock.result(op)) == value
            group[1].take(COUNT * 4)
        group.allreduce(COUNT)		# plain recv() goes on to work
        group.post(COUNT)
        data, control, flags = sock.read(COUNT * 4, control=socket.CMSG_SPACE(8))
        assert flags & socket.MSG_CTRUNC
        assert not difference(data, expected(2, COUNT, 4))
        group[1].take(COUNT * 4)


def test_ancillary_of_a_failed_op():
    """recvmsg() that fails has no ancillary data; the number has the result."""
    with shared(2) as net, Ranks(net.hosts) as group:
        group[0].set(abi.RESULTS, 1)
        group[0].send(contribution(0, 10))
        group[1].send(contribution(1, 20))
        with refused(errno.EPROTO, group[0]):
            group[0].read(80, control=CONTROL)
        assert group[0].result(0).error == errno.EPROTO


def test_peeked_ancillary():
    with shared(2) as net, Ranks(net.hosts) as group:
        group[0].set(abi.RESULTS, 1)
        group.post(COUNT)
        values = [group[0].read(COUNT * 4, flag, CONTROL)[1][0][2]
                  for flag in (socket.MSG_PEEK, 0)]
        assert values[0] == values[1]


def test_op_of_one_send():
    """ORED_OP beside a bucket replaces the socket's op for that one."""
    mean = [(abi.SOL_ORED, abi.OP, reliable(reduction=abi.MEAN))]
    with shared(3) as net, Ranks(net.hosts, depth=3) as group:
        for rank, sock in enumerate(group):
            sock.send(contribution(rank, COUNT, 0))
            sock.sendmsg([contribution(rank, COUNT, 1)], mean)
            sock.send(contribution(rank, COUNT, 2))
        group.check(COUNT, 0)
        group.check(COUNT, 1, mean=True)
        group.check(COUNT, 2)
        for sock in group:
            check_complete(sock.result(1), 1, COUNT, 3, abi.MEAN)
            assert sock.get(abi.OP, abi.Op).reduction == abi.SUM


def test_op_as_a_whole():
    """It replaces all of the socket's op, not only what isn't zero."""
    with shared(2) as net, Ranks(net.hosts) as group:
        plain = [(abi.SOL_ORED, abi.OP, reliable())]
        for rank, sock in enumerate(group):
            sock.set(abi.OP, reliable(reduction=abi.MEAN))
            sock.sendmsg([contribution(rank, COUNT)], plain)
        group.check(COUNT, 0)
        group.ops = 1
        group.allreduce(COUNT, mean=True)


def test_modes():
    """One that names none is bounded, unless the rank's policy says otherwise;
    ranks that end up in different modes disagree."""
    with shared(2) as net, Ranks(net.hosts, mode=abi.MODE_DEFAULT) as group:
        group.allreduce(COUNT)
        for sock in group:
            result = sock.result(0)
            assert result.mode == abi.MODE_BOUNDED and result.bound_us > 0
            assert result.verdict == abi.VERDICT_OK
            sock.set(abi.POLICY, bytes(abi.Policy(mode=abi.MODE_RELIABLE)))
        group.allreduce(COUNT)
        for sock in group:
            check_complete(sock.result(1), 1, COUNT, 2)
        group[0].set(abi.OP, bytes(abi.Op(mode=abi.MODE_BOUNDED)))
        group.post(COUNT)
        for sock in group:
            with refused(errno.EPROTO, sock, "mode"):
                sock.take(COUNT * 4)
            result = sock.result(2)
            assert result.field == abi.FIELD_MODE
            assert sorted(result.value) == [abi.MODE_BOUNDED, abi.MODE_RELIABLE]


def test_elapsed():
    """From post to finish, and it is about as long as the clock says."""
    with Network(2, netem="delay 20ms") as net, Ranks(net.hosts) as group:
        begin = time.monotonic()
        group.allreduce(COUNT)
        took = (time.monotonic() - begin) * 1e9
        for sock in group:
            elapsed = sock.result(0).elapsed_ns
            assert 35e6 < elapsed < took, (elapsed, took)
        group[0].send(contribution(0, COUNT, 1))
        time.sleep(1)
        group[1].send(contribution(1, COUNT, 1))
        group.check(COUNT, 1)
        assert group[0].result(1).elapsed_ns > 1e9
        assert group[1].result(1).elapsed_ns < 1e9


def test_repaired():
    """What came only after a resend is counted as repaired."""
    with Network(2, netem="delay 1ms loss 20%", offloads=False) as net, \
            Ranks(net.hosts, bucket_max=1 << 20) as group:
        group.allreduce(200000)
        repaired = sum(s.result(0).scatter.repaired + s.result(0).gather.repaired
                       for s in group)
        resent = sum(s.result(0).resent for s in group)
        assert repaired > 0
        assert resent > 0
        assert resent <= group.total("resent")


tap.main(globals())
