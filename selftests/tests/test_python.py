#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""The Python package `ored` over real groups: sums, slices, errors."""
import array
import concurrent.futures
import errno
import os

import numpy
import ored

from lib import tap
from lib.netns import shared
from lib.sums import contribution, difference, expected

COUNT = 20000
epochs = iter(range(1, 1 << 30))


def on_all(count, function, **fields):
    """function(group, rank) on each rank in a thread of its own; the results."""
    epoch = next(epochs)
    with shared(count) as net:
        addresses = [h.address for h in net.hosts]

        def rank_(rank):
            with net.hosts[rank]:
                group = ored.Group(rank, addresses, epoch=epoch, **fields)
            with group:
                group.settimeout(60)
                return function(group, rank)
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            return list(pool.map(rank_, range(count)))


def bucket(rank, count, op=0):
    return array.array("f", contribution(rank, count, op))


def check(numbers, want):
    wrong = difference(numbers.tobytes(), want)
    assert not wrong, wrong


@tap.cases(1, 2, 3)
def test_allreduce(nranks):
    def work(group, rank):
        for op, name in enumerate(("sum", "mean")):
            numbers = bucket(rank, COUNT, op)
            result = group.allreduce(numbers, op=name)
            check(numbers, expected(nranks, COUNT, op, mean=name == "mean"))
            assert result.verdict == "ok", result.verdict
        assert group.rank == rank and group.size == nranks
    on_all(nranks, work)


