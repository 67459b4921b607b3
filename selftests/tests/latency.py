#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Prints how long some ops took, in microseconds: for host_determinism.sh.

Four hosts, 100 Mbit/s, 100 us, shallow ports: what comes out depends on
processor, queues and timers, so it only repeats if all of these do. Each op
starts at the same distance from the timer's ticks, with all buckets ready.
"""
import time

from lib import module, netns
from lib.netns import Network
from lib.sockets import Ranks
from lib.sums import contribution

COUNT = 25000
WARM_UP, OPS = 3, 5


def at_next(period=0.1):
    """Waits for the next multiple of period on the kernel's clock."""
    now = time.clock_gettime(time.CLOCK_MONOTONIC)
    time.sleep(period - now % period)
    while time.clock_gettime(time.CLOCK_MONOTONIC) % period > period / 2:
        pass


module.modprobe()
netns.warm_up()
with Network(4, offloads=False) as net:
    net.netem("delay 100us rate 100mbit")
    net.switch.tc(*[f"qdisc add dev p{i} root tbf rate 100mbit burst 3000 limit 65536"
                    for i in range(4)])
    with Ranks(net.hosts, bucket_max=COUNT * 4) as group:
        for op in range(WARM_UP + OPS):
            buckets = [contribution(rank, COUNT, op) for rank in range(4)]
            at_next()
            for sock, bucket in zip(group, buckets):
                sock.send(bucket)
            for sock in group:
                sock.poll(seconds=60)
            group.check(COUNT, op)
            if op >= WARM_UP:
                print(op, *[s.result(op).elapsed_ns // 1000 for s in group])
