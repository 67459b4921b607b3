#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=debug timeout=900
"""What the Hadamard transform makes of loss, end to end: the last tenth of a bucket
never comes to rank 0. Whatever the bucket's shape, as much is lost as should be, from
all elements alike; and the group decides alike whether it is transformed."""
import numpy

from lib import abi, tap
from lib.netns import Network
from lib.sockets import Ranks

PAYLOAD = 512
# The second half of a bucket, rank 1's shard, has 20 chunks: the last 4 of them are
# a tenth of the bucket. Their low bits stand at bit 240 (kmod/core/wire.h).
CHUNKS, LOST = 40, 4
COUNT = CHUNKS * PAYLOAD // 4
HOLE = ("ip saddr 10.77.0.2 udp dport 4741 @th,72,8 & 0xf0 == 0x30"
        f" @th,240,16 >= {CHUNKS // 2 - LOST}")
DEADLINE = 3000	# us: time for a round or two of repair, in vain
MEAN = {"reduction": abi.MEAN, "flags": abi.OP_MISSING_ZERO, "deadline_us": DEADLINE}
ON = {**MEAN, "flags": MEAN["flags"] | abi.OP_HADAMARD_ON}
OFF = {**MEAN, "flags": MEAN["flags"] | abi.OP_HADAMARD_OFF}
P = LOST / CHUNKS
rng = numpy.random.default_rng(1)


class Group:
    """Two ranks; the tail of rank 1's shard is lost on the way to rank 0, if torn."""

    def __init__(self, **join):
        self.join = {"bucket_max": COUNT * 4, "payload_max": PAYLOAD, **join}

    def __enter__(self):
        self.net = Network(2, netem="delay 50us limit 1000", offloads=False).__enter__()
        self.ranks = Ranks(self.net.hosts, mode=abi.MODE_BOUNDED, **self.join)
        self.ops = 0
        return self

    def __exit__(self, *error):
        self.ranks.close()
        self.net.__exit__(*error)

    def tear(self):
        self.net.hosts[0].drop("input", HOLE)

    def op(self, bucket, fields):
        """What both have got of the mean of equal contributions, and the results."""
        data = bucket.astype(numpy.float32).tobytes()
        for sock in self.ranks:
            sock.set(abi.OP, abi.Op(**fields))
            sock.send(data)
        got = [numpy.frombuffer(sock.take(len(data)), numpy.float32)
               for sock in self.ranks]
        self.ops += 1
        return got, [sock.result(self.ops - 1) for sock in self.ranks]

    def torn(self, bucket, fields):
        """What rank 0 has got, of which the tail must be missing, and nothing else."""
        got, (result, whole) = self.op(bucket, fields)
        assert result.gather.missing == LOST * PAYLOAD, result.gather.missing
        assert result.scatter.missing == whole.gather.missing == 0
        return got[0].astype(float)


def shape(name):
    """A bucket; what is adversarial is that all of it is in what will be lost."""
    x = rng.normal(size=COUNT)
    lost = COUNT // CHUNKS * LOST
    if name == "in tail":
        x[:-lost] *= 0.1
        x[-lost:] *= x[-lost:] ** 2
    elif name == "before tail":
        x[-lost:] *= 0.1
    elif name == "spike":
        x *= 0.01
        x[-1] = 100
    return x


@tap.cases("flat", "in tail", "before tail", "spike")
def test_tail(name):
    """The error is that of theory within a tenth, and in the adversarial cases the
    largest one at least five times smaller than without."""
    x = shape(name)
    with Group() as group:
        group.tear()
        raw = group.torn(x, OFF) - x
        errors = [group.torn(x, ON) - x for _ in range(40)]
    energy = numpy.mean([e @ e for e in errors]) / (x @ x)
    largest = max(abs(e).max() for e in errors)
    tap.note(f"lost {energy:.4f} of the energy, {raw @ raw / (x @ x):.4f} without; "
             f"largest error {largest:.2f}, {abs(raw).max():.2f} without")
    assert abs(energy - P) < P / 10, energy
    if name in ("in tail", "spike"):
        assert 5 * largest < abs(raw).max()


def test_unbiased():
    """The mean of many ops is what it should be, but for chance. Without the
    transform a tenth of it would never be there."""
    ops, x = 200, shape("flat")
    total = numpy.zeros(COUNT)
    with Group() as group:
        group.tear()
        for _ in range(ops):
            total += group.torn(x, ON)
    off = total / ops - (1 - P) * x
    bias = (off @ off / (x @ x)) ** .5
    chance = (P * (1 - P) / ops) ** .5
    tap.note(f"relative bias {bias:.5f}, where chance makes {chance:.5f}")
    assert 0.8 * chance < bias < 1.2 * chance


def spells(group, x, ops):
    """In how many of the next ops both ranks transform; they must never differ."""
    on = 0
    for _ in range(ops):
        _, results = group.op(x, MEAN)
        flags = {r.flags & abi.RESULT_HADAMARD for r in results}
        assert len(flags) == 1, f"op {group.ops - 1}: one transforms, one doesn't"
        on += bool(flags.pop())
    assert all(sock.stats()["mismatch"] == 0 for sock in group.ranks)
    return on


def test_auto():
    """Off without loss, on soon after there is much, off some time after it has gone;
    only one rank sees the loss."""
    x = shape("flat")
    with Group() as group:
        assert spells(group, x, 100) == 0
        group.tear()
        spells(group, x, 80)
        assert spells(group, x, 60) == 60, "not on by now"
        group.net.hosts[0].drop_no_more()
        assert spells(group, x, 40) > 0, "off at once"
        spells(group, x, 140)
        assert spells(group, x, 40) == 0, "still on"


def test_auto_deep():
    """As many ops in flight as can be: the same."""
    depth, ops = 16, 200
    with Group(depth=depth) as group:
        group.tear()
        data = bytes(COUNT * 4)
        for sock in group.ranks:
            sock.set(abi.OP, abi.Op(**MEAN))
        for op in range(ops + depth):
            for sock in group.ranks:
                if op >= depth:
                    sock.take(len(data))
                if op < ops:
                    sock.send(data)
            if op >= depth:
                flags = {s.result(op - depth).flags & abi.RESULT_HADAMARD
                         for s in group.ranks}
                assert len(flags) == 1, op - depth
        assert flags == {abi.RESULT_HADAMARD}


tap.main(globals())
