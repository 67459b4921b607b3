#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The Python package against the module: several ranks on this host, one
thread each, over the loopback device. Needs root and ored.ko; prints TAP."""
import errno
import os
import select
import signal
import sys
import threading
import time

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
import ored  # noqa: E402

BUCKET = 64 << 10
LIMIT = 60          # seconds that any one test may take


def peers(nranks, host="127.0.0.1"):
    return [(host, 5000 + rank) for rank in range(nranks)]


def join(rank, nranks, **options):
    options = {"bucket_max": BUCKET, "depth": 3, "timeout": 20, **options}
    return ored.Group(rank, peers(nranks), port=5000 + rank, **options)


def ranks(nranks, work, **options):
    """Runs work(group) on each rank; returns what each returned or raised."""
    out = [None] * nranks

    def run(rank):
        try:
            with join(rank, nranks, **options) as group:
                group.settimeout(20)
                out[rank] = work(group)
        except Exception as err:    # a rank's failure is its outcome
            out[rank] = err

    threads = [threading.Thread(target=run, args=(rank,), daemon=True)
               for rank in range(nranks)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + LIMIT
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        raise AssertionError(f"not done after {LIMIT} s: {out}")
    return out


def whole(out):
    """All ranks returned something; raises what one raised."""
    for value in out:
        if isinstance(value, BaseException):
            raise value
    return out


def contribution(rank, count):
    return numpy.random.default_rng(rank).standard_normal(
        count, numpy.float32)


def expected(nranks, count, mean):
    total = contribution(0, count)
    for rank in range(1, nranks):
        total = total + contribution(rank, count)
    return total / numpy.float32(nranks) if mean else total


def same(a, b):
    return a.tobytes() == b.tobytes()


def refused(number, part, call, *args, **options):
    """Calls, and wants an Error of this errno whose sentence has @part."""
    try:
        call(*args, **options)
    except ored.Error as err:
        assert err.errno == number, err
        assert part in err.strerror, err
        return err
    raise AssertionError("nothing raised")


def test_sum_and_mean():
    def work(group):
        for op in ("sum", "mean"):
            a = contribution(group.rank, 1001)
            result = group.allreduce(a, op=op)
            assert same(a, expected(4, 1001, op == "mean")), op
            assert result.ok and result.bytes == 4004, result
            assert result.contributed == (0, 1, 2, 3), result
            assert result.missing == () and result.limit == "complete", result
            assert 0 < result.elapsed < 20, result
        return True
    whole(ranks(4, work))


def test_larger_than_a_bucket():
    count = 10 * BUCKET // 4 + 17       # 11 ops, depth 3

    def work(group):
        a = contribution(group.rank, count)
        result = group.allreduce(a)
        assert same(a, expected(3, count, False))
        assert (result.op, result.ops, result.bytes) == (0, 11, 4 * count)
        assert group.state().in_flight == 0
        return result.ok
    assert all(whole(ranks(3, work)))


def test_shapes():
    def work(group):
        a = contribution(group.rank, 24).reshape(2, 3, 4)
        group.allreduce(a)
        assert same(a.ravel(), expected(2, 24, False))
        one = numpy.array(group.rank + 1, numpy.float32)
        group.allreduce(one)
        assert one == 3
        raw = bytearray(contribution(group.rank, 5).tobytes())
        group.allreduce(raw, dtype="f32")
        assert raw == expected(2, 5, False).tobytes()
    whole(ranks(2, work))


def test_kinds():
    count = 1003

    def work(group):
        own = group.shard(count)
        a = contribution(group.rank, count)
        out = numpy.zeros(own.stop - own.start, numpy.float32)
        result = group.reduce_scatter(a, out, mode="reliable")
        assert same(out, expected(3, count, False)[own])
        assert result.ok and result.contributed == (0, 1, 2), result
        # In place: what is given and what is got lie in one array.
        result = group.reduce_scatter(a, a[own], op="mean", mode="reliable")
        assert same(a[own], expected(3, count, True)[own])
        assert group.all_gather(a[own], a, mode="reliable").ok
        assert same(a, expected(3, count, True))
        big = contribution(group.rank, BUCKET)      # four buckets
        result = group.broadcast(big, root=2, mode="reliable")
        assert result.ops == 4 and same(big, contribution(2, BUCKET))
        result = group.barrier(mode="reliable")
        assert result.ok and result.op == 7 and result.bytes == 8, result
        refused(errno.EINVAL, "root", group.broadcast, a, root=3)
        refused(errno.EINVAL, "too few", group.reduce_scatter, a[:2], out)
    whole(ranks(3, work))


def test_views_are_untouched():
    def work(group):
        square = numpy.ones((2, 2), numpy.float32)
        try:
            group.allreduce(square[:, 0])
        except ValueError as err:
            assert "contiguous" in str(err)
            assert (square == 1).all()
            return group.state().posted
        raise AssertionError("nothing raised")
    assert whole(ranks(1, work)) == [0]


def test_post_and_wait():
    def work(group):
        for i in range(3):
            group.post(numpy.full(10 + i, group.rank + i, numpy.float32))
        refused(errno.EBUSY, "in flight", group.allreduce,
                numpy.ones(1, numpy.float32))
        refused(errno.EMSGSIZE, "", group.wait, bytearray(4))
        for i in range(3):
            out = numpy.zeros(20, numpy.float32)
            result = group.wait(out)
            assert result.op == i and result.bytes == 4 * (10 + i), result
            assert (out[:10 + i] == 1 + 2 * i).all()
            assert (out[10 + i:] == 0).all()
            assert group.result(i).op == i
        refused(errno.ENOENT, "", group.result, 3)
        assert group.state().in_flight == 0
    whole(ranks(2, work))


def test_not_built():
    def work(group):
        for dtype in ("f64", "f16", "i32", "i64"):
            a = numpy.ones(4, {"f64": "f8", "f16": "f2", "i32": "i4",
                               "i64": "i8"}[dtype])
            err = refused(errno.EOPNOTSUPP, "", group.allreduce, a)
            assert err.strerror, dtype
        a = numpy.ones(4, numpy.float32)
        for options in ({"op": "min"}, {"op": "max"}):
            refused(errno.EOPNOTSUPP, "", group.allreduce, a, **options)
        assert group.state().posted == 0
        assert group.allreduce(a, mode="reliable").ok
    whole(ranks(1, work))


def test_bounded():
    """Of ops in their bound the result says the bound, and a policy sets it."""
    def work(group):
        a = numpy.ones(4, numpy.float32)
        group.set_policy(bound_us=500_000, wait_ppm=100_000)
        assert group.policy()["bound_us"] == 500_000
        assert group.policy()["warmup"] == 20, "not the default"
        result = group.allreduce(a)
        assert result.ok and (a == 2).all(), result
        assert result.bound == 0.55 and not result.resync, result
        result = group.allreduce(a, mode="reliable")
        assert result.ok and result.bound == 0, result
        refused(errno.EINVAL, "warmup", group.set_policy, warmup=1)
    whole(ranks(2, work))


def test_mismatch():
    def work(group):
        a = numpy.ones(8 if group.rank else 4, numpy.float32)
        err = refused(errno.EPROTO, "", group.allreduce, a)
        assert "16" in err.strerror and "32" in err.strerror, err
        assert err.result.error == errno.EPROTO, err.result
        assert sorted(err.result.differ) == [0, 1], err.result
        assert sorted(err.result.values) == [16, 32], err.result
        a = numpy.ones(4, numpy.float32)
        assert group.allreduce(a).ok and (a == 2).all()
    whole(ranks(2, work))


def test_mismatch_within_slices():
    """The ops behind a failed one aren't taken for the next array's."""
    def work(group):
        count = 5 * BUCKET // 4
        a = numpy.ones(count, numpy.float32)
        refused(errno.EPROTO, "", group.allreduce, a,
                op="mean" if group.rank else "sum")
        assert group.state().in_flight == 0
        return group.state().posted
    posted = whole(ranks(2, work))
    assert posted[0] == posted[1] and posted[0] >= 1, posted


def test_timeout():
    def work(group):
        a = numpy.ones(4, numpy.float32)
        if group.rank == 0:
            group.settimeout(0.3)
            start = time.monotonic()
            err = refused(errno.EAGAIN, "", group.allreduce, a)
            assert isinstance(err, ored.Timeout) and isinstance(
                err, TimeoutError)
            assert 0.2 < time.monotonic() - start < 10
            refused(errno.EBUSY, "in flight", group.allreduce, a)
            late.set()
            group.settimeout(20)
            assert group.wait(a).ok
        else:
            assert late.wait(20)
            assert group.allreduce(a).ok
        assert (a == 2).all()
    late = threading.Event()
    whole(ranks(2, work))


def test_poll():
    def work(group):
        poll = select.poll()
        poll.register(group, select.POLLIN | select.POLLOUT)
        assert poll.poll(0) == [(group.fileno(), select.POLLOUT)]
        group.post(numpy.ones(4, numpy.float32))
        poll.modify(group, select.POLLIN)
        assert poll.poll(10_000) == [(group.fileno(), select.POLLIN)]
        group.wait(bytearray(16))
        assert poll.poll(0) == []
    whole(ranks(2, work))


def test_a_rank_that_leaves():
    def work(group):
        if group.rank == 1:
            return None
        a = numpy.ones(4, numpy.float32)
        err = refused(errno.ECONNRESET, "rank 1", group.allreduce, a)
        assert err.result.error == errno.ECONNRESET, err.result
        assert (a == 1).all()
    whole(ranks(3, work))


def test_a_rank_that_never_comes():
    start = time.monotonic()
    err = refused(errno.ETIMEDOUT, "127.0.0.1", join, 0, 2, timeout=0.5)
    assert 0.4 < time.monotonic() - start < 10
    assert "1" in err.strerror


def test_ranks_that_disagree():
    def run(rank):
        try:
            join(rank, 2, depth=2 + rank)
        except ored.Error as err:
            out[rank] = err
    out = {}
    threads = [threading.Thread(target=run, args=(r,)) for r in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    for err in (out[0], out[1]):
        assert err.errno == errno.EPROTO, err
        assert "2" in err.strerror and "3" in err.strerror, err


def test_refused_joins():
    refused(errno.EINVAL, "rank", join, 1, 1)
    refused(errno.EINVAL, "depth", join, 0, 1, depth=17)
    refused(errno.EMSGSIZE, "", join, 0, 1, bucket_max=(1 << 30) + 8)
    refused(errno.EADDRNOTAVAIL, "", ored.Group, 0, ["192.0.2.1"])
    refused(errno.EAFNOSUPPORT, "", ored.Group, 0, ["127.0.0.1", "::1"],
            timeout=1)


def test_ctrl_c_while_joining():
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    try:
        join(0, 2, timeout=20)
    except KeyboardInterrupt:
        assert time.monotonic() - start < 10
        return
    finally:
        timer.cancel()
        timer.join()
    raise AssertionError("nothing raised")


def test_state():
    def work(group):
        a = numpy.ones(1000, numpy.float32)
        for _ in range(3):
            group.allreduce(a)
        state = group.state()
        assert (state.abi, state.state) == (1, "joined"), state
        assert (state.rank, state.nranks) == (group.rank, 2), state
        assert state.port == 5000 + group.rank, state
        assert (state.posted, state.finished, state.received) == (3, 3, 3)
        assert state.bucket_max == BUCKET and state.depth == 3, state
        assert state.payload >= 512 and state.memory > 0, state
        mine, other = group.peers()[group.rank], group.peers()[1 - group.rank]
        assert (mine.rank, other.rank) == (group.rank, 1 - group.rank)
        assert other.heard is not None, other
        stats = group.stats()
        assert stats["rx_packets"] > 0 and stats["tx_packets"] > 0, stats
        assert len(stats) == 21, stats
        assert repr(group).startswith(f"<ored.Group rank {group.rank} of 2")
    whole(ranks(2, work))


def test_from_env():
    env = {"ORED_RANK": "0", "ORED_SIZE": "1", "ORED_PEERS": "127.0.0.1",
           "ORED_PORT": "5100", "ORED_GROUP": "7", "ORED_EPOCH": "9"}
    with ored.from_env(env, bucket_max=100, depth=1) as group:
        state = group.state()
        assert (state.group, state.epoch, state.port) == (7, 9, 5100), state
        assert (state.bucket_max, group.bucket_max) == (104, 104)
        a = numpy.arange(1000, dtype=numpy.float32)
        assert group.allreduce(a).ops == 39
        assert (a == numpy.arange(1000)).all()
    assert "closed" in repr(group)


def main():
    failed = 0
    tests = [(name, test) for name, test in globals().items()
             if name.startswith("test_")]
    if len(sys.argv) > 1:
        tests = [t for t in tests if t[0] in sys.argv[1:]]
    print(f"TAP version 13\n1..{len(tests)}", flush=True)
    for number, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - python_{name[5:]}", flush=True)
        except Exception as err:
            failed += 1
            line = err.__traceback__
            while line.tb_next:
                line = line.tb_next
            print(f"# line {line.tb_lineno}: {err!r}\n"
                  f"not ok {number} - python_{name[5:]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
