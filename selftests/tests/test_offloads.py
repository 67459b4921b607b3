#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Trains of packets where the device cuts them, single packets where not."""
from lib import tap
from lib.netns import Network
from lib.sockets import Ranks

COUNT = 1 << 18


def totals(group):
    stats = [sock.stats() for sock in group]
    return (sum(s["tx_packets"] for s in stats),
            sum(s["tx_trains"] for s in stats))


def arrived(group):
    """Packets of gradients, whatever became of them"""
    return sum(group.total(name) for name in ("rx_data", "duplicate", "late"))


def run(net):
    with Ranks(net.hosts, bucket_max=COUNT * 4) as group:
        for _ in range(2):
            group.allreduce(COUNT)
        assert group.total("tx_dropped") == 0
        return totals(group)


def test_on():
    with Network(2) as net:
        packets, trains = run(net)
        tap.note(f"{packets} packets in {trains} trains")
        assert trains * 2 < packets, f"{trains} trains of {packets} packets"


@tap.cases((100, 2), (20, 1))
def test_capped(mbps, most):
    """Where the link's rate is known, a peer gets no more in a row than leaves in a
    quarter of a millisecond: a port's queue is short, and others send to it, too."""
    count = COUNT // 8
    with Network(3, netem=f"delay 100us rate {mbps}mbit limit 1000") as net, \
            Ranks(net.hosts, bucket_max=count * 4) as group:
        for _ in range(3):
            group.allreduce(count)	# from which the rate is learnt
        before, data = totals(group), arrived(group)
        for _ in range(3):
            group.allreduce(count)
        packets, trains = (b - a for a, b in zip(before, totals(group)))
        data = arrived(group) - data
    # Control packets go alone.
    trains -= packets - data
    tap.note(f"{data} packets of gradients in {trains} trains")
    assert trains > 0 and data <= most * trains, f"{data / trains:.2f} packets a train"


def test_off():
    with Network(2, offloads=False) as net:
        packets, trains = run(net)
        tap.note(f"{packets} packets in {trains} trains")
        payload = 1400
        assert packets >= 2 * 2 * COUNT * 4 / 2 / payload


def test_checksums_off_only():
    with Network(2) as net:
        for host in net.hosts:
            host.run("ethtool", "-K", "eth0", "tx-checksumming", "off")
        run(net)


def test_changed_in_mid_run():
    with Network(2) as net, Ranks(net.hosts, bucket_max=COUNT * 4) as group:
        for on in (False, True, False):
            for host in net.hosts:
                host.offloads(on)
            group.allreduce(COUNT)


def test_shallow_queue():
    """tbf cuts the trains that are longer than its bucket; a short queue drops."""
    with Network(3) as net, Ranks(net.hosts, bucket_max=COUNT * 4) as group:
        net.switch.tc(*[f"qdisc add dev p{i} root tbf rate 100mbit burst 3000"
                        " limit 64000" for i in range(3)])
        for _ in range(2):
            group.allreduce(COUNT // 4)


tap.main(globals())
