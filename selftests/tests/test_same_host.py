#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Several ranks and groups on one host, on one port or on several."""
import errno
import socket

from lib import tap
from lib.netns import Namespace, shared
from lib.sockets import Ranks, Socket, join_value, peer, refused, start_join

COUNT = 20000


@tap.cases(2, 5)
def test_ports(nranks):
    """Ranks of one host on ports of their own."""
    with Ranks([None] * nranks, bucket_max=COUNT * 4) as group:
        group.allreduce(COUNT)
        assert [s.group().port for s in group] == list(range(5000, 5000 + nranks))


@tap.cases(2, 5)
def test_one_port(nranks):
    """All ranks behind the same address and port."""
    with Ranks([None] * nranks, [peer("127.0.0.1")] * nranks,
               bucket_max=COUNT * 4) as group:
        group.allreduce(COUNT)


def test_own_addresses_on_one_port():
    with Ranks([None] * 3, [peer(f"127.0.0.{i + 1}") for i in range(3)],
               bucket_max=COUNT * 4) as group:
        group.allreduce(COUNT)


def test_one_port_ipv6():
    with Ranks([None] * 2, [peer("::1")] * 2, bucket_max=COUNT * 4) as group:
        group.allreduce(COUNT)


def test_two_ranks_on_each_of_two_hosts():
    with shared(2) as net:
        places = [net.hosts[0], net.hosts[0], net.hosts[1], net.hosts[1]]
        with Ranks(places, [peer(p.address) for p in places],
                   bucket_max=COUNT * 4) as group:
            group.allreduce(COUNT)


def test_two_groups_on_one_port():
    with shared(3) as net:
        with Ranks(net.hosts, group=7, bucket_max=COUNT * 4) as one, \
                Ranks(net.hosts, group=8, bucket_max=COUNT * 4) as two:
            one.ops = 100		# so that the numbers differ
            for _ in range(2):
                first, second = one.post(COUNT), two.post(COUNT)
                two.check(COUNT, second)
                one.check(COUNT, first)


def test_group_ids_of_all_sizes():
    with shared(2) as net:
        for group in (0, 1, 0x80000000, 0xffffffff):
            with Ranks(net.hosts, group=group) as ranks:
                ranks.allreduce(10)


def test_rank_is_taken():
    """The same rank of the same group twice on one host."""
    with shared(1) as net:
        value = join_value([peer(net.hosts[0].address)])
        with Socket(net.hosts[0]) as one, Socket(net.hosts[0]) as two:
            one.join(value)
            with refused(errno.EADDRINUSE, two):
                two.join(value)
            one.close()
            two.join(value)


def test_rank_is_taken_while_joining():
    with shared(2) as net:
        peers = [peer(h.address) for h in net.hosts]
        with Socket(net.hosts[0]) as one, Socket(net.hosts[0]) as two:
            start_join(one, join_value(peers))
            with refused(errno.EADDRINUSE, two):
                two.join(join_value(peers))


def test_foreign_socket_on_the_port():
    """A plain UDP socket has the port: EADDRINUSE names it."""
    with Namespace() as place:
        other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        other.bind(("0.0.0.0", 4741))
        with other, Socket(place) as sock:
            with refused(errno.EADDRINUSE, sock, "4741"):
                sock.join(join_value([peer("127.0.0.1")]))
            sock.join(join_value([peer("127.0.0.1", 4742)], port=4742))


def test_port_of_peer_entry():
    """A peer's own port replaces the group's; this host's is ored_join.port."""
    with shared(2) as net:
        peers = [peer(net.hosts[0].address, 6001), peer(net.hosts[1].address, 6002)]
        with Ranks(net.hosts, peers, each=lambda rank: {"port": 6001 + rank}) as group:
            group.allreduce(COUNT // 4)


def test_closing_one_leaves_the_other():
    with shared(2) as net:
        with Ranks(net.hosts, group=8) as two:
            with Ranks(net.hosts, group=7) as one:
                one.allreduce(100)
                two.allreduce(100)
            two.allreduce(100)


tap.main(globals())
