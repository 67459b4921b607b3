#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Checkpoint areas on one host: they outlive processes, and what is sealed stays."""
import contextlib
import ctypes
import errno
import mmap
import os
import resource
import select
import signal
import socket

from lib import abi, areas, module, raw, tap
from lib.areas import PAGE, Area, Mapping, crc32c, faults, in_child, listed, pattern
from lib.log import Log
from lib.netns import Namespace
from lib.signals import with_signal
from lib.sockets import Socket, refused

SIZE = 3 * abi.AREA_BLOCK + 5 * PAGE
NOBODY = 65534
MAP_FIXED = 0x10


@contextlib.contextmanager
def area(name="a", size=SIZE, **fields):
    """A new area, removed at the end."""
    with Area(name, bytes=size, **fields) as sock:
        try:
            yield sock
        finally:
            with contextlib.suppress(OSError):
                areas.remove(name, fields.get("host"))


@contextlib.contextmanager
def fails(code, *words):
    """Opening that is refused, with a sentence in which all words are."""
    try:
        yield
    except OSError as error:
        assert error.errno == code, error
        for word in words:
            assert str(word) in error.strerror, (word, error.strerror)
        return
    raise AssertionError(f"no {errno.errorcode[code]}")


def test_new():
    with area(size=SIZE - 5) as a:
        conf = a.conf()
        assert (conf.bytes, conf.mode, conf.copies, conf.nranks) == (SIZE - 5, 0o600, 1, 1)
        assert 3 * SIZE <= conf.memory < 3 * SIZE + 16 * PAGE, conf.memory
        status = a.status()
        assert list(status.step) == [abi.NO_STEP] * 2 and status.complete == abi.NO_STEP
        assert a.steps() == []
        assert a.map()[:] == bytes(SIZE - 5)
        assert a.poll(select.POLLIN | select.POLLOUT) == select.POLLOUT


@tap.cases("flags", "exclusive", "mode", "bytes", "huge", "memory", "reserved", "name",
           "long", "slash", "owner", "copies", "placement", "jump")
def test_nonsense(field):
    value = {"flags": {"flags": 1 << 9}, "exclusive": {"flags": abi.AREA_EXCLUSIVE},
             "mode": {"mode": 0o1777}, "bytes": {"bytes": 0},
             "huge": {"bytes": abi.AREA_BYTES_MAX + 1}, "memory": {"memory": 1},
             "reserved": {"reserved": (1, 0, 0)}, "name": {}, "long": {}, "slash": {},
             "owner": {"owner": 1}, "copies": {"copies": 2},
             "placement": {"placement": 2}, "jump": {"jump": 2}}[field]
    name = {"name": "", "long": "x" * abi.AREA_NAME_MAX, "slash": "a/b"}.get(field, "a")
    if "reserved" in value:
        value = {"reserved": (abi.c_uint64 * 3)(*value["reserved"])}
    with fails(errno.EINVAL):
        Area(name, create=field != "exclusive", **{"bytes": SIZE, **value})
    assert not listed()


def test_option_sizes():
    """Longer with zeros is taken; with more than zeros, or unreadable, it isn't."""
    with Socket(proto=abi.PROTO_CKPT) as sock:
        value = bytes(areas.conf("a", bytes=SIZE, flags=abi.AREA_CREATE))
        with refused(errno.E2BIG, sock):
            sock.set(abi.AREA_OPEN, value + b"\0\1")
        with refused(errno.EFAULT, sock):
            raw.setsockopt(sock, abi.AREA_OPEN, raw.BAD, len(value))
        sock.set(abi.AREA_OPEN, value + bytes(20))
        with refused(errno.EISCONN, sock):
            sock.set(abi.AREA_OPEN, value)
        with refused(errno.EINVAL, sock):
            sock.set(abi.AREA_WAIT, b"1234")
    areas.remove("a")


def test_option_lengths():
    """An option's length that can't be read, or is none."""
    with area() as a:
        for length, code in ((raw.BAD, errno.EFAULT),
                             (ctypes.byref(ctypes.c_int(-1)), errno.EINVAL)):
            with refused(code, a):
                raw.checked(raw.libc.getsockopt(a.fileno(), abi.SOL_ORED,
                                                abi.AREA_STATUS, raw.BAD, length))


