# SPDX-License-Identifier: GPL-2.0
"""TAP from plain functions: every test_*() of a file is a case.

A case passes when it returns, fails when it raises, and is skipped when it
raises Skip. main() adds two cases to each file: that nothing of the family is
left behind, and that the module then unloads.
"""
import contextlib
import faulthandler
import gc
import signal
import sys
import time
import traceback

from . import module, netns, seed

# Guest time after which a case hangs. In virtual time waiting costs nothing, and
# the clock runs freely while the guest reads a file.
CASE_SECONDS = 3600
KSFT_SKIP = 4


class Skip(Exception):
    """What a case needs is not here; the reason is its text."""


def cases(*arguments):
    """Runs the decorated function once for each argument (or tuple of them)."""
    def decorate(function):
        function.cases = arguments
        return function
    return decorate


def expand(namespace):
    """(name, thunk) of every case, in the order of definition."""
    for name, function in list(namespace.items()):
        if not name.startswith("test_") or not callable(function):
            continue
        for argument in getattr(function, "cases", [None]):
            if argument is None:
                yield name[5:], function
                continue
            many = argument if isinstance(argument, tuple) else (argument,)
            label = ",".join(str(x) for x in many)
            yield f"{name[5:]}({label})", lambda f=function, a=many: f(*a)


def on_alarm(_signal, _frame):
    raise TimeoutError("the case doesn't end")


def note(text):
    """A diagnostic line, for a human only."""
    for line in str(text).splitlines():
        print(f"# {line}", flush=True)


def wait_for(condition, seconds, what):
    """Polls condition() until it is true; AssertionError after seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def check_nothing_left():
    """All sockets of the family are gone soon after their last close."""
    gc.collect()
    netns.close_shared()
    wait_for(lambda: not module.references(), 10,
             f"{module.references()} references to the module to go")


def check_module_unloads():
    """No reference has leaked, and nothing that lingers hinders it for long."""
    def unloaded():
        with contextlib.suppress(BlockingIOError):
            module.unload()
        return not module.loaded()
    wait_for(unloaded, 20, "the module to unload")


def run(number, name, thunk, seconds):
    """One case; True unless it failed."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(seconds * 2, exit=True)
    begin = time.monotonic()
    verdict, comment = "ok", ""
    try:
        thunk()
    except Skip as reason:
        comment = f" # SKIP {reason}"
    except Exception:  # a failing case must not end the others
        verdict = "not ok"
        failure = traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
    if verdict != "ok":
        note(failure)
    print(f"{verdict} {number} {name}{comment}", flush=True)
    note(f"{time.monotonic() - begin:.3f} s")
    return verdict == "ok"


def main(namespace, seconds=CASE_SECONDS):
    """Runs the cases of a file, given its globals(), and exits."""
    signal.signal(signal.SIGALRM, on_alarm)
    listed = list(expand(namespace))
    wanted = sys.argv[1:]
    if wanted:
        listed = [c for c in listed if any(w in c[0] for w in wanted)]
    module.modprobe()
    netns.warm_up()
    listed += [("nothing_left", check_nothing_left),
               ("module_unloads", check_module_unloads)]
    print("TAP version 13", flush=True)
    print(f"1..{len(listed)}", flush=True)
    note(f"seed {seed.SEED}")
    good = [run(i, name, thunk, seconds)
            for i, (name, thunk) in enumerate(listed, 1)]
    sys.exit(0 if all(good) else 1)


def skip_all(reason):
    """The whole file can't run here."""
    print("TAP version 13")
    print(f"1..0 # SKIP {reason}", flush=True)
    sys.exit(KSFT_SKIP)
