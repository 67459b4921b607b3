#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The Python package's arguments, layouts and results, without the module.

Usage: test_python.py LAYOUT, LAYOUT being the compiled layout.c.
"""
import array
import ctypes
import errno
import os
import socket
import struct
import subprocess
import sys
import unittest

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
import ored  # noqa: E402
from ored import abi, address, buffer, error, group, state  # noqa: E402

LAYOUT = None


class Layout(unittest.TestCase):
    def test_equals_the_header(self):
        out = subprocess.run([LAYOUT], check=True, capture_output=True,
                             text=True).stdout
        header = {name: int(value) for name, value in
                  (line.split() for line in out.splitlines())}
        ours = {name.lower(): getattr(abi, name[5:].upper() + "_STRUCT").size
                for name in header if name.startswith("ored_")}
        for name in header:
            if name.startswith("ORED_"):
                ours[name] = getattr(abi, name[5:], None)
        ours["SOL_ORED"] = abi.SOL_ORED
        ours["ORED_CNT_MAX"] = len(abi.COUNTERS)
        ours["ORED_PEER_STALLED"] = abi.PEER_STATUSES.index("stalled")
        self.assertEqual(ours, header)


class Address(unittest.TestCase):
    V4, V6 = socket.AF_INET, socket.AF_INET6

    def test_good(self):
        for peer, family, port, scope, text in (
                ("10.0.0.1", self.V4, 0, 0, "10.0.0.1"),
                ("10.0.0.1:5000", self.V4, 5000, 0, "10.0.0.1"),
                (("10.0.0.1", 5000), self.V4, 5000, 0, "10.0.0.1"),
                ("::1", self.V6, 0, 0, "::1"),
                ("[::1]", self.V6, 0, 0, "::1"),
                ("[::1]:5000", self.V6, 5000, 0, "::1"),
                (("::1", 0), self.V6, 0, 0, "::1"),
                ("::ffff:10.0.0.1", self.V4, 0, 0, "10.0.0.1"),
                ("[::ffff:10.0.0.1]:7", self.V4, 7, 0, "10.0.0.1"),
                ("fe80::1%lo", self.V6, 0, 1, "fe80::1"),
                ("[fe80::1%1]:5000", self.V6, 5000, 1, "fe80::1"),
                ("fd00::1%lo", self.V6, 0, 0, "fd00::1")):
            with self.subTest(peer=peer):
                got = abi.PEER_STRUCT.unpack(address.pack(peer))
                addr = socket.inet_pton(family, text).ljust(16, b"\0")
                self.assertEqual(got, (family, port, scope, addr))

    def test_bad(self):
        for peer in ("", "node-b", "node-b:5000", "10.0.0", "10.0.0.256",
                     "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536",
                     "10.0.0.1:-1", "10.0.0.1:5x", " 10.0.0.1", "10.0.0.1\0",
                     "[10.0.0.1]:5000", "[::1", "[::1]5000", "[::1]:",
                     "::1]:5000", "[]", "fe80::1", "fe80::1%", "fe80::1%0",
                     "fe80::1%nosuch0", "fe80::1%4294967296", "%lo",
                     ("10.0.0.1", -1), ("10.0.0.1", 65536)):
            with self.subTest(peer=peer), self.assertRaises(ValueError) as e:
                address.pack(peer)
            self.assertIn("peer", str(e.exception))


class Buffer(unittest.TestCase):
    def test_good(self):
        for obj, dtype in (
                (numpy.zeros(3, numpy.float32), "f32"),
                (numpy.zeros((2, 3), numpy.float32), "f32"),
                (numpy.array(1, numpy.float32), "f32"),
                (numpy.zeros(3, numpy.float64), "f64"),
                (numpy.zeros(3, numpy.float16), "f16"),
                (numpy.zeros(3, numpy.int32), "i32"),
                (numpy.zeros(3, numpy.int64), "i64"),
                (array.array("f", [1, 2]), "f32"),
                ((ctypes.c_float * 3)(), "f32"),
                ((ctypes.c_float * 3 * 2)(), "f32")):
            with self.subTest(obj=repr(obj)):
                view, name = buffer.writable(obj, None)
                self.assertEqual((name, view.nbytes, len(view)),
                                 (dtype, memoryview(obj).nbytes,
                                  memoryview(obj).nbytes))

    def test_same_memory(self):
        a = numpy.zeros((2, 3), numpy.float32)
        buffer.writable(a, None)[0][:4] = struct.pack("f", 7)
        self.assertEqual(a[0, 0], 7)

    def test_dtype_said(self):
        self.assertEqual(buffer.writable(bytearray(8), "f32")[1], "f32")
        self.assertEqual(
            buffer.writable(numpy.zeros(3, numpy.uint16), "bf16")[1], "bf16")

    def test_refused(self):
        read_only = numpy.zeros(3, numpy.float32)
        read_only.setflags(write=False)
        square = numpy.zeros((2, 2), numpy.float32)
        cube = numpy.arange(24, dtype=numpy.float32).reshape(4, 3, 2)
        for obj, dtype, reason in (
                (square[:, 0], None, "contiguous"),
                (cube.transpose(0, 2, 1), None, "contiguous"),
                (cube[::-1], None, "contiguous"),
                (numpy.asfortranarray(numpy.ones((2, 3), "f4")), None,
                 "contiguous"),
                (read_only, None, "read-only"),
                (b"1234", "f32", "read-only"),
                (numpy.zeros(0, numpy.float32), None, "empty"),
                (numpy.zeros((4, 0), numpy.float32), None, "empty"),
                (bytearray(), "f32", "empty"),
                (bytearray(8), None, "format"),
                (numpy.zeros(3, ">f4"), None, "byte order"),
                (numpy.zeros(3, numpy.uint32), None, "format"),
                (numpy.zeros(3, numpy.complex64), None, "format"),
                (bytearray(6), "f32", "6 bytes"),
                (bytearray(8), "f8", "one of f32")):
            with self.subTest(obj=repr(obj), dtype=dtype):
                with self.assertRaisesRegex(ValueError, reason):
                    buffer.writable(obj, dtype)
        with self.assertRaises(TypeError):
            buffer.writable([1.0, 2.0], None)

    def test_read_only_may_be_posted(self):
        self.assertEqual(buffer.readable(b"1234", "f32")[1], "f32")

    def test_target(self):
        self.assertEqual(buffer.target(bytearray(5)).nbytes, 5)
        with self.assertRaisesRegex(ValueError, "read-only"):
            buffer.target(b"1234")
        with self.assertRaisesRegex(ValueError, "contiguous"):
            buffer.target(numpy.zeros((2, 2))[:, 0])

    def test_pieces(self):
        for nbytes, lengths in ((4, [4]), (8, [8]), (12, [8, 4]),
                                (16, [8, 8]), (20, [8, 8, 4])):
            data = bytes(range(nbytes))
            parts = buffer.pieces(memoryview(data), 8)
            self.assertEqual([len(p) for p in parts], lengths)
            self.assertEqual(b"".join(parts), data)


class Arguments(unittest.TestCase):
    """Refused before a socket is made."""

    PEERS = ("127.0.0.1",)

    def test_group(self):
        for options in ({"rank": -1}, {"rank": 1 << 32}, {"port": 65536},
                        {"port": -1}, {"group": 1 << 32}, {"epoch": 1 << 64},
                        {"epoch": -1}, {"bucket_max": -8}, {"depth": -1},
                        {"timeout": 0}, {"timeout": -1},
                        {"timeout": float("inf")}, {"timeout": float("nan")}):
            with self.subTest(**options), self.assertRaises(ValueError):
                ored.Group(**{"rank": 0, "peers": self.PEERS, **options})

    def test_op(self):
        for op, dtype, mode in (("avg", "f32", "default"),
                                ("sum", "f32", "fast")):
            with self.assertRaisesRegex(ValueError, "one of"):
                group._parameters(op, dtype, mode)

    def test_env(self):
        good = {"ORED_RANK": "0", "ORED_PEERS": "127.0.0.1"}
        for change, reason in (
                ({"ORED_RANK": None}, "ORED_RANK isn't set"),
                ({"ORED_PEERS": None}, "ORED_PEERS isn't set"),
                ({"ORED_RANK": ""}, "ORED_RANK is ''"),
                ({"ORED_RANK": "-1"}, "ORED_RANK is '-1'"),
                ({"ORED_SIZE": "2"}, "ORED_SIZE is 2"),
                ({"ORED_PORT": "x"}, "ORED_PORT is 'x'"),
                ({"ORED_PORT": "65536"}, "out of range"),
                ({"ORED_PEERS": "127.0.0.1,"}, "peer ''")):
            env = {k: v for k, v in {**good, **change}.items()
                   if v is not None}
            with self.subTest(**env):
                with self.assertRaisesRegex(ValueError, reason):
                    ored.from_env(env)

    def test_errors(self):
        e = error.own(errno.EAFNOSUPPORT)
        self.assertIsInstance(e, OSError)
        self.assertEqual(e.errno, errno.EAFNOSUPPORT)
        self.assertIn("modprobe ored", e.strerror)
        self.assertTrue(issubclass(ored.Timeout, TimeoutError))
        self.assertTrue(issubclass(ored.Timeout, ored.Error))


class State(unittest.TestCase):
    @staticmethod
    def result(**fields):
        values = dict(op=0, elapsed=0, bytes=0, error=0, limit=0, verdict=0,
                      bound=0, behind=0, flags=0, field=0, duplicates=0, resent=0,
                      hadamard=0)
        values.update({f"s{i}": 0 for i in range(4)})
        values.update({f"g{i}": 0 for i in range(4)})
        values.update({f"c{i}": 0 for i in range(abi.RANK_WORDS)})
        values.update({f"m{i}": 0 for i in range(abi.RANK_WORDS)})
        values.update(rank0=0, rank1=0, value0=0, value1=0)
        values.update(fields)
        v = values
        return abi.RESULT_STRUCT.pack(
            v["op"], v["elapsed"], v["bytes"],
            *(v[f"s{i}"] for i in range(4)), *(v[f"g{i}"] for i in range(4)),
            *(v[f"c{i}"] for i in range(abi.RANK_WORDS)),
            *(v[f"m{i}"] for i in range(abi.RANK_WORDS)),
            v["error"], v["limit"], v["verdict"], 0, 0, 0, 0, v["flags"],
            v["bound"], v["behind"], v["field"], v["rank0"], v["rank1"], v["value0"],
            v["value1"], v["duplicates"], v["resent"], v["hadamard"])

    def test_runs(self):
        for bits, want in ((0, []), (1, [(0, 8)]), (0b1011, [(0, 16), (24, 32)]),
                           (1 << 70 | 3 << 62, [(496, 512), (560, 568)])):
            with self.subTest(bits=bits):
                self.assertEqual([(s.start, s.stop) for s in state.runs(bits, 8)],
                                 want)

    def test_result(self):
        r = state.parse_result(self.result(
            op=7, elapsed=1_500_000_000, bytes=400, s0=1, s1=2, s2=3, s3=4,
            g0=5, g3=8, c0=0b101, c3=1 << 63, m1=1, limit=2, verdict=1,
            bound=2_000_000, behind=3, flags=3, duplicates=9, resent=10,
            hadamard=2_500_000_000))
        self.assertEqual((r.op, r.ops, r.bytes, r.elapsed), (7, 1, 400, 1.5))
        self.assertEqual(r.contributed, (0, 2, 255))
        self.assertEqual(r.missing, (64,))
        self.assertEqual(r.scatter, ored.Stage(1, 2, 3, 4))
        self.assertEqual(r.gather, ored.Stage(5, 0, 0, 8))
        self.assertEqual((r.limit, r.verdict, r.bound, r.behind),
                         ("early", "partial", 2.0, 3))
        self.assertIs(r.resync, True)
        self.assertEqual((r.hadamard, r.hadamard_time), (True, 2.5))
        self.assertEqual((r.duplicates, r.resent, r.differ), (9, 10, ()))
        self.assertFalse(r.ok)

    def test_result_of_a_mismatch(self):
        r = state.parse_result(self.result(
            error=errno.EPROTO, field=1, rank0=0, rank1=3, value0=400,
            value1=800))
        self.assertEqual((r.differ, r.values), ((0, 3), (400, 800)))
        self.assertFalse(r.ok)

    def test_shorter_and_longer(self):
        whole = self.result(op=7, resent=1)
        self.assertEqual(state.parse_result(whole[:8]).op, 7)
        self.assertEqual(state.parse_result(whole[:8]).resent, 0)
        self.assertEqual(state.parse_result(whole + bytes(8)).resent, 1)

    def test_merge(self):
        a = state.parse_result(self.result(op=4, bytes=8, c0=7, limit=1))
        b = state.parse_result(self.result(op=5, bytes=4, c0=3, m0=4, limit=3,
                                           verdict=2, resent=2, flags=3, hadamard=10**9))
        m = state.merge_results([a, b], 1.25)
        self.assertEqual((m.op, m.ops, m.bytes, m.elapsed), (4, 2, 12, 1.25))
        self.assertEqual((m.contributed, m.missing), ((0, 1), (2,)))
        self.assertEqual((m.limit, m.verdict, m.resent), ("hard", "skip", 2))
        self.assertTrue(m.resync and not a.resync)
        self.assertTrue(m.hadamard and not a.hadamard)
        self.assertEqual(m.hadamard_time, 1)
        self.assertIs(state.merge_results([a], 9), a)

    def test_group(self):
        data = abi.GROUP_STRUCT.pack(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
                                     13, 14, 15, 10, 17, 18, 19)
        g = state.parse_group(data)
        self.assertEqual((g.abi, g.state, g.port, g.memory, g.in_flight),
                         (1, "joined", 11, 17, 4))

    def test_peers(self):
        one = abi.PEER_STATE_STRUCT.pack(0, 2, 1, 2, 1500, 250, *range(3, 11))
        never = abi.PEER_STATE_STRUCT.pack(1, 0, 0, 0, (1 << 64) - 1, 0,
                                           *[0] * 8)
        stalled = abi.PEER_STATE_STRUCT.pack(2, 6, *[0] * 12)
        live, silent, stopped = state.parse_peers(one + never + stalled)
        self.assertEqual(stopped.status, "stalled")
        self.assertEqual((live.status, live.heard, live.srtt),
                         ("live", 0.0015, 0.00025))
        self.assertEqual((silent.status, silent.heard, silent.srtt),
                         ("unknown", None, None))


class Tap(unittest.TextTestResult):
    """Prints TAP instead of dots."""

    count = 0

    def _print(self, test, passed):
        Tap.count += 1
        name = ".".join(test.id().split(".")[-2:])
        print(f"{'' if passed else 'not '}ok {Tap.count} - {name}")

    def addSuccess(self, test):
        super().addSuccess(test)
        # Failed subtests were counted; their test is reported once, by them
        self._print(test, True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._print(test, False)

    def addError(self, test, err):
        super().addError(test, err)
        self._print(test, False)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self._print(test, False)


if __name__ == "__main__":
    LAYOUT = sys.argv.pop(1)
    runner = unittest.TextTestRunner(verbosity=0, resultclass=Tap)
    suite = unittest.defaultTestLoader.loadTestsFromModule(
        sys.modules[__name__])
    passed = runner.run(suite).wasSuccessful()
    print(f"1..{Tap.count}")
    sys.exit(not passed)
