#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""oredctl against the kernel: what it prints, as text and JSON, and how it ends."""
import json
import os
import select
import subprocess
import time

from lib import abi, genl, module, tap
from lib.genl import SPEC, spaces
from lib.netns import Namespace, shared
from lib.sockets import Ranks, contribution
from lib.users import USER, as_user

OREDCTL = os.path.join(os.path.dirname(SPEC), "../build/tools/oredctl")
USAGE, KERNEL = 1, 2


def call(*words, host=None):
    """(exit status, output, what went to standard error)."""
    def run():
        return subprocess.run([OREDCTL, *words], text=True, check=False,
                              capture_output=True)
    if host:
        with host:
            done = run()
    else:
        done = run()
    return done.returncode, done.stdout, done.stderr


def good(*words, host=None):
    status, out, said = call(*words, host=host)
    assert status == 0 and not said, (words, status, said)
    return out


def bad(status, sentence, *words):
    got, out, said = call(*words)
    assert got == status and not out, (words, got, out, said)
    assert said.startswith("oredctl: ") and sentence in said, (words, said)
    assert said.count("\n") == 1, said


def listed(*words, host=None):
    return json.loads(good("-j", *words, host=host))


def schema(value, **kinds):
    """An object has exactly these keys, with values of these kinds."""
    assert {k: type(v) for k, v in value.items()} == kinds, value


IDENTITY = {"group": int, "epoch": int}
CONF = {"nranks": int, "depth": int, "bucket": int, "port": int, "timeout-ms": int,
        "policy": dict}
RANK = {**IDENTITY, **CONF, "rank": int, "setup": bool, "state": str, "orphan": bool,
        "payload": int, "posted": int, "finished": int, "received": int, "pace": int,
        "takes": int, "memory": int, "header": int, "session": int, "ip": int}
PEER = {**IDENTITY, "rank": int, "setup": bool, "peer": int, "address": str,
        "status": str, "posted": int, "finished": int}
FAR = {"heard-us": int, "srtt-us": int, "rttvar-us": int, "window": int, "inflight": int,
       "path-payload": int, "takes": int, "sent": int, "resent": int, "received": int,
       "duplicates": int, "local-drops": int}


def test_set_up_and_forget():
    with Namespace() as space:
        good("group", "add", "7", "epoch", "3", "bucket", "4k", "peers", "10.0.0.1",
             "10.0.0.2:5000", "depth", "2", "uid", str(USER), "policy", "mode", "reliable",
             "loss-skip", "5")
        one, = listed("group")
        schema(one, **IDENTITY, **CONF, setup=bool, uid=int)
        assert one["bucket"] == 4096 and one["uid"] == USER and one["setup"]
        assert one["policy"]["mode"] == "reliable" and one["policy"]["loss-skip"] == 5
        assert sorted(one["policy"]) == sorted(a["name"] for a in spaces["policy"])
        first, second = listed("peer", "show", "7")
        schema(first, **IDENTITY, setup=bool, peer=int, address=str)
        assert first["address"] == f"10.0.0.1:{abi.PORT_DEFAULT}"
        assert second["address"] == "10.0.0.2:5000"
        assert good("group").startswith("group 7 epoch 3 setup nranks 2 depth 2 bucket 4096")
        assert "policy loss-skip 5" in good("-d", "group")
        bad(KERNEL, "set up already", "group", "add", "7", "epoch", "3", "bucket", "8",
            "peers", "10.0.0.1")
        good("g", "d", "7", "e", "3")
        assert listed("group") == [] and good("group") == ""
        bad(KERNEL, "not set up", "group", "delete", "7", "epoch", "3")
    space.close()


