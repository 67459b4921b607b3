#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: kernels=debug virtual-time timeout=900
"""When memory runs out: any allocation of any call, or packets at random.

Each call fails with ENOMEM and a sentence, at once, and leaves nothing behind:
the next one works. Packets that can't be had are sent again.
"""
import contextlib
import ctypes
import errno
import os
import select

from lib import abi, areas, fail, module, netns, tap
from lib.log import Log
from lib.netns import Namespace
from lib.raw import libc
from lib.sockets import (Ranks, Socket, epochs, finish_join, join_value, peer,
                         refused, start_join)
from lib.sums import contribution, expected

COUNT = 3000	# elements, and
PAYLOAD = 1024	# bytes of a packet: several packets for each rank
ALONE = [peer("127.0.0.1", 5000)]
THREE = [peer("127.0.0.1", 5000 + i) for i in range(3)]
MEMORY = errno.ENOMEM
LAST = "slot"	# of the module's self-tests


def sockets():
    """Sockets of the family in this network namespace, by /proc/net/protocols."""
    with open("/proc/net/protocols") as table:
        return next(int(line.split()[2]) for line in table
                    if line.split()[0] == "ORED")


def tell(ends):
    tap.note(", ".join(f"{errno.errorcode.get(code, 'no error')}: {times}"
                       for code, times in sorted(ends.items())))
    return ends


def explained(sock):
    """A check that each failure has a sentence of its own."""
    def check(code):
        sentence = sock.error()
        words = "memory" if code == MEMORY else "can't be"
        assert words in sentence, f"{errno.errorcode[code]}: {sentence!r}"
        # Must not be what the next failure is judged by.
        with refused(errno.ENOPROTOOPT):
            sock.set(99, b"1234")
    return check


def setsockopt(sock, option, value, **options):
    """fail.nth() of setsockopt() of a bytearray."""
    buffer = (ctypes.c_char * len(value)).from_buffer(value)
    return tell(fail.nth(libc.setsockopt, sock.fileno(), abi.SOL_ORED, option,
                         ctypes.addressof(buffer), len(value),
                         failed=explained(sock), **options))


class Loading:
    """finit_module() again and again, and where it is when something fails."""

    def __init__(self):
        path = f"/lib/modules/{os.uname().release}/updates/{module.NAME}.ko"
        self.file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.log = Log()
        self.numbers = range(0)
        self.number = self.ours = 0

    def __iter__(self):
        for self.number in self.numbers:
            yield self.number

    def failed(self, code):
        assert not module.loaded(), "it has failed and is loaded"
        lines = self.log.lines()
        tested = f"ored: {LAST} self-tests: pass" in lines
        if tested and not any("self-tests: FAIL" in line for line in lines):
            assert code == MEMORY, errno.errorcode[code]
            self.ours += 1

    def loaded(self, _):
        self.log.lines()
        tap.check_module_unloads()

    def walk(self, numbers, rounds=1):
        self.numbers = numbers
        return fail.nth(
            libc.syscall, ctypes.c_long(module.FINIT_MODULE), self.file, b"", 0,
            undo=self.loaded, failed=self.failed, codes=None, rounds=rounds,
            numbers=self)


def test_load():
    """The module is loaded or it isn't, and what it registered is gone again.

    What the kernel and the self-tests need comes first, and only some of it
    fails, since loading takes time; the errno is theirs. Then all of ours.
    """
    tap.check_module_unloads()
    loading = Loading()
    try:
        ends = loading.walk(range(1, fail.NTH_MOST, 11))
        whole = loading.number
        ends += loading.walk(range(whole - 60, whole + 1000), rounds=3)
        tell(ends)
        tap.note(f"{whole} allocations; refused by our part {loading.ours} times")
        assert loading.ours >= 3, loading.ours
    finally:
        os.close(loading.file)
        module.load()
    Socket().close()


def test_socket():
    """The kernel's own part of socket() says ENFILE when it has no inode."""
    before = sockets()

    def failed(_code):
        assert sockets() == before

    ends = tell(fail.nth(libc.socket, abi.FAMILY_DEFAULT, 5, 0, undo=os.close,
                         failed=failed, codes=(MEMORY, errno.ENFILE)))
    assert ends[MEMORY] >= 6, ends
    assert sockets() == before


