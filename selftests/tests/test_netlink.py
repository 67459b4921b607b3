#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""The netlink family: every command, what it refuses and why, and events."""
import errno
import socket
import struct
import time

from lib import abi, genl, raw, tap
from lib.genl import DUMP, Genl, refused
from lib.netns import Namespace, shared
from lib.sockets import Ranks, Socket, contribution, join_value, peer
from lib.users import USER, as_user

LOCAL = [{"addr4": "127.0.0.1"}]
TWO = [{"addr4": "10.77.0.1"}, {"addr4": "10.77.0.2", "port": 5001}]
SHORT_NAMES = [name for name in abi.COUNTERS if not name.startswith("ns_")]


def new(sock, group=1, peers=None, **values):
    sock.do("group-new", **{"group": group, "epoch": 1, "bucket_max": 4096,
                            "peer": peers or LOCAL, **values})


def test_group_round_trip():
    """What was set up is told again, defaults included."""
    with Namespace() as space, Genl() as sock:
        new(sock, 7, TWO, epoch=3, depth=2, payload_max=1000, uid=USER,
            policy={"loss-skip": 20000, "mode": "reliable"})
        got = sock.do("group-get", group=7, epoch=3)
        policy = got.pop("policy")
        assert got == {"group": 7, "epoch": 3, "nranks": 2, "depth": 2,
                       "bucket-max": 4096, "timeout-ms": abi.TIMEOUT_DEFAULT,
                       "port": abi.PORT_DEFAULT, "payload-max": 1000, "uid": USER,
                       "setup": True}, got
        assert policy["loss-skip"] == 20000 and policy["mode"] == "reliable"
        assert not policy["loss-halt"], "a zero stands for the default"
        assert [p["peer"] for p in sock.dump("peer-get")] == [
            {"rank": 0, "addr4": "10.77.0.1", "port": abi.PORT_DEFAULT},
            {"rank": 1, "addr4": "10.77.0.2", "port": 5001}]
        sock.do("group-del", group=7, epoch=3)
        assert sock.dump("group-get") == [] and sock.dump("peer-get") == []
    space.close()


def test_timeout_and_port():
    """The group's port is that of all ranks but those with one of their own."""
    with Namespace() as space, Genl() as sock:
        new(sock, 7, TWO, timeout_ms=4321, port=5000)
        got = sock.do("group-get", group=7)
        assert (got["timeout-ms"], got["port"]) == (4321, 5000), got
        assert [p["peer"]["port"] for p in sock.dump("peer-get")] == [5000, 5001]
    space.close()


def test_newest_epoch():
    with Namespace() as space, Genl() as sock:
        for epoch in (2, 9, 4):
            new(sock, epoch=epoch)
        assert sock.do("group-get", group=1)["epoch"] == 9
        assert [g["epoch"] for g in sock.dump("group-get", group=1)] == [2, 9, 4]
        assert [g["epoch"] for g in sock.dump("group-get", epoch=4)] == [4]
        assert sock.dump("group-get", group=2) == []
    space.close()


def test_ipv6_peers():
    with Namespace() as space, Genl() as sock:
        new(sock, peers=[{"addr6": "fd77::1"}, {"addr6": "fe80::1", "scope-id": 1}])
        first, second = [p["peer"] for p in sock.dump("peer-get")]
        assert first["addr6"] == "fd77::1" and "scope-id" not in first
        assert second["addr6"] == "fe80::1" and second["scope-id"] == 1
    space.close()


def test_users_bind_to_what_was_set_up():
    """A policy that was set up with it is theirs."""
    def child():
        with Socket() as sock:
            raw.bind(sock, abi.SockaddrOred(sored_family=abi.FAMILY_DEFAULT,
                                            sored_group=5, sored_epoch=1))
            policy = sock.get(abi.POLICY, abi.Policy)
            assert (policy.loss_skip, policy.mode) == (777, abi.MODE_RELIABLE)
            assert policy.loss_halt == 500000
    with Namespace() as space, Genl() as sock:
        new(sock, 5, uid=USER, policy={"loss-skip": 777, "mode": "reliable"})
        assert as_user(USER, child)
        sock.do("group-set", group=5, policy={"loss-skip": 0, "mode": 0})
        policy = sock.do("group-get", group=5)["policy"]
        assert policy["loss-skip"] == 0 and policy["mode"] == "default"
    space.close()


