# SPDX-License-Identifier: GPL-2.0
"""What the kernel logs."""
import contextlib
import os


class Log:
    """What it logs from now on."""

    def __init__(self):
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.lseek(self.fd, 0, os.SEEK_END)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)

    def lines(self):
        """All since the last call, without their time stamps."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                record = os.read(self.fd, 8192).decode(errors="replace")
                found.append(record.split(";", 1)[1].split("\n")[0])
        return found
