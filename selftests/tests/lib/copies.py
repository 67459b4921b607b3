# SPDX-License-Identifier: GPL-2.0
"""Areas of the ranks of a group, each on a host of its own."""
import contextlib
import errno
import mmap
import time

from . import abi, areas
from .areas import Area, Mapping, pattern
from .netns import Network
from .sockets import Ranks

SIZE = 9 * abi.AREA_BLOCK + 12345
DELAY = "delay 200us"
SLOW = "delay 200us rate 10mbit"	# half a second for SIZE


@contextlib.contextmanager
def hosts_with(ranks=2, size=SIZE, copies=2, netem=DELAY, mtu=1500, offloads=False, **fields):
    """Hosts, the ranks of a group on them, and an area for each."""
    with Network(ranks, netem=netem, offloads=offloads, mtu=mtu) as net, \
            Ranks(net.hosts) as group, contextlib.ExitStack() as stack:
        group.areas = []
        for rank, host in enumerate(net.hosts):
            group.areas.append(stack.enter_context(made(host, rank, ranks, size, copies,
                                                        **fields)))
        group.net = net
        yield group


@contextlib.contextmanager
def made(host, rank, ranks, size=SIZE, copies=2, name="ckpt", **fields):
    with Area(name, host, bytes=size, group=1, owner=rank, nranks=ranks, copies=copies,
              **fields) as area:
        area.limit(20)
        try:
            yield area
        finally:
            with contextlib.suppress(OSError):
                areas.remove(name, host)


def state(rank, step, size=SIZE):
    return pattern(step * 64 + rank, size)


def holders(group, rank):
    """Ranks that have copies of a rank's generations, by what they say."""
    return [a for a in group.areas if a.conf().owner != rank and
            any(g.rank == rank for g in a.generations())]


def held(area, rank, step):
    return next(g for g in area.generations() if (g.rank, g.step) == (rank, step))


def seen(area, rank, step):
    """The bytes that a holder has."""
    gen = held(area, rank, step)
    return Mapping(area, gen.bytes, mmap.PROT_READ, offset=gen.offset)[:]


def save_all(group, step, size=SIZE, meta=b""):
    for rank, area in enumerate(group.areas):
        area.save(step, state(rank, step, size), meta)


def check_all(group, step, size=SIZE):
    """Everybody's is complete, and what the holders have is it."""
    for rank, area in enumerate(group.areas):
        area.wait(step)
        status = area.status()
        assert status.complete == step, (rank, status.complete)
        keepers = holders(group, rank)
        assert len(keepers) == area.conf().copies - 1, (rank, keepers)
        for keeper in keepers:
            assert seen(keeper, rank, step) == state(rank, step, size), (rank, step)
            assert held(keeper, rank, step).digest == status.digest[0]
            assert status.acked[0] >> keeper.conf().owner & 1


@contextlib.contextmanager
def fails(sock, code, *words):
    try:
        yield
    except OSError as error:
        assert error.errno == code, error
        for word in words:
            assert str(word) in sock.error(), (word, sock.error())
        return
    raise AssertionError(f"no {errno.errorcode[code]}")


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "that never happens"
        time.sleep(0.01)


def cut(group, rank):
    group.net.hosts[rank].drop("input", "meta l4proto udp")


def mend(group, rank):
    group.net.hosts[rank].drop_no_more()