GOOD = {"group": 1, "epoch": 1, "bucket_max": 4096, "peer": LOCAL}


@tap.cases(
    ("no-group", {"group": None}, errno.EINVAL, "id is missing"),
    ("no-peers", {"peer": None}, errno.EINVAL, "peers are missing"),
    ("no-bucket", {"bucket_max": None}, errno.EINVAL, "bucket-max"),
    ("odd-bucket", {"bucket_max": 12}, errno.EINVAL, "multiple of 8"),
    ("empty-bucket", {"bucket_max": 0}, errno.ERANGE, "out of range"),
    ("large-bucket", {"bucket_max": (1 << 30) + 8}, errno.ERANGE, "out of range"),
    ("depth-0", {"depth": 0}, errno.ERANGE, "out of range"),
    ("depth-17", {"depth": 17}, errno.ERANGE, "out of range"),
    ("port-0", {"port": 0}, errno.ERANGE, "out of range"),
    ("timeout-0", {"timeout_ms": 0}, errno.ERANGE, "out of range"),
    ("payload", {"payload_max": 511}, errno.ERANGE, "out of range"),
    ("no-address", {"peer": [{}]}, errno.EINVAL, "one address"),
    ("two-addresses", {"peer": [{"addr4": "10.0.0.1", "addr6": "::1"}]}, errno.EINVAL,
     "one address"),
    ("short-address", {"peer": [{"addr6": b"\0" * 15}]}, errno.ERANGE, "out of range"),
    ("peer-rank", {"peer": [{"addr4": "10.0.0.1", "rank": 0}]}, errno.EINVAL,
     "Unsupported"),
    ("many-ranks", {"peer": LOCAL * 257}, errno.EINVAL, "at most 256"),
    ("rank", {"rank": 0}, errno.EINVAL, "Unsupported"),
    ("loss", {"policy": {"loss-skip": 1000001}}, errno.ERANGE, "out of range"),
    ("mode", {"policy": {"mode": 3}}, errno.ERANGE, "out of range"),
    ("min-ranks", {"policy": {"min-ranks": 2}}, errno.EINVAL, "policy|min_ranks"),
    ("warmup", {"policy": {"warmup": 4}}, errno.EINVAL, "policy|warmup"),
    ("floor", {"policy": {"floor": 9000000}}, errno.EINVAL, "policy|floor"))
def test_new_refused(_name, change, code, words):
    """Nothing is left of what is refused, and there is a sentence about it."""
    values = {k: v for k, v in {**GOOD, **change}.items() if v is not None}
    with Namespace() as space, Genl() as sock:
        plain, _, made = words.partition("|")
        with refused(code, made if made and genl.makes_sentences() else plain):
            sock.do("group-new", **values)
        assert sock.dump("group-get") == []
    space.close()


def test_set_up_twice_and_too_often():
    with Namespace() as space, Genl() as sock:
        for group in range(256):
            new(sock, group)
        with refused(errno.EEXIST, "set up already"):
            new(sock, 3)
        with refused(errno.ENOSPC, "groups are set up"):
            new(sock, 256)
        assert len(sock.dump("group-get")) == 256
        with refused(errno.ENOENT, "not set up"):
            sock.do("group-del", group=256, epoch=1)
        with refused(errno.ENOENT, "not set up"):
            sock.do("group-get", group=256)
    space.close()


def test_ranks_and_peers():
    """Ranks that run here, as getsockopt() knows them; theirs is what they sent."""
    with shared(2) as net, Ranks(net.hosts, group=3, bucket_max=1 << 16) as group:
        group.allreduce(1 << 14)
        time.sleep(1)	# until nothing is on its way any more
        for rank, host in enumerate(net.hosts):
            with Genl(host) as sock:
                listed, = sock.dump("group-get")
                own = group[rank].group()
                assert listed == sock.do("group-get", group=3, rank=rank)
                assert listed["state"] == "joined" and listed["rank"] == rank
                for name in ("nranks", "depth", "epoch", "payload", "header", "posted",
                             "finished", "received", "memory", "port"):
                    assert listed[name] == getattr(own, name), name
                assert listed["bucket-max"] == own.bucket_max and listed["session"]
                me, other = [p["peer"] for p in sock.dump("peer-get")][::1 - 2 * rank]
                assert me["rank"] == rank and "sent" not in me
                state = group[rank].peers()[1 - rank]
                assert other["addr4"] == net.hosts[1 - rank].address
                assert other["status"] == "live" and other["sent"] == state.sent > 0
                assert other["srtt-us"] and other["path-payload"] == own.payload
                one = sock.do("peer-get", group=3, peer={"rank": 1 - rank})
                assert one["peer"]["sent"] == state.sent and one["rank"] == rank


