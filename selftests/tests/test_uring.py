#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""io_uring drives ops: stress/uring.c, given the sockets of two ranks."""
import os
import subprocess

from lib import abi, tap
from lib.sockets import Ranks

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "../../build/selftests/uring")
CANNOT = 2	# its exit status


def drive(mode):
    with Ranks([None] * 2, bucket_max=1 << 16, depth=2, flags=abi.JOIN_SLOTS) as group:
        numbers = [sock.fileno() for sock in group]
        done = subprocess.run([PROGRAM, mode, *map(str, numbers)], pass_fds=numbers,
                              check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, CANNOT), done.stderr
    return done.returncode


@tap.cases("messages", "poll", "slots")
def test_uring(mode):
    assert drive(mode) == 0


def test_fixed_buffers():
    """Slots as registered buffers, on kernels that register anything but anonymous
    memory: 6.1 doesn't, and says so."""
    major, minor = map(int, os.uname().release.split(".")[:2])
    can = drive("fixed") == 0
    tap.note(f"{'registered' if can else 'refused'} by {major}.{minor}")
    assert can == ((major, minor) >= (6, 12))


tap.main(globals())
