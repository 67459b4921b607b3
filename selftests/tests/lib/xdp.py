# SPDX-License-Identifier: GPL-2.0
"""`oredctl xdp` in a host's namespace, and what it says."""
import contextlib
import json
import os
import subprocess

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
OREDCTL = os.path.join(TOP, "build/tools/oredctl")
FOLDER = "/sys/fs/bpf/ored"


def oredctl(host, *words):
    """Runs it; its standard output and error, and exit status."""
    with host:
        done = subprocess.run([OREDCTL, *words], text=True, capture_output=True, check=False)
    return done.stdout, done.stderr, done.returncode


def good(host, *words):
    """What it prints; it has to succeed."""
    out, err, status = oredctl(host, *words)
    assert status == 0, f"oredctl {' '.join(words)}: {status}: {err}"
    return out


def bad(host, *words):
    """Its complaint; it has to be one line and to fail."""
    out, err, status = oredctl(host, *words)
    assert status in (1, 2) and not out, f"oredctl {' '.join(words)}: {status}: {out}"
    assert err.startswith("oredctl: ") and err.count("\n") == 1, err
    return err


def status(host):
    return json.loads(good(host, "-j", "xdp", "status"))


def counters(host):
    first = status(host)[0]
    return {**first["counters"], "misses": first["misses"]}


def groups(host):
    """Memberships that the maps know, as (group, rank)."""
    return {(m["group"], m["rank"]): m for m in status(host) if "group" in m}


def latency(host, *words):
    return json.loads(good(host, "-j", "xdp", "latency", *words))


@contextlib.contextmanager
def attached(host, *words):
    """On eth0 of a host, and at the end nothing anywhere."""
    try:
        yield good(host, "xdp", "attach", "eth0", *words)
    finally:
        oredctl(host, "xdp", "detach", "all")
        assert not os.path.exists(FOLDER), os.listdir(FOLDER)
