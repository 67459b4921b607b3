#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: kernels=6.1,6.12,debug-smp cpus=2 timeout=300
"""Jobs that have all their vector registers in use, beside the module that uses them in
softirq and in system calls: the jobs' registers stay as they are, and sums are right.
"""
import contextlib
import os
import subprocess
import time

from lib import abi, module, tap
from lib.log import Log
from lib.netns import Network
from lib.sockets import Ranks, reliable

GUARD = os.path.join(os.path.dirname(__file__), "../../build/selftests/fpu_guard")
COUNT = 12000		# floats
SECONDS = 5		# at most, if ops and looks are enough
LEAST_OPS, LEAST_LOOKS = 8, 10	# the latter of each guard


@contextlib.contextmanager
def guards():
    """Two for each processor, so that whatever interrupts anything interrupts one."""
    running = [subprocess.Popen([GUARD], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
               for _ in range(2 * os.cpu_count())]
    try:
        yield running
    finally:
        for guard in running:
            guard.kill()
            guard.communicate()


def verdicts(running):
    """How often each looked."""
    looks = []
    for guard in running:
        out, err = guard.communicate()
        assert guard.returncode == 0, err or f"status {guard.returncode}"
        looks.append(int(out))
    return looks


def run_op(group, exact=True, **fields):
    """Of what adds up exactly; in the rotated domain but for rounding."""
    bucket = (b"\0\0\x80\x3f" + b"\0\0\0\x40") * (COUNT // 2)	# 1, 2
    for sock in group:
        sock.set(abi.OP, reliable(reduction=abi.MEAN, **fields))
        sock.send(bucket)
    taken = {sock.take(len(bucket)) for sock in group}
    assert len(taken) == 1, "ranks have got different bits"
    assert not exact or taken == {bucket}, "a wrong sum"


def test_by_vectors():
    """Else the other cases would say nothing: here is AVX2, and the module uses it."""
    tap.check_module_unloads()
    with Log() as log:
        module.load()
        told = [line for line in log.lines() if line.startswith("ored: reduces by")]
    tap.note(told[-1])
    assert "AVX" in told[-1], told


def test_a_change_is_found():
    done = subprocess.run([GUARD, "--spoil"], stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 1 and "was changed" in done.stderr, done


def test_registers():
    # Late packets: timers' softirqs handle them, on top of any job.
    with Network(3, netem="delay 300us limit 1000") as net, Ranks(net.hosts) as group, \
            guards() as running:
        ops, end = 0, time.monotonic() + SECONDS
        while ops < LEAST_OPS or time.monotonic() < end:
            run_op(group)
            run_op(group)
            run_op(group, exact=False, flags=abi.OP_HADAMARD_ON)
            run_op(group, dtype=abi.BF16, flags=abi.OP_HADAMARD_OFF)
            ops += 4
        looks = verdicts(running)
    tap.note(f"{ops} ops, {min(looks)} to {max(looks)} looks of {len(looks)} jobs")
    assert min(looks) >= LEAST_LOOKS, "too few looks"


tap.main(globals())