def test_stats():
    """The counters of the socket, a rank's and the namespace's apart."""
    with shared(2) as net, Ranks(net.hosts, group=3, bucket_max=1 << 16) as group:
        group.allreduce(1 << 14)
        time.sleep(1)	# until nothing is on its way any more
        with Genl(net.hosts[0]) as sock:
            of_net, of_rank = sock.dump("stat-get")
            assert sorted(of_net["stats"]) == sorted(
                name.replace("_", "-") for name in abi.COUNTERS if name.startswith("ns_"))
            own = group[0].stats()
            for name in SHORT_NAMES:
                assert of_rank["stats"][name.replace("_", "-")] == own[name], name
            assert own["rx_data"] and of_rank["rank"] == 0
            assert sock.do("stat-get", group=3)["stats"] == of_rank["stats"]
            assert "group" not in sock.do("stat-get")
            with refused(errno.EINVAL, "id is missing"):
                sock.do("stat-get", rank=0)


def test_several_ranks_in_a_namespace():
    with Namespace() as space, Ranks([None, None], group=4) as _, Genl() as sock:
        assert [g["rank"] for g in sock.dump("group-get")] == [0, 1]
        assert [g["rank"] for g in sock.dump("group-get", rank=1)] == [1]
        assert len(sock.dump("peer-get")) == 4
        with refused(errno.EINVAL, "name one"):
            sock.do("stat-get", group=4)
        with refused(errno.ENOENT, "no such rank"):
            sock.do("group-get", group=4, rank=2)
        with refused(errno.ENOENT, "no such rank"):
            sock.do("peer-get", group=4, rank=0, peer={"rank": 2})
        with refused(errno.EINVAL, "which peer"):
            sock.do("peer-get", group=4, rank=0)
    space.close()


def test_set_policy():
    """Of one rank or all, and none of it if any of it makes no sense."""
    with Namespace() as space, Ranks([None, None], group=4) as group, Genl() as sock:
        def halts():
            return [s.get(abi.POLICY, abi.Policy).loss_halt for s in group]
        sock.do("group-set", group=4, rank=1, policy={"loss-halt": 600000})
        assert halts() == [500000, 600000]
        sock.do("group-set", group=4, policy={"loss-halt": 700000, "wait-ppm": 1})
        assert halts() == [700000] * 2
        assert sock.dump("group-get")[0]["policy"]["wait-ppm"] == 1
        sock.do("group-set", group=4, policy={"loss-halt": 0})
        assert halts() == [500000] * 2, "0 is the default"
        with refused(errno.EINVAL):
            sock.do("group-set", group=4, policy={"loss-halt": 1, "min-ranks": 3})
        assert halts() == [500000] * 2
        with refused(errno.ENOENT, "no such rank"):
            sock.do("group-set", group=5, policy={"loss-halt": 1})
        with refused(errno.EINVAL, "what to set"):
            sock.do("group-set", group=4)
    space.close()


def test_unprivileged():
    """Anybody may look, but sees no session; nothing else."""
    def child():
        with Genl() as sock:
            setup, rank = sock.dump("group-get")
            assert setup["setup"] and "session" not in rank, rank
            assert "session" not in sock.do("group-get", group=4, rank=0)
            assert len(sock.dump("peer-get")) == 2 and len(sock.dump("stat-get")) == 2
            with refused(errno.EPERM):
                new(sock, 9)
            with refused(errno.EPERM):
                sock.do("group-del", group=1, epoch=1)
            with refused(errno.EPERM):
                sock.do("group-set", group=4, policy={"loss-halt": 1})
            # What can be bound to is no secret; nor is what happens.
            sock.listen()
    with Namespace() as space, Ranks([None], group=4), Genl() as sock:
        new(sock)
        assert as_user(USER, child)
        assert "session" in sock.do("group-get", group=4, rank=0)
    space.close()


