#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Prints how long some ops took, in microseconds: for host_determinism.sh.

Four hosts, 100 Mbit/s, 100 us, shallow ports: what comes out depends on
processor, queues and timers, so it only repeats if all of these do.
"""
from lib import module, netns
from lib.netns import Network
from lib.sockets import Ranks

COUNT = 25000

module.modprobe()
netns.warm_up()
with Network(4, offloads=False) as net:
    net.netem("delay 100us rate 100mbit")
    net.switch.tc(*[f"qdisc add dev p{i} root tbf rate 100mbit burst 3000 limit 65536"
                    for i in range(4)])
    with Ranks(net.hosts, bucket_max=COUNT * 4) as group:
        for _ in range(3):
            group.allreduce(COUNT)
        for op in range(3, 8):
            group.allreduce(COUNT)
            print(op, *[s.result(op).elapsed_ns // 1000 for s in group])
