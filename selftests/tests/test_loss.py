#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Results are exact whatever the network loses, doubles, delays or swaps.

Without offloads, since netem takes a whole train as one packet.
"""
import time

from lib import abi, tap
from lib.netns import Network
from lib.sockets import Ranks

DELAY = "delay 200us"


def run(netem, ranks=4, ops=6, count=40000, depth=2, seconds=5):
    """Some ops under netem, of so many seconds at most; the counters' totals."""
    with Network(ranks, netem=DELAY, offloads=False) as net, \
            Ranks(net.hosts, bucket_max=1 << 18, depth=depth) as group:
        net.netem(netem)
        begin = time.monotonic()
        for _ in range(ops):
            group.allreduce(count)
        took = time.monotonic() - begin
        group.allreduce(1)
        for _ in range(ops):
            numbers = [group.post(count) for _ in range(depth)]
            for number in numbers:
                group.check(count, number)
        totals = {name: group.total(name) for name in
                  ("resent", "duplicate", "tx_packets", "rx_packets", "rx_data",
                   "mismatch", "bad_source", "bad_chunk", "bad_control", "nomem",
                   "tx_dropped", "path_shrunk")}
        stages = [sock.result(group.ops - 1) for sock in group]
        for result in stages:
            for stage in (result.scatter, result.gather):
                assert stage.missing == 0
                assert stage.expected == stage.received > 0
                assert stage.repaired <= stage.received
        peers = [state for sock in group for state in sock.peers()]
        assert sum(p.resent for p in peers) == totals["resent"]
        assert sum(p.duplicates for p in peers) == totals["duplicate"]
        for name in ("path_shrunk", "mismatch", "bad_source", "bad_chunk", "bad_control",
                     "nomem", "tx_dropped"):
            assert totals[name] == 0, f"{name}: {totals[name]}"
        tap.note(f"{took / ops:.3f} s for an op; {totals}")
        assert took / ops < seconds, "repair is too slow"
        return totals


def test_none():
    totals = run(DELAY)
    assert totals["resent"] == 0, "resent without a loss"
    assert totals["duplicate"] == 0, "duplicates without a cause"


def test_loss_1_percent():
    assert run(DELAY + " loss 1%")["resent"] > 0


def test_loss_10_percent():
    totals = run(DELAY + " loss 10%")
    assert totals["resent"] > 0
    assert totals["tx_packets"] < 2 * totals["rx_packets"], "resends run wild"


def test_loss_30_percent():
    # Probes and their answers get lost as well, several times in a row.
    assert run(DELAY + " loss 30%", ops=2, seconds=30)["resent"] > 0


def test_duplication():
    totals = run(DELAY + " duplicate 20%")
    assert totals["duplicate"] > 0
    assert totals["resent"] * 100 < totals["tx_packets"], "resent without a loss"


def test_reordering():
    totals = run("delay 1ms reorder 75% 25%")
    assert totals["rx_data"] > 0


def test_everything():
    totals = run("delay 300us 200us loss 3% duplicate 3% reorder 10%")
    assert totals["resent"] > 0
    assert totals["duplicate"] > 0


def test_corruption():
    """A flipped bit is a lost packet: UDP's checksum finds it."""
    totals = run(DELAY + " corrupt 3%", ops=3)
    assert totals["resent"] > 0


def test_bursts_of_loss():
    assert run(DELAY + " loss gemodel 2% 20% 90% 0.1%")["resent"] > 0


def test_one_lost_direction():
    """Loss in the egress of one rank only."""
    with Network(3, netem=DELAY, offloads=False) as net, \
            Ranks(net.hosts, bucket_max=1 << 18) as group:
        net.hosts[1].netem(DELAY + " loss 20%")
        for _ in range(6):
            group.allreduce(40000)
        resent = [sock.stats()["resent"] for sock in group]
        assert resent[1] > 0, resent


def test_silence_is_seen():
    """A peer that answers nothing any more is told from one that is only slow."""
    with Network(3, offloads=False) as net, Ranks(net.hosts, bucket_max=1 << 18) as group:
        group.allreduce(10000)
        assert [p.status for p in group[0].peers()] == [abi.PEER_LIVE] * 3
        net.hosts[2].netem("loss 100%")
        number = group.post(10000)
        assert not group[0].poll(seconds=5), "a result out of nothing"
        assert [p.status for p in group[0].peers()] == [
            abi.PEER_LIVE, abi.PEER_LIVE, abi.PEER_SILENT]
        net.hosts[2].netem("limit 10000")
        group.check(10000, number)
        assert [p.status for p in group[0].peers()] == [abi.PEER_LIVE] * 3


def test_black_out():
    """Nothing arrives for two seconds; then everything goes on."""
    with Network(3, netem=DELAY, offloads=False) as net, \
            Ranks(net.hosts, bucket_max=1 << 18, depth=2) as group:
        group.allreduce(10000)
        net.netem("loss 100%")
        number = group.post(10000)
        assert not group[0].poll(seconds=2), "a result out of nothing"
        net.netem(DELAY)
        group.check(10000, number)
        group.allreduce(40000)


tap.main(globals())
