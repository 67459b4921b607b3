#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Packets that nobody of the group meant: each is counted by its cause, none
has an effect on a running op, and none makes a log line."""
import contextlib
import os
import socket
import struct
import time

from lib import abi, seed, tap
from lib.netns import Network
from lib.sockets import Ranks
from lib.sums import contribution

HEADER = 32
MAGIC = 0xe1
HELLO, SCATTER, GATHER, ACK, POLL, MARK, BYE, MISMATCH, AREA = range(1, 10)
COUNT = 20000
PORT = abi.PORT_DEFAULT
ETH_P_IP = 0x0800
CAPTURE = 14 + 20 + 8


def packet(kind, content=b"", magic=MAGIC, flags=0, src=1, dst=0, group=1,
           session=0x12345678, op=0, length=COUNT * 4, word=2, chunk=0,
           posted=1, left=0):
    """A packet as wire.h draws it; word 2 is a reliable allreduce of f32 sums."""
    return struct.pack("!BBBBIIIIIHHI", magic, kind << 4 | flags, src, dst, group,
                       session, op, length, word << 20 | chunk, posted, left,
                       0) + content


class Tap:
    """Sees what arrives at a host, to take its session from."""

    def __init__(self, host):
        with host:
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                        socket.htons(ETH_P_IP))
        self.socket.bind(("eth0", ETH_P_IP))
        self.socket.setblocking(False)

    def payloads(self, source):
        """UDP payloads of our port from that address, in order of arrival."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                frame, address = self.socket.recvfrom(1 << 16)
                if address[2] == socket.PACKET_OUTGOING:
                    continue
                if frame[23] == 17 and frame[26:30] == socket.inet_aton(source):
                    found.append(frame[CAPTURE:])
        return found

    def close(self):
        self.socket.close()


BEATS = 8	# packets that two idle ranks exchange while a test looks away


class Scene:
    """Two ranks and a stranger; rank 0 has posted an op that rank 1 hasn't."""

    def __init__(self):
        self.net = Network(3, offloads=False)
        self.tap = Tap(self.net.hosts[0])
        self.log = Log()
        self.group = Ranks(self.net.hosts[:2], bucket_max=1 << 18, depth=2)
        self.group.allreduce(COUNT)
        self.captured = self.tap.payloads(self.net.hosts[1].address)
        self.session = struct.unpack("!I", next(
            p for p in self.captured if p[1] >> 4 == SCATTER)[8:12])[0]
        self.group[0].send(contribution(0, COUNT, 1))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.finish()
        finally:
            self.group.close()
            self.tap.close()
            self.log.close()
            self.net.close()

    def finish(self):
        """The op that ran meanwhile and the next one are right; no log lines."""
        self.group[1].send(contribution(1, COUNT, 1))
        self.group.ops = 2
        self.group.check(COUNT, 1)
        self.group.allreduce(COUNT)
        lines = self.log.lines()
        assert not lines, f"log lines: {lines}"

    def stats(self):
        return self.group[0].stats()

    def from_stranger(self, packets, target=0):
        """Sends them from the third host's own address."""
        with self.net.hosts[2]:
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with sender:
            for data in packets:
                sender.sendto(data, (self.net.hosts[target].address, PORT))
        time.sleep(0.2)

    def from_peer(self, packets, port=PORT):
        """Forges rank 1's address (and port), from the third host."""
        with self.net.hosts[2]:
            sender = socket.socket(socket.AF_INET, socket.SOCK_RAW,
                                   socket.IPPROTO_RAW)
        source = socket.inet_aton(self.net.hosts[1].address)
        target = socket.inet_aton(self.net.hosts[0].address)
        with sender:
            for data in packets:
                udp = struct.pack("!HHHH", port, PORT, 8 + len(data), 0)
                ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(data), 0, 0, 64,
                                 17, 0, source, target)
                sender.sendto(ip + udp + data, (self.net.hosts[0].address, 0))
        time.sleep(0.2)


class Log:
    """What the kernel logs from now on."""

    def __init__(self):
        self.file = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.file, 0, os.SEEK_END)

    def lines(self):
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(os.read(self.file, 8192).decode(errors="replace"))
        return found

    def close(self):
        os.close(self.file)


def grew(before, after, name, by):
    assert after[name] - before[name] == by, (
        f"{name}: {before[name]} -> {after[name]} instead of + {by}")


def unchanged(before, after, *names):
    for name in names:
        if name == "rx_packets":
            # While an op is in flight peers ask each other whether they live.
            assert 0 <= after[name] - before[name] <= BEATS, (before, after)
        else:
            grew(before, after, name, 0)


