#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=debug
"""Writes into a holder's memory, and questions, that nobody allows."""
import contextlib
import socket
import struct
import time

from lib import abi, tap
from lib.copies import DELAY, SLOW, hosts_with, seen, state, until

AREA = 9
OFFER, ANSWER, ASK, DATA, REFUSE = range(1, 6)
NONE, BAD_KEY, STALE, RIGHTS, RANGE = range(7, 12)
HEADER = 32
CAPTURE = 14 + 20 + 8
ETH_P_IP = 0x0800
WRITE = "!BBHIQII"	# as core/area_wire.h has them
QUESTION = "!BBHIQQQIIHHI"


class Wire:
    """What comes to a host, and a way to send from it what one likes."""

    def __init__(self, host):
        self.host = host
        with host:
            self.tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                     socket.htons(ETH_P_IP))
            self.out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
        self.tap.bind(("eth0", ETH_P_IP))
        self.tap.setblocking(False)

    def close(self):
        self.tap.close()
        self.out.close()

    def heard(self, kind):
        """Packets about areas of that kind that have come since."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                frame, address = self.tap.recvfrom(1 << 16)
                data = frame[CAPTURE:]
                if address[2] != socket.PACKET_OUTGOING and len(data) > HEADER and \
                        data[1] >> 4 == AREA and data[HEADER] == kind:
                    found.append(data)
        return found

    def send(self, to, data):
        port = abi.PORT_DEFAULT
        self.out.sendto(struct.pack("!HHHH", port, port, 8 + len(data), 0) + data,
                        (to.address, 0))


@contextlib.contextmanager
def wires(group):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(contextlib.closing(Wire(h))) for h in group.net.hosts]


def caught(wire, kind):
    packets = []
    until(lambda: packets.extend(wire.heard(kind)) or packets)
    return packets[-1]


def refused(group, wires_, sender, target, packet, code):
    """That packet is refused with that code, counted, and all else goes on."""
    wires_[sender].heard(REFUSE)
    before = group[target].stats()
    wires_[sender].send(group.net.hosts[target], packet)
    answer = caught(wires_[sender], REFUSE)
    assert answer[HEADER + 1] == code, (answer[HEADER + 1], code)
    after = group[target].stats()
    assert sum(after[n] - before[n] for n in ("bad_chunk", "late")) == 1, (before, after)


def test_writes():
    with hosts_with(3) as group, wires(group) as wire:
        group.net.hosts[0].netem(SLOW)
        group.areas[0].save(1, state(0, 1))
        genuine = caught(wire[1], DATA)
        fields = struct.unpack_from(WRITE, genuine, HEADER)
        payload = b"\xee" * (len(genuine) - HEADER - struct.calcsize(WRITE))

        def forged(at=0, value=None, src=0, payload=payload):
            changed = list(fields)
            if value is not None:
                changed[at] = value
            head = bytearray(genuine[:HEADER])
            head[2] = src
            return bytes(head) + struct.pack(WRITE, *changed) + payload

        refused(group, wire, 0, 1, forged(4, fields[4] ^ 1), BAD_KEY)
        refused(group, wire, 0, 1, forged(4, 0), BAD_KEY)
        refused(group, wire, 0, 1, forged(6, fields[6] - 1), STALE)
        refused(group, wire, 2, 1, forged(src=2), RIGHTS)
        for block in (10, 11, 1 << 16, 0xffffffff):
            refused(group, wire, 0, 1, forged(3, block), RANGE)
        for index in (47, 200, 0xffff):
            refused(group, wire, 0, 1, forged(2, index), RANGE)
        refused(group, wire, 0, 1, forged(payload=payload[:-1]), RANGE)
        refused(group, wire, 0, 1, forged(payload=payload + b"x"), RANGE)
        group.net.hosts[0].netem(DELAY)
        group.areas[0].wait(1)
        assert seen(group.areas[1], 0, 1) == state(0, 1)
        # The key is worth nothing any more.
        refused(group, wire, 0, 1, forged(), BAD_KEY)
        assert seen(group.areas[1], 0, 1) == state(0, 1)


def test_questions():
    with hosts_with(3) as group, wires(group) as wire:
        group.net.hosts[0].netem(SLOW)
        group.areas[0].save(1, state(0, 1))
        genuine = caught(wire[0], ASK)
        fields = struct.unpack_from(QUESTION, genuine, HEADER)
        group.net.hosts[0].netem(DELAY)
        group.areas[0].wait(1)

        def asking(at, value):
            changed = list(fields)
            changed[at] = value
            return genuine[:HEADER] + struct.pack(QUESTION, *changed)

        refused(group, wire, 1, 0, asking(6, 2), NONE)
        refused(group, wire, 1, 0, asking(7, fields[7] ^ 1), NONE)
        refused(group, wire, 1, 0, asking(9, 2), NONE)
        refused(group, wire, 1, 0, asking(3, 10), RANGE)
        refused(group, wire, 1, 0, asking(3, 0xffffffff), RANGE)
        refused(group, wire, 1, 0, asking(2, 1424), RANGE)
        before = group[0].stats()["bad_control"]
        wire[1].send(group.net.hosts[0], asking(2, 343))
        wire[1].send(group.net.hosts[0], asking(5, 0))
        wire[1].send(group.net.hosts[0], asking(5, 1 << 47))
        wire[1].send(group.net.hosts[0], asking(0, 8))
        wire[1].send(group.net.hosts[0], genuine[:-1])
        until(lambda: group[0].stats()["bad_control"] == before + 5)
        time.sleep(0.05)
        assert group[0].stats()["bad_control"] == before + 5


tap.main(globals())
