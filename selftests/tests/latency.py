#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Prints how long ops took, in microseconds: for host_determinism.sh.

Hosts at 100 Mbit/s and 100 us: what comes out depends on processor, queues and
timers, so it only repeats if all of these do. Each op starts at the same
distance from the timer's ticks, with all buckets ready. Nothing is congested:
there a difference of one microsecond would grow to milliseconds.

A line is the median of five ops: what the kernel does now and then by itself
(writing files back, freeing pages) costs the op it meets some 30 us, and when
it does depends on how fast the machine outside read the guest's files.
"""
import statistics
import time

from lib import module, netns
from lib.netns import Network
from lib.sockets import Ranks
from lib.sums import contribution

WARM_UP, OPS = 3, 5


def at_next(period=0.1):
    """Waits for the next multiple of period on the kernel's clock."""
    now = time.clock_gettime(time.CLOCK_MONOTONIC)
    time.sleep(period - now % period)


def measure(hosts, count):
    took = [[] for _ in range(hosts)]
    with Network(hosts, netem="delay 100us rate 100mbit", offloads=False) as net, \
            Ranks(net.hosts, bucket_max=count * 4) as group:
        for op in range(WARM_UP + OPS):
            buckets = [contribution(rank, count, op) for rank in range(hosts)]
            at_next()
            for sock, bucket in zip(group, buckets):
                sock.send(bucket)
            for sock in group:
                assert sock.poll(seconds=60), "an op without an end"
            group.check(count, op)
            if op >= WARM_UP:
                for rank, sock in enumerate(group):
                    took[rank].append(sock.result(op).elapsed_ns // 1000)
    for rank, times in enumerate(took):
        print(f"{hosts}x{count}/{rank}", statistics.median(times), *times)


module.modprobe()
netns.warm_up()
measure(2, 25000)
measure(4, 2000)
