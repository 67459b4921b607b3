#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Slots: buckets that are filled in, sent from, reduced into and used at one place."""
import ctypes
import errno
import fcntl
import mmap
import os
import subprocess

import numpy

from lib import abi, raw, tap
from lib.kinds import Case
from lib.netns import Network, shared
from lib.slots import Group, map_raw, protect, unmap_raw
from lib.sockets import Ranks, Socket, refused

PAGE = mmap.PAGESIZE
READ, WRITE, EXEC = mmap.PROT_READ, mmap.PROT_WRITE, mmap.PROT_EXEC
LOOP_CTL_GET_FREE, LOOP_SET_FD, LOOP_CLR_FD = 0x4c82, 0x4c00, 0x4c01
KINDS = ("allreduce", "reduce-scatter", "all-gather", "broadcast")


def start(case, rank):
    """Where in the slot that lies which a rank gives to an all-gather, or gets of a
    reduce-scatter"""
    return case.place(rank).start * case.size


def fill(case, slots, rank, index):
    at = start(case, rank) if case.kind == "all-gather" else 0
    slots.write(index, case.gives(rank), at)


def post(case, slots, index):
    fields = {n: getattr(case.op, n) for n in ("kind", "dtype", "root", "mode")}
    slots.post(index, case.count * case.size, **fields)


def check(case, slots, rank, index):
    want = case.gets(rank)
    at = start(case, rank) if case.kind == "reduce-scatter" else 0
    assert slots.wait() == len(want)
    assert slots.bytes(index, len(want), at) == want, f"{case}, rank {rank}"


@tap.cases(*[(kind, n) for kind in KINDS for n in (1, 3, 4)])
def test_in_place(kind, nranks):
    """Every dtype, at lengths that divide by nothing, bounded and reliable."""
    with Group([None] * nranks, depth=2) as group:
        assert group.slots[0].count == 3 and group.slots[0].stride == 1 << 16
        number = 0
        for dtype in ("f16", "f32", "f64", "i32"):
            for count in (nranks, 4999):
                case = Case(kind, nranks, count, dtype, number % nranks, number,
                            mode=1 + number % 2,
                            deadline_us=(number + 1) % 2 * 1000000)
                for rank, slots in enumerate(group.slots):
                    fill(case, slots, rank, number % 3)
                    post(case, slots, number % 3)
                for rank, slots in enumerate(group.slots):
                    check(case, slots, rank, number % 3)
                    assert group[rank].result(number).verdict == abi.VERDICT_OK
                number += 1


@tap.cases("all-gather", "broadcast")
def test_post_after_arrival(kind):
    """What came before the post is in the slot too."""
    with shared(3) as net, Group(net.hosts) as group:
        for late in range(3):
            case = Case(kind, 3, 9001, number=late, root=(late + 1) % 3,
                        mode=abi.MODE_RELIABLE)
            before = arrived(group[late])
            for rank in [r for r in range(3) if r != late] + [late]:
                if rank == late:
                    tap.wait_for(lambda l=late, b=before: arrived(group[l]) > b + 5, 20,
                                 "packets")
                fill(case, group.slots[rank], rank, 0)
                post(case, group.slots[rank], 0)
            for rank, slots in enumerate(group.slots):
                check(case, slots, rank, 0)


def arrived(sock):
    return sock.stats()["rx_data"]


def test_busy():
    """A slot that an op has is refused to others, and free again after recv()."""
    with Group([None] * 2, depth=2) as group:
        for number in range(3):
            for sock, slots in zip(group, group.slots):
                slots.array(0, 100)[:] = 1
                slots.post(0, 400)
                with refused(errno.EBUSY, sock, (f"op {2 * number}", "slot 0")):
                    slots.post(0, 400)
                slots.array(2, 100)[:] = 2
                slots.post(2, 400)
            for slots in group.slots:
                for index, want in ((0, 2), (2, 4)):
                    assert slots.wait() == 400
                    assert (slots.array(index, 100) == want).all()


def test_overwritten_at_once():
    """A slot is its user's when recv() returns: whatever he writes then reaches no
    peer, though packets get lost and have to be sent again."""
    ops, count, nranks = 12, 12000, 4
    with Network(nranks, netem="delay 300us limit 1000 loss 4%", offloads=False) as net, \
            Group(net.hosts) as group:
        for number in range(ops):
            for rank, slots in enumerate(group.slots):
                slots.array(0, count)[:] = rank + 1 + number
                slots.post(0, 4 * count, mode=1 + number % 2)
            for rank, slots in enumerate(group.slots):
                assert slots.wait() == 4 * count
                got = slots.array(0, count).copy()
                slots.array(0, count)[:] = 1e30
                if number % 2:
                    assert (got == 10 + 4 * number).all(), f"op {number}, rank {rank}"
                # A bounded one may be partial, of what ranks gave and nothing else.
                assert got.max() < 1000, f"op {number}, rank {rank}: {got.max()}"
            if number % 2 == 0:
                for rank, sock in enumerate(group):
                    result = sock.result(number)
                    assert result.verdict != abi.VERDICT_HALT, f"rank {rank}"


