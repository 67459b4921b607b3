# SPDX-License-Identifier: GPL-2.0
"""The kernel's fault injection: allocations (and copies from and to the user)
that fail on purpose.

The n-th of one system call, by /proc/thread-self/fail-nth: nth(). Or one in
many of whoever allocates, by debugfs: at_random().
"""
import collections
import contextlib
import ctypes
import errno
import os
import time

DEBUGFS = "/sys/kernel/debug"
KINDS = "failslab", "fail_page_alloc"
COPIES = "fail_usercopy"
NTH_MOST = 20000	# no call needs more allocations
CALL_SECONDS = 5	# no call takes longer


def write(path, value):
    with open(path, "w") as file:
        file.write(str(value))


def read(path):
    with open(path) as file:
        return file.read().strip()


def prepare():
    """Lets allocations fail that may sleep, too, and single pages; no traces."""
    for kind in (*KINDS, COPIES):
        write(f"{DEBUGFS}/{kind}/verbose", 0)
    for kind in KINDS:
        write(f"{DEBUGFS}/{kind}/ignore-gfp-wait", "N")
    write(f"{DEBUGFS}/fail_page_alloc/min-order", 0)
    write(f"{DEBUGFS}/fail_page_alloc/ignore-gfp-highmem", "N")


class Nth:
    """This thread's fail-nth."""

    def __init__(self):
        self.fd = os.open("/proc/thread-self/fail-nth", os.O_RDWR | os.O_CLOEXEC)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        os.close(self.fd)

    def start(self, number):
        os.pwrite(self.fd, b"%d" % number, 0)

    def stop(self):
        """True if nothing has failed since start()."""
        # Reading and writing it are copies too, and may be the one that fails.
        try:
            waits = os.pread(self.fd, 16, 0).strip() != b"0"
        except OSError:
            waits = True
        while True:
            with contextlib.suppress(OSError):
                os.pwrite(self.fd, b"0", 0)
                return waits

    def call(self, number, function, arguments):
        """(value, errno, whether nothing failed) with the number-th failing."""
        self.start(number)
        value = function(*arguments)
        code = ctypes.get_errno()
        return value, code, self.stop()


def nth(function, *arguments, rounds=3, **options):
    """Calls a C function with its 1st, 2nd, ... allocation failing, until none fails.

    A call that fails must do so with one of codes, by default ENOMEM, or with
    EFAULT, since copies from and to the user fail in turn as well; with codes
    of None, with any. failed(code) looks at what it has left. undo(value) follows one that has succeeded.
    Returns how often it ended how; 0 for a success in spite of a failure.

    numbers: which allocations, if not all. In several rounds: what the allocators do behind an allocation varies, and
    so does the number of the next one.
    """
    ends = collections.Counter()
    for _ in range(rounds):
        ends += one_round(function, arguments, **options)
    return ends


def one_round(function, arguments, undo=None, failed=None, codes=(errno.ENOMEM,),
              numbers=range(1, NTH_MOST)):
    ends = collections.Counter()
    with Nth() as fail:
        for number in numbers:
            begin = time.monotonic()
            value, code, whole = fail.call(number, function, arguments)
            took = time.monotonic() - begin
            assert took < CALL_SECONDS, f"number {number} took {took} s"
            if value >= 0:
                if undo:
                    undo(value)
                if whole:
                    return ends
                ends[0] += 1
                continue
            name = errno.errorcode.get(code, code)
            assert not whole, f"{name} though nothing has failed yet"
            assert codes is None or code in (*codes, errno.EFAULT), f"{name} when number {number} fails"
            ends[code] += 1
            if failed:
                failed(code)
    raise AssertionError(f"something fails each time: {ends}")


@contextlib.contextmanager
def at_random(one_in, sleeping=False, tasks=False):
    """Inside, one in so many allocations fails; yields a function that counts them.

    sleeping: also those that may sleep; tasks: only of tasks whose
    make-it-fail is set.
    """
    many = 1 << 30
    for kind in KINDS:
        write(f"{DEBUGFS}/{kind}/ignore-gfp-wait", "N" if sleeping else "Y")
        write(f"{DEBUGFS}/{kind}/task-filter", "Y" if tasks else "N")
        write(f"{DEBUGFS}/{kind}/times", many)
    # The file is opened before, since opening it is what may fail.
    switches = [open(f"{DEBUGFS}/{kind}/probability", "w") for kind in KINDS]
    try:
        for switch in switches:
            switch.write(str(max(100 // one_in, 1)))
            switch.flush()
        yield lambda: sum(many - int(read(f"{DEBUGFS}/{kind}/times")) for kind in KINDS)
    finally:
        for switch in switches:
            switch.write("0")
            switch.close()
        prepare()
