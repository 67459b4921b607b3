#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: kernels=debug timeout=300
"""Netlink where memory fails, messages are damaged, and all changes under a dump."""
import ctypes
import errno
import os
import random
import threading
import time

from lib import abi, fail, genl, raw, tap
from lib.genl import DUMP, Genl
from lib.netns import Namespace
from lib.seed import SEED
from lib.sockets import Ranks

PEERS = [{"addr4": "127.0.0.1"}] * 3
GROUP = {"group": 1, "epoch": 1, "bucket_max": 4096, "peer": PEERS,
         "policy": {"loss-skip": 1}}
DAMAGED = 2000


class Send:
    """sendto() of a request as a C call, for fail.nth()."""

    def __init__(self, sock, name, flags=genl.ACK, **values):
        values = {key.replace("_", "-"): value for key, value in values.items()}
        body = bytes([genl.numbers[name], 1, 0, 0]) + genl.encode("main", values)
        self.sock, self.seq = sock, 1 << 20
        self.message = ctypes.create_string_buffer(
            (16 + len(body)).to_bytes(4, "little") + sock.family.to_bytes(2, "little")
            + (genl.REQUEST | flags).to_bytes(2, "little") + bytes(8) + body)
        self.length = 16 + len(body)

    def drain(self, *_):
        """Reads all answers; those with an error make none of the case."""
        self.sock.sock.setblocking(False)
        while True:
            try:
                self.sock.sock.recv(1 << 17)
            except BlockingIOError:
                return
            except OSError as error:
                assert error.errno in (errno.ENOBUFS, errno.ENOMEM), error

    def __call__(self):
        return raw.libc.send(self.sock.sock.fileno(), self.message, self.length, 0)


def every_failure(name, flags=genl.ACK, undo=None, **values):
    """Each allocation of a request fails in turn; what is answered may be ENOMEM."""
    with Genl() as sock:
        call = Send(sock, name, flags, **values)

        def after(*_):
            call.drain()
            if undo:
                undo()
        return fail.nth(call, undo=after, failed=after, rounds=1,
                        codes=(errno.ENOMEM, errno.ENOBUFS))


def test_nth_allocation():
    """Of every command; afterwards nothing is left and all goes on."""
    fail.prepare()
    with Namespace() as space, Ranks([None], group=2), Genl() as sock:
        def forget():
            for group in sock.dump("group-get", group=1):
                sock.do("group-del", group=1, epoch=group["epoch"])
        with Genl() as listener:
            listener.listen()
            ends = every_failure("group-new", undo=forget, **GROUP)
            assert ends, "nothing ever failed"
            tap.note(f"group-new: {ends}")
        sock.do("group-new", **GROUP)
        for name, flags, values in (
                ("group-get", genl.ACK, {"group": 2, "rank": 0}), ("group-get", DUMP, {}),
                ("peer-get", DUMP, {}), ("stat-get", DUMP, {}),
                ("stat-get", genl.ACK, {}),
                ("peer-get", genl.ACK, {"group": 2, "peer": {"rank": 0}}),
                ("group-set", genl.ACK, {"group": 2, "policy": {"loss-halt": 7}})):
            tap.note(f"{name}: {every_failure(name, flags, **values)}")
        forget()
        assert [g["group"] for g in sock.dump("group-get")] == [2]
    space.close()


def damage(chance, message):
    """Some bytes of a message changed, cut off, doubled or put in."""
    message = bytearray(message)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(message)) if message else 0
        kind = chance.randrange(4)
        if kind == 0 and message:
            message[at] = chance.choice((0, 1, 0xff, 0x80, chance.randrange(256)))
        elif kind == 1:
            del message[at:at + chance.randint(1, 16)]
        elif kind == 2:
            message[at:at] = message[at:at + chance.randint(1, 32)]
        else:
            message[at:at] = chance.randbytes(chance.randint(1, 8))
    return bytes(message)


def test_damaged_messages():
    """Whatever is asked for, the answer is an answer; nothing is half done."""
    chance = random.Random(SEED)
    samples = [("group-new", genl.encode("main", {
        "group": 1, "epoch": 1, "bucket-max": 4096, "peer": PEERS, "depth": 2, "uid": 5,
        "policy": {"mode": "reliable", "bound-us": 5}})),
               ("group-del", genl.encode("main", {"group": 1, "epoch": 1})),
               ("group-set", genl.encode("main", {"group": 2, "rank": 0,
                                                  "policy": {"incast": 1, "floor": 0}})),
               ("group-get", genl.encode("main", {"group": 2, "epoch": 1, "rank": 0})),
               ("peer-get", genl.encode("main", {"group": 2, "peer": {"rank": 0}})),
               ("stat-get", genl.encode("main", {"group": 2}))]
    ends = {}
    with Namespace() as space, Ranks([None], group=2) as group, Genl() as sock:
        for _ in range(DAMAGED):
            name, good = chance.choice(samples)
            flags = chance.choice((genl.ACK, genl.ACK, DUMP))
            try:
                sock.ask(name, raw=damage(chance, good), flags=flags)
                code = 0
            except OSError as error:
                code = error.errno
            ends[code] = ends.get(code, 0) + 1
            assert code in (0, errno.EINVAL, errno.ERANGE, errno.ENOENT, errno.EEXIST,
                            errno.EOPNOTSUPP, errno.ENOSPC), (name, os.strerror(code))
        tap.note(ends)
        assert ends.get(0) and ends.get(errno.EINVAL), ends
        # The rank that runs goes on running.
        group[0].set(abi.OP, abi.Op(mode=abi.MODE_RELIABLE))
        group.allreduce(16)
        for one in sock.dump("group-get"):
            if one.get("setup"):
                sock.do("group-del", group=one["group"], epoch=one["epoch"])
    space.close()


def test_dump_under_churn():
    """What stays is listed exactly once, whatever comes and goes; a dump that missed
    something says so, and a quiet one doesn't."""
    stop = threading.Event()

    def churn(space):
        with space, Genl() as sock:
            number = 1000
            while not stop.is_set():
                sock.do("group-new", **{**GROUP, "group": number})
                sock.do("group-del", group=number, epoch=1)
                number += 1
    with Namespace() as space, Genl() as sock:
        for group in range(100):
            sock.do("group-new", **{**GROUP, "group": group})
        thread = threading.Thread(target=churn, args=(space,))
        thread.start()
        interrupted = dumps = 0
        end = time.monotonic() + 60
        try:
            # It takes luck to meet a change, on one processor most of all.
            while dumps < 30 or not interrupted and time.monotonic() < end:
                dumps += 2
                groups = [g["group"] for g in sock.dump("group-get") if g["group"] < 1000]
                interrupted += sock.inconsistent
                assert groups == list(range(100)), groups
                peers = [(p["group"], p["peer"]["rank"]) for p in sock.dump("peer-get")
                         if p["group"] < 1000]
                assert peers == [(g, r) for g in range(100) for r in range(3)]
                interrupted += sock.inconsistent
        finally:
            stop.set()
            thread.join()
        tap.note(f"{interrupted} of {dumps} were interrupted")
        assert interrupted, "no dump ever met a change"
        sock.dump("group-get")
        assert not sock.inconsistent
    space.close()


tap.main(globals())
