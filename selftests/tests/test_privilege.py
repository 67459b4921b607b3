#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""Who may join: CAP_NET_ADMIN, or whom an administrator has named."""
import errno
import re
import resource
import subprocess

from lib import abi, raw, tap
from lib.netns import CLONE_NEWNET, call, libc
from lib.sockets import Socket, finish_join, join_value, peer, refused
from lib.users import OTHER, USER, as_user

PEERS = [peer("127.0.0.1", 5000), peer("127.0.0.1", 5001)]
CLONE_NEWUSER = 0x10000000
PR_SET_DUMPABLE = 4


def address(group, rank, epoch=0, **fields):
    return abi.SockaddrOred(sored_family=abi.FAMILY_DEFAULT, sored_group=group,
                            sored_rank=rank, sored_epoch=epoch, **fields)


def setup(sock, group, uid=abi.ANYONE, epoch=1, peers=None, **fields):
    sock.set(abi.SETUP, join_value(peers or PEERS[:1], group=group, uid=uid,
                                   epoch=epoch, **{"port": 5000, **fields}))


def teardown(sock, group, epoch=1):
    sock.set(abi.TEARDOWN, join_value([], group=group, epoch=epoch))


def test_unprivileged_join():
    """Anybody may have a socket; joining and setting up need the capability."""
    def child():
        with Socket() as sock:
            assert sock.group().state == abi.STATE_NEW
            with refused(errno.EPERM, sock, "CAP_NET_ADMIN"):
                sock.join(join_value(PEERS, port=5000))
            with refused(errno.EPERM, sock, "CAP_NET_ADMIN"):
                setup(sock, 1)
            with refused(errno.EPERM, sock, "CAP_NET_ADMIN"):
                teardown(sock, 1)
    assert as_user(USER, child)


def test_permission_comes_before_arguments():
    """An unprivileged caller learns nothing and allocates nothing."""
    def child():
        with Socket() as sock, refused(errno.EPERM, sock):
            sock.join(join_value(PEERS, port=5000, bucket_max=1 << 30, depth=16))
    assert as_user(USER, child)


def use(group, epoch=0, rank=0):
    with Socket() as sock:
        raw.bind(sock, address(group, rank, epoch))
        assert sock.group().state == abi.STATE_JOINED
        sock.send(b"\0\0\x80\x3f")
        assert sock.take(4) == b"\0\0\x80\x3f"


def test_bind_by_the_named_user():
    with Socket() as admin:
        setup(admin, 1, uid=USER)
        assert as_user(USER, lambda: use(1))
        assert as_user(USER, lambda: use(1, epoch=1))

        def refuse():
            with Socket() as sock, refused(errno.EPERM, sock):
                raw.bind(sock, address(1, 0))
        assert as_user(OTHER, refuse)
        with Socket() as sock, refused(errno.EPERM, sock):
            raw.bind(sock, address(1, 0))	# root is just another user here
        teardown(admin, 1)


def test_bind_by_anyone():
    with Socket() as admin:
        setup(admin, 1)
        assert as_user(USER, lambda: use(1))
        assert as_user(OTHER, lambda: use(1))
        teardown(admin, 1)


def may_lock(bytes_):
    resource.setrlimit(resource.RLIMIT_MEMLOCK,
                       (bytes_, resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]))


def need(group):
    """Bytes that a rank of the group is charged, as the refusal tells."""
    may_lock(0)
    with Socket() as sock:
        with refused(errno.ENOMEM, sock, "leaves this user 0 of 0"):
            raw.bind(sock, address(group, 0))
        return int(re.search(r"needs (\d+) bytes", sock.error())[1])


def test_locked_memory():
    """RLIMIT_MEMLOCK counts all groups of a user, and what one gives back."""
    def child():
        large, small, page = need(1), need(3), resource.getpagesize()
        limit = (large + small + page) // page * page
        assert small + page < large, "both large groups would fit"
        may_lock(limit)
        with Socket() as one, Socket() as two:
            raw.bind(one, address(1, 0))
            with refused(errno.ENOMEM, two, ("RLIMIT_MEMLOCK", large, limit)):
                raw.bind(two, address(2, 0))
            assert two.group().state == abi.STATE_NEW
            raw.bind(two, address(3, 0))
        use_in_time(2)
    with Socket() as admin:
        for group, bucket in ((1, 1 << 18), (2, 1 << 18), (3, 1 << 14)):
            setup(admin, group, bucket_max=bucket)
        try:
            assert as_user(USER, child)
        finally:
            for group in (1, 2, 3):
                teardown(admin, group)


def test_slots_are_charged():
    """To whoever joins, and the refusal tells the need with them."""
    def child():
        assert need(2) - need(1) == 3 * (1 << 16)
    with Socket() as admin:
        setup(admin, 1, bucket_max=1 << 16, depth=2)
        setup(admin, 2, bucket_max=1 << 16, depth=2, flags=abi.JOIN_SLOTS)
        try:
            assert as_user(USER, child)
        finally:
            teardown(admin, 1)
            teardown(admin, 2)


def use_in_time(group):
    """What a closed socket was charged is given back a little later."""
    def usable():
        try:
            use(group)
        except OSError as error:
            assert error.errno == errno.ENOMEM, error
            return False
        return True
    tap.wait_for(usable, 5, "memory to be given back")


