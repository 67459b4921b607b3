# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Addresses of peers, from text or (address, port) to struct ored_peer."""
from __future__ import annotations

import socket
from typing import Optional, Tuple, Union

from . import abi

Peer = Union[str, Tuple[str, int]]


def pack(peer: Peer) -> bytes:
    """struct ored_peer of "10.0.0.1", "10.0.0.1:4741", "[fe80::1%eth0]:4741",
    or of ("10.0.0.1", 4741). Names aren't resolved: what a host calls itself
    is too often a loopback address. Raises ValueError."""
    if isinstance(peer, str):
        host, port = _split(peer)
    else:
        host, port = peer
    if not 0 <= port <= 65535:
        raise ValueError(f"peer {peer!r}: no such port")
    family, scope, address = _address(host, peer)
    return abi.PEER_STRUCT.pack(family, port, scope, address)


def _split(text: str) -> Tuple[str, int]:
    """Cuts the port off; 0 if there is none."""
    host, port = text, None
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or rest[:1] not in ("", ":") or ":" not in host:
            raise ValueError(f"peer {text!r}: no [address]:port")
        port = rest[1:] if rest else None
    elif text.count(":") == 1:
        host, port = text.split(":")
    if port is None:
        return host, 0
    if not port.isascii() or not port.isdigit() or int(port) == 0:
        raise ValueError(f"peer {text!r}: no such port")
    return host, int(port)


def _address(host: str, peer: Peer) -> Tuple[int, int, bytes]:
    """Family, scope and the 16 bytes of the address."""
    plain, percent, zone = host.partition("%")
    ipv4 = _pton(socket.AF_INET, host)
    ipv6 = _pton(socket.AF_INET6, plain)
    if ipv6 and ipv6[:12] == bytes(10) + b"\xff\xff":
        ipv4 = ipv6[12:]
    if ipv4:
        return socket.AF_INET, 0, ipv4
    if not ipv6:
        raise ValueError(f"peer {peer!r}: no numeric address")
    scope = _scope(zone, peer) if percent else 0
    link_local = ipv6[0] == 0xfe and ipv6[1] & 0xc0 == 0x80
    if link_local and not scope:
        raise ValueError(f"peer {peer!r}: a link-local address needs its "
                         "interface (%eth0)")
    return socket.AF_INET6, scope if link_local else 0, ipv6


def _pton(family: int, text: str) -> Optional[bytes]:
    try:
        return socket.inet_pton(family, text)
    except (OSError, ValueError):   # ValueError: a NUL inside
        return None


def _scope(zone: str, peer: Peer) -> int:
    if zone.isascii() and zone.isdigit() and 0 < int(zone) < 1 << 32:
        return int(zone)
    try:
        return socket.if_nametoindex(zone)
    except (OSError, ValueError):
        raise ValueError(f"peer {peer!r}: no such interface") from None
