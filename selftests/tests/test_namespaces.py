#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Network namespaces are apart, and go whatever is open in them."""
import errno
import time

from lib import abi, module, raw, tap
from lib.netns import Namespace, Network, shared
from lib.sockets import (Ranks, Socket, join_value, peer, refused,
                         start_join)
from lib.sums import contribution

COUNT = 5000
ALONE = [peer("127.0.0.1")]


def namespaces():
    """Network namespaces that the kernel has, by its slab of them."""
    with open("/proc/slabinfo") as slabs:
        for line in slabs:
            if line.startswith("net_namespace"):
                return int(line.split()[1])
    raise tap.Skip("no slab of namespaces")


def test_the_same_group_in_two():
    """Same addresses, group, port and epoch in two networks: they never meet."""
    with Network(2) as one, Network(2) as two, \
            Ranks(one.hosts) as first, Ranks(two.hosts) as second:
        second.ops = 50
        for _ in range(3):
            number, other = first.post(COUNT), second.post(COUNT)
            second.check(COUNT, other)
            first.check(COUNT, number)
        for sock in (*first, *second):
            stats = sock.stats()
            assert not any(stats[n] for n in stats if n.startswith("ns_s")), stats


def test_setup_is_per_namespace():
    with Namespace() as one, Namespace() as two:
        with Socket(one) as first, Socket(two) as second:
            first.set(abi.SETUP, join_value(ALONE, uid=abi.ANYONE))
            second.set(abi.SETUP, join_value(ALONE, uid=abi.ANYONE, bucket_max=4096))
            name = abi.SockaddrOred(sored_family=abi.FAMILY_DEFAULT, sored_group=1)
            raw.bind(second, name)
            assert second.group().bucket_max == 4096
            with refused(errno.ENOENT, second):
                second.set(abi.TEARDOWN, join_value([], group=2))
    one.close()
    two.close()


def test_socket_keeps_its_namespace():
    """Joined and used after the last other reference to the namespace has gone."""
    net = Network(2)
    with Ranks(net.hosts) as group:
        for host in net.hosts:
            host.close()
        time.sleep(1)
        group.allreduce(COUNT)
    net.close()


def test_deleted_with_a_group_set_up():
    """ORED_SETUP doesn't keep a namespace, and goes with it."""
    before = namespaces()
    for _ in range(3):
        with Namespace() as place:
            with Socket(place) as admin:
                for group in range(5):
                    admin.set(abi.SETUP, join_value(ALONE, group=group))
        place.close()
    tap.wait_for(lambda: namespaces() <= before, 20, "namespaces to go")


def test_deleted_while_joining():
    before = namespaces()
    with Network(2) as net:
        peers = [peer(h.address) for h in net.hosts]
        sock = Socket(net.hosts[0])
        start_join(sock, join_value(peers, timeout_ms=60000))
    time.sleep(0.5)
    sock.close()
    tap.wait_for(lambda: namespaces() <= before, 20, "namespaces to go")


def test_deleted_with_an_op_in_flight():
    before = namespaces()
    net = Network(2, netem="delay 50ms")
    group = Ranks(net.hosts, bucket_max=1 << 20)
    net.close()
    group[0].send(contribution(0, 1 << 17))
    group[1].send(contribution(1, 1 << 17))
    time.sleep(0.1)
    group.close()
    tap.wait_for(lambda: namespaces() <= before, 30, "namespaces to go")


def test_deleted_right_after_the_last_op():
    """Closed while resends may still be due: the linger doesn't keep it for ever."""
    before = namespaces()
    net = Network(3, netem="delay 1ms loss 10%", offloads=False)
    group = Ranks(net.hosts, bucket_max=1 << 18)
    group.allreduce(1 << 16)
    group.close()
    net.close()
    tap.wait_for(lambda: namespaces() <= before, 30, "namespaces to go")


def test_device_goes():
    """The interface is removed in mid-op: an end, not an oops."""
    with Network(2) as net, Ranks(net.hosts, bucket_max=1 << 18) as group:
        group.allreduce(COUNT)
        net.hosts[0].ip("link del eth0")
        group[0].send(contribution(0, COUNT, 1))
        group[1].send(contribution(1, COUNT, 1))
        for sock in group:
            sock.limit(receive=2)
            try:
                sock.take(COUNT * 4)
                raise AssertionError("a result without a wire")
            except OSError as error:
                tap.note(error)


def test_device_down_and_up():
    """A link that goes down for a while delays an op and doesn't fail it."""
    with Network(2) as net, Ranks(net.hosts, bucket_max=1 << 18) as group:
        group.allreduce(COUNT)
        net.switch.ip("link set p1 down")
        number = group.post(COUNT)
        assert not group[0].poll(seconds=1)
        net.switch.ip("link set p1 up")
        group.check(COUNT, number)


@tap.cases("address", "address6")
def test_address_goes_and_comes(kind):
    """Without a route nothing is sent; the op goes on when there is one again."""
    with Network(2) as net, Ranks(net.hosts, [peer(getattr(h, kind)) for h in net.hosts],
                                  bucket_max=1 << 18) as group:
        group.allreduce(COUNT)
        address = f"{getattr(net.hosts[0], kind)}/{24 if kind == 'address' else 64}"
        net.hosts[0].ip(f"addr del {address} dev eth0")
        number = group.post(COUNT)
        assert not group[1].poll(seconds=1)
        net.hosts[0].ip(f"addr add {address} dev eth0"
                        + (" nodad" if kind == "address6" else ""))
        group.check(COUNT, number)
        group.allreduce(COUNT)


def test_moved_descriptor():
    """setns() of the caller doesn't matter: the socket's own namespace does."""
    with shared(2) as net, Ranks(net.hosts) as group, Namespace() as elsewhere:
        with elsewhere:
            group.allreduce(COUNT)
            assert group[0].group().state == abi.STATE_JOINED
    elsewhere.close()


def test_unloading_takes_all_namespaces_along():
    """Groups set up in several namespaces don't hold the module."""
    places = [Namespace() for _ in range(3)]
    for place in places:
        with Socket(place) as admin:
            admin.set(abi.SETUP, join_value(ALONE))
    tap.check_nothing_left()
    tap.check_module_unloads()
    module.load()
    for place in places:
        with Socket(place) as admin, refused(errno.ENOENT, admin):
            admin.set(abi.TEARDOWN, join_value([], group=1))
        place.close()


tap.main(globals())
