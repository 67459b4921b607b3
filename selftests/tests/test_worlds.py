#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Every world size sums right at every size around a limit."""
import errno

from lib import abi, tap
from lib.netns import shared
from lib.sockets import (Ranks, Socket, finish_join, join_value, peer, refused,
                         reliable, start_join)

BUCKET = 1 << 16


def around_the_limits(nranks, payload):
    """Bucket sizes in elements around one chunk, one chunk a shard, and the largest."""
    chunk = payload // 4
    sizes = {1, 2, 3, nranks - 1, nranks, nranks + 1}
    for whole in (chunk, nranks * chunk, 2 * nranks * chunk, BUCKET // 4):
        sizes |= {whole - 1, whole, whole + 1}
    return sorted(s for s in sizes if 0 < s <= BUCKET // 4)


@tap.cases(1, 2, 3, 4, 5, 6, 7, 8, 16)
def test_sum_and_mean(nranks):
    with shared(nranks) as net, Ranks(net.hosts, bucket_max=BUCKET) as ranks:
        payload = ranks[0].group().payload
        assert {s.group().payload for s in ranks} == {payload}
        for count in around_the_limits(nranks, payload):
            ranks.allreduce(count)
        mean = reliable(reduction=abi.MEAN)
        for sock in ranks:
            sock.set(abi.OP, mean)
        for count in (1, payload // 4 + 1, BUCKET // 4):
            ranks.allreduce(count, mean=True)


def test_refused_lengths():
    """The largest bucket is a limit, dtypes aren't cut, and 0 is no bucket."""
    with shared(2) as net, Ranks(net.hosts, bucket_max=4096) as ranks:
        for length, code in ((4100, errno.EMSGSIZE), (1 << 20, errno.EMSGSIZE),
                             (4097, errno.EMSGSIZE), (0, errno.EINVAL),
                             (1, errno.EINVAL), (2, errno.EINVAL),
                             (3, errno.EINVAL), (5, errno.EINVAL),
                             (4095, errno.EINVAL)):
            with refused(code, ranks[0]):
                ranks[0].send(bytes(length))
        assert ranks[0].group().posted == 0
        ranks.allreduce(1024)


@tap.cases(8, 512, 520, 1024)
def test_smallest_groups(bucket_max):
    """A bucket_max below a chunk works as any other."""
    with shared(3) as net, Ranks(net.hosts, bucket_max=bucket_max) as ranks:
        for count in range(1, bucket_max // 4 + 1, max(1, bucket_max // 32)):
            ranks.allreduce(count)
        with refused(errno.EMSGSIZE, ranks[0]):
            ranks[0].send(bytes(bucket_max + 4))


@tap.cases(512, 600, 1000)
def test_payload_max(limit):
    """One rank's payload_max binds the whole group."""
    def each(rank):
        return {"payload_max": limit if rank == 1 else 0}
    with shared(3) as net, Ranks(net.hosts, each=each) as ranks:
        for sock in ranks:
            assert 0 < sock.group().payload <= limit, sock.group().payload
        for count in around_the_limits(3, ranks[0].group().payload):
            ranks.allreduce(count)


def test_one_large_bucket():
    """4 MiB: many chunks, more than any window or train."""
    with shared(2) as net, Ranks(net.hosts, bucket_max=1 << 22) as ranks:
        ranks.allreduce(1 << 20)
        ranks.allreduce((1 << 20) - 1)


def test_one_rank_alone():
    """A group of one needs no network and gives back its own contribution."""
    sock = Socket()
    start_join(sock, join_value([peer("127.0.0.1")], depth=2))
    finish_join(sock)
    for data in (b"\0\0\x80\x3f" * 5, b"\0\0\0\x40"):
        sock.send(data)
        assert sock.take(64) == data
    sock.close()


tap.main(globals())
