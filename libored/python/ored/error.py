# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Failures, each with its errno and a sentence."""
from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING, NoReturn, Optional

from . import abi

if TYPE_CHECKING:
    from .state import Result

# What these mean where the kernel module hasn't been reached
_SENTENCES = {
    errno.EAFNOSUPPORT:
        "AF_ORED isn't there: load the module with 'modprobe ored'",
    errno.EPERM:
        "not allowed: seccomp or another security module refuses AF_ORED",
    errno.EACCES:
        "not allowed: a security module refuses AF_ORED",
    errno.EPROTONOSUPPORT:
        "this version of ored.ko doesn't know that protocol",
    errno.EOPNOTSUPP:
        "this version of ored.ko doesn't have that",
}


class Error(OSError):
    """A refusal or failure: .errno, .strerror (the kernel's sentence), and
    .result, if it was an op that failed."""

    result: Optional[Result] = None


class Timeout(Error, TimeoutError):
    """settimeout()'s time has passed; the op is still in flight."""


def sentence(sock: socket.socket) -> str:
    """The kernel's sentence about this socket's last failure, or ''."""
    try:
        text = sock.getsockopt(abi.SOL_ORED, abi.ERROR, abi.ERROR_MAX)
    except OSError:
        return ""
    return text.split(b"\0", 1)[0].decode(errors="replace")


def own(number: int) -> Error:
    """An error where there is no socket to ask."""
    return Error(number, _SENTENCES.get(number, os.strerror(number)))


def fail(sock: socket.socket, number: int) -> NoReturn:
    """Raises what the kernel says about @sock's failure with @number."""
    cls = Timeout if number == errno.EAGAIN else Error
    raise cls(number, sentence(sock) or own(number).strerror) from None