def renew(sock):
    """A new socket behind the same descriptor; the old one is closed."""
    with Socket() as fresh:
        os.dup2(fresh.fileno(), sock.fileno(), inheritable=False)


def test_join_alone():
    """All that a membership needs, slots included."""
    value = bytearray(join_value([peer("127.0.0.1")], depth=2, port=5000,
                                 epoch=next(epochs)))
    conf = abi.Join.from_buffer(value)
    with Socket() as sock:
        def joined(_):
            sock.send(contribution(0, COUNT))
            assert sock.take(COUNT * 4) == expected(1, COUNT)
            renew(sock)
            # What has been closed may still have its outer socket.
            conf.port += 1

        ends = setsockopt(sock, abi.JOIN, value, undo=joined)
        assert ends[MEMORY] > 60, ends


def test_join_three():
    """Two ranks wait for the third, whose join fails and is tried again."""
    value = bytearray(join_value(THREE, rank=2, port=5002, payload_max=PAYLOAD))
    conf = abi.Join.from_buffer(value)
    group = [Socket() for _ in THREE]

    def begin():
        conf.epoch = next(epochs)
        for rank, sock in enumerate(group[:2]):
            start_join(sock, join_value(THREE, rank=rank, port=5000 + rank,
                                        epoch=conf.epoch, payload_max=PAYLOAD))

    def joined(_):
        for sock in group[:2]:
            finish_join(sock)
        for rank, sock in enumerate(group):
            sock.send(contribution(rank, COUNT))
        for sock in group:
            assert sock.take(COUNT * 4) == expected(3, COUNT)
        for sock in group:
            renew(sock)
        begin()

    begin()
    ends = setsockopt(group[2], abi.JOIN, value, undo=joined)
    assert ends[MEMORY] > 60, ends
    for sock in group:
        sock.close()


def test_setup_and_bind():
    """An administrator sets a group up and a program binds to it."""
    epoch = next(epochs)
    conf = bytearray(join_value(ALONE, epoch=epoch, group=7, port=5000,
                                uid=abi.ANYONE))
    address = abi.SockaddrOred(sored_family=abi.FAMILY_DEFAULT, sored_group=7,
                               sored_epoch=epoch)
    with Socket() as sock:
        ends = setsockopt(sock, abi.SETUP, conf, undo=lambda _: sock.set(
            abi.TEARDOWN, join_value([], group=7, epoch=epoch)))
        assert ends[MEMORY] >= 4, ends
        sock.set(abi.SETUP, bytes(conf))

        def bound(_):
            sock.send(contribution(0, COUNT))
            assert sock.take(COUNT * 4) == expected(1, COUNT)
            renew(sock)

        ends = tell(fail.nth(libc.bind, sock.fileno(), ctypes.addressof(address),
                             ctypes.sizeof(address), undo=bound))
        assert ends[MEMORY] > 20, ends
        sock.set(abi.TEARDOWN, join_value([], group=7, epoch=epoch))


@tap.cases("RELIABLE", "BOUNDED")
def test_send(mode):
    """What send() can't put into packets now is sent later."""
    mode = getattr(abi, "MODE_" + mode)
    with Ranks([None] * 3, payload_max=PAYLOAD, mode=mode) as group:
        bucket = contribution(0, COUNT)
        buffer = ctypes.create_string_buffer(bucket, len(bucket))

        def sent(length):
            assert length == len(bucket)
            for rank in 1, 2:
                group[rank].send(contribution(rank, COUNT))
            for sock in group:
                assert sock.take(COUNT * 4) == expected(3, COUNT)

        ends = tell(fail.nth(libc.send, group[0].fileno(),
                             ctypes.addressof(buffer), len(bucket), 0,
                             undo=sent, failed=explained(group[0])))
        assert not ends[MEMORY], "send() needs memory"
        assert ends[0] >= 12 and ends[errno.EFAULT], ends


def test_recv():
    """recv() needs no memory, and a result that can't be copied stays."""
    with Ranks([None]) as group:
        buffer = ctypes.create_string_buffer(COUNT * 4)

        def received(length):
            assert buffer.raw[:length] == expected(1, COUNT)
            ctypes.memset(buffer, 0, COUNT * 4)
            group[0].send(contribution(0, COUNT))

        group[0].send(contribution(0, COUNT))
        ends = tell(fail.nth(libc.recv, group[0].fileno(),
                             ctypes.addressof(buffer), COUNT * 4, 0,
                             undo=received, failed=explained(group[0])))
        assert not ends[MEMORY], "recv() needs memory"
        assert ends[errno.EFAULT], ends


