#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: kernels=6.1 timeout=600
"""The module brings its types, programs use them, and without them the rest works."""
import glob
import os
import subprocess
import tempfile

from lib import module, tap, xdp
from lib.netns import Network
from lib.sockets import Ranks

BTF = "/sys/kernel/btf/ored"
TYPED = os.path.join(xdp.TOP, "build/selftests/bpf/typed")
BPFTOOL = "/usr/sbin/bpftool"


def file_of_module():
    return glob.glob(f"/lib/modules/{os.uname().release}/updates/ored.ko")[0]


def run_typed(work):
    """Runs work() under the programs; what they have seen by name."""
    child = subprocess.Popen([TYPED], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    if child.stdout.readline() != "attached\n":
        err = child.communicate()[1]
        raise AssertionError(f"not attached: {err}")
    work()
    out, _ = child.communicate(timeout=60)
    return {name: int(value) for name, value in map(str.split, out.splitlines())}


def test_dump():
    """bpftool knows the module's structures, upon the kernel's."""
    done = subprocess.run([BPFTOOL, "btf", "dump", "file", BTF, "format", "c"],
                          text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in "struct ored_member {", "struct ored_slot {", "struct ored_event_chunk {":
        assert name in done.stdout, name


def test_typed_programs():
    """fentry at a function and tp_btf at a tracepoint see what goes on."""
    with Network(2) as net, Ranks(net.hosts, group=77) as group:
        def work():
            for _ in range(3):
                group.allreduce(4096)
        seen = run_typed(work)
    assert seen["packets"] >= seen["chunks"] >= seen["taken"] > 0, seen
    assert seen["group"] == 77 and seen["told"] >= 1, seen


def test_without():
    """A module without types: these programs are refused, all else works."""
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "ored.ko")
        subprocess.run(["objcopy", "--remove-section=.BTF", file_of_module(), plain],
                       check=True)
        module.unload()
        try:
            subprocess.run(["/usr/sbin/insmod", plain], check=True)
            assert not os.path.exists(BTF)
            done = subprocess.run([TYPED], stdin=subprocess.DEVNULL, text=True,
                                  capture_output=True, check=False)
            assert (done.returncode, done.stdout) == (2, "refused\n"), done
            with Network(2) as net, xdp.attached(net.hosts[0]), \
                    Ranks(net.hosts, group=3) as group:
                assert (3, 0) in xdp.groups(net.hosts[0])
                for _ in range(3):
                    group.allreduce(4096)
                assert xdp.counters(net.hosts[0])["timed"] > 0
                told = xdp.good(net.hosts[0], "xdp", "status")
                assert "no type information" in told, told
            tap.wait_for(lambda: not module.references(), 30, "the module to be free")
            module.unload()
        finally:
            if not module.loaded():
                module.modprobe()


if __name__ == "__main__":
    tap.main(globals())