def test_namespaces_are_apart():
    with Namespace() as one, Namespace() as two:
        with Genl(one) as first, Genl(two) as second, Genl(two) as listener:
            new(first)
            assert second.dump("group-get") == []
            with refused(errno.ENOENT):
                second.do("group-del", group=1, epoch=1)
            listener.listen()
            first.do("group-del", group=1, epoch=1)
            new(second, 8)
            name, event = listener.next_event()
            assert (name, event["group"]) == ("group-new-ntf", 8)
    one.close()
    two.close()


def test_events_of_groups():
    with Namespace() as space, Genl() as listener, Genl() as sock, Socket() as admin:
        listener.listen()
        new(sock, 6, uid=USER)
        sock.do("group-set", group=6, policy={"loss-halt": 600000})
        sock.do("group-del", group=6, epoch=1)
        admin.set(abi.SETUP, join_value([peer("127.0.0.1")], group=7))
        for name, group in (("group-new-ntf", 6), ("policy-ntf", 6), ("group-del-ntf", 6),
                            ("group-new-ntf", 7)):
            got, event = listener.next_event()
            assert (got, event["group"]) == (name, group), (got, event)
    space.close()


def next_of(listener, name):
    """The next event of that name; others in between don't matter."""
    while True:
        got, event = listener.next_event()
        if got == name:
            return event


def test_events_of_ranks():
    """Joining, a changed policy, and leaving; peers see it too."""
    with shared(2) as net, Genl(net.hosts[0]) as listener:
        listener.listen()
        with Ranks(net.hosts, group=3) as group:
            joined = next_of(listener, "rank-joined-ntf")
            assert (joined["group"], joined["rank"], joined["state"]) == (3, 0, "joined")
            assert "session" not in joined
            group[0].set(abi.POLICY, bytes(abi.Policy(loss_skip=5)))
            assert next_of(listener, "policy-ntf")["policy"]["loss-skip"] == 5
            group[1].shutdown(socket.SHUT_RDWR)
            left = next_of(listener, "peer-ntf")["peer"]
            assert (left["rank"], left["status"]) == (1, "left")
        event = next_of(listener, "rank-left-ntf")
        assert (event["group"], event["rank"], event["state"]) == (3, 0, "left")


def test_events_of_peers():
    """One that doesn't post stalls, and is live again when it does; ops that ended
    without it say what is missing."""
    with shared(2) as net, Genl(net.hosts[0]) as listener:
        with Ranks(net.hosts, group=3, mode=abi.MODE_BOUNDED, bucket_max=4096) as group:
            listener.listen()
            for op in range(4):
                sent = contribution(0, 64, op)
                group[0].set(abi.OP, abi.Op(deadline_us=200000))
                group[0].send(sent)
                group[0].take(len(sent))
            missing = next_of(listener, "op-ntf")["op"]
            assert missing["op"] == 0 and missing["loss-ppm"] == 1000000, missing
            assert struct.unpack("4Q", missing["missing"]) == (2, 0, 0, 0), missing
            assert 0 < missing["elapsed-ns"] <= missing["bound-ns"], missing
            assert missing["limit"] != "none" and missing["bytes"] == 256, missing
            stalled = next_of(listener, "peer-ntf")["peer"]
            assert (stalled["rank"], stalled["status"]) == (1, "stalled"), stalled
            for op in range(4):
                group[1].send(contribution(1, 64, op))
                group[1].take(256)
            back = next_of(listener, "peer-ntf")["peer"]
            assert (back["rank"], back["status"]) == (1, "live"), back


def test_strict():
    """What isn't known is refused, and so is what isn't said as it should be."""
    with Namespace() as space, Genl() as sock:
        number = len(genl.spaces["main"]) + 1
        for payload in (genl.attribute(number, b""), genl.attribute(1, b""),
                        genl.attribute(2, b"\0\0\0"), genl.attribute(2, b"\0" * 8),
                        genl.encode("main", {"group": 1}) + b"\xff\xff\0\0",
                        genl.encode("main", {"group": 1}) + b"\1\0\0\0"):
            for flags in (genl.ACK, DUMP):
                with refused(errno.EINVAL):
                    sock.ask("group-get", raw=payload, flags=flags)
        with refused(errno.EINVAL):
            # A nest without its flag.
            sock.ask("group-new", raw=genl.attribute(13, b""))
        with refused(errno.EOPNOTSUPP):
            sock.exchange(99, b"", genl.ACK)
    space.close()


if __name__ == "__main__":
    tap.main(globals())