def test_two_ranks():
    """Unprivileged ranks of one group over the loopback."""
    with Socket() as admin:
        setup(admin, 5, peers=PEERS, bucket_max=4096)

        def child():
            with Socket() as one, Socket() as two:
                for rank, sock in enumerate((one, two)):
                    sock.nonblocking()
                    with refused(errno.EINPROGRESS):
                        raw.bind(sock, address(5, rank))
                for sock in (one, two):
                    finish_join(sock)
                    sock.nonblocking(False)
                    sock.send(b"\0\0\x80\x3f")
                assert one.take(4) == two.take(4) == b"\0\0\x00\x40"
        assert as_user(USER, child)
        teardown(admin, 5)


def test_newest_epoch():
    """Epoch 0 in an address is the newest that was set up."""
    with Socket() as admin:
        for epoch in (3, 9, 4):
            setup(admin, 1, epoch=epoch)
        with Socket() as sock:
            raw.bind(sock, address(1, 0))
            assert sock.group().epoch == 9
        with Socket() as sock:
            raw.bind(sock, address(1, 0, epoch=4))
            assert sock.group().epoch == 4
        for epoch in (3, 9, 4):
            teardown(admin, 1, epoch)
        with Socket() as sock, refused(errno.ENOENT, sock):
            raw.bind(sock, address(1, 0))


def test_setup_twice():
    with Socket() as admin:
        setup(admin, 1)
        with refused(errno.EEXIST, admin):
            setup(admin, 1)
        setup(admin, 1, epoch=2)
        setup(admin, 2)
        for group, epoch in ((1, 1), (1, 2), (2, 1)):
            teardown(admin, group, epoch)
        with refused(errno.ENOENT, admin):
            teardown(admin, 1)


def test_setup_checks_its_arguments():
    with Socket() as admin:
        for fields, code in (({"rank": 1, "nranks": 1}, errno.EINVAL),
                             ({"rank": 1, "peers": PEERS}, errno.EINVAL),
                             ({"depth": 0}, errno.EINVAL),
                             ({"bucket_max": 12}, errno.EINVAL),
                             ({"bucket_max": 1 << 31}, errno.EMSGSIZE),
                             ({"reserved": (0, 1, 0, 0)}, errno.EINVAL)):
            with refused(code, admin):
                setup(admin, 1, **fields)
        with refused(errno.ENOENT, admin):
            teardown(admin, 1)


def test_joined_sockets_stay():
    with Socket() as admin, Socket() as sock:
        setup(admin, 1)
        raw.bind(sock, address(1, 0))
        teardown(admin, 1)
        sock.send(b"\0\0\x80\x3f")
        assert sock.take(4) == b"\0\0\x80\x3f"
        with Socket() as late, refused(errno.ENOENT, late):
            raw.bind(late, address(1, 0))


def test_setup_outlives_its_socket():
    with Socket() as admin:
        setup(admin, 1)
    use(1)
    with Socket() as admin:
        teardown(admin, 1)


def test_too_many():
    """The namespace's limit is ENOSPC; tearing down makes room."""
    with Socket() as admin:
        count = 0
        try:
            while count < 100000:
                setup(admin, count)
                count += 1
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
            assert admin.error()
        tap.note(f"{count} groups fit")
        assert 16 <= count < 100000
        teardown(admin, 0)
        setup(admin, 0)
        for group in range(count):
            teardown(admin, group)


def test_bad_addresses():
    with Socket() as admin:
        setup(admin, 1)
        for name, code in ((address(1, 1), errno.EINVAL),
                           (address(2, 0), errno.ENOENT),
                           (address(1, 0, epoch=7), errno.ENOENT),
                           (address(1, 0, sored_flags=1), errno.EINVAL),
                           (address(1, 0, sored_reserved=1), errno.EINVAL)):
            with Socket() as sock:
                with refused(code, sock):
                    raw.bind(sock, name)
                assert sock.group().state == abi.STATE_NEW
        wrong = address(1, 0)
        wrong.sored_family = 2
        with Socket() as sock, refused(errno.EAFNOSUPPORT, sock):
            raw.bind(sock, wrong)
        for length in (0, 2, 8, 23):
            with Socket() as sock, refused(errno.EINVAL, sock):
                raw.bind(sock, address(1, 0), length)
        with Socket() as sock, refused(errno.EFAULT):
            raw.checked(raw.libc.bind(sock.fileno(), raw.BAD, 24))
        with Socket() as sock:
            raw.bind(sock, address(1, 0))
            with refused(errno.EISCONN, sock):
                raw.bind(sock, address(1, 0))
        teardown(admin, 1)


def test_user_namespace():
    """Root of a user namespace of one's own may join in a network of his own,
    but not in that of somebody else."""
    def child():
        with Socket() as outside:
            call(libc.prctl, PR_SET_DUMPABLE, 1, 0, 0, 0)	# for uid_map
            call(libc.unshare, CLONE_NEWUSER | CLONE_NEWNET)
            with open("/proc/self/uid_map", "w") as file:
                file.write(f"0 {USER} 1")
            with refused(errno.EPERM, outside):
                outside.join(join_value(PEERS[:1], port=5000))
            subprocess.run(["/usr/sbin/ip", "link", "set", "lo", "up"], check=True)
            with Socket() as inside:
                with refused(errno.EINVAL, inside, OTHER):
                    setup(inside, 1, uid=OTHER)		# who is nobody in here
                setup(inside, 1, uid=0)
                teardown(inside, 1)
                inside.join(join_value(PEERS[:1], port=5000))
                assert inside.group().state == abi.STATE_JOINED
    assert as_user(USER, child)


tap.main(globals())