@tap.cases("commit", "meta", "read", "remove", "nameless")
def test_reserved(what):
    """What must be zero, or be there; nothing is committed or removed."""
    reserved = (abi.c_uint64 * 2)(0, 1)
    meta = (abi.c_uint8 * abi.AREA_META_MAX)(7, 8)
    option, value = {
        "commit": (abi.AREA_COMMIT, abi.Commit(step=2, reserved=reserved)),
        "meta": (abi.AREA_COMMIT, abi.Commit(step=2, meta=meta, meta_len=1)),
        "read": (abi.AREA_READ, abi.AreaRead(step=1, length=1, holder=0,
                                             reserved=reserved)),
        "remove": (abi.AREA_REMOVE, areas.conf("a", bytes=SIZE)),
        "nameless": (abi.AREA_REMOVE, abi.AreaConf())}[what]
    with area() as a, Socket(proto=abi.PROTO_CKPT) as empty:
        a.save(1, b"x")
        sock = empty if what == "nameless" else a
        with refused(errno.EINVAL, sock):
            sock.set(option, value)
        assert a.steps() == [1] and "a" in listed()


def test_before_opening():
    with Socket(proto=abi.PROTO_CKPT) as sock:
        for option in (abi.AREA_COMMIT, abi.AREA_ABORT, abi.AREA_READ, abi.AREA_WAIT,
                       abi.AREA_ROLL_BACK):
            with refused(errno.ENOTCONN, sock):
                sock.set(option, bytes(512))
        for option in (abi.AREA_STATUS, abi.AREA_GENERATIONS, abi.AREA_OPEN):
            with refused(errno.ENOTCONN, sock):
                sock.getsockopt(abi.SOL_ORED, option, 512)
        with refused(errno.ENOTCONN, sock):
            Mapping(sock, PAGE, 1)
        with refused(errno.ENOPROTOOPT, sock):
            sock.set(abi.JOIN, bytes(104))
        assert sock.poll() & select.POLLHUP
        with refused(errno.EOPNOTSUPP):
            sock.send(b"x")


def test_names():
    """Found again as it was, or refused with both values."""
    with area(mode=0o640) as a:
        with Area("a", create=False) as again, Area("a", bytes=SIZE) as same:
            assert bytes(again.conf()) == bytes(same.conf()) == bytes(a.conf())
        with fails(errno.EINVAL, "bytes", SIZE, SIZE + 1):
            Area("a", bytes=SIZE + 1)
        with fails(errno.EEXIST):
            Area("a", bytes=SIZE, flags=abi.AREA_EXCLUSIVE)
        with fails(errno.ENOENT):
            Area("b", create=False)
        with area("b"):
            assert set(listed()) == {"a", "b"}
        with Namespace() as other:
            assert not listed(other)
        other.close()


def test_generations():
    """The newest two, with their lengths, digests and metadata; mapped and read."""
    with area() as a:
        for step in range(1, 6):
            data = pattern(step, SIZE - 100 * step)
            meta = bytes(range(step)) * 50
            a.save(10 * step, data, meta)
            gens = a.generations()
            assert [g.step for g in gens] == [10 * s for s in (step, step - 1) if s]
            assert gens[0].bytes == len(data) and gens[0].meta_len == len(meta)
            assert bytes(gens[0].meta)[:len(meta)] == meta
            assert gens[0].digest == crc32c(data)
            assert gens[0].flags == abi.GENERATION_COMPLETE and gens[0].rank == 0
            assert a.load(10 * step) == a.view(10 * step)[:] == data
            status = a.status()
            assert status.complete == status.step[0] == 10 * step
            assert status.digest[0] == gens[0].digest and status.acked[0] == 1
        assert a.load(40) == pattern(4, SIZE - 400)
        with refused(errno.ENOENT, a):
            a.load(30, length=1)
        assert a.poll() == select.POLLIN


def test_commit_refused():
    with area() as a:
        a.save(5, pattern(5, SIZE))
        for code, commit in ((errno.EEXIST, {"step": 5}), (errno.EEXIST, {"step": 4}),
                             (errno.EMSGSIZE, {"step": 6, "length": SIZE + 1}),
                             (errno.EINVAL, {"step": 6, "flags": 2}),
                             (errno.EINVAL, {"step": abi.NO_STEP})):
            with refused(code, a):
                a.commit(**commit)
        with refused(errno.EINVAL, a):
            a.set(abi.AREA_COMMIT, abi.Commit(step=6, meta_len=257))
        assert a.steps() == [5] and a.load(5) == pattern(5, SIZE)