def test_slices():
    """An array longer than bucket_max goes in several ops, pipelined."""
    def work(group, rank):
        numbers = bucket(rank, COUNT)
        group.allreduce(numbers)
        check(numbers, expected(2, COUNT))
        assert group.state().posted == -(-COUNT * 4 // 8192)
    on_all(2, work, bucket_max=8192, depth=3)


def test_post_and_wait():
    def work(group, rank):
        for op in range(3):
            group.post(bucket(rank, COUNT, op))
        for op in range(3):
            numbers = bucket(9, COUNT)
            group.wait(numbers)
            check(numbers, expected(2, COUNT, op))
    on_all(2, work, depth=3)


def test_refused_buffers():
    """A refused array is untouched, and the group goes on."""
    def work(group, rank):
        numbers = bucket(rank, COUNT)
        before = numbers.tobytes()
        for bad in (memoryview(numbers)[::2], memoryview(numbers).toreadonly()):
            try:
                group.allreduce(bad)
                raise AssertionError("accepted")
            except (ValueError, TypeError, BufferError) as error:
                assert len(str(error)) > 8
        assert numbers.tobytes() == before
        group.allreduce(numbers)
        check(numbers, expected(2, COUNT))
    on_all(2, work)


def test_kernels_own_words():
    """Errors carry the kernel's errno and sentence."""
    def work(group, rank):
        try:
            group.allreduce(array.array("f", bytes(400 if rank else 800)))
            raise AssertionError("accepted")
        except ored.Error as error:
            assert error.errno == errno.EPROTO
            assert "800" in str(error) and "400" in str(error), error
        try:
            group.post(array.array("f", bytes(8 << 20)))
            raise AssertionError("accepted")
        except ored.Error as error:
            assert error.errno == errno.EMSGSIZE
        numbers = bucket(rank, COUNT)
        group.allreduce(numbers)
        check(numbers, expected(2, COUNT))
    on_all(2, work)


def test_missing_peer():
    with shared(2) as net, net.hosts[0]:
        try:
            ored.Group(0, [h.address for h in net.hosts], timeout=0.5)
            raise AssertionError("joined alone")
        except ored.Error as error:
            assert error.errno == errno.ETIMEDOUT
            assert net.hosts[1].address in str(error), error


def test_from_environment():
    os.environ.update(ORED_RANK="0", ORED_SIZE="1", ORED_PEERS="127.0.0.1",
                      ORED_PORT="5000", ORED_GROUP="3", ORED_EPOCH="4")
    with ored.from_env() as group:
        numbers = bucket(0, 100)
        group.allreduce(numbers)
        check(numbers, contribution(0, 100))
        assert group.state().group == 3


def test_area():
    """Saved, found again by its name, and loaded; with errors as sentences."""
    state = bytes(contribution(0, COUNT))
    with ored.Area("model", bytes=len(state) + 3, exclusive=True) as area:
        assert area.generations() == () and area.capacity == len(state) + 3
        area.save(1, state, b"run 1")
        area.slot()[:4] = b"torn"
        area.abort()
        area.slot()[:5] = b"again"
        area.commit(2, 5)
        area.wait(1)
    assert [a.name for a in ored.areas() if not a.handles] == ["model"]
    with ored.Area("model", readonly=True) as area:
        assert area.load() == (2, bytearray(b"again"))
        assert area.load(1) == (1, bytearray(state))
        part = bytearray(100)
        area.read_into(part, 1, 50)
        assert part == state[50:150]
        with area.view(1) as memory:
            assert memory == state and memory.readonly
        newest = area.generations()[1]
        assert (newest.step, newest.bytes, newest.meta, newest.complete) == (
            1, len(state), b"run 1", True)
        for call, code in ((area.abort, errno.EACCES), (lambda: area.load(7), errno.ENOENT)):
            try:
                call()
                raise AssertionError("no error")
            except ored.Error as error:
                assert error.errno == code and error.strerror, error
    with ored.Area("model") as area:
        area.roll_back(1)
        area.save(2, array.array("i", [1, 2, 3]))
        assert area.load()[1] == array.array("i", [1, 2, 3]).tobytes()
        for data, kind in ((bytes(len(state) + 4), ValueError), (memoryview(state)[::2],
                                                                 ValueError)):
            try:
                area.save(3, data)
                raise AssertionError("no error")
            except kind:
                pass
    ored.remove_area("model")
    assert not ored.areas()


def test_kinds():
    """Reduce-scatter, all-gather, broadcast and barrier, from arrays, in place. Reliable:
    three threads of one interpreter may keep each other waiting beyond any bound."""
    nranks, count = 3, 1003

    def work(group, rank):
        own, other = group.shard(count), group.shard(count, 0)
        assert own.stop - own.start == 335 - (rank > 0) and other == slice(0, 335)
        numbers = numpy.arange(count, dtype="f4") * (rank + 1)
        total = numpy.arange(count, dtype="f4") * 6
        out = numpy.zeros(own.stop - own.start, "f4")
        result = group.reduce_scatter(numbers, out, mode="reliable")
        assert (out == total[own]).all() and result.ok
        assert result.contributed == (0, 1, 2) and result.bytes == 4 * count
        group.reduce_scatter(numbers, numbers[own], op="mean", mode="reliable")
        assert group.all_gather(numbers[own], numbers, mode="reliable").ok
        assert (numbers == total / 3).all()
        big = numpy.arange(40000, dtype="i4") + rank	# in several buckets
        result = group.broadcast(big, root=2, mode="reliable")
        assert result.ops > 1 and (big == numpy.arange(40000) + 2).all()
        group.post(numbers[:3], kind="broadcast", root=1, mode="reliable")
        group.wait(out)
        result = group.barrier(mode="reliable")
        assert result.ok and result.bytes == 8 and not result.missing
        for words, call in (("root", lambda: group.broadcast(numbers, root=3)),
                            ("too few", lambda: group.reduce_scatter(numbers[:2], out))):
            try:
                call()
                raise AssertionError("accepted")
            except ored.Error as error:
                assert error.errno == errno.EINVAL and words in str(error), error
    on_all(nranks, work, bucket_max=1 << 16)


def test_slots():
    """Arrays that are the kernel's memory: reduced where they are."""
    def work(group, rank):
        arrays = [numpy.frombuffer(slot, "f4", 1000) for slot in group.slots]
        assert len(arrays) == 4 and group.state().slots == 4
        for step in range(10):
            arrays[step % 4][:] = rank + step
            group.post_slot(step % 4, 4000, "mean", mode="reliable")
            arrays[(step + 1) % 4][:] = 0
            result = group.wait()
            assert result.bytes == 4000 and result.ok
            assert (arrays[step % 4] == step + 1).all()
        own = group.shard(1000)
        arrays[0][own] = rank
        group.post_slot(0, 4000, kind="all_gather")
        group.wait()
        for peer in range(3):
            assert (arrays[0][group.shard(1000, peer)] == peer).all()
        try:
            group.close()
            raise AssertionError("unmapped in use")
        except BufferError:
            del arrays
    on_all(3, work, bucket_max=1 << 16, depth=3, slots=True)


tap.main(globals())
