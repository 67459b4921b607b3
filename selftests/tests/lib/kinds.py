# SPDX-License-Identifier: GPL-2.0
"""Collectives: what each rank gives, and what it must get.

Elements are small whole numbers, so that their sums are exact in every dtype, and
none is zero, so that what is missing can be told from what isn't.
"""
import numpy

from . import abi

DTYPES = {"f32": abi.F32, "f64": abi.F64, "f16": abi.F16, "bf16": abi.BF16,
          "i32": abi.I32, "i64": abi.I64}
NUMPY = {"f32": "f4", "f64": "f8", "f16": "f2", "bf16": "u2", "i32": "i4", "i64": "i8"}
KINDS = {"allreduce": abi.ALLREDUCE, "reduce-scatter": abi.REDUCE_SCATTER,
         "all-gather": abi.ALL_GATHER, "broadcast": abi.BROADCAST,
         "barrier": abi.BARRIER}


def encode(name, numbers):
    """Whole numbers as bytes of a dtype."""
    if name == "bf16":
        return (numbers.astype("f4").view("u4") >> 16).astype("u2").tobytes()
    return numbers.astype(NUMPY[name]).tobytes()


def numbers_of(rank, count, op=0):
    return 1 + (numpy.arange(count) * 5 + 7 * rank + 3 * op) % 23


class Case:
    """One op of one kind: what ranks give and get."""

    def __init__(self, kind, nranks, count, dtype="f32", root=0, number=0, **op):
        self.kind, self.nranks, self.count, self.dtype = kind, nranks, count, dtype
        self.root, self.number = root, number
        self.size = numpy.dtype(NUMPY[dtype]).itemsize
        self.numbers = [numbers_of(r, count, number) for r in range(nranks)]
        fields = {"kind": KINDS[kind], **op}
        if kind != "barrier":
            fields["dtype"] = DTYPES[dtype]
        if kind == "broadcast":
            fields["root"] = root
        if kind == "all-gather":
            fields["length"] = count * self.size
        self.op = abi.Op(**fields)

    def shard(self, rank, numbers):
        """As numpy.array_split() deals them out."""
        return numpy.array_split(numbers, self.nranks)[rank]

    def place(self, rank):
        """Where a shard is in the bucket: a slice of elements"""
        sizes = [len(x) for x in numpy.array_split(numpy.arange(self.count), self.nranks)]
        start = sum(sizes[:rank])
        return slice(start, start + sizes[rank])

    def gives(self, rank):
        if self.kind == "barrier":
            return b""
        numbers = self.numbers[rank]
        if self.kind == "all-gather":
            numbers = self.shard(rank, numbers)
        return encode(self.dtype, numbers)

    def gets(self, rank):
        if self.kind == "barrier":
            return self.number.to_bytes(8, "little")
        if self.kind == "broadcast":
            return encode(self.dtype, self.numbers[self.root])
        if self.kind == "all-gather":
            return encode(self.dtype, numpy.concatenate(
                [self.shard(r, self.numbers[r]) for r in range(self.nranks)]))
        total = sum(self.numbers)
        if self.kind == "reduce-scatter":
            total = self.shard(rank, total)
        return encode(self.dtype, total)

    def send(self, sock, rank):
        bucket = self.gives(rank)
        sent = sock.sendmsg([bucket], [(abi.SOL_ORED, abi.OP, bytes(self.op))])
        assert sent == len(bucket), f"send returned {sent} of {len(bucket)}"

    def __str__(self):
        root = f" from {self.root}" if self.kind == "broadcast" else ""
        return f"{self.kind}{root} of {self.count} {self.dtype}, {self.nranks} ranks"
