#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Prints lib/abi.py as calls of C macros, for test_abi.c to compare with the header."""
from lib import abi

for name, kind in abi.STRUCTURES.items():
    print(f"SIZE({name}, {abi.sizeof(kind)})")
    end = 0
    for field, _ in kind._fields_:
        where = getattr(kind, field)
        # Fields without gaps: the header can't have one that isn't here.
        assert where.offset == end, f"hole before {name}.{field}"
        end = where.offset + where.size
        print(f"FIELD({name}, {field}, {where.offset}, {where.size})")
    assert end == abi.sizeof(kind), f"hole at the end of {name}"

for name, value in vars(abi).items():
    if name.isupper() and isinstance(value, int):
        full = name if name.startswith("SOL_") else "ORED_" + name
        # As C compares them: long long
        print(f"NUMBER({full}, {value - (1 << 64) if value >> 63 else value})")

for value, name in enumerate((*abi.COUNTERS, "max")):
    print(f"NUMBER(ORED_CNT_{name.upper()}, {value})")
