#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: kernels=debug virtual-time
"""A module whose self-tests fail refuses to load and leaves nothing behind."""
import errno

from lib import module, tap
from lib.log import Log
from lib.sockets import Ranks, refused

SUITES = "lock", "wire", "chunkmap", "reduce", "slot"


def test_pass():
    """All of them run, in each load."""
    tap.check_module_unloads()
    with Log() as log:
        module.load()
        lines = log.lines()
    for suite in SUITES:
        assert f"ored: {suite} self-tests: pass" in lines, (suite, lines)
    with Ranks([None] * 2) as group:
        group.allreduce(1000)


@tap.cases(*SUITES)
def test_refusal(suite):
    """One that fails is named, the others run, and nothing is registered."""
    tap.check_module_unloads()
    with Log() as log:
        with refused(errno.ENOTRECOVERABLE):
            module.load(f"fail_selftest={suite}")
        lines = log.lines()
    assert not module.loaded()
    for other in SUITES:
        verdict = "FAIL" if other == suite else "pass"
        assert f"ored: {other} self-tests: {verdict}" in lines, lines
    with open("/proc/net/protocols") as table:
        assert "ORED" not in [line.split()[0] for line in table]
    module.load()
    with Ranks([None] * 2) as group:
        group.allreduce(1000)


tap.main(globals())
