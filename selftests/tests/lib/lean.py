# SPDX-License-Identifier: GPL-2.0
"""Trainers that cost next to nothing (stress/trainer.c), and what disturbs them
without running a program: for where all ranks share one processor."""
import contextlib
import ctypes
import fcntl
import itertools
import os
import signal
import socket
import struct
import subprocess
import time
from dataclasses import dataclass

PROGRAMS = os.path.join(os.path.dirname(os.path.realpath(__file__)),
                        "../../../build/selftests")
BRIDGE_PORT_OFF = 0x89a3	# SIOCBRDELIF
epochs = itertools.count(1000)


@dataclass
class Step:
    """One op, as its caller saw it."""
    took_us: float
    bound_us: int
    limit: int
    verdict: int
    loss_ppm: int
    elapsed_ns: int		# as the kernel says


class Trainer:
    """One process in a host's namespace."""

    def __init__(self, host, rank, addresses, epoch, options):
        command = [f"{PROGRAMS}/trainer", "--rank", str(rank), "--epoch", str(epoch)]
        for address in addresses:
            command += ["--address", address]
        with host:
            self.process = subprocess.Popen(command + options, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True, bufsize=1)
        self.rank = rank

    def expect(self, line):
        got = self.process.stdout.readline()
        assert got == line + "\n", f"rank {self.rank} says {got!r}, not {line!r}"

    def begin(self, origin):
        self.process.stdin.write(f"{origin}\n")

    def signal(self, number):
        self.process.send_signal(number)

    def steps(self):
        """After all have said that they are done."""
        out, _ = self.process.communicate()
        assert self.process.returncode == 0, f"rank {self.rank} has failed"
        return [Step(float(words[0]), *map(int, words[1:]))
                for words in map(str.split, out.splitlines())]


class Trainers(list):
    """All ranks, joined. begin() has them train."""

    def __init__(self, hosts, *options):
        super().__init__()
        epoch, addresses = next(epochs), [h.address for h in hosts]
        for rank, host in enumerate(hosts):
            self.append(Trainer(host, rank, addresses, epoch, [str(o) for o in options]))
        for trainer in self:
            trainer.expect("ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for trainer in self:
            trainer.process.kill()
            trainer.process.communicate()

    def begin(self):
        """A second from now: till then the kernel takes the last test's hosts down,
        on the processor that these share, and idle time costs nothing."""
        self.origin = time.monotonic() + 1
        for trainer in self:
            trainer.begin(int(self.origin * 1e9))

    def sleep_until(self, seconds):
        time.sleep(max(0, self.origin + seconds - time.monotonic()))

    def steps(self, ranks):
        """What these ranks have seen, by rank, when all of them are done."""
        for rank in ranks:
            self[rank].expect("done")
        return {rank: self[rank].steps() for rank in ranks}


class Partition:
    """Takes hosts off the switch: nothing gets through, and their links stay up."""

    def __init__(self, net):
        with net.switch:
            self.control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.ports = [socket.if_nametoindex(f"p{i}") for i in range(len(net.hosts))]

    def cut(self, rank):
        request = struct.pack("16si20x", b"br0", self.ports[rank])
        fcntl.ioctl(self.control, BRIDGE_PORT_OFF, request)


@contextlib.contextmanager
def flood(host, rate, port=4741):
    """The host sends again what it has sent, so many packets a second. Yields a list
    that has their number in the end."""
    sent = []
    with host:
        process = subprocess.Popen([f"{PROGRAMS}/flood", "eth0", str(port), str(rate)],
                                   stdout=subprocess.PIPE, text=True)
    try:
        yield sent
    finally:
        process.send_signal(signal.SIGTERM)
        sent.append(int(process.communicate()[0]))


def keep_in_memory():
    """What is waited for while a page is read from outside is no op's fault."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(3):
        raise OSError(ctypes.get_errno(), "mlockall")
