# SPDX-License-Identifier: GPL-2.0
"""Ranks as trainers are: processes that compute, send, receive, and know nothing
of each other.

A case makes Trainers, disturbs them while they train, and gets a Log of each in
the end. lib/ledger.py says whether the logs can be true.
"""
import contextlib
import ctypes
import itertools
import os
import pickle
import random
import select
import signal
import struct
import time
from dataclasses import dataclass, field

from . import abi, raw
from .sockets import Socket, join_value, peer

DONE, GO = b"d", b"g"
READY, WAIT = 1.0, 120	# s until the first op; s that the slowest may take
epochs = itertools.count(1)


@dataclass
class Plan:
    """What a trainer does. gap, op and policy may be functions of the op's number."""
    ops: int = 1 << 30
    seconds: float = 1e9	# after which it posts no op any more
    start: float = 0		# seconds after the others
    gap: float = 0.005		# seconds of computing before each op
    count: int = 2000		# floats
    op: dict = field(default_factory=dict)
    policy: dict = field(default_factory=dict)
    look: object = None		# called after each op with the socket; kept as Step.seen
    close: bool = False		# leaves as soon as it has done its ops


@dataclass
class Step:
    """One op, as its caller saw it. Times are those of the monotonic clock, in ns."""
    begin: int
    end: int
    data: bytes
    result: abi.Result
    uncounted: int	# bit c: chunk c of the own contribution wasn't counted
    chunk: int		# bytes of a full one
    seen: object = None

    @property
    def took_us(self):
        return (self.end - self.begin) / 1000

    @property
    def over_us(self):
        """How much longer it took than was published."""
        return self.took_us - self.result.bound_us

    @property
    def loss(self):
        """Of what should have come, by the result's own counts."""
        stages = self.result.scatter, self.result.gather
        expected = sum(s.expected for s in stages)
        return sum(s.missing for s in stages) / expected if expected else 0




# Each rank's contribution is one number all over, from which lib/ledger.py can
# tell whose it is: sums of eight are exact in f32.
random_ = random.Random(1)
VALUES = [random_.randrange(1 << 16, 1 << 18) for _ in range(32)]


def value_of(rank, number):
    return VALUES[rank] * (1 + number % 5)


def bucket_of(rank, number, count):
    return struct.pack("<f", value_of(rank, number)) * count


