#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Prints what hosts that lose, delay and swap packets said: for host_seeds.sh.

A line: packets, those resent, and a hash over each packet's time, port and bytes.
"""
import hashlib
import socket
import struct

from lib import module, netns
from lib.netns import Network
from lib.sockets import Ranks

SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
SOL_PACKET, PACKET_STATISTICS = 263, 6
ETH_P_ALL, ETH_P_IP = 3, 0x0800
NETEM = "delay 2ms 1ms loss 5% duplicate 1%"


def listen(namespace):
    """A socket that keeps a copy of all that passes through a namespace."""
    with namespace:
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                             socket.htons(ETH_P_ALL))
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.setblocking(False)
    return sock


def heard(sock):
    """(time, port, bytes) of all of UDP's packets."""
    while True:
        try:
            data, control, _, source = sock.recvmsg(65535, 64)
        except BlockingIOError:
            break
        if source[1] == ETH_P_IP and data[23] == socket.IPPROTO_UDP:
            yield struct.unpack("qq", control[0][2][:16]), source[0], data
    _, dropped = struct.unpack("II", sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    assert not dropped, f"{dropped} packets weren't kept"


module.modprobe()
netns.warm_up()
with Network(3, netem=NETEM, offloads=False) as net, listen(net.switch) as ear:
    with Ranks(net.hosts, bucket_max=1 << 17, depth=2) as group:
        for _ in range(8):
            group.allreduce(20000)
        resent = group.total("resent")
    digest, packets = hashlib.sha256(), 0
    for when, port, data in heard(ear):
        digest.update(f"{when} {port} ".encode() + data)
        packets += 1
    print(packets, resent, digest.hexdigest())
