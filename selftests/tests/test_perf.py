#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""ored-perf: its table and JSON, and that its check finds what is wrong."""
import itertools
import json
import os
import subprocess

from lib import tap
from lib.netns import Network, shared

LIMIT_S = 600
DTYPES = ("float", "double", "half", "bfloat16", "int32", "int64")
REDUCTIONS = ("sum", "mean", "min", "max")
SIZES = {"float": 4, "double": 8, "half": 2, "bfloat16": 2, "int32": 4, "int64": 8}
epochs = itertools.count(1)


def start(host, *arguments):
    with host:
        return subprocess.Popen(["ored-perf", *map(str, arguments)], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def perf(net, *arguments, of_rank=None, status=0):
    """On all hosts; what rank 0 printed. of_rank: one rank's own arguments."""
    peers = ",".join(host.address for host in net.hosts)
    epoch = next(epochs)
    processes = [start(host, "--peers", peers, "--rank", rank, "--epoch", epoch,
                       *arguments, *(of_rank or {}).get(rank, ()))
                 for rank, host in enumerate(net.hosts)]
    said = [process.communicate(timeout=LIMIT_S) for process in processes]
    statuses = [process.returncode for process in processes]
    assert statuses == [status] + [0] * (len(statuses) - 1), (statuses, said)
    assert not any(out for out, _ in said[1:]), "a rank other than 0 speaks"
    return said[0][0]


def rows_of(table):
    return [line.split() for line in table.splitlines() if not line.startswith("#")]


@tap.cases(1, 3)
def test_table(nranks):
    with shared(nranks) as net:
        rows = rows_of(perf(net, "-b", 1000, "-e", "4K", "-f", 2, "-n", 3, "-w", 1))
    assert [int(row[0]) for row in rows] == [1000, 2000, 4000], rows
    for row in rows:
        assert len(row) == 14 and int(row[1]) == int(row[0]) // 4, row
        assert row[2:4] == ["float", "sum"] and row[7] == "0", row
        time, p50, p99, p999, most = (float(row[i]) for i in (4, 8, 9, 10, 11))
        assert 0 < p50 <= p99 <= p999 <= most and time <= most, row


def test_all_kinds():
    """Every type and reduction, of a size that no element divides evenly."""
    with shared(3) as net:
        table = perf(net, "-b", 10001, "-n", 2, "-w", 0, "-d", "all", "-o", "all",
                     "--mode", "reliable")
    rows = rows_of(table)
    assert {(row[2], row[3]) for row in rows} == set(itertools.product(DTYPES, REDUCTIONS))
    for row in rows:
        assert int(row[0]) == 10001 // SIZES[row[2]] * SIZES[row[2]], row
        assert row[7] == "0", row


@tap.cases(("reduce_scatter", 2 / 3), ("all_gather", 2 / 3), ("broadcast", 1),
           ("all_reduce", 4 / 3))
def test_collective(name, factor):
    """Every type, of a size whose shards differ, and of one smaller than the group."""
    with shared(3) as net:
        found = json.loads(perf(net, "-b", 2, "-e", 10001, "-i", 9999, "-n", 2, "-w", 0,
                                "-d", "all", "--mode", "reliable", "--collective", name,
                                "-J", "-"))
    assert found["config"]["collective"] == name
    assert {row["type"] for row in found["rows"]} == set(DTYPES)
    for row in found["rows"]:
        assert row["wrong"] == 0 and not row["partial"], row
        assert abs(row["busbw_gbps"] - factor * row["algbw_gbps"]) < 1e-3 * row["busbw_gbps"]
        assert row["redop"] == ("sum" if "reduce" in name else "none")
        least = 3 if name in ("reduce_scatter", "all_gather") else 1
        assert row["count"] >= least and row["size"] == row["count"] * SIZES[row["type"]]


@tap.cases("reduce_scatter", "all_gather", "broadcast")
def test_collective_check_finds(name):
    """Of a rank whose data are what the others don't expect"""
    with shared(3) as net:
        row, = rows_of(perf(net, "-b", 8000, "-n", 1, "-w", 0, "--collective", name,
                            "--mode", "reliable", of_rank={0: ("--seed", 1)}, status=1))
        assert int(row[7]) > 100, row


def test_json():
    """To a file beside the table, and to stdout instead of it."""
    path = "/tmp/perf.json"
    arguments = ("-b", 4000, "-e", 12000, "-i", 4000, "-n", 5, "-w", 1)
    with shared(2) as net:
        table = rows_of(perf(net, *arguments, "-J", path))
        with open(path, encoding="ascii") as file:
            beside = json.load(file)
        os.unlink(path)
        alone = json.loads(perf(net, *arguments, "-J", "-"))
    for found in beside, alone:
        assert found["config"]["nranks"] == 2 and found["config"]["iters"] == 5
        assert [row["size"] for row in found["rows"]] == [4000, 8000, 12000]
    for row, printed in zip(beside["rows"], table, strict=True):
        assert len(row["op_us"]) == 5 and max(row["op_us"]) == row["max_us"]
        mean = sum(row["op_us"]) / 5
        assert abs(row["time_us"] - mean) < 1, (row["time_us"], mean)
        assert abs(row["busbw_gbps"] - row["size"] / mean / 1000) < 1e-3 * row["busbw_gbps"]
        assert f"{row['time_us']:.1f}" == printed[4] and row["wrong"] == 0
        assert row["over_us"] < 0, "an undisturbed op came to its bound"


@tap.cases("sum", "mean", "min", "max")
def test_check_finds(reduction):
    """A rank that contributes what the others don't expect."""
    arguments = ("-b", 8000, "-n", 2, "-w", 0, "-o", reduction)
    with shared(3) as net:
        row, = rows_of(perf(net, *arguments, of_rank={1: ("--seed", 1)}, status=1))
        assert int(row[7]) > 100, row
        row, = rows_of(perf(net, *arguments, "-c", 0, of_rank={1: ("--seed", 1)}))
        assert row[7] == "0", row


def test_partial():
    """Loss without time to repair it: told, and not taken for wrong."""
    with Network(3, netem="delay 1ms loss 20% limit 1000", offloads=False) as net:
        out = perf(net, "-b", 100000, "-n", 20, "-w", 2, "--bound", 6000,
                   "--wait", "none", "-J", "-")
    row, = json.loads(out)["rows"]
    assert row["wrong"] == 0, row["wrong"]
    assert row["partial"] > 0 and 0 < row["lost_percent"] < 100, row
    assert any(row["op_lost_percent"]) and max(row["op_worst_percent"]) <= 100
    whole = [lost == 0 for lost in row["op_lost_percent"]]
    assert row["partial"] == len(whole) - sum(whole), row


@tap.cases(("-b", "0"), ("-b", "2G"), ("-n", "x"), ("-o", "product"), ("-d", "fp8"),
           ("-b", "2K", "-e", "1K"), ("-i", "4", "-f", "2"), ("--mode", "fast"),
           ("--mode", "reliable", "--bound", "1000"), ("--wait", "0"), ("word",),
           ("--collective", "all_to_all"), ("--collective", "broadcast", "-o", "sum"))
def test_refused(*arguments):
    """With a sentence that names what is wrong, and status 2"""
    done = subprocess.run(["ored-perf", *arguments], check=False, capture_output=True,
                          text=True)
    assert done.returncode == 2, done
    assert done.stderr.startswith("ored-perf: "), done.stderr


def test_no_group():
    done = subprocess.run(["ored-perf"], check=False, capture_output=True, text=True,
                          env={**os.environ, "ORED_RANK": "0", "ORED_PEERS": "10.1.2.3"})
    assert done.returncode == 1 and "can't join" in done.stderr, done


tap.main(globals())