def test_ranks_peers_and_counters():
    with shared(2) as net, Ranks(net.hosts, group=3, bucket_max=1 << 16) as group:
        group.allreduce(1 << 14)
        time.sleep(1)	# until nothing is on its way any more
        host = net.hosts[1]
        one, = listed("group", host=host)
        schema(one, **RANK)
        assert (one["rank"], one["state"], one["posted"]) == (1, "joined", 1)
        far, near = listed("peer", host=host)
        schema(far, **PEER, **FAR)
        schema(near, **PEER)
        assert far["status"] == "live" and far["sent"] and far["srtt-us"]
        of_net, of_rank = listed("stat", host=host)
        schema(of_net, stats=dict)
        schema(of_rank, **IDENTITY, rank=int, stats=dict)
        assert sorted([*of_net["stats"], *of_rank["stats"]]) == sorted(abi.COUNTERS)
        assert f" rx_data {of_rank['stats']['rx_data']}" in good("stat", host=host)
        good("group", "set", "3", "policy", "deadline", "p95", host=host)
        one, = listed("group", "show", "3", "rank", "1", host=host)
        assert one["policy"]["deadline"] == "p95"
        assert listed("group", "show", "3", "rank", "0", host=host) == []
        assert json.loads(good("-j", "-p", "stat", host=host)) == [of_net, of_rank]


def test_refusals():
    with Namespace() as space:
        bad(KERNEL, "nor is it set up", "group", "set", "1", "policy", "warmup", "6")
        good("group", "add", "1", "bucket", "8", "peers", "10.0.0.1")
        bad(KERNEL, "warmup is 1" if genl.makes_sentences() else "policy",
            "group", "set", "1", "policy", "warmup", "1")
        bad(USAGE, "no namespace", "-n", "nowhere", "group")

        def child():
            bad(KERNEL, "not permitted", "group", "delete", "1")
            assert len(listed("group")) == 1
        assert as_user(USER, child)
    space.close()


def test_without_the_module():
    tap.check_nothing_left()
    tap.check_module_unloads()
    try:
        bad(KERNEL, "modprobe ored", "group")
        bad(KERNEL, "modprobe ored", "monitor")
    finally:
        module.modprobe()


class Monitor:
    """`oredctl -j monitor` in host's namespace."""

    def __init__(self, host):
        with host:
            self.process = subprocess.Popen([OREDCTL, "-j", "monitor"],
                                            stdout=subprocess.PIPE, bufsize=0)
        # It listens once its socket is in the namespace's table of groups.
        tap.wait_for(lambda: self.listens(host), 30, "the monitor to listen")

    @staticmethod
    def listens(host):
        with host, open("/proc/thread-self/net/netlink") as file:
            rows = [line.split() for line in file][1:]
        return any(row[1] == "16" and int(row[3], 16) for row in rows)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def next(self, event):
        """The next of that kind, and its other values."""
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [], 60)
            assert ready, f"no {event}"
            got = json.loads(self.process.stdout.readline())
            if got["event"] == event:
                return got


def test_monitor():
    with shared(2) as net, Monitor(net.hosts[0]) as monitor:
        good("group", "add", "9", "bucket", "8", "peers", "10.0.0.1", host=net.hosts[0])
        assert monitor.next("group-new")["group"] == 9
        good("group", "delete", "9", host=net.hosts[0])
        assert monitor.next("group-del")["group"] == 9
        with Ranks(net.hosts, group=3, mode=abi.MODE_BOUNDED, bucket_max=4096) as group:
            assert monitor.next("rank-joined")["rank"] == 0
            for op in range(3):
                group[0].set(abi.OP, abi.Op(deadline_us=100000))
                group[0].send(contribution(0, 64, op))
                group[0].take(256)
            partial = monitor.next("op")
            schema(partial, **IDENTITY, event=str, rank=int, op=int, limit=str, bytes=int,
                   missing=list, **{"elapsed-ns": int, "bound-ns": int, "loss-ppm": int})
            assert partial["missing"] == [1] and partial["loss-ppm"] == 1000000, partial
            stalled = monitor.next("peer")
            assert (stalled["peer"], stalled["status"]) == (1, "stalled"), stalled
        assert monitor.next("rank-left")["state"] == "left"


tap.main(globals())