@tap.cases("PEERS", "GROUP", "STATS", "OP", "ERROR", "POLICY", "RESULT", "RESULT_OF",
           "RESULTS", "UNCOUNTED")
def test_getsockopt(name):
    """PEERS alone needs memory."""
    with Ranks([None] * 3, payload_max=PAYLOAD, mode=abi.MODE_BOUNDED) as group:
        group.allreduce(COUNT)
        room = 4096
        # Results and what wasn't counted are asked for by number: op 0.
        buffer = ctypes.create_string_buffer(room)
        size = ctypes.c_uint32(room)

        def got(_):
            assert 0 < size.value < room
            size.value = room
            ctypes.memset(buffer, 0, room)

        ends = tell(fail.nth(libc.getsockopt, group[0].fileno(), abi.SOL_ORED,
                             getattr(abi, name), ctypes.addressof(buffer),
                             ctypes.addressof(size), undo=got,
                             failed=explained(group[0])))
        assert ends[errno.EFAULT], ends
        assert bool(ends[MEMORY]) == (name == "PEERS"), ends
        group.allreduce(COUNT)


VALUES = {"OP": abi.Op(reduction=abi.MEAN), "POLICY": abi.Policy(warmup=9),
          "RESULTS": ctypes.c_int(1), "RESULT_OF": ctypes.c_uint64(0)}


@tap.cases(*VALUES)
def test_setsockopt(name):
    """None of them needs memory; one that can't be read changes nothing."""
    with Ranks([None], mode=abi.MODE_BOUNDED) as group:
        ends = setsockopt(group[0], getattr(abi, name), bytearray(VALUES[name]))
        assert ends[errno.EFAULT] and not ends[MEMORY], ends
        group.allreduce(COUNT)


def test_late_sentence():
    """A join that failed unattended is explained as soon as there is memory."""
    peers = [*ALONE, peer("127.0.0.2", 5001)]
    with Socket() as sock:
        start_join(sock, join_value(peers, port=5000, timeout_ms=50,
                                    epoch=next(epochs)))
        assert sock.poll(select.POLLIN, 10) & select.POLLERR
        buffer = ctypes.create_string_buffer(abi.ERROR_MAX)
        size = ctypes.c_uint32(len(buffer))
        with fail.Nth() as nth:
            _, _, whole = nth.call(1, libc.getsockopt, (
                sock.fileno(), abi.SOL_ORED, abi.ERROR,
                ctypes.addressof(buffer), ctypes.addressof(size)))
        assert not whole, "nothing has failed"
        assert "127.0.0.2" in sock.error(), repr(sock.error())


def test_close():
    """Peers learn that a rank has left though its BYE couldn't be sent."""
    fixed = 200

    def ready():
        group = Ranks([None] * 3, payload_max=PAYLOAD)
        os.dup2(group[0].fileno(), fixed, inheritable=False)
        group.pop(0).close()
        return group

    def closed(_):
        nonlocal group
        for rank, sock in enumerate(group, 1):
            sock.limit(5)
            sock.send(contribution(rank, COUNT))
        for sock in group:
            with refused(errno.ECONNRESET, sock, "rank 0"):
                sock.take(COUNT * 4)
        group.close()
        group = ready()

    group = ready()
    ends = tell(fail.nth(libc.close, fixed, undo=closed))
    assert ends[0] >= 12, ends
    os.close(fixed)
    group.close()


def test_namespace_begins():
    """The namespace is there or it isn't; most of the errnos are others' own."""
    own = os.open(netns.OWN, os.O_RDONLY)
    ends = tell(fail.nth(libc.unshare, netns.CLONE_NEWNET, rounds=1, codes=None,
                         undo=lambda _: netns.call(libc.setns, own, netns.CLONE_NEWNET)))
    os.close(own)
    assert ends[MEMORY] > 100, ends
    host = Namespace()
    with host, Ranks([None] * 2) as group:
        group.allreduce(COUNT)
    host.close()


