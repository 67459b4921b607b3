# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""What may be given to the kernel: whole, contiguous memory, or nothing.

A strided view would have to be copied, and then the caller's array isn't what
gets written; so it is refused rather than half served.
"""
from __future__ import annotations

import sys
from typing import Any, List, Optional, Tuple

from . import abi

# The format of the buffer protocol, by kind and size, to a dtype's name
_FORMATS = {("f", 4): "f32", ("f", 8): "f64", ("f", 2): "f16",
            ("i", 4): "i32", ("i", 8): "i64"}
_HOST_ORDER = "<" if sys.byteorder == "little" else ">"
_KINDS = {"e": "f", "f": "f", "d": "f", "i": "i", "l": "i", "q": "i"}


def readable(array: Any, dtype: Optional[str]) -> Tuple[memoryview, str]:
    """The bytes of @array and the name of its dtype."""
    view = memoryview(array)
    if not view.nbytes:
        raise ValueError("the array is empty: there is nothing to reduce")
    if not view.c_contiguous:
        raise ValueError("the array isn't C-contiguous (a strided or transposed"
                         " view): reduce a copy, numpy.ascontiguousarray()")
    name = dtype or _dtype(view)
    if name not in abi.DTYPES:
        raise ValueError(f"dtype is {name!r}: one of {', '.join(abi.DTYPES)}")
    if view.nbytes % abi.DTYPE_SIZES[name]:
        raise ValueError(f"{view.nbytes} bytes are no whole number of {name}")
    return _flat(view), name


def writable(array: Any, dtype: Optional[str]) -> Tuple[memoryview, str]:
    """Like readable(), for what is written to as well."""
    view, name = readable(array, dtype)
    if view.readonly:
        raise ValueError("the array is read-only: its result can't be stored")
    return view, name


def contiguous(array: Any) -> memoryview:
    """The bytes of @array, whatever its dtype."""
    view = memoryview(array)
    if not view.c_contiguous:
        raise ValueError("the array isn't C-contiguous (a strided or transposed"
                         " view): save a copy")
    return _flat(view)


def target(array: Any) -> memoryview:
    """The bytes of @array, whatever its dtype, to be written to."""
    view = memoryview(array)
    if not view.c_contiguous:
        raise ValueError("the array isn't C-contiguous (a strided or transposed"
                         " view): receive into a copy")
    if view.readonly:
        raise ValueError("the array is read-only: a result can't be stored")
    return _flat(view)


def _dtype(view: memoryview) -> str:
    """Names what the buffer protocol says the elements are."""
    order, code = view.format[:-1], view.format[-1:]
    kind = _KINDS.get(code)
    if order not in ("", "@", "=", _HOST_ORDER) or not kind:
        raise ValueError(
            f"elements of format {view.format!r} can't be reduced: float32 in "
            "host byte order can, or say dtype= for what the bytes are")
    return _FORMATS[kind, view.itemsize]


def pieces(view: memoryview, nbytes: int) -> List[memoryview]:
    """@view, of bytes, cut in parts of @nbytes, a multiple of 8."""
    return [view[i:i + nbytes] for i in range(0, len(view), nbytes)]


def _flat(view: memoryview) -> memoryview:
    """Bytes in one dimension; cast() refuses views without any."""
    return view.cast("B") if view.nbytes else view
