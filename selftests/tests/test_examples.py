#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=debug
"""Programs of libored/examples do what they say, each rank a process."""
import os
import re
import subprocess

import ored

from lib import tap
from lib.netns import Network, shared

EXAMPLES = os.path.join(os.path.dirname(os.path.realpath(__file__)),
                        "../../libored/examples")
BUILT = os.path.join(os.path.dirname(os.path.realpath(__file__)),
                     "../../build/libored/examples")
SECONDS = 120


def command(name):
    """How an example is run: a script, or what was built of its source."""
    if name.endswith(".py"):
        return ["/usr/bin/python3", os.path.join(EXAMPLES, name)]
    return [os.path.join(BUILT, name)]


def run_all(hosts, name, **env):
    """What each rank has printed."""
    peers = ",".join(host.address for host in hosts)
    # Found there by us too; a guest has the package in PYTHONPATH only for some.
    path = os.path.dirname(os.path.dirname(ored.__file__))
    ranks = []
    for rank, host in enumerate(hosts):
        with host:
            ranks.append(subprocess.Popen(
                command(name), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env={**os.environ, "ORED_RANK": str(rank), "ORED_PEERS": peers,
                     "PYTHONPATH": path, **env}))
    try:
        said = [process.communicate(timeout=SECONDS)[0] for process in ranks]
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    for process, text in zip(ranks, said):
        assert process.returncode == 0, text
    return said


def test_plain():
    with shared(3) as net:
        for rank, said in enumerate(run_all(net.hosts, "plain.py")):
            assert said == f"rank {rank}: every element is 6, that is 1 + ... + 3\n", said


def test_overlap():
    with shared(3) as net:
        for rank, said in enumerate(run_all(net.hosts, "overlap.py")):
            assert said.startswith(f"rank {rank}: 8 layers reduced"), said
            assert int(re.search(r"up to (\d+) at once", said)[1]) > 1, said


def test_slots():
    """In C: element 3 of the tenth bucket, which all have filled with its step."""
    with shared(3) as net:
        for said in run_all(net.hosts, "slots"):
            assert said == "gradient 3 over all ranks: 36\n", said


def test_slots_numpy():
    with shared(3) as net:
        for said in run_all(net.hosts, "slots.py"):
            want = [f"step {step}: {max(step, 1)}.0, ok" for step in range(10)]
            assert said.splitlines() == want, said


def late(said):
    return int(re.search(r"(\d+) of 1200000 gradients came late", said)[1])


def test_feedback():
    """Without loss nothing is late; with a bound too short for repairs, something is."""
    with shared(3) as net:
        said = run_all(net.hosts, "feedback.py", BOUND_US="2000000")
        assert [late(s) for s in said] == [0] * 3, said
    with Network(3, netem="delay 2ms loss 5%", offloads=False) as net:
        said = run_all(net.hosts, "feedback.py", BOUND_US="20000")
        assert sum(late(s) for s in said), said


tap.main(globals())
