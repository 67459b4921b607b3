#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""What can be seen of ops from outside is true: tracepoints, and lines in the log."""
import os
import re
import time

from lib import abi, ledger, tap
from lib.netns import Network
from lib.sockets import Ranks
from lib.sums import contribution
from lib.tracing import NAMES, ROOT, Log, recorded

LINK = "delay 100us rate 100mbit limit 1000"
RANKS, COUNT, BOUND_US = 4, 6000, 50000
LIMITS = ("none", "complete", "early", "hard", "behind")
LINE = re.compile(
    r"ored: group (\d+) rank (\d+) op (\d+): partial, (\w+) after (\d+) of (\d+) us, "
    r"(\d+) ppm missing; ranks present: ([\d,-]*), missing: ([\d,-]*)$")


def group_of(net, **fields):
    """Means, with a bound of their own and no wait for late posters."""
    group = Ranks(net.hosts, mode=abi.MODE_BOUNDED, **fields)
    for sock in group:
        sock.set(abi.OP, abi.Op(reduction=abi.MEAN, deadline_us=BOUND_US,
                                flags=abi.OP_NO_WAIT | abi.OP_HADAMARD_OFF))
    return group


def run(group, op, ranks, count=COUNT):
    """One op of these ranks; their results."""
    for rank in ranks:
        group[rank].send(contribution(rank, count, op))
    results = {}
    for rank in ranks:
        group[rank].take(count * 4)
        results[rank] = group[rank].result(op)
    return results


def of(events, name, **fields):
    return [e for e in events if e.name == name and fields.items() <= e.items()]


def one(events, name, **fields):
    found = of(events, name, **fields)
    assert len(found) == 1, f"{name} {fields}: {found}"
    return found[0]


def test_all_there():
    assert set(NAMES) <= set(os.listdir(f"{ROOT}/events/ored"))


def test_ops():
    """Post, seal and end: what results say is what they say, to the nanosecond."""
    with Network(RANKS, netem=LINK, offloads=False) as net, group_of(net, group=7) as group:
        with recorded(net.hosts) as events:
            results = {0: run(group, 0, range(RANKS)), 1: run(group, 1, range(RANKS - 1))}
        spaces = [h.inode() for h in net.hosts]
    for op, by_rank in results.items():
        for rank, result in by_rank.items():
            who = {"netns": spaces[rank], "group": 7, "rank": rank, "op": op}
            post = one(events, "ored_op_post", **who)
            assert post["bytes"] == COUNT * 4 and post["mode"] == abi.MODE_BOUNDED
            assert post["bound_ns"] == result.bound_us * 1000 == BOUND_US * 1000
            assert post["incast"] == RANKS - 1
            end = one(events, "ored_op_end", **who)
            assert end["limit"] == LIMITS[result.limit] == ("complete", "hard")[op]
            assert end["elapsed_ns"] == result.elapsed_ns
            assert end["behind"] == end["error"] == 0
            if op == 0:
                assert not of(events, "ored_op_seal", **who)
                continue
            seal = one(events, "ored_op_seal", **who)
            assert seal["stage"] == "scatter" and seal["limit"] == "hard"
            # D1: 0.6 D, since D was given and nothing is known of the network.
            least = BOUND_US * 600
            assert least <= seal["elapsed_ns"] < least + 1000000, seal
    assert len(of(events, "ored_op_post")) == 2 * RANKS - 1


def test_failure():
    """An op that fails has its errno, one that is overtaken how many are ahead."""
    with Network(RANKS, netem=LINK, offloads=False) as net, group_of(net) as group:
        with recorded(net.hosts) as events:
            for op in range(5):
                run(group, op, range(RANKS - 1))
            run(group, 0, [RANKS - 1])
            for rank, sock in enumerate(group):
                while sock.group().posted < 5:
                    sock.send(contribution(rank, COUNT))
                    sock.take(COUNT * 4)
                sock.sendmsg([bytes(16)], [(abi.SOL_ORED, abi.OP, bytes(abi.Op(
                    reduction=abi.MIN if rank else abi.MAX)))])
            for sock in group:
                try:
                    sock.recv(16)
                except OSError:
                    continue
                raise AssertionError("what ranks disagree about has a result")
    behind = one(events, "ored_op_end", rank=RANKS - 1, op=0)
    assert behind["limit"] == "behind" and behind["behind"] in (4, 5), behind
    for rank in range(RANKS):
        end = one(events, "ored_op_end", rank=rank, op=5)
        assert end["limit"] == "none" and end["error"] == -71, end	# EPROTO


def test_chunks():
    """Every packet of gradients has its fate told; the counters add up to them."""
    fates = {"duplicate": "duplicate", "late": "late"}
    with Network(RANKS, netem=LINK + " loss 3% duplicate 20%", offloads=False) as net, \
            group_of(net) as group:
        with recorded(net.hosts) as events:
            for op in range(8):
                run(group, op, range(RANKS))
            time.sleep(1)	# for what is on its way
        stats = [sock.stats() for sock in group]
        results = [[sock.result(op) for op in range(8)] for sock in group]
        parts = ledger.Map(COUNT * 4, group[0].group().payload, RANKS)
    for rank in range(RANKS):
        mine = of(events, "ored_chunk", rank=rank)
        taken = [e for e in mine if e["fate"] in ("taken", "repaired")]
        assert len(taken) == stats[rank]["rx_data"]
        for fate, counter in fates.items():
            assert len(of(mine, "ored_chunk", fate=fate)) == stats[rank][counter]
        for event in taken:
            stage, peer = event["stage"], event["peer"]
            assert peer != rank and 0 <= event["op"] < 8
            assert event["chunk"] < len(parts.shard(rank if stage == "scatter" else peer))
        assert len({(e["op"], e["stage"], e["peer"], e["chunk"]) for e in taken}) == len(taken)
        repaired = sum(parts.size(parts.shard(rank if e["stage"] == "scatter" else e["peer"])
                                  [e["chunk"]]) for e in taken if e["fate"] == "repaired")
        said = sum(r.scatter.repaired + r.gather.repaired for r in results[rank])
        assert said == repaired, (rank, said, repaired)
    assert of(events, "ored_chunk", fate="repaired") and of(events, "ored_chunk", fate="duplicate")


