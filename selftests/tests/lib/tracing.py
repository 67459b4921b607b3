# SPDX-License-Identifier: GPL-2.0
"""The module's tracepoints and its lines in the kernel's log."""
import contextlib
import os
import re

ROOT = "/sys/kernel/tracing"
NAMES = ("ored_op_post", "ored_op_seal", "ored_op_end", "ored_chunk", "ored_peer",
         "ored_incast", "ored_rate")
LINE = re.compile(r": (ored_\w+): (.*)$")


class Event(dict):
    """One event's fields, as printed; numbers are numbers."""

    def __init__(self, name, text):
        super().__init__((key, self.value(value)) for key, value in
                         (word.split("=") for word in text.split()))
        self.name = name

    @staticmethod
    def value(text):
        return int(text) if re.fullmatch(r"-?\d+", text) else text


def put(path, text):
    with open(path, "w") as file:
        file.write(text)


@contextlib.contextmanager
def recorded(hosts):
    """Yields a list that has all events of these hosts in the block after its end:
    what earlier cases' groups still do is left out."""
    folder = f"{ROOT}/instances/ored_test"
    os.mkdir(folder)
    events = []
    try:
        put(f"{folder}/buffer_size_kb", "4096")
        put(f"{folder}/events/ored/enable", "1")
        yield events
        put(f"{folder}/events/ored/enable", "0")
        with open(f"{folder}/trace") as file:
            found = [Event(*line.groups()) for line in map(LINE.search, file) if line]
        spaces = {host.inode() for host in hosts}
        events += [event for event in found if event["netns"] in spaces]
        with open(f"{folder}/per_cpu/cpu0/stats") as file:
            stats = file.read()
        assert "overrun: 0\n" in stats, f"events were lost: {stats}"
    finally:
        os.rmdir(folder)


class Log:
    """The kernel's log from now on."""

    def __init__(self):
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)

    def lines(self):
        """What has come since the last call."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(os.read(self.fd, 8192).decode().partition(";")[2].split("\n")[0])
        return found