def test_old_mappings_fault():
    """After the seal: second mappings, mappings of other processes, all of them."""
    with area() as a, Area("a", create=False) as b:
        data = pattern(1, SIZE)
        mine, second, other = a.map(), a.map(), b.map(PAGE, offset=2 * PAGE)
        mine[:] = data
        assert second[:] == data and other[:] == data[2 * PAGE:3 * PAGE]
        assert not faults(mine)
        mine[0] = data[0]
        ready, go = os.pipe(), os.pipe()
        child = os.fork()
        if not child:
            # Has it in its page table before, and writes afterwards.
            signal.signal(signal.SIGBUS, signal.SIG_DFL)
            mine[1] = data[1]
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            mine[1] = 0
            os._exit(0)
        os.read(ready[0], 1)
        a.commit(1)
        os.write(go[1], b"x")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGBUS
        for mapping in (mine, second, other):
            assert faults(mapping)
        assert a.load(1) == data and a.view(1)[:] == data
        # Nor when the slot is opened again
        for step in range(2, 8):
            a.save(step, pattern(step, 100))
            assert faults(mine)
        for fd in (*ready, *go):
            os.close(fd)


def test_other_ways_in():
    """/proc/self/mem and process_vm_writev() through a mapping of a sealed slot."""
    with area() as a:
        mapping = a.map()
        address = mapping.address
        a.save(1, pattern(1, SIZE))
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(address)
            with refused(errno.EIO):
                memory.write(b"stray")
        local = ctypes.create_string_buffer(b"stray")
        vectors = [raw.Vector(p, 5) for p in (ctypes.addressof(local), address)]
        got = raw.libc.process_vm_writev(os.getpid(), ctypes.byref(vectors[0]), 1,
                                         ctypes.byref(vectors[1]), 1, 0)
        assert got == -1 and ctypes.get_errno() == errno.EFAULT
        assert a.load(1) == pattern(1, SIZE)