def test_peers():
    """One doesn't post and comes back, one is cut off, one leaves."""
    with Network(RANKS, netem=LINK, offloads=False) as net, group_of(net, depth=2) as group:
        with recorded(net.hosts) as events:
            run(group, 0, range(RANKS))
            for op in (1, 2, 3):
                run(group, op, range(RANKS - 1))
            for op in (1, 2, 3):
                run(group, op, [RANKS - 1])
            run(group, 4, range(RANKS))
            net.hosts[1].ip("link set eth0 down")
            for op in range(5, 9):
                run(group, op, (0, 2, 3))
            # Who is cut off is asked for as long as there is an op.
            group[0].sendmsg([contribution(0, COUNT)], [(abi.SOL_ORED, abi.OP, bytes(abi.Op(
                reduction=abi.MEAN, mode=abi.MODE_BOUNDED, deadline_us=3000000,
                flags=abi.OP_HADAMARD_OFF)))])
            time.sleep(1.5)
            for rank in (2, 3):
                group[rank].send(contribution(rank, COUNT))
            for rank in (0, 2, 3):
                group[rank].take(COUNT * 4)
            group[2].close()
            tap.wait_for(lambda: group[0].peers()[2].status == abi.PEER_LEFT, 5, "BYE")
    told = [(e["peer"], e["status"]) for e in of(events, "ored_peer", rank=0)]
    assert [s for p, s in told if p == 3] == ["stalled", "live"], told
    assert {s for p, s in told if p == 1} == {"stalled", "silent"}, told
    assert [s for p, s in told if p == 2] == ["left"], told
    stalled = one(events, "ored_peer", rank=0, peer=3, status="stalled")
    assert stalled["posted"] == stalled["left"] == 1, stalled
    left = one(events, "ored_peer", rank=0, peer=2, status="left")
    assert left["posted"] == left["left"] == 10, left


def test_rates():
    """The last that is told of a window is what it is."""
    count = 100000
    with Network(2, netem=LINK, offloads=False) as net, \
            group_of(net, bucket_max=4 * count) as group:
        with recorded(net.hosts) as events:
            for op in range(8):
                run(group, op, range(2), count)
            peers = [sock.peers() for sock in group]
    for rank in range(2):
        told = of(events, "ored_rate", rank=rank)
        assert told and all(e["peer"] == 1 - rank for e in told)
        assert told[-1]["window"] == peers[rank][1 - rank].window
        assert all(200 <= e["srtt_us"] < 100000 for e in told), told
        # 100 Mbit/s are 12.5 MB/s, headers included.
        assert 9e6 < told[-1]["pace"] < 14e6, told[-1]


def test_incast():
    """Under the adaptive policy it grows one by one."""
    with Network(RANKS, netem=LINK, offloads=False) as net, group_of(net) as group:
        for sock in group:
            sock.set(abi.POLICY, abi.Policy(incast=abi.INCAST_ADAPT))
        with recorded(net.hosts) as events:
            for op in range(5):
                run(group, op, range(RANKS))
    for rank in range(RANKS):
        told = [(e["before"], e["incast"]) for e in of(events, "ored_incast", rank=rank)]
        assert told == [(i, i + 1) for i in range(1, RANKS - 1)], told


def test_line():
    """A partial op has a line with its number, the ranks and the time; a quiet one
    hasn't, and many have few."""
    with Network(RANKS, netem=LINK, offloads=False) as net, group_of(net, group=9) as group:
        log = Log()
        run(group, 0, range(RANKS))
        assert not [line for line in log.lines() if LINE.search(line)]
        results = run(group, 1, range(RANKS - 1))
        lines = [found.groups() for found in map(LINE.search, log.lines()) if found]
        assert len(lines) == RANKS - 1, lines
        for rank, result in results.items():
            expected = result.scatter.expected + result.gather.expected
            loss = 1000000 * (result.scatter.missing + result.gather.missing) // expected
            want = ("9", str(rank), "1", "hard", str(result.elapsed_ns // 1000),
                    str(BOUND_US), str(loss), "0-2", "3")
            assert want in lines, f"{want} isn't among {lines}"
        begin = time.monotonic()
        for op in range(2, 62):
            run(group, op, range(RANKS - 1))
        lines = [found.groups() for found in map(LINE.search, log.lines()) if found]
        spans = 2 + (time.monotonic() - begin) // 5
        most = 10 * spans * (RANKS - 1)
        assert 9 * (RANKS - 1) <= len(lines) <= most < 60 * (RANKS - 1), (len(lines), most)


tap.main(globals())
