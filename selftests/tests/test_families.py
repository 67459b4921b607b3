#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Addresses: IPv4, IPv6, mapped, link-local; and those that are refused."""
import errno
import socket

from lib import abi, tap
from lib.netns import Network, shared
from lib.sockets import Ranks, Socket, finish_join, join_value, peer, refused, start_join


def check(net, peers, family):
    with Ranks(net.hosts, peers) as ranks:
        assert {s.group().family for s in ranks} == {family}
        assert ranks[0].group().port == abi.PORT_DEFAULT
        for count in (1, 1000, 16384):
            ranks.allreduce(count)


def test_ipv4():
    with shared(3) as net:
        check(net, [peer(h.address) for h in net.hosts], socket.AF_INET)


def test_ipv6():
    with shared(3) as net:
        check(net, [peer(h.address6) for h in net.hosts], socket.AF_INET6)


def test_ipv4_mapped():
    with shared(3) as net:
        check(net, [peer("::ffff:" + h.address) for h in net.hosts], socket.AF_INET)


def test_mapped_among_plain():
    with shared(3) as net:
        peers = [peer(h.address) for h in net.hosts]
        peers[1] = peer("::ffff:" + net.hosts[1].address)
        check(net, peers, socket.AF_INET)


def test_link_local():
    """fe80:: with the interface's index; the indices differ between hosts."""
    with Network(3) as net:
        net.hosts[1].ip("link add extra type dummy")
        with Ranks([]) as sockets:
            for rank, host in enumerate(net.hosts):
                scope = host.ifindex()
                peers = [peer(h.local6, scope=scope) for h in net.hosts]
                sockets.append(Socket(host))
                start_join(sockets[-1], join_value(peers, rank=rank))
            for sock in sockets:
                finish_join(sock)
            assert sockets[0].group().ifindex == net.hosts[0].ifindex()
            for count in (1, 1000, 16384):
                sockets.allreduce(count)


def test_link_local_without_scope():
    with shared(2) as net, Socket(net.hosts[0]) as sock:
        with refused(errno.EINVAL, sock, "scope"):
            sock.join(join_value([peer(h.local6) for h in net.hosts]))


def test_mixed_families():
    with shared(2) as net, Socket(net.hosts[0]) as sock:
        for peers in ([peer(net.hosts[0].address), peer(net.hosts[1].address6)],
                      [peer(net.hosts[0].address6), peer(net.hosts[1].address)],
                      [peer(net.hosts[0].address6),
                       peer("::ffff:" + net.hosts[1].address)]):
            with refused(errno.EAFNOSUPPORT, sock):
                sock.join(join_value(peers))


@tap.cases(0, 1, 17, 255)
def test_unknown_family(number):
    with shared(2) as net, Socket(net.hosts[0]) as sock:
        peers = [peer(h.address) for h in net.hosts]
        peers[1].family = number
        with refused(errno.EAFNOSUPPORT, sock):
            sock.join(join_value(peers))


@tap.cases("10.77.0.99", "fd77::99", "127.0.0.2", "192.0.2.1")
def test_address_of_another_host(address):
    """This rank's own address must be on this host. 127/8 is."""
    with shared(1) as net, Socket(net.hosts[0]) as sock:
        value = join_value([peer(address)])
        if address.startswith("127."):
            sock.join(value)
            assert sock.group().state == abi.STATE_JOINED
        else:
            with refused(errno.EADDRNOTAVAIL, sock, address):
                sock.join(value)


@tap.cases("0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1")
def test_no_host_has_this_address(address):
    """Any, multicast and broadcast addresses name no peer."""
    with shared(1) as net, Socket(net.hosts[0]) as sock:
        own = net.hosts[0].address6 if ":" in address else net.hosts[0].address
        with refused(errno.EINVAL, sock):
            sock.join(join_value([peer(own), peer(address)]))


tap.main(globals())
