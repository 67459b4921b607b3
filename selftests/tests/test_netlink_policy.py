#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time
"""What the module takes by netlink is what uapi/ored.yaml says: the kernel tells its
policies, and each attribute of each command is compared with the specification."""
import struct

from lib import genl, tap
from lib.genl import Genl

# Kernel's names of types in enum netlink_attribute_type
TYPES = {1: "flag", 2: "u8", 3: "u16", 4: "u32", 5: "u64", 10: "binary", 13: "nest"}
TYPE, MIN_U, MAX_U, MIN_LEN, MAX_LEN, POLICY_IDX = 1, 4, 5, 6, 7, 8
DO, DUMP = 1, 2
LIMITS = {"u8": 0xff, "u16": 0xffff, "u32": 0xffffffff, "u64": (1 << 64) - 1}


def number(raw):
    return int.from_bytes(raw, "little")


def read_policies(sock):
    """({command: {"do"|"dump": table}}, {table: {attribute: its details}})."""
    family, sock.family = sock.family, genl.GENL_CTRL
    answers = sock.exchange(genl.GETPOLICY,
                            genl.attribute(1, struct.pack("H", family)), genl.DUMP)
    sock.family = family
    commands, tables = {}, {}
    for _, raw in answers:
        for kind, value in genl.attributes(raw):
            if kind == 8:
                for table, entries in genl.attributes(value):
                    for attr, details in genl.attributes(entries):
                        tables.setdefault(table, {})[attr] = dict(genl.attributes(details))
            elif kind == 9:
                for command, entries in genl.attributes(value):
                    commands[command] = {k: number(v) for k, v in genl.attributes(entries)}
    return commands, tables


def check_range(where, attr, told):
    """The range of an attribute, as it is told and as it is specified."""
    checks = attr.get("checks", {})
    if "exact-len" in checks:
        length = checks["exact-len"]
        assert number(told[MIN_LEN]) == number(told[MAX_LEN]) == length, where
        return
    kind = attr["type"]
    if kind not in LIMITS or "byte-order" in attr:
        return
    low, high = number(told[MIN_U]), number(told[MAX_U])
    assert low == checks.get("min", 0), f"{where}: {low} to {high}"
    assert high == checks.get("max", LIMITS[kind]), f"{where}: {low} to {high}"


def check_table(where, tables, table, space, wanted):
    """The attributes that a command, or a nest, takes: those and no others."""
    took = {genl.spaces[space][i - 1]["name"]: told
            for i, told in tables[table].items() if TYPES.get(number(told[TYPE]))}
    assert set(took) == set(wanted), f"{where}: takes {sorted(took)}, not {sorted(wanted)}"
    for attr in genl.spaces[space]:
        if attr["name"] not in took:
            continue
        told, here = took[attr["name"]], f"{where}: {attr['name']}"
        assert TYPES[number(told[TYPE])] == attr["type"], here
        check_range(here, attr, told)


def nested(tables, table, space, name):
    index = next(i for i, a in enumerate(genl.spaces[space], 1) if a["name"] == name)
    return number(tables[table][index][POLICY_IDX])


def test_commands():
    with Genl() as sock:
        commands, tables = read_policies(sock)
    want = {n: op for n, op in enumerate(genl.spec["operations"]["list"], 1)
            if "do" in op or "dump" in op}
    assert set(commands) == set(want), commands
    for command, op in want.items():
        assert set(commands[command]) == {k for k, how in ((DO, "do"), (DUMP, "dump"))
                                          if how in op}, op["name"]
        for kind, how in ((DO, "do"), (DUMP, "dump")):
            if how not in op:
                continue
            names = op[how]["request"]["attributes"]
            # One policy serves both: a dump of peers looks away from `peer`.
            if op["name"] == "peer-get":
                names = op["do"]["request"]["attributes"]
            check_table(f"{op['name']} {how}", tables, commands[command][kind],
                        op["attribute-set"], names)


def test_nests():
    with Genl() as sock:
        commands, tables = read_policies(sock)
    for name in ("group-new", "group-set"):
        table = commands[genl.numbers[name]][DO]
        check_table("policy", tables, nested(tables, table, "main", "policy"), "policy",
                    [a["name"] for a in genl.spaces["policy"]])
    table = commands[genl.numbers["group-new"]][DO]
    check_table("peer", tables, nested(tables, table, "main", "peer"), "peer",
                ["addr4", "addr6", "port", "scope-id"])
    table = commands[genl.numbers["peer-get"]][DO]
    check_table("one peer", tables, nested(tables, table, "main", "peer"), "peer", ["rank"])


tap.main(globals())