@tap.cases("stranger", "peer")
def test_short(sender):
    """0 to 31 bytes, zeros, noise or a good start: too short for a header."""
    random_ = seed.numbers("lengths")
    good = packet(SCATTER)
    packets = [data for length in range(HEADER) for data in
               (bytes(length), random_.randbytes(length), good[:length])]
    with Scene() as scene:
        before = scene.stats()
        getattr(scene, f"from_{sender}")(packets)
        after = scene.stats()
        grew(before, after, "ns_short", len(packets))
        unchanged(before, after, "rx_packets", "rx_data", "ns_version")


def test_magic_and_version():
    packets = [packet(SCATTER, b"x" * 64, magic=magic)
               for magic in range(256) if magic != MAGIC]
    with Scene() as scene:
        before = scene.stats()
        scene.from_stranger(packets)
        scene.from_peer(packets)
        grew(before, scene.stats(), "ns_version", 2 * len(packets))


def test_type():
    with Scene() as scene:
        packets = [packet(kind, b"x" * 64, session=scene.session)
                   for kind in (0, *range(10, 16))]
        before = scene.stats()
        scene.from_stranger(packets)
        scene.from_peer(packets)
        grew(before, scene.stats(), "ns_type", 2 * len(packets))


def test_truncated_types():
    """A header of each type with less behind it than the type needs."""
    need = {HELLO: 28, SCATTER: 1, GATHER: 1, ACK: 8, MISMATCH: 20, AREA: 8}
    with Scene() as scene:
        packets = [packet(kind, bytes(length), session=scene.session)
                   for kind, least in need.items() for length in range(least)]
        before = scene.stats()
        scene.from_peer(packets)
        after = scene.stats()
        grew(before, after, "ns_short", len(packets))
        unchanged(before, after, "rx_data", "bad_control")


def test_noise():
    """Random bytes of all lengths, and random bytes behind a good first byte."""
    random_ = seed.numbers("rubbish")
    packets = []
    for length in range(HEADER, 1400, 7):
        packets.append(random_.randbytes(length))
        packets.append(bytes([MAGIC]) + random_.randbytes(length - 1))
    with Scene() as scene:
        before = scene.stats()
        scene.from_stranger(packets)
        scene.from_peer(packets)
        after = scene.stats()
        names = [n for n in abi.COUNTERS if n.startswith("ns_")]
        told = sum(after[n] - before[n] for n in names)
        assert told == 2 * len(packets), f"{told} of {2 * len(packets)} told apart"
        unchanged(before, after, "rx_data")


def test_session():
    """Everything right but the session."""
    with Scene() as scene:
        packets = [packet(kind, bytes(64), session=session)
                   for kind in range(SCATTER, MISMATCH + 1)
                   for session in (0, 1, scene.session ^ 1, 0xffffffff)]
        before = scene.stats()
        scene.from_peer(packets)
        after = scene.stats()
        grew(before, after, "ns_session", len(packets))
        unchanged(before, after, "rx_packets", "rx_data")


def test_group_and_epoch():
    """HELLOs for groups, ranks and epochs that aren't here."""
    def hello(epoch):
        return struct.pack("!QIHHIHHHH", epoch, 99, 2, 2, 1 << 18, 1400, 0,
                           HEADER + 28, 0)
    with Scene() as scene:
        before = scene.stats()
        scene.from_peer([packet(HELLO, hello(1), group=99),
                         packet(HELLO, hello(1), dst=7)])
        after = scene.stats()
        grew(before, after, "ns_group", 2)
        scene.from_peer([packet(HELLO, hello(2)), packet(HELLO, hello(0))])
        grew(after, scene.stats(), "ns_epoch", 2)


def test_source_address():
    """The right session, from the stranger's address."""
    with Scene() as scene:
        packets = [packet(kind, bytes(64), session=scene.session, op=1)
                   for kind in range(SCATTER, MISMATCH + 1)]
        before = scene.stats()
        scene.from_stranger(packets)
        after = scene.stats()
        grew(before, after, "bad_source", len(packets))
        unchanged(before, after, "rx_data", "mismatch")


def test_rank():
    """The right session and address, but another rank's number."""
    with Scene() as scene:
        packets = [packet(SCATTER, bytes(64), session=scene.session, op=1, src=src)
                   for src in (0, 2, 100, 255)]
        packets += [packet(SCATTER, bytes(64), session=scene.session, op=1, dst=dst)
                    for dst in (1, 2, 255)]
        before = scene.stats()
        scene.from_peer(packets)
        after = scene.stats()
        grew(before, after, "bad_source", len(packets))
        unchanged(before, after, "rx_data")


