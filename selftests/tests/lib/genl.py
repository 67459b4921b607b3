# SPDX-License-Identifier: GPL-2.0
"""Generic netlink by uapi/ored.yaml: messages are dictionaries, by its names."""
import contextlib
import errno
import ipaddress
import os
import socket
import struct

import yaml

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../..")
SPEC = os.path.join(TOP, "uapi/ored.yaml")

NETLINK_GENERIC = 16
SOL_NETLINK = 270
ADD_MEMBERSHIP, EXT_ACK, CAP_ACK, STRICT_CHK = 1, 11, 10, 12
REQUEST, ACK, DUMP = 1, 4, 0x300
MULTI, DUMP_INTR, CAPPED, ACK_TLVS = 2, 0x10, 0x100, 0x200
ERROR, DONE = 2, 3
GENL_CTRL = 16
GETFAMILY, GETPOLICY = 3, 10
NESTED, TYPE_MASK = 0x8000, 0x3fff
MESSAGE = 1	# NLMSGERR_ATTR_MSG
SIZES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}

with open(SPEC, encoding="utf-8") as _file:
    spec = yaml.safe_load(_file)
spaces = {space["name"]: space["attributes"] for space in spec["attribute-sets"]}
numbers = {op["name"]: i for i, op in enumerate(spec["operations"]["list"], 1)}
names = {number: name for name, number in numbers.items()}
enums = {d["name"]: d["entries"] for d in spec["definitions"]}


def makes_sentences():
    """Whether this kernel's refusals can hold more than fixed words: since 6.3."""
    major, minor = os.uname().release.split(".")[:2]
    return (int(major), int(minor)) >= (6, 3)


class Refused(OSError):
    """errno and the kernel's sentence about it."""


def attribute(kind, value):
    raw = struct.pack("HH", 4 + len(value), kind) + value
    return raw + bytes(-len(raw) % 4)


def attributes(raw):
    """(type, value) of each attribute in raw."""
    while len(raw) >= 4:
        size, kind = struct.unpack_from("HH", raw)
        assert 4 <= size <= len(raw), f"an attribute of {size} bytes in {len(raw)}"
        yield kind & TYPE_MASK, raw[4:size]
        raw = raw[(size + 3) & ~3:]
    assert not raw, "bytes behind the last attribute"


def encode_value(attr, value):
    kind = attr["type"]
    if kind == "nest":
        return encode(attr["nested-attributes"], value)
    if kind == "flag":
        return b""
    if isinstance(value, bytes):
        return value
    if attr.get("display-hint") in ("ipv4", "ipv6"):
        return ipaddress.ip_address(value).packed
    if isinstance(value, str):
        value = enums[attr["enum"]].index(value)
    return struct.pack(SIZES[kind], value)


def encode(space, values):
    """values by name; of one that may come several times a list."""
    raw = b""
    for name, value in values.items():
        number, attr = next((i, a) for i, a in enumerate(spaces[space], 1)
                            if a["name"] == name)
        nested = NESTED if attr["type"] == "nest" else 0
        for one in value if isinstance(value, list) else [value]:
            raw += attribute(number | nested, encode_value(attr, one))
    return raw


def decode_value(attr, raw):
    kind = attr["type"]
    if kind == "nest":
        return decode(attr["nested-attributes"], raw)
    if kind == "flag":
        return True
    if attr.get("display-hint") in ("ipv4", "ipv6"):
        return str(ipaddress.ip_address(raw))
    if kind == "binary":
        return raw
    value, = struct.unpack(SIZES[kind], raw)
    return enums[attr["enum"]][value] if "enum" in attr else value


def decode(space, raw):
    """By name; an attribute that the specification hasn't got is an error."""
    values = {}
    for number, value in attributes(raw):
        attr = spaces[space][number - 1]
        if attr["type"] != "pad":
            assert attr["name"] not in values, f"{attr['name']} comes twice"
            values[attr["name"]] = decode_value(attr, value)
    return values


def reply_names(name, how):
    """The attributes that the specification allows in an answer or event."""
    op = spec["operations"]["list"][numbers[name] - 1]
    if "event" in op:
        return op["event"]["attributes"]
    if "notify" in op:
        return reply_names(op["notify"], "do")
    return op[how]["reply"]["attributes"]


