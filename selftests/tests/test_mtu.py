#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""The payload fits the smallest path MTU, also one that nobody tells."""
import errno

from lib import abi, tap
from lib.netns import Host, Namespace, Network
from lib.sockets import Ranks, Socket, finish_join, join_value, peer, refused, start_join

UDP, IPV4, IPV6 = 8, 20, 40
COUNT = 50000


def fits(group, mtu, ip=IPV4):
    """The agreed payload is the largest that mtu carries, to within a few bytes."""
    seen = {(s.group().payload, s.group().header) for s in group}
    assert len(seen) == 1, f"ranks disagree: {seen}"
    payload, header = seen.pop()
    room = mtu - ip - UDP - header
    assert room - 64 < payload <= room, f"payload {payload} where {room} fit"
    assert payload % 8 == 0


@tap.cases(576, 1280, 1492, 1500, 3000, 9000, 65535)
def test_interface(mtu):
    with Network(2, mtu=mtu) as net, Ranks(net.hosts, bucket_max=COUNT * 4) as group:
        fits(group, mtu)
        group.allreduce(COUNT)


@tap.cases(1280, 1500, 9000)
def test_ipv6(mtu):
    with Network(2, mtu=mtu) as net, \
            Ranks(net.hosts, [peer(h.address6) for h in net.hosts],
                  bucket_max=COUNT * 4) as group:
        fits(group, mtu, IPV6)
        group.allreduce(COUNT)


def test_mixed():
    """One host of three with 1500, the others with 9000."""
    with Network(3, mtu=9000, offloads=False) as net:
        net.hosts[1].ip("link set eth0 mtu 1500")
        net.port_mtu(1, 1500)
        with Ranks(net.hosts, bucket_max=COUNT * 4) as group:
            fits(group, 1500)
            group.allreduce(COUNT)


@tap.cases(1280, 1500, 4000)
def test_black_hole(mtu):
    """The switch drops what is longer and says nothing; hosts believe in 9000."""
    with Network(2, mtu=9000, offloads=False) as net:
        net.port_mtu(1, mtu)
        with Ranks(net.hosts, bucket_max=COUNT * 4) as group:
            payload = group[0].group().payload
            assert payload == group[1].group().payload
            assert payload + group[0].group().header + UDP + IPV4 <= mtu, payload
            group.allreduce(COUNT)
            paths = [group[0].peers()[1].path_payload, group[1].peers()[0].path_payload]
            assert min(paths) >= payload, paths


def test_black_hole_ipv6():
    with Network(2, mtu=9000, offloads=False) as net:
        net.port_mtu(0, 1400)
        with Ranks(net.hosts, [peer(h.address6) for h in net.hosts],
                   bucket_max=COUNT * 4) as group:
            group_ = group[0].group()
            assert group_.payload + group_.header + UDP + IPV6 <= 1400
            group.allreduce(COUNT)


@tap.cases(9000, 1500)
def test_shrinks_silently(mtu):
    """In mid-run the switch begins to drop full packets: ops still complete."""
    with Network(3, mtu=mtu, offloads=False) as net, \
            Ranks(net.hosts, bucket_max=COUNT * 4, depth=2) as group:
        group.allreduce(COUNT)
        net.port_mtu(2, mtu - 200)
        for _ in range(3):
            group.allreduce(COUNT)
        assert group.total("path_shrunk") > 0
        net.port_mtu(2, 600)
        group.allreduce(COUNT)


def test_shrinks_silently_ipv6():
    with Network(2, mtu=9000, offloads=False) as net, \
            Ranks(net.hosts, [peer(h.address6) for h in net.hosts],
                  bucket_max=COUNT * 4, depth=2) as group:
        group.allreduce(COUNT)
        net.port_mtu(1, 1400)
        for _ in range(3):
            group.allreduce(COUNT)
        assert group.total("path_shrunk") > 0
        # The routing knows of it: nothing longer is tried again.
        route = net.hosts[0].run("/usr/sbin/ip", "-6", "route", "get", net.hosts[1].address6)
        assert "mtu 1400" in route or "mtu 13" in route or "mtu 12" in route, route


def test_interface_shrinks():
    """A host's own interface shrinks in mid-run."""
    with Network(2, mtu=9000) as net, \
            Ranks(net.hosts, bucket_max=COUNT * 4) as group:
        group.allreduce(COUNT)
        net.hosts[0].ip("link set eth0 mtu 1500")
        net.port_mtu(0, 1500)
        for _ in range(2):
            group.allreduce(COUNT)


class Routed:
    """Two hosts in two subnets; the router's way to the second is narrow."""

    def __init__(self, mtu, narrow):
        self.router = Namespace()
        self.hosts = [Host(0), Host(1)]
        for i, host in enumerate(self.hosts):
            host.address = f"10.{78 + i}.0.2"
            self.router.ip(
                f"link add r{i} mtu {mtu} type veth peer name eth0 mtu {mtu}"
                f" netns {host.path}",
                f"link set r{i} up", f"addr add 10.{78 + i}.0.1/24 dev r{i}")
            host.ip("link set eth0 up", f"addr add {host.address}/24 dev eth0",
                    f"route add default via 10.{78 + i}.0.1")
        self.router.sysctl("net.ipv4.ip_forward", 1)
        self.narrow(narrow)

    def narrow(self, mtu):
        self.router.ip(f"link set r1 mtu {mtu}")

    def icmp(self, on):
        """Whether 'fragmentation needed' gets through."""
        if not on:
            self.router.drop("output", "ip protocol icmp")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for namespace in (*self.hosts, self.router):
            namespace.close()


@tap.cases("told", "untold")
def test_router(told):
    """A narrow link behind a router, with and without its ICMP."""
    with Routed(9000, 1500) as net:
        net.icmp(told == "told")
        with Ranks(net.hosts, bucket_max=COUNT * 4) as group:
            group_ = group[0].group()
            assert group_.payload + group_.header + UDP + IPV4 <= 1500
            group.allreduce(COUNT)


@tap.cases("told", "untold")
def test_router_shrinks(told):
    with Routed(9000, 9000) as net:
        net.icmp(told == "told")
        with Ranks(net.hosts, bucket_max=COUNT * 4, depth=2) as group:
            group.allreduce(COUNT)
            net.narrow(1300)
            for _ in range(3):
                group.allreduce(COUNT)
            assert group.total("path_shrunk") > 0


def test_too_narrow():
    """Less than the smallest payload fits: joining fails and says why."""
    with Network(2, mtu=1500, offloads=False) as net:
        net.port_mtu(1, 400)
        peers = [peer(h.address) for h in net.hosts]
        with Socket(net.hosts[0]) as one, Socket(net.hosts[1]) as two:
            for rank, sock in enumerate((one, two)):
                start_join(sock, join_value(peers, rank=rank, timeout_ms=3000))
            with refused(errno.EMSGSIZE, one, net.hosts[1].address):
                finish_join(one)
            assert one.group().state == abi.STATE_FAILED


tap.main(globals())