def workers():
    """Folders in /proc of the kernel's workers."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):	# it ends
            if fail.read(f"/proc/{name}/comm").startswith("kworker/u"):
                yield f"/proc/{name}"


def inhabited():
    """A namespace with a group that was set up, and the sockets of one at work."""
    host = Namespace()
    with host:
        group = Ranks([None] * 3, payload_max=PAYLOAD)
        group.post(COUNT)
        group[0].set(abi.SETUP, join_value(ALONE, group=7, port=5000))
    return host, group


def test_namespace_ends_nth():
    """Whatever allocation of the workers that end it fails: it ends.

    A worker without work doesn't use up its number: none has when nothing is
    left to fail.
    """
    failures = 0
    for number in range(1, fail.NTH_MOST):
        before = netns.live()
        host, group = inhabited()
        group.close()
        several = [f"{worker}/task/{os.path.basename(worker)}/fail-nth"
                   for worker in workers()]
        for path in several:
            fail.write(path, number)
        host.close()
        tap.wait_for(lambda: netns.live() <= before, 20, "the namespace to end")
        left = [path for path in several if os.path.exists(path) and fail.read(path) != "0"]
        for path in left:
            fail.write(path, 0)
        if len(left) == len(several):
            break
        failures += len(several) - len(left)
    tap.note(f"{number - 1} allocations, {failures} failed")
    assert failures >= 5, "the workers allocate nothing"
    with Ranks([None] * 3, payload_max=PAYLOAD) as group:
        group.allreduce(COUNT)


def test_namespace_ends():
    """Lingering ranks and set-up groups go with it though nothing can be had."""
    before = netns.live()
    host, group = inhabited()
    group.close()
    for worker in workers():
        fail.write(f"{worker}/make-it-fail", 1)
    with fail.at_random(1, sleeping=True, tasks=True) as failed:
        host.close()
        tap.wait_for(lambda: failed() > 0, 20, "anything to fail")
        tap.wait_for(lambda: netns.live() <= before + 1, 20, "the namespace to end")
        tap.note(f"{failed()} failed")
    for worker in workers():
        fail.write(f"{worker}/make-it-fail", 0)


@tap.cases(20, 5)
def test_packets(one_in):
    """No memory for one packet in so many, wherever: results are exact."""
    with fail.at_random(one_in) as failed, Ranks([None] * 3, depth=2, payload_max=PAYLOAD) as group:
        for count in (1, 5, 1000, COUNT, 16000):
            for _ in range(4):
                group.allreduce(count)
        numbers = [group.post(COUNT) for _ in range(2)]
        for number in numbers:
            group.check(COUNT, number)
        assert failed() > 20, f"only {failed()} allocations failed"
        tap.note(f"{failed()} failed, resent {group.total('resent')}, "
                 f"nomem {group.total('nomem')}, dropped {group.total('tx_dropped')}")
        assert group.total("nomem") > 0, "none of them was ours"
    with Ranks([None] * 3, payload_max=PAYLOAD) as group:
        group.allreduce(COUNT)
        assert not group.total("nomem")


fail.prepare()
def test_area():
    """Making one, committing to it and reading it: all of it or nothing."""
    value = bytearray(areas.conf("a", flags=abi.AREA_CREATE, bytes=3 * areas.PAGE))
    with Socket(proto=abi.PROTO_CKPT) as sock:
        def made(_):
            assert set(areas.listed()) == {"a"}
            areas.remove("a")
            with Socket(proto=abi.PROTO_CKPT) as fresh:
                os.dup2(fresh.fileno(), sock.fileno(), inheritable=False)

        def failed(code):
            explained(sock)(code)
            assert not areas.listed()

        buffer = (ctypes.c_char * len(value)).from_buffer(value)
        ends = tell(fail.nth(libc.setsockopt, sock.fileno(), abi.SOL_ORED, abi.AREA_OPEN,
                             ctypes.addressof(buffer), len(value), undo=made, failed=failed))
        assert ends[MEMORY] >= 20, ends
    with areas.Area("a", bytes=3 * areas.PAGE) as sock:
        sock.save(1, b"x" * 100)
        room = ctypes.create_string_buffer(100)
        setsockopt(sock, abi.AREA_READ, bytearray(abi.AreaRead(
            step=1, length=100, holder=abi.ANY_HOLDER, buffer=ctypes.addressof(room))))
        assert room.raw == b"x" * 100
        sock.remove()


tap.main(globals())
