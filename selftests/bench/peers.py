#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""peers.py JSON: allreduce by ORED and by its peers, on the same hosts.

Runs in a guest. JSON is an object: hosts, rate (Mbit/s), delay (us), queue
(bytes), and steps: a list of objects, which are run one after the other:

  name     of the step
  peer     gloo-ring, gloo-bcube, mpi (with algorithm), or ored
  count    floats of the bucket
  iters    ops that are measured
  warmup   ops before them
  gap      us between an op's end and the next post
  options  of ored-perf, more than these
  traffic  [ms on, ms off] of bursts at 90 % of the rate, from when all ranks
           have found each other until the end; absent: none
  seed     of the traffic: the same bursts come to every peer
  timeout  seconds of the guest's time

Each step's result is a line of JSON: name, what each op took (us, at the slowest
rank), busy, the share of time in which the processor worked, from the ranks'
start to their end, and ored-perf's row for ORED.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
CLUSTER = os.path.join(TOP, "selftests/cluster/cluster")
BUILT = os.path.join(TOP, "build/selftests/bench")
# Algorithms of Open MPI's coll/tuned, by number
MPI_ALGORITHMS = {"default": 0, "recursive-doubling": 3, "ring": 4, "segmented-ring": 5,
                  "rabenseifner": 6}


def cluster(*arguments):
    subprocess.run([CLUSTER, *map(str, arguments)], check=True)


def ored(step, folder):
    return [CLUSTER, "run", "--timeout", str(step["timeout"]), "--collect", folder, "--",
            "ored-perf", "-b", str(4 * step["count"]), "-n", str(step["iters"]),
            "-w", str(step["warmup"]), "--gap", str(step["gap"]),
            "-J", f"{folder}/ored.json", *step.get("options", [])]


def gloo(step, folder):
    store = os.path.join(folder, "store")
    os.mkdir(store)
    return [CLUSTER, "run", "--timeout", str(step["timeout"]), "--collect", folder, "--",
            f"{BUILT}/gloo_perf", step["peer"].partition("-")[2], str(step["count"]),
            str(step["iters"]), str(step["warmup"]), str(step["gap"]), store]


def mpi(step, folder, hosts):
    settings = {
        "plm_rsh_agent": f"{HERE}/netns_rsh.sh", "plm_rsh_no_tree_spawn": 1,
        "btl": "tcp,self", "btl_tcp_if_include": "10.9.0.0/24",
        "oob_tcp_if_include": "10.9.0.0/24", "mpi_yield_when_idle": 1,
        "coll_tuned_use_dynamic_rules": 1,
        "coll_tuned_allreduce_algorithm": MPI_ALGORITHMS[step["algorithm"]],
    }
    # Under a host name of its own: it refuses to be on a host without one.
    command = ["timeout", str(step["timeout"]), "ip", "netns", "exec", "ored-h0",
               "unshare", "--uts", "sh", "-c", 'hostname head; exec "$@"', "sh", "mpirun", "--allow-run-as-root", "-np", str(hosts), "--host",
               ",".join(f"10.9.0.{i + 1}" for i in range(hosts))]
    for name, value in settings.items():
        command += ["--mca", name, str(value)]
    return [*command, f"{BUILT}/mpi_perf", str(step["count"]), str(step["iters"]),
            str(step["warmup"]), str(step["gap"]), folder]


def wait_for_ranks(process, folder):
    """Until rank 0 has printed its first line."""
    path = os.path.join(folder, "0.out")
    while process.poll() is None:
        if os.path.exists(path) and os.path.getsize(path):
            return
        time.sleep(0.05)
    errors(folder)
    raise SystemExit("peers: the ranks have gone before there was cross traffic")


def slowest(folder):
    """What each op took at the rank that took longest."""
    ranks = []
    for path in sorted(glob.glob(f"{folder}/*.out")):
        with open(path, encoding="ascii") as file:
            ranks.append([float(line) for line in file.read().split()[1:]])
    return [max(times) for times in zip(*ranks, strict=True)]


def errors(folder):
    for path in sorted(glob.glob(f"{folder}/*.err")):
        with open(path, encoding="utf-8", errors="replace") as file:
            sys.stderr.write(file.read())


def run(step, setting, folder):
    if step["peer"] == "ored":
        command = ored(step, folder)
    elif step["peer"] == "mpi":
        command = mpi(step, folder, setting["hosts"])
    else:
        command = gloo(step, folder)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    traffic = step.get("traffic")
    if traffic:
        wait_for_ranks(process, folder)
        cluster("traffic", "--mbps", 0.9 * setting["rate"], "--on", traffic[0],
                "--off", traffic[1])
    status = process.wait()
    if traffic:
        cluster("traffic", "--stop")
    errors(folder)
    if status:
        raise SystemExit(f"peers: {step['name']} ended with {status}")
    result = {"name": step["name"]}
    if step["peer"] == "ored":
        with open(f"{folder}/ored.json", encoding="ascii") as file:
            result["row"] = json.load(file)["rows"][0]
        result["us"] = result["row"].pop("op_us")
    else:
        result["us"] = slowest(folder)
    return result


def idle():
    """Seconds in which this guest's one processor had nothing to do, since its start"""
    with open("/proc/uptime", encoding="ascii") as file:
        return float(file.read().split()[1])


def main():
    setting = json.loads(sys.argv[1])
    subprocess.run(["modprobe", "ored"], check=True)
    for step in setting["steps"]:
        cluster("up", "--hosts", setting["hosts"], "--rate", setting["rate"],
                "--delay", setting["delay"], "--queue", setting["queue"],
                "--offloads", "off", "--seed", step.get("seed", 1))
        folder = tempfile.mkdtemp()
        begun, idled = time.monotonic(), idle()
        try:
            result = run(step, setting, folder)
            result["busy"] = 1 - (idle() - idled) / (time.monotonic() - begun)
        finally:
            cluster("down")
        shutil.rmtree(folder)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