def test_chunk():
    """Chunks out of bounds and chunks of a wrong length, of the running op."""
    with Scene() as scene:
        payload = scene.group[0].group().payload
        chunks = -(-COUNT * 4 // payload)
        shard = -(-chunks // 2)
        packets = [packet(SCATTER, bytes(payload), session=scene.session, op=1,
                          chunk=chunk)
                   for chunk in (shard, shard + 1, chunks, 1 << 19, (1 << 20) - 1)]
        packets += [packet(SCATTER, bytes(length), session=scene.session, op=1)
                    for length in (1, 4, payload - 8, payload - 1)]
        packets += [packet(GATHER, bytes(length), session=scene.session, op=1)
                    for length in (1, payload - 4)]
        before = scene.stats()
        scene.from_peer(packets)
        after = scene.stats()
        grew(before, after, "bad_chunk", len(packets))
        unchanged(before, after, "rx_data")


def test_control():
    """ACKs whose content says what can't be."""
    with Scene() as scene:
        packets = [packet(ACK, bytes(8 + extra), session=scene.session, op=1)
                   for extra in (1, 4, 7, 136, 1000)]
        packets += [packet(ACK, bytes(16), session=scene.session, op=1, chunk=1),
                    packet(MISMATCH, bytes(20), session=scene.session, op=1),
                    packet(MISMATCH, b"\xff" * 20, session=scene.session, op=1)]
        before = scene.stats()
        scene.from_peer(packets)
        grew(before, scene.stats(), "bad_control", len(packets))


def test_ops_far_away():
    """Data of ops that ended or are far ahead touches no slot."""
    with Scene() as scene:
        payload = scene.group[0].group().payload
        ahead = [packet(SCATTER, b"\xff" * payload, session=scene.session, op=op)
                 for op in (10, 100, 1 << 31)]
        late = [packet(SCATTER, b"\xff" * payload, session=scene.session, op=0)]
        before = scene.stats()
        scene.from_peer(ahead[:2])
        middle = scene.stats()
        grew(before, middle, "ahead", 2)
        scene.from_peer(late)
        after = scene.stats()
        assert after["late"] + after["duplicate"] > middle["late"] + middle["duplicate"]
        scene.from_peer(ahead[2:])
        unchanged(before, scene.stats(), "rx_data", "mismatch")


def test_replay():
    """What rank 1 sent for the last op, again and again, in a random order."""
    with Scene() as scene:
        replayed = [p for p in scene.captured if p[1] >> 4 != BYE] * 3
        seed.numbers("replay").shuffle(replayed)
        before = scene.stats()
        scene.from_peer(replayed)
        after = scene.stats()
        unchanged(before, after, "rx_data", "mismatch", "bad_chunk")
        assert after["late"] + after["duplicate"] > before["late"] + before["duplicate"]


def test_replay_of_an_earlier_run():
    """The packets of one run, replayed into the next on the same port."""
    with Scene() as scene:
        captured = scene.captured
        scene.group[1].send(contribution(1, COUNT, 1))
        scene.group.check(COUNT, 1)
        scene.group.close()
        scene.group = Ranks(scene.net.hosts[:2], bucket_max=1 << 18, depth=2, epoch=2)
        scene.group.allreduce(COUNT)
        scene.group[0].send(contribution(0, COUNT, 1))
        before = scene.stats()
        scene.from_peer(captured)
        after = scene.stats()
        unchanged(before, after, "rx_data", "rx_packets")
        hellos = sum(p[1] >> 4 == HELLO for p in captured)
        grew(before, after, "ns_epoch", hellos)
        grew(before, after, "ns_session", len(captured) - hellos)


def test_flood():
    """Thousands of wrong packets while ops run."""
    with Scene() as scene:
        packets = [packet(SCATTER, bytes(100), session=0)] * 3000
        before = scene.stats()
        scene.from_peer(packets)
        grew(before, scene.stats(), "ns_session", len(packets))


def test_bad_checksum():
    """A wrong UDP checksum is dropped before it gets to us."""
    with Scene() as scene:
        with scene.net.hosts[2]:
            sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        hosts = [socket.inet_aton(h.address) for h in scene.net.hosts]
        data = packet(SCATTER, bytes(64), session=0)
        udp = struct.pack("!HHHH", PORT, PORT, 8 + len(data), 0xdead)
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(data), 0, 0, 64, 17, 0,
                         hosts[1], hosts[0])
        before = scene.stats()
        with sender:
            sender.sendto(ip + udp + data, (scene.net.hosts[0].address, 0))
        time.sleep(0.2)
        unchanged(before, scene.stats(), "ns_session", "ns_short", "rx_packets")


tap.main(globals())
