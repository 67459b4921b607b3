#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""What this version of the module doesn't have is EOPNOTSUPP, and says so."""
import errno

from lib import abi, tap
from lib.sockets import Socket, join_value, peer, refused

LOCAL = [peer("127.0.0.1", 5000)]


def test_key():
    with Socket() as sock:
        with refused(errno.EOPNOTSUPP, sock, "key"):
            sock.join(join_value(LOCAL, port=5000, flags=abi.JOIN_KEY, key=b"k" * 16))


@tap.cases(abi.AREA_OPEN, abi.AREA_REMOVE, abi.AREA_COMMIT, abi.AREA_ABORT,
           abi.AREA_STATUS, abi.AREA_READ, abi.AREA_NEWEST, abi.AREA_LIST)
def test_area(option):
    """The other protocol's options"""
    with Socket() as sock:
        if option in (abi.AREA_STATUS, abi.AREA_NEWEST, abi.AREA_LIST):
            with refused(errno.ENOPROTOOPT, sock):
                sock.getsockopt(abi.SOL_ORED, option, 256)
        else:
            with refused(errno.ENOPROTOOPT, sock):
                sock.set(option, bytes(512))


tap.main(globals())