def test_writing_while_in_flight():
    """It can spoil one's own contribution and copy, and nothing of other ranks'."""
    count = 16000
    with shared(3) as net, Group(net.hosts) as group:
        for number in range(5):
            for rank, slots in enumerate(group.slots):
                slots.array(0, count)[:] = rank + 1
                slots.post(0, 4 * count, mode=abi.MODE_RELIABLE)
                if rank == 1:
                    slots.array(0, count)[:] = 7
            results = []
            for slots in group.slots:
                slots.wait()
                results.append(slots.array(0, count).copy())
            assert (results[0] == results[2]).all(), "replicas differ"
            assert numpy.isin(results[0], (6, 11)).all(), "neither old nor new"


@tap.cases(abi.HADAMARD_ON, abi.HADAMARD_OFF)
def test_hadamard(policy):
    """Who posts a slot and who sends the bucket get the same bits, transformed or not,
    and the slot is as good for the next op."""
    count = 5000
    with shared(3) as net, Group(net.hosts) as group:
        for sock in group:
            sock.set(abi.POLICY, abi.Policy(hadamard=policy))
        for number in range(4):
            buckets = [numpy.sin(numpy.arange(count) * (r + 1) + number).astype("f4")
                       for r in range(3)]
            for rank, (sock, slots) in enumerate(zip(group, group.slots)):
                if rank == 1:
                    sock.set(abi.OP, abi.Op(mode=abi.MODE_RELIABLE))
                    sock.send(buckets[rank].tobytes())
                else:
                    slots.array(0, count)[:] = buckets[rank]
                    slots.post(0, 4 * count, mode=abi.MODE_RELIABLE)
            got = [group[rank].take(4 * count) if rank == 1 else b"" for rank in range(3)]
            for rank in (0, 2):
                assert group.slots[rank].wait() == 4 * count
                got[rank] = group.slots[rank].bytes(0, 4 * count)
            assert len(set(got)) == 1, "ranks have got different bits"
            assert numpy.allclose(numpy.frombuffer(got[0], "f4"), sum(buckets), atol=1e-5)
            flags = group[0].result(number).flags
            assert bool(flags & abi.RESULT_HADAMARD) == (policy == abi.HADAMARD_ON)


def test_refused_ops():
    with Group([None]) as group:
        sock, slots = group[0], group.slots[0]
        for fields, words in (({"slot": 9}, "slot 9"), ({"length": 0}, "empty"),
                              ({"length": 6}, "multiple"),
                              ({"kind": abi.BARRIER}, "barrier")):
            with refused(errno.EINVAL, sock, words):
                slots.post(**{"index": 0, "length": 8, **fields} if "slot" not in fields
                           else {"index": 9, "length": 8})
        with refused(errno.EMSGSIZE, sock, "larger"):
            slots.post(0, (1 << 16) + 8)
        op = abi.Op(flags=abi.OP_SLOT, length=8)
        with refused(errno.EINVAL, sock, "8 bytes more"):
            sock.sendmsg([bytes(8)], [(abi.SOL_ORED, abi.OP, bytes(op))])
        with refused(errno.EINVAL, sock, "without ORED_OP_SLOT"):
            sock.set(abi.OP, bytes(abi.Op(slot=1)))
    with Ranks([None]) as group:
        with refused(errno.EINVAL, group[0], "ORED_JOIN_SLOTS"):
            group[0].sendmsg([], [(abi.SOL_ORED, abi.OP, bytes(op))])