class Genl:
    """A socket in this namespace, or in host's."""

    def __init__(self, host=None, seconds=60):
        with host or contextlib.nullcontext():
            self.sock = socket.socket(socket.AF_NETLINK,
                                      socket.SOCK_RAW | socket.SOCK_CLOEXEC,
                                      NETLINK_GENERIC)
        self.sock.bind((0, 0))
        self.sock.settimeout(seconds)
        for option in (EXT_ACK, CAP_ACK, STRICT_CHK):
            self.sock.setsockopt(SOL_NETLINK, option, 1)
        self.seq = 0
        self.inconsistent = False
        self.find_family()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def find_family(self):
        self.family, self.events = GENL_CTRL, None
        answer = self.exchange(GETFAMILY, attribute(2, b"ored\0"), ACK)
        for kind, value in attributes(answer[0][1]):
            if kind == 1:
                self.family, = struct.unpack("H", value)
            elif kind == 7:
                for _, group in attributes(value):
                    parts = dict(attributes(group))
                    if parts[1] == b"events\0":
                        self.events, = struct.unpack("I", parts[2])

    def send(self, command, payload, flags, version=1):
        self.seq += 1
        body = struct.pack("BBH", command, version, 0) + payload
        self.sock.send(struct.pack("IHHII", 16 + len(body), self.family,
                                   REQUEST | flags, self.seq, 0) + body)

    def messages(self):
        """(type, flags, seq, payload) of a datagram."""
        raw = self.sock.recv(1 << 17)
        while raw:
            size, kind, flags, seq, _ = struct.unpack_from("IHHII", raw)
            yield kind, flags, seq, raw[16:size]
            raw = raw[(size + 3) & ~3:]

    def exchange(self, command, payload, flags):
        """(command, attributes) of all answers."""
        self.send(command, payload, flags)
        self.inconsistent = False
        answers = []
        while True:
            for kind, got, seq, raw in self.messages():
                if seq != self.seq:
                    continue
                self.inconsistent |= bool(got & DUMP_INTR)
                if kind == ERROR:
                    self.check(raw, got)
                    return answers
                if kind == DONE:
                    self.check(raw[:4], 0)
                    return answers
                answers.append((raw[0], raw[4:]))

    def check(self, raw, flags):
        code, = struct.unpack_from("i", raw)
        if not code:
            return
        said = b""
        if flags & ACK_TLVS:
            said = dict(attributes(raw[20:])).get(MESSAGE, b"")
        raise Refused(-code, said.rstrip(b"\0").decode())

    def ask(self, name, raw=None, flags=ACK, **values):
        """One command; what comes back, each message a dictionary."""
        how = "dump" if flags & DUMP == DUMP else "do"
        values = {key.replace("_", "-"): value for key, value in values.items()}
        payload = encode("main", values) if raw is None else raw
        answers = []
        for command, attrs in self.exchange(numbers[name], payload, flags):
            assert command == numbers[name], f"{names[command]} answers {name}"
            answers.append(decode("main", attrs))
            extra = set(answers[-1]) - set(reply_names(name, how))
            assert not extra, f"{name} answers with {extra}"
        return answers

    def do(self, name, **values):
        """The one answer of a command, or None."""
        answers = self.ask(name, **values)
        assert len(answers) <= 1, answers
        return answers[0] if answers else None

    def dump(self, name, **values):
        return self.ask(name, flags=DUMP, **values)

    def listen(self):
        self.sock.setsockopt(SOL_NETLINK, ADD_MEMBERSHIP, self.events)

    def next_event(self, seconds=30):
        """(name, values) of the next event."""
        self.sock.settimeout(seconds)
        (kind, _, _, raw), = self.messages()
        assert kind == self.family, kind
        name, values = names[raw[0]], decode("main", raw[4:])
        extra = set(values) - set(reply_names(name, "do"))
        assert not extra, f"{name} tells {extra}"
        return name, values


@contextlib.contextmanager
def refused(code, words=""):
    """The block is refused with that errno and a sentence that has the words."""
    try:
        yield
    except OSError as error:
        name = errno.errorcode.get(error.errno)
        assert error.errno == code, f"{name} ({error}) instead of {errno.errorcode[code]}"
        assert words.lower() in error.strerror.lower(), f"no {words!r} in {error.strerror!r}"
        assert not words or len(error.strerror) > 8, error
        return
    raise AssertionError(f"accepted instead of {errno.errorcode[code]}")