def uncounted(sock, number):
    """(bitmap as an integer, bytes of a chunk)"""
    words = -(-sock.group().bucket_max // 512 // 64) + 1
    buffer = (ctypes.c_uint64 * (2 + words))(number)
    size = raw.getsockopt_at(sock, abi.UNCOUNTED, buffer, ctypes.sizeof(buffer))
    head = abi.Uncounted.from_buffer_copy(buffer)
    bits = int.from_bytes(bytes(buffer)[ctypes.sizeof(head):size], "little")
    assert bits >> head.chunks == 0, "bits beyond the last chunk"
    return bits, head.chunk


def of(what, number):
    return what(number) if callable(what) else what


def one_op(sock, plan, rank, number, memory):
    bucket = bucket_of(rank, number, plan.count)
    fields = of(plan.op, number)
    # What is transformed no longer tells whose it is.
    flags = fields.get("flags", 0) | abi.OP_HADAMARD_OFF
    op = [(abi.SOL_ORED, abi.OP, bytes(abi.Op(**{**fields, "flags": flags})))]
    begin = time.monotonic_ns()
    sock.sendmsg([bucket], op)
    got = sock.recv_into(memory)
    end = time.monotonic_ns()
    bits, chunk = uncounted(sock, number)
    step = Step(begin, end, bytes(memory[:got]), sock.result(number), bits, chunk)
    if plan.look:
        step.seen = plan.look(sock)
    return step


def train(sock, plan, rank, origin):
    """The life of a trainer; returns its log."""
    log, memory = {}, bytearray(plan.count * 4)
    time.sleep(max(0, origin + plan.start - time.monotonic()))
    for number in range(plan.ops):
        if time.monotonic() > origin + plan.seconds:
            break
        time.sleep(of(plan.gap, number))
        log[number] = one_op(sock, plan, rank, number, memory)
    return log


def plain(step):
    """ctypes can't be pickled."""
    return {**vars(step), "result": bytes(step.result)}


def rich(parts):
    return Step(**{**parts, "result": abi.Result.from_buffer_copy(parts["result"])})


class Trainer:
    """One process."""

    def __init__(self, host, rank, plan, join, origin):
        self.rank, self.plan, self.log = rank, plan, None
        self.from_child, to_parent = os.pipe()
        from_parent, self.to_child = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.from_child)
            os.close(self.to_child)
            self.live(host, join, origin, to_parent, from_parent)
        os.close(to_parent)
        os.close(from_parent)

    def live(self, host, join, origin, to_parent, from_parent):
        """In the child; doesn't return."""
        sock = None
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            sock = Socket(host)
            sock.join(join)
            sock.set(abi.POLICY, abi.Policy(**self.plan.policy))
            log = train(sock, self.plan, self.rank, origin)
            if self.plan.close:
                sock.close()
            os.write(to_parent, DONE)
            # Telling takes processor time, which would be missing where ops still
            # run, and they'd seem to take longer than their bound.
            os.read(from_parent, 1)
            with os.fdopen(to_parent, "wb") as pipe:
                pickle.dump({n: plain(s) for n, s in log.items()}, pipe)
            os.read(from_parent, 1)	# until all have what they want
        except BaseException as error:	# nothing may get out of the child
            why = sock.error() if sock and sock.fileno() >= 0 else ""
            os.write(1, f"# rank {self.rank}: {error!r} {why}\n".encode())
            os._exit(1)
        os._exit(0)

    def stop(self):
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.pid, signal.SIGCONT)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.reap()

    def reap(self):
        """Its exit status; None if it is known already."""
        if not self.pid:
            return None
        pid, self.pid = self.pid, 0
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def hear(self, size, end):
        """What the child has to say next; nothing when it has said all."""
        left = end - time.monotonic()
        ready = left > 0 and select.select([self.from_child], [], [], left)[0]
        assert ready, f"rank {self.rank} doesn't come to an end"
        return os.read(self.from_child, size)

    def wait_done(self, end):
        assert self.hear(1, end) == DONE, f"rank {self.rank} has failed"

    def take_log(self, end):
        """Lets the child tell its log."""
        os.write(self.to_child, GO)
        data = b""
        while more := self.hear(1 << 20, end):
            data += more
        assert data, f"rank {self.rank} has failed"
        self.log = {n: rich(s) for n, s in pickle.loads(data).items()}

    def release(self):
        """Lets it close its socket and exit."""
        with contextlib.suppress(OSError):
            os.close(self.to_child)
            os.close(self.from_child)


class Trainers(list):
    """All ranks of a group, training. plans: one for all, or one for each."""

    def __init__(self, hosts, plans, **join):
        super().__init__()
        plans = plans if isinstance(plans, list) else [plans] * len(hosts)
        peers = [peer(h.address) for h in hosts]
        join.setdefault("epoch", next(epochs))
        join.setdefault("bucket_max", -(-max(p.count for p in plans) // 2) * 8)
        self.origin = time.monotonic() + READY
        for rank, (host, plan) in enumerate(zip(hosts, plans)):
            value = join_value(peers, rank=rank, **join)
            self.append(Trainer(host, rank, plan, value, self.origin))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for trainer in self:
            trainer.release()
        for trainer in self:
            if trainer.pid:
                os.kill(trainer.pid, signal.SIGKILL)
                trainer.reap()

    def sleep_until(self, seconds):
        """Of the trainers' time, which starts with their first ops."""
        time.sleep(max(0, self.origin + seconds - time.monotonic()))

    def take_logs(self, whose, seconds=WAIT):
        """Waits until they have done their ops; they stay: logs by rank."""
        end = time.monotonic() + seconds
        for trainer in whose:
            trainer.wait_done(end)
        for trainer in whose:
            trainer.take_log(end)
        return {t.rank: t.log for t in whose}

    def logs(self, seconds=WAIT):
        """Waits until all that live have done their ops: logs by rank."""
        living = [t for t in self if t.pid]
        logs = self.take_logs(living, seconds)
        for trainer in living:
            trainer.release()
        for trainer in living:
            assert trainer.reap() == 0, f"rank {trainer.rank} has failed"
        return logs
