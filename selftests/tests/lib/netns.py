# SPDX-License-Identifier: GPL-2.0
"""Hosts as network namespaces around a switch, without names.

A namespace lives as long as its descriptor or a socket in it, so a test that
dies leaves nothing behind. `with host:` moves the calling thread into it;
sockets and processes made there stay there.
"""
import contextlib
import ctypes
import os
import socket
import subprocess
import threading
import time

SIX_LINK = ["link set eth0 addrgenmode none"]
CLONE_NEWNET = 0x40000000
OWN = "/proc/thread-self/ns/net"
libc = ctypes.CDLL(None, use_errno=True)
entered = threading.local()	# namespaces are a thread's: where it came from


def call(function, *arguments):
    if function(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{function.__name__}: {os.strerror(error)}")


def live():
    """Network namespaces that live; the shrinking makes the number exact.

    On debug kernels, which have a slab for nothing else.
    """
    slab = "/sys/kernel/slab/net_namespace"
    with open(f"{slab}/shrink", "w") as file:
        file.write("1")
    with open(f"{slab}/objects") as file:
        return int(file.read().split()[0])


class Namespace:
    """loopback: whether to bring lo up at once."""

    def __init__(self, loopback=True):
        own = os.open(OWN, os.O_RDONLY | os.O_CLOEXEC)
        try:
            call(libc.unshare, CLONE_NEWNET)
            self.fd = os.open(OWN, os.O_RDONLY | os.O_CLOEXEC)
        finally:
            call(libc.setns, own, CLONE_NEWNET)
            os.close(own)
        self.path = f"/proc/{os.getpid()}/fd/{self.fd}"
        if loopback:
            self.ip("link set lo up")

    def __enter__(self):
        before = os.open(OWN, os.O_RDONLY | os.O_CLOEXEC)
        entered.stack = getattr(entered, "stack", []) + [before]
        call(libc.setns, self.fd, CLONE_NEWNET)
        return self

    def __exit__(self, *_):
        before = entered.stack.pop()
        call(libc.setns, before, CLONE_NEWNET)
        os.close(before)

    # Commands go by their full paths: each look into a folder that hasn't got
    # them makes the guest wait for the host, and lets virtual time run on.
    def run(self, *command, text=None):
        """Runs a command inside; its failure is an error with its output."""
        with self:
            done = subprocess.run(command, input=text, text=True, check=False,
                                  capture_output=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}\n"
                               f"{text or ''}")
        return done.stdout

    def ip(self, *lines):
        self.run("/usr/sbin/ip", "-batch", "-", text="\n".join(lines) + "\n")

    def tc(self, *lines):
        self.run("/usr/sbin/tc", "-batch", "-", text="\n".join(lines) + "\n")

    def drop(self, hook, match):
        """Packets that match are dropped at that hook, silently."""
        self.run("/usr/sbin/nft", "-f", "-", text=f"""
            table inet hole {{
                chain {hook} {{
                    type filter hook {hook} priority 0;
                    {match} drop;
                }}
            }}
            """)

    def drop_no_more(self):
        self.run("/usr/sbin/nft", "delete", "table", "inet", "hole")

    def sysctl(self, name, value):
        with self, open("/proc/sys/" + name.replace(".", "/"), "w") as file:
            file.write(str(value))

    def inode(self):
        """By which tracepoints name it."""
        return os.fstat(self.fd).st_ino

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class Host(Namespace):
    """eth0 on the switch; address and address6 are its own."""

    def __init__(self, index):
        super().__init__(loopback=False)
        self.address = f"10.77.0.{index + 1}"
        self.address6 = f"fd77::{index + 1:x}"
        self.local6 = f"fe80::77:{index + 1:x}"

    def addresses6(self):
        """Commands; without waiting for the detection of duplicates."""
        return [f"addr add {a}/64 dev eth0 nodad" for a in (self.address6, self.local6)]

    def netem(self, options):
        """What the host's egress does to packets, as tc-netem(8) says it."""
        self.tc(f"qdisc replace dev eth0 root netem {options}")

    def offloads(self, on):
        """Segmentation and checksums in the device, or all in the stack."""
        word = "on" if on else "off"
        self.run("/usr/sbin/ethtool", "-K", "eth0", "tx-checksumming", word,
                 "scatter-gather", word, "generic-segmentation-offload", word,
                 "tx-udp-segmentation", word)

    def ifindex(self):
        with self:
            return socket.if_nametoindex("eth0")


class Network:
    """count hosts and a switch between them.

    A port of the switch drops what is longer than its MTU and says nothing, as
    Ethernet does; but it lets trains pass whole. netem loses and doubles whole
    trains. So anything with netem, or with ports of another MTU than the hosts',
    should be used with offloads=False.
    """

    def __init__(self, count, mtu=1500, netem=None, offloads=True):
        # All hosts share the backlog of one processor.
        with open("/proc/sys/net/core/netdev_max_backlog", "w") as file:
            file.write("20000")
        self.switch = Namespace(loopback=False)
        self.hosts = [Host(i) for i in range(count)]
        self.switch.ip(
            "link add br0 mtu 65535 type bridge forward_delay 0 mcast_snooping 0",
            "link set br0 up",
            *[f"link add p{i} mtu {mtu} type veth peer name eth0 mtu {mtu}"
              f" netns {h.path}" for i, h in enumerate(self.hosts)],
            *[f"link set p{i} master br0 up" for i in range(count)])
        for host in self.hosts:
            host.ip("link set lo up", *(SIX_LINK if mtu >= 1280 else ()),
                    "link set eth0 up",
                    f"addr add {host.address}/24 dev eth0",
                    *(host.addresses6() if mtu >= 1280 else ()))
            if not offloads:
                host.offloads(False)
            if netem:
                host.netem(netem)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def netem(self, options):
        for host in self.hosts:
            host.netem(options)

    def port_mtu(self, index, mtu):
        """The switch's side only: a host doesn't see it."""
        self.switch.ip(f"link set p{index} mtu {mtu}")

    def close(self):
        """In virtual time idle time costs nothing: till a second has passed the kernel
        takes the hosts down, on the processor that the next case's share."""
        for namespace in [*self.hosts, self.switch]:
            namespace.close()
        if "virtual-time" in os.environ["ORED_VM"]:
            time.sleep(1)


pool = {}


@contextlib.contextmanager
def shared(count):
    """A plain Network that other cases use as well: leave it as it is."""
    if count not in pool:
        pool[count] = Network(count)
    yield pool[count]


def close_shared():
    while pool:
        pool.popitem()[1].close()


def warm_up():
    """Does once what networks need, before any clock is looked at.

    In virtual time the clock runs freely while a program or a kernel module is
    read for the first time.
    """
    with Network(1, netem="delay 1ms", offloads=False) as net:
        net.switch.tc("qdisc add dev p0 root tbf rate 1gbit burst 9000 limit 9000")
        net.switch.drop("input", "meta l4proto udp")
