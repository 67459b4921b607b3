# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""A group that a launcher has described in the environment."""
from __future__ import annotations

import os
from typing import Any, Mapping, Optional

from .group import Group


def from_env(environ: Optional[Mapping[str, str]] = None,
             **options: Any) -> Group:
    """Joins the group of ORED_RANK and ORED_PEERS (comma-separated), which
    must be there, and ORED_SIZE (checked), ORED_PORT, ORED_GROUP and
    ORED_EPOCH, which may be. They replace @options, which are Group()'s.
    """
    environ = os.environ if environ is None else environ
    rank = _number(environ, "ORED_RANK")
    if rank is None:
        raise ValueError("ORED_RANK isn't set")
    peers = [peer.strip() for peer in environ.get("ORED_PEERS", "").split(",")]
    if peers == [""]:
        raise ValueError("ORED_PEERS isn't set")
    size = _number(environ, "ORED_SIZE")
    if size is not None and size != len(peers):
        raise ValueError(f"ORED_SIZE is {size} but ORED_PEERS names "
                         f"{len(peers)} peers")
    for name in ("port", "group", "epoch"):
        value = _number(environ, "ORED_" + name.upper())
        if value is not None:
            options[name] = value
    return Group(rank, peers, **options)


def _number(environ: Mapping[str, str], name: str) -> Optional[int]:
    text = environ.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"{name} is {text!r}, no number")
    return int(text)
