#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Sums a bucket over all ranks with nothing but sockets: no libored, no
numpy. Any language that has socket, setsockopt, send and recv can do this.

    ORED_RANK=0 ORED_PEERS=10.0.0.1,10.0.0.2 ./plain.py
    ORED_RANK=1 ORED_PEERS=10.0.0.1,10.0.0.2 ./plain.py
"""
import array
import os
import socket
import struct
import sys

SOL_ORED, ORED_JOIN, ORED_ERROR = 300, 1, 7
BUCKET_MAX, DEPTH = 1 << 20, 1

rank = int(os.environ["ORED_RANK"])
addresses = os.environ["ORED_PEERS"].split(",")

# struct ored_join, then one struct ored_peer for each rank
join = struct.pack("=6I2QI2H2I16s32x", 104, 0, 0, rank, len(addresses), DEPTH,
                   0, BUCKET_MAX, 30_000, 0, 0, 24, 0, bytes(16))
for address in addresses:
    join += struct.pack("=2HI16s", socket.AF_INET, 0, 0,
                        socket.inet_aton(address))

with open("/sys/module/ored/parameters/family", encoding="ascii") as parameter:
    family = int(parameter.read())
sock = socket.socket(family, socket.SOCK_SEQPACKET, 0)
try:
    sock.setsockopt(SOL_ORED, ORED_JOIN, join)      # waits for all peers
    bucket = array.array("f", [rank + 1.0] * 100_000)
    sock.send(bucket)                               # one op: f32, sum
    sock.recv_into(bucket)                          # its result, in place
except OSError as err:
    why = sock.getsockopt(SOL_ORED, ORED_ERROR, 256).rstrip(b"\0").decode()
    sys.exit(f"plain.py: {why or err}")
print(f"rank {rank}: every element is {bucket[0]:g}, "
      f"that is 1 + ... + {len(addresses)}")
