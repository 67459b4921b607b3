# SPDX-License-Identifier: GPL-2.0
"""Signals that come while a system call waits."""
import signal
import threading

from . import raw


def with_signal(function, *arguments):
    """Calls it, sends a signal to this thread a little later; expects EINTR.

    The call must not have a time-out: with one the kernel never restarts it,
    and EINTR would prove less.
    """
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    timer = threading.Timer(0.3, signal.pthread_kill,
                            (threading.get_ident(), signal.SIGUSR1))
    timer.start()
    try:
        assert raw.interrupted(function, *arguments), "not interrupted"
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