def test_views():
    """Generations can be read and nothing else, as long as they are there."""
    with area() as a:
        a.save(1, pattern(1, SIZE))
        gen = a.generations()[0]
        view = a.view(1)
        length = -(-SIZE // PAGE) * PAGE
        assert raw.libc.mprotect(view.address, PAGE, 3) == -1
        assert ctypes.get_errno() == errno.EACCES
        for flags, prot, offset, code in (
                (mmap.MAP_PRIVATE, 3, 0, errno.EINVAL),
                (mmap.MAP_SHARED, 1, gen.offset + (1 << 40), errno.EINVAL),
                (mmap.MAP_SHARED, 1, gen.offset + (1 << 21), errno.ENOENT),
                (mmap.MAP_SHARED, 3, 1 << 30, errno.EINVAL)):
            with refused(code, a):
                Mapping(a, PAGE, prot, flags, offset)
        with refused(errno.EINVAL, a):
            a.map(length + PAGE)
        with refused(errno.EINVAL, a):
            Mapping(a, length, 1, offset=gen.offset + PAGE)
        a.save(2, pattern(2, SIZE))
        assert view[:] == pattern(1, SIZE)
        a.save(3, pattern(3, SIZE))
        assert in_child(areas.read_byte, view) == -signal.SIGBUS


def test_read_ranges():
    with area() as a:
        data = pattern(1, SIZE - 77)
        a.save(1, data)
        block = abi.AREA_BLOCK
        for offset, length in ((0, 1), (block - 1, 2), (block, block), (5, 3 * block),
                               (len(data) - 1, 1), (len(data) - block, block)):
            assert a.load(1, offset, length) == data[offset:offset + length]
        for offset, length in ((0, 0), (len(data), 1), (0, len(data) + 1),
                               ((1 << 64) - 1, 1), ((1 << 64) - 1, 2), (1, (1 << 64) - 1)):
            with refused(errno.ERANGE, a):
                a.set(abi.AREA_READ, abi.AreaRead(step=1, offset=offset, length=length,
                                                  holder=abi.ANY_HOLDER, buffer=raw.BAD))
        with refused(errno.EFAULT, a):
            a.set(abi.AREA_READ, abi.AreaRead(step=1, length=1, holder=0, buffer=raw.BAD))
        for field in ({"rank": 1}, {"holder": 1}):
            with refused(errno.ENOENT, a):
                a.load(1, length=1, **field)
        # Into the open slot: the state to go on from, to be changed and committed
        a.set(abi.AREA_READ, abi.AreaRead(step=1, length=len(data), holder=0))
        assert a.map()[:len(data)] == data


def test_abort_and_roll_back():
    with area() as a:
        for step in (1, 2):
            a.save(step, pattern(step, SIZE))
        mapping = a.map()
        mapping[:4] = b"torn"
        a.abort()
        assert faults(mapping) and a.steps() == [2, 1]
        views = {step: a.view(step) for step in (1, 2)}
        a.roll_back(2)
        assert a.steps() == [2, 1]
        a.roll_back(1)
        assert a.steps() == [1] and a.status().complete == 1
        assert views[1][:] == pattern(1, SIZE)
        assert in_child(areas.read_byte, views[2]) == -signal.SIGBUS
        a.save(2, pattern(7, SIZE))
        assert a.load(2) == pattern(7, SIZE)
        a.roll_back(0)
        assert a.steps() == [] and a.status().complete == abi.NO_STEP


def test_wait():
    with area() as a:
        a.save(3, b"x")
        a.wait(3)
        a.wait(1)
        a.limit(receive=0.1)
        with refused(errno.EAGAIN, a):
            a.wait(4)
        a.nonblocking()
        with refused(errno.EAGAIN, a):
            a.wait(4)
        a.nonblocking(False)
        a.limit(receive=0)
        with_signal(a.wait, 4)


def write_and(how, ready):
    """A writer that ends in the midst of its third step."""
    with Area("a", bytes=SIZE) as a:
        for step in (1, 2):
            a.save(step, pattern(step, SIZE), b"run 7")
        mapping = a.map()
        mapping[:100] = b"!" * 100
        os.write(ready, b"x")
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "segv":
            signal.signal(signal.SIGSEGV, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            ctypes.string_at(raw.BAD)
        elif how == "exec":
            os.execv("/bin/true", ["true"])
        elif how == "oom":
            with open("/proc/self/oom_score_adj", "w") as score:
                score.write("1000")
            with open("/proc/sysrq-trigger", "w") as trigger:
                trigger.write("f")
            signal.pause()


@tap.cases("exit", "kill", "segv", "exec", "oom")
def test_outlives(how):
    """Whatever ends its process, a new one finds it with all that was committed."""
    if how == "oom" and not os.path.exists("/proc/sysrq-trigger"):
        raise tap.Skip("no sysrq to call the OOM killer by")
    ready = os.pipe()
    status = in_child(write_and, how, ready[1])
    assert os.read(ready[0], 1) == b"x"
    assert status == {"kill": -9, "segv": -11, "oom": -9}.get(how, 0), status
    assert listed()["a"].handles == 0 and not listed()["a"].mapped
    with Area("a", create=False) as a:
        assert a.steps() == [2, 1]
        for step in (1, 2):
            assert a.load(step) == a.view(step)[:] == pattern(step, SIZE)
        assert bytes(a.generations()[0].meta)[:5] == b"run 7"
        a.save(3, pattern(3, SIZE))
        assert a.load(3) == pattern(3, SIZE) and a.steps() == [3, 2]
    areas.remove("a")
    for fd in ready:
        os.close(fd)


def worker(channel, home):
    """A pod: gets the area passed in, trains a step, and is killed."""
    with home:
        fds = socket.recv_fds(channel, 16, 1)[1]
        assert not listed(), "its own namespace has none"
        a = Area.__new__(Area)
        socket.socket.__init__(a, fileno=fds[0])
        steps = a.steps()
        if steps:
            assert a.load(steps[0]) == pattern(steps[0], SIZE)
        step = steps[0] + 1 if steps else 1
        a.save(step, pattern(step, SIZE))
        a.map()[:3] = b"###"
        os.kill(os.getpid(), signal.SIGKILL)


def test_handed_on():
    """By SCM_RIGHTS from a keeper to pods in namespaces that come and go."""
    with Namespace() as home, area(host=home) as keeper:
        for step in range(1, 4):
            here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            pod = Namespace()
            socket.send_fds(here, [b"area"], [keeper.fileno()])
            assert in_child(worker, there, pod) == -signal.SIGKILL
            for end in (here, there, pod):
                end.close()
            assert keeper.steps()[0] == step and keeper.load(step) == pattern(step, SIZE)
    home.close()


def test_goes_with_its_namespace():
    before = module.references()
    place = Namespace()
    with Area("a", place, bytes=SIZE) as a:
        a.save(1, b"x")
        mapping = a.map()
        # The socket keeps the namespace.
        place.close()
        assert a.load(1) == b"x"
    tap.wait_for(lambda: in_child(areas.read_byte, mapping) == -signal.SIGBUS, 20,
                 "the area to go")
    assert faults(mapping)
    mapping.close()
    tap.wait_for(lambda: module.references() <= before, 20, "references to go")


def test_module_stays():
    with area() as a:
        a.close()
        with refused(errno.EWOULDBLOCK):
            module.unload()


def test_removal():
    with area() as a, Area("a", create=False) as b:
        a.save(1, pattern(1, SIZE))
        mapping, view = a.map(), b.view(1)
        mapping[0] = 1
        areas.remove("a")
        assert not listed()
        assert faults(mapping) and in_child(areas.read_byte, view) == -signal.SIGBUS
        for call in (a.status, a.generations, a.abort, lambda: a.load(1, length=1),
                     lambda: a.commit(2), lambda: a.wait(9), a.map, a.remove,
                     lambda: a.roll_back(0)):
            with refused(errno.ENODEV, a):
                call()
        assert b.poll(select.POLLIN) & select.POLLERR
        with fails(errno.ENOENT):
            areas.remove("a")
        # The name is free, and the old handles have nothing to do with it.
        with area() as fresh:
            assert fresh.steps() == []
            with refused(errno.ENODEV, a):
                a.status()


def test_orphans():
    """Listed with what they take, and reclaimed."""
    with area() as a:
        entry = listed()["a"]
        assert (entry.handles, entry.uid, entry.gid) == (1, 0, 0)
        assert bytes(entry.conf) == bytes(a.conf()) and not entry.mapped
        a.save(4, b"x")
        mapping = a.map()
        a.close()
        entry = listed()["a"]
        assert (entry.handles, entry.mapped, entry.step[0]) == (0, 1, 4)
        mapping.close()
        assert not listed()["a"].mapped


def drop(function, *arguments):
    """As an ordinary user without privileges."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    return function(*arguments)


def open_as(flags=0):
    Area("a", create=False, flags=flags).close()


@tap.cases((0o600, errno.EACCES, errno.EACCES), (0o604, 0, errno.EACCES),
           (0o602, errno.EACCES, errno.EACCES), (0o606, 0, 0))
def test_mode(mode, read, write):
    with area(mode=mode):
        assert in_child(drop, open_as, abi.AREA_READONLY) == read
        assert in_child(drop, open_as) == write
        assert in_child(drop, areas.remove, "a") == errno.EPERM
    assert not listed()


def open_as_owner(mode):
    """Returns the flags by which the owner may no more, or 9."""
    Area("mine", bytes=SIZE, mode=mode).close()
    for flags in (abi.AREA_READONLY, 0):
        try:
            Area("mine", create=False, flags=flags).close()
        except OSError as error:
            assert error.errno == errno.EACCES
            return flags
    return 9


@tap.cases((0o066, abi.AREA_READONLY), (0o466, 0), (0o600, 9))
def test_mode_of_the_owner(mode, stopped_at):
    """The owner's bits are his, even where others' allow more."""
    assert in_child(drop, open_as_owner, mode) == stopped_at
    areas.remove("mine")


def open_as_group(flags=0):
    os.setgroups([os.getegid()])
    os.setuid(NOBODY)
    open_as(flags)


@tap.cases((0o606, errno.EACCES, errno.EACCES), (0o640, 0, errno.EACCES), (0o660, 0, 0))
def test_mode_of_the_group(mode, read, write):
    with area(mode=mode):
        assert in_child(open_as_group, abi.AREA_READONLY) == read
        assert in_child(open_as_group) == write


def test_readonly_handle():
    with area() as a:
        a.save(1, b"x" * PAGE)
        with Area("a", create=False, flags=abi.AREA_READONLY) as reader:
            assert reader.load(1) == reader.view(1)[:] == b"x" * PAGE
            for call in (reader.map, lambda: reader.commit(2), reader.abort,
                         lambda: reader.roll_back(0),
                         lambda: reader.set(abi.AREA_READ, abi.AreaRead(
                             step=1, length=1, holder=0))):
                with refused(errno.EACCES, reader):
                    call()


def create_limited(limit):
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))
    os.setuid(NOBODY)
    try:
        Area("a", bytes=SIZE)
    except OSError as error:
        assert "RLIMIT_MEMLOCK" in error.strerror and str(limit) in error.strerror
        raise


def test_memlock():
    """A user's limit counts over all his areas, also when their makers have gone."""
    need = 4 * SIZE
    assert in_child(create_limited, SIZE) == errno.ENOMEM
    assert in_child(create_limited, need) == 0
    with Area("a", create=False) as a:
        assert a.conf().memory <= need
        areas.remove("a")
    assert in_child(create_limited, need) == 0
    # The first is still charged.
    def second():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (need, need))
        os.setuid(NOBODY)
        Area("b", bytes=SIZE)
    assert in_child(second) == errno.ENOMEM
    areas.remove("a")
    assert in_child(second) == 0
    areas.remove("b")


def read_cap():
    with open(areas.SYSCTL) as file:
        return int(file.read())


def write_cap(value):
    with open(areas.SYSCTL, "w") as file:
        file.write(str(value))


@contextlib.contextmanager
def cap(value):
    before = read_cap()
    write_cap(value)
    try:
        yield
    finally:
        write_cap(before)


def test_cap():
    """The first namespace's is everybody's; others have their own below it."""
    with area() as a:
        memory = a.conf().memory
    with cap(2 * memory + 1):
        with area("a"), area("b"):
            with fails(errno.ENOMEM, "ckpt_max_bytes", memory, 2 * memory + 1):
                Area("c", bytes=SIZE)
            with Namespace() as place, fails(errno.ENOMEM, memory, 2 * memory + 1):
                Area("c", place, bytes=SIZE)
            place.close()
        with area("c"):
            pass
        with Namespace() as place:
            assert read_cap() == 2 * memory + 1
            with refused(errno.EINVAL):
                write_cap(2 * memory + 2)
            write_cap(memory)
            with area("a", host=place), fails(errno.ENOMEM, memory):
                Area("b", place, bytes=SIZE)
        place.close()


def test_too_large():
    """ENOMEM at once, and nobody is killed for it."""
    with Log() as log:
        with fails(errno.ENOMEM, "available"):
            Area("a", bytes=abi.AREA_BYTES_MAX)
        with cap(1 << 62), open("/proc/meminfo") as file:
            free = int(file.read().split("MemAvailable:")[1].split()[0]) << 10
            with fails(errno.ENOMEM, "available"):
                Area("a", bytes=free // 2)
        assert not [line for line in log.lines() if "oom" in line.lower()]
    assert not listed()


def pinned(a, mapping, code, data):
    """While something holds the pages, commit is refused and nothing is lost."""
    with refused(errno.EBUSY, a):
        a.commit(1, len(data))
    assert "pages" in a.error() and a.steps() == []
    assert mapping[:] == data and not faults(mapping)
    mapping[0] = data[0]
    assert code in (0, errno.EBUSY)


def test_pages_in_a_pipe():
    """vmsplice() takes the pages themselves: until they are read, no seal."""
    with area(size=4 * PAGE) as a:
        data = pattern(1, 4 * PAGE)
        mapping = a.map()
        mapping[:] = data
        ends = os.pipe()
        vector = raw.Vector(mapping.address, 4 * PAGE)
        assert raw.libc.vmsplice(ends[1], ctypes.byref(vector), 1, 0) == 4 * PAGE
        pinned(a, mapping, errno.EBUSY, data)
        assert os.read(ends[0], 4 * PAGE) == data
        a.commit(1)
        assert a.load(1) == data
        for fd in ends:
            os.close(fd)


def test_digest_only():
    """Mappings stay; what is changed after it is found where it is read."""
    with area(size=2 * abi.AREA_BLOCK) as a:
        data = pattern(1, 2 * abi.AREA_BLOCK)
        mapping = a.save(1, data, flags=abi.COMMIT_DIGEST_ONLY)
        assert a.generations()[0].flags & abi.GENERATION_DIGEST_ONLY
        assert mapping[:] == data == a.load(1)
        mapping[abi.AREA_BLOCK + 5] = data[abi.AREA_BLOCK + 5] ^ 1
        assert a.load(1, 0, abi.AREA_BLOCK) == data[:abi.AREA_BLOCK]
        with refused(errno.EBADMSG, a):
            a.load(1)
        words = a.error()
        assert f"bytes {abi.AREA_BLOCK} to" in words and "rank 0" in words, words
        mapping[abi.AREA_BLOCK + 5] = data[abi.AREA_BLOCK + 5]
        assert a.load(1) == data


class Ring:
    """An io_uring with one registered buffer, by the system calls."""
    SETUP, REGISTER = 425, 427

    def __init__(self, address, length):
        libc = raw.libc
        self.fd = raw.checked(libc.syscall(ctypes.c_long(self.SETUP), 4,
                                           ctypes.create_string_buffer(120)))
        vector = raw.Vector(address, length)
        try:
            raw.checked(libc.syscall(ctypes.c_long(self.REGISTER), self.fd, 0,
                                     ctypes.byref(vector), 1))
        except OSError:
            os.close(self.fd)
            raise

    def close(self):
        os.close(self.fd)


def test_pinned_for_dma():
    """Registered buffers are pinned: only a digest can be their seal."""
    release = tuple(int(x) for x in os.uname().release.split(".")[:2])
    with area(size=4 * PAGE) as a:
        data = pattern(1, 4 * PAGE)
        mapping = a.map()
        mapping[:] = data
        try:
            ring = Ring(mapping.address, 4 * PAGE)
        except OSError as error:
            # Before 6.5 io_uring takes no buffers in files but of shmem and hugetlbfs:
            # nobody can pin them that way.
            assert release < (6, 5) and error.errno in (errno.EOPNOTSUPP, errno.ENOSYS), error
            return
        pinned(a, mapping, errno.EBUSY, data)
        a.commit(1, flags=abi.COMMIT_DIGEST_ONLY)
        assert a.load(1) == data
        ring.close()
        mapping = a.map()
        mapping[:] = data
        a.commit(2)


def test_pages_are_real():
    """Other system calls take them: process_vm_readv(), write() and zero-copy send."""
    with area() as a:
        data = pattern(1, SIZE)
        mapping = a.map()
        mapping[:] = data
        copy = ctypes.create_string_buffer(SIZE)
        vectors = [raw.Vector(p, SIZE) for p in (ctypes.addressof(copy), mapping.address)]
        assert raw.libc.process_vm_readv(os.getpid(), ctypes.byref(vectors[0]), 1,
                                         ctypes.byref(vectors[1]), 1, 0) == SIZE
        assert copy.raw == data
        with socket.create_server(("127.0.0.1", 0)) as server, \
                socket.create_connection(server.getsockname()) as client:
            peer = server.accept()[0]
            client.setsockopt(socket.SOL_SOCKET, 60, 1)	# SO_ZEROCOPY
            sent = client.send(memoryview(mapping.memory())[:16 * PAGE], 0x4000000)
            assert peer.recv(sent, socket.MSG_WAITALL) == data[:sent]
            peer.close()


def test_huge():
    """Huge pages or a plain refusal; what is in them is the same."""
    size = 4 << 20
    try:
        a = Area("a", bytes=size + PAGE, flags=abi.AREA_HUGE)
    except OSError as error:
        assert error.errno == errno.ENOMEM, error
        raise tap.Skip(f"{error.strerror}")
    with a:
        data = pattern(3, size + PAGE)
        mapping = a.save(1, data)
        assert faults(mapping) and faults(mapping, size) and a.load(1) == data
        assert a.view(1)[:] == data and a.conf().flags == abi.AREA_HUGE
        a.remove()


def huge_kib(address):
    """KiB that are mapped by huge pages, of the mapping at an address."""
    found = False
    with open("/proc/self/smaps") as file:
        for line in file:
            if line.startswith(f"{address:x}-"):
                found = True
            elif found and line.startswith("FilePmdMapped"):
                return int(line.split()[1])
    raise AssertionError("no such mapping")


def test_huge_mappings():
    """A mapping at a multiple of 2 MiB uses them, and the seal takes it away."""
    if not os.path.exists("/sys/kernel/mm/transparent_hugepage"):
        raise tap.Skip("this kernel has no transparent huge pages")
    size, huge = 4 << 20, 2 << 20
    with area(size=size) as a:
        room = raw.libc.mmap(None, size + huge, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        address = raw.libc.mmap(-(-room // huge) * huge, size, 3, mmap.MAP_SHARED | MAP_FIXED,
                                a.fileno(), 0)
        ctypes.memset(address, 7, size)
        assert huge_kib(address) == size >> 10, "no huge pages in a guest that has just booted"
        a.commit(1)
        assert huge_kib(address) == 0
        assert a.load(1) == b"\7" * size
        raw.libc.munmap(room, size + huge)


tap.main(globals())
