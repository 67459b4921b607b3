#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=debug
"""Checkpoints that other hosts keep copies of: shapes, networks, refusals."""
import errno

from lib import abi, areas, tap
from lib.areas import Area
from lib.copies import (
    DELAY, check_all, cut, fails, holders, hosts_with, made, mend, save_all, seen, state,
    until)
from lib.sockets import Ranks


@tap.cases((3, 2), (5, 3))
def test_placements(ranks, copies):
    with hosts_with(ranks, size=70000, copies=copies) as group:
        save_all(group, 1, 70000)
        check_all(group, 1, 70000)


def test_ring_with_jump():
    with hosts_with(4, size=70000, placement=abi.PLACE_RING, jump=2) as group:
        save_all(group, 5, 70000)
        check_all(group, 5, 70000)
        assert [a.conf().owner for a in holders(group, 0)] == [2]


@tap.cases(1, 344, 65537)
def test_lengths(size):
    with hosts_with(size=max(size, 2)) as group:
        group.areas[0].save(3, state(0, 3, size))
        group.areas[0].wait(3)
        assert seen(group.areas[1], 0, 3) == state(0, 3, size)


@tap.cases(576, 65535)
def test_mtus(mtu):
    with hosts_with(mtu=mtu, offloads=True, netem=None) as group:
        save_all(group, 1)
        check_all(group, 1)


@tap.cases("loss 20%", "duplicate 20%", "delay 1ms 800us reorder 20% 50%",
           "corrupt 5%")
def test_bad_network(how):
    with hosts_with() as group:
        group.net.netem(how if how.startswith("delay") else f"{DELAY} {how}")
        save_all(group, 1)
        check_all(group, 1)
        tap.note({n: group.total(n) for n in ("rx_data", "duplicate", "bad_chunk", "tx_packets")})


def test_a_fresh_owner():
    """Who has lost his memory doesn't take it from others too by beginning anew."""
    with hosts_with() as group:
        own, keeper = group.areas
        for step in (8, 9):
            own.save(step, state(0, step))
            own.wait(step)
        areas.remove("ckpt", group.net.hosts[0])
        with made(group.net.hosts[0], 0, 2) as own:
            own.save(1, state(0, 1))
            with fails(own, errno.EEXIST, "rank 1", "roll back first"):
                own.wait(1)
            assert keeper.steps() == [9, 8]
            own.roll_back(0)
            own.save(9, state(0, 9))
            own.wait(9)
            assert seen(keeper, 0, 9) == state(0, 9)


def test_what_was_had_is_not_sent_again():
    with hosts_with() as group:
        own, keeper = group.areas
        own.save(9, state(0, 9))
        own.wait(9)
        areas.remove("ckpt", group.net.hosts[0])
        before = group.total("rx_data")
        with made(group.net.hosts[0], 0, 2) as own:
            own.save(9, state(0, 9))
            own.wait(9)
        assert group.total("rx_data") == before
        assert keeper.steps() == [9]


def test_sealed_by_digest_alone():
    """What was changed after the commit isn't taken for what was committed."""
    with hosts_with() as group:
        own, keeper = group.areas
        own.save(1, state(0, 1))
        own.wait(1)
        cut(group, 1)
        mapping = own.save(2, state(0, 2), flags=abi.COMMIT_DIGEST_ONLY)
        mapping[100000] = b"!"
        mend(group, 1)
        with fails(own, errno.EBADMSG, "not what was sealed"):
            own.wait(2)
        assert keeper.steps() == [1]
        mapping[100000] = state(0, 2)[100000:100001]
        until(lambda: own.status().complete == 2)
        assert seen(keeper, 0, 2) == state(0, 2)


@tap.cases("bytes", "placement", "jump")
def test_another_shape(field):
    with hosts_with(3, size=70000) as group:
        areas.remove("ckpt", group.net.hosts[1])
        fields = {"bytes": {"size": 70001}, "placement": {"placement": abi.PLACE_RING},
                  "jump": {"jump": 2}}[field]
        with made(group.net.hosts[1], 1, 3, **{"size": 70000, **fields}):
            group.areas[0].save(1, state(0, 1, 70000))
            with fails(group.areas[0], errno.EINVAL, "another shape"):
                group.areas[0].wait(1)


def test_no_area_yet():
    with hosts_with() as group:
        areas.remove("ckpt", group.net.hosts[1])
        group.areas[0].save(1, state(0, 1))
        group.areas[0].limit(0.2)
        with fails(group.areas[0], errno.EAGAIN, "not complete yet"):
            group.areas[0].wait(1)
        group.areas[0].limit(20)
        with made(group.net.hosts[1], 1, 2) as keeper:
            group.areas[0].wait(1)
            assert seen(keeper, 0, 1) == state(0, 1)


def test_one_area_for_a_rank():
    with hosts_with() as group:
        try:
            Area("other", group.net.hosts[0], bytes=9, group=1, owner=0, nranks=2, copies=2)
        except OSError as error:
            assert error.errno == errno.EEXIST and "ckpt" in error.strerror, error
        else:
            raise AssertionError("there may be two")
        Area("third", group.net.hosts[0], bytes=9, group=2, owner=0, nranks=2).remove()


def test_a_new_holder():
    """Whoever joins in the place of a holder that was lost gets copies again."""
    with hosts_with() as group:
        save_all(group, 1)
        check_all(group, 1)
        areas.remove("ckpt", group.net.hosts[1])
        group.close()
        with made(group.net.hosts[1], 1, 2) as fresh, Ranks(group.net.hosts):
            until(lambda: fresh.steps() == [1])
            assert seen(fresh, 0, 1) == state(0, 1)
            until(lambda: group.areas[0].status().acked[0] == 3)


tap.main(globals())