def test_mappings():
    """What can be mapped how."""
    with Ranks([None]) as group, refused(errno.ENODEV, group[0], "ORED_JOIN_SLOTS"):
        map_raw(group[0], PAGE, READ, mmap.MAP_SHARED)
    with Socket() as sock, refused(errno.ENOTCONN, sock):
        map_raw(sock, PAGE, READ, mmap.MAP_SHARED)
    with Group([None]) as group:
        sock, slots = group[0], group.slots[0]
        slots.write(0, b"seen")
        size = slots.count * slots.stride
        with refused(errno.EINVAL, sock, "MAP_SHARED"):
            map_raw(sock, PAGE, READ | WRITE, mmap.MAP_PRIVATE)
        with refused(errno.EPERM, sock):
            map_raw(sock, PAGE, READ | EXEC, mmap.MAP_SHARED)
        for offset, length in ((size, PAGE), (size - PAGE, 2 * PAGE), (1 << 50, PAGE)):
            with refused(errno.EINVAL, sock, "page"):
                map_raw(sock, length, READ, mmap.MAP_SHARED, offset)
        for flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):
            where = map_raw(sock, PAGE, READ, flags)
            assert ctypes.string_at(where, 4) == b"seen"
            assert protect(where, PAGE, READ | WRITE) == errno.EACCES
            assert protect(where, PAGE, READ | EXEC) == errno.EACCES
            unmap_raw(where, PAGE)
        where = map_raw(sock, PAGE, READ | WRITE, mmap.MAP_SHARED, size - PAGE)
        ctypes.memset(where, 5, PAGE)
        assert slots.bytes(slots.count - 1, 4, slots.stride - PAGE) == bytes([5] * 4)
        unmap_raw(where, PAGE)


def test_memory():
    """Slots count as memory of the group."""
    with Ranks([None], depth=3) as plain, Group([None], depth=3) as group:
        more = group[0].group().memory - plain[0].group().memory
        assert more == 4 * (1 << 16), more
        assert group[0].group().slots == 4 and not plain[0].group().slots


def left(sock):
    return sock.peers()[1].status == abi.PEER_LEFT


def test_mapping_holds_the_group():
    """Closed, but still mapped, it is a member; a child's mapping counts as well."""
    with shared(2) as net, Group(net.hosts) as group:
        slots = group.slots[1]
        slots.write(0, b"kept")
        pid = os.fork()
        if not pid:
            os.read(group_pipe[0], 1)
            os._exit(0 if slots.bytes(0, 4) == b"kept" else 1)
        group[1].close()
        assert slots.bytes(0, 4) == b"kept" and not left(group[0])
        slots.map.close()
        assert not left(group[0]), "the child has it still"
        os.write(group_pipe[1], b"x")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        tap.wait_for(lambda: left(group[0]), 10, "the peer to have left")


group_pipe = os.pipe()


def test_process_vm():
    """Another process reads and writes it."""
    class Iovec(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    with Group([None]) as group:
        slots = group.slots[0]
        slots.write(0, b"from here")
        where = ctypes.addressof(ctypes.c_char.from_buffer(slots.map))
        parent, pid = os.getpid(), os.fork()
        if not pid:
            buffer = ctypes.create_string_buffer(b"xxxxxxxxx", 9)
            local, remote = Iovec(ctypes.addressof(buffer), 9), Iovec(where, 9)
            got = raw.libc.process_vm_readv(parent, ctypes.byref(local), 1,
                                            ctypes.byref(remote), 1, 0)
            good = got == 9 and buffer.raw == b"from here"
            buffer.raw = b"and there"
            put = raw.libc.process_vm_writev(parent, ctypes.byref(local), 1,
                                             ctypes.byref(remote), 1, 0)
            os._exit(0 if good and put == 9 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert slots.bytes(0, 9) == b"and there"


def loop_device(backing):
    """A block device over a file; (its descriptor with O_DIRECT, its own)"""
    subprocess.run(["/sbin/modprobe", "loop"], check=False, capture_output=True)
    try:
        with open("/dev/loop-control", "rb") as control:
            number = fcntl.ioctl(control, LOOP_CTL_GET_FREE)
    except OSError as error:
        raise tap.Skip(f"no loop devices here: {error}") from None
    device = os.open(f"/dev/loop{number}", os.O_RDWR)
    fcntl.ioctl(device, LOOP_SET_FD, backing)
    return os.open(f"/dev/loop{number}", os.O_RDWR | os.O_DIRECT), device


def test_direct_io():
    """A disk reads into a slot and is written from it, without a copy in between."""
    size = 8 * PAGE
    want = bytes(range(256)) * (size // 256)
    with Group([None] * 2) as group:
        backing = os.memfd_create("disk")
        os.write(backing, want + bytes(size))
        direct, device = loop_device(backing)
        try:
            view = memoryview(group.slots[0].map)[:size]
            assert os.preadv(direct, [view], 0) == size
            assert bytes(view) == want
            group.slots[1].write(0, bytes(size))
            for slots in group.slots:
                slots.post(0, size, dtype=abi.I32)
            for slots in group.slots:
                assert slots.wait() == size and slots.bytes(0, size) == want
            assert os.pwritev(direct, [view], size) == size
            view.release()
            os.fsync(direct)
            assert os.pread(backing, size, size) == want
        finally:
            os.close(direct)
            fcntl.ioctl(device, LOOP_CLR_FD)
            os.close(device)
            os.close(backing)


tap.main(globals())
