# SPDX-License-Identifier: GPL-2.0
"""uapi/linux/ored.h once more, in ctypes.

Written by hand and not generated: test_abi.py compares it with the header
field by field, so a change of the ABI shows up as a failing test.
"""
from ctypes import Structure, c_uint8, c_uint16, c_uint32, c_uint64, sizeof

ABI_VERSION = 1
FAMILY_DEFAULT = 18
SOL_ORED = 300
MAX_RANKS = 256
MAX_DEPTH = 16
MAX_BUCKET = 1 << 30
PORT_DEFAULT = 4741
TIMEOUT_DEFAULT = 30000
ERROR_MAX = 256
RANK_WORDS = MAX_RANKS // 64
ANYONE = 0xffffffff

PROTO_REDUCE, PROTO_CKPT = 0, 1

(JOIN, SETUP, TEARDOWN, OP, RESULT, RESULTS, ERROR, GROUP, PEERS, STATS,
 POLICY, UNCOUNTED, RESULT_OF) = range(1, 14)
TELL_AGAIN = 30
(AREA_OPEN, AREA_REMOVE, AREA_COMMIT, AREA_ABORT, AREA_STATUS, AREA_READ,
 AREA_NEWEST, AREA_ROLL_BACK, AREA_WAIT, AREA_GENERATIONS,
 AREA_LIST) = range(32, 43)
AREA_NAME_MAX, AREA_META_MAX, AREA_BLOCK = 64, 256, 65536
AREA_BYTES_MAX = 1 << 40
AREA_CREATE, AREA_EXCLUSIVE, AREA_READONLY, AREA_HUGE = 1, 2, 4, 8
PLACE_GROUP, PLACE_RING = range(2)
COMMIT_DIGEST_ONLY = 1
GENERATION_COMPLETE, GENERATION_DIGEST_ONLY = 1, 2
ANY_HOLDER = 0xffffffff
NO_STEP = 0xffffffffffffffff

JOIN_KEY, JOIN_SLOTS = 1, 2

ALLREDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, BARRIER = range(5)
F32, F64, F16, BF16, I32, I64 = range(6)
SUM, MEAN, MIN, MAX = range(4)
MODE_DEFAULT, MODE_BOUNDED, MODE_RELIABLE = range(3)
OP_SLOT, OP_MISSING_ZERO, OP_HADAMARD_ON, OP_HADAMARD_OFF, OP_NO_WAIT = (
    1, 2, 4, 8, 16)
DEADLINE_LOSS, DEADLINE_P95 = range(2)
INCAST_ALL, INCAST_ADAPT = range(2)
(HADAMARD_DEFAULT, HADAMARD_AUTO, HADAMARD_ON, HADAMARD_OFF) = range(4)
WAIT_NONE = 0xffffffff
RESULT_RESYNC, RESULT_HADAMARD = 1, 2

LIMIT_NONE, LIMIT_COMPLETE, LIMIT_EARLY, LIMIT_HARD, LIMIT_BEHIND = range(5)
VERDICT_OK, VERDICT_PARTIAL, VERDICT_SKIP, VERDICT_HALT = range(4)
(FIELD_NONE, FIELD_BYTES, FIELD_DTYPE, FIELD_REDUCTION, FIELD_KIND,
 FIELD_MODE, FIELD_HADAMARD, FIELD_ROOT) = range(8)

STATE_NEW, STATE_JOINING, STATE_JOINED, STATE_FAILED, STATE_LEFT = range(5)
(PEER_UNKNOWN, PEER_HEARD, PEER_LIVE, PEER_SILENT, PEER_LEFT,
 PEER_REFUSED, PEER_STALLED) = range(7)

COUNTERS = (
    "rx_packets", "rx_data", "tx_packets", "tx_trains", "tx_dropped",
    "resent", "duplicate", "late", "ahead", "mismatch", "bad_source",
    "bad_chunk", "bad_control", "path_shrunk", "nomem", "ns_short",
    "ns_version", "ns_type", "ns_session", "ns_group", "ns_epoch")


class SockaddrOred(Structure):
    _fields_ = [("sored_family", c_uint16), ("sored_flags", c_uint16),
                ("sored_group", c_uint32), ("sored_rank", c_uint32),
                ("sored_reserved", c_uint32), ("sored_epoch", c_uint64)]


class Peer(Structure):
    _fields_ = [("family", c_uint16), ("port", c_uint16),
                ("scope_id", c_uint32), ("addr", c_uint8 * 16)]


class Join(Structure):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("group", c_uint32),
                ("rank", c_uint32), ("nranks", c_uint32), ("depth", c_uint32),
                ("epoch", c_uint64), ("bucket_max", c_uint64),
                ("timeout_ms", c_uint32), ("port", c_uint16),
                ("payload_max", c_uint16), ("peer_size", c_uint32),
                ("uid", c_uint32), ("key", c_uint8 * 16),
                ("reserved", c_uint64 * 4)]


class Op(Structure):
    _fields_ = [("kind", c_uint8), ("dtype", c_uint8), ("reduction", c_uint8),
                ("mode", c_uint8), ("flags", c_uint32), ("root", c_uint32),
                ("slot", c_uint32), ("deadline_us", c_uint32),
                ("wait_us", c_uint32), ("length", c_uint64),
                ("reserved", c_uint64 * 2)]


class Stage(Structure):
    _fields_ = [("expected", c_uint64), ("received", c_uint64),
                ("repaired", c_uint64), ("missing", c_uint64)]


class Result(Structure):
    _fields_ = [("op", c_uint64), ("elapsed_ns", c_uint64),
                ("bytes", c_uint64), ("scatter", Stage), ("gather", Stage),
                ("contributed", c_uint64 * RANK_WORDS),
                ("missing", c_uint64 * RANK_WORDS), ("error", c_uint32),
                ("limit", c_uint8), ("verdict", c_uint8), ("kind", c_uint8),
                ("dtype", c_uint8), ("reduction", c_uint8), ("mode", c_uint8),
                ("flags", c_uint16), ("bound_us", c_uint32),
                ("behind", c_uint32), ("field", c_uint32),
                ("rank", c_uint32 * 2), ("value", c_uint64 * 2),
                ("duplicates", c_uint64), ("resent", c_uint64),
                ("hadamard_ns", c_uint64), ("reserved", c_uint64 * 3)]


class Group(Structure):
    _fields_ = [("abi", c_uint32), ("state", c_uint32), ("group", c_uint32),
                ("rank", c_uint32), ("nranks", c_uint32), ("depth", c_uint32),
                ("epoch", c_uint64), ("bucket_max", c_uint64),
                ("payload", c_uint32), ("header", c_uint32),
                ("port", c_uint16), ("family", c_uint16),
                ("ifindex", c_uint32), ("posted", c_uint64),
                ("finished", c_uint64), ("received", c_uint64),
                ("memory", c_uint64), ("slots", c_uint32),
                ("reserved0", c_uint32), ("slot_stride", c_uint64),
                ("reserved", c_uint64 * 2)]


class PeerState(Structure):
    _fields_ = [("rank", c_uint32), ("status", c_uint32),
                ("posted", c_uint64), ("finished", c_uint64),
                ("heard_us", c_uint64), ("srtt_us", c_uint32),
                ("window", c_uint32), ("inflight", c_uint32),
                ("path_payload", c_uint32), ("sent", c_uint64),
                ("resent", c_uint64), ("received", c_uint64),
                ("duplicates", c_uint64), ("local_drops", c_uint64),
                ("reserved", c_uint64 * 4)]


class Policy(Structure):
    _fields_ = [("loss_skip", c_uint32), ("loss_halt", c_uint32),
                ("min_ranks", c_uint32), ("mode", c_uint8),
                ("deadline", c_uint8), ("incast", c_uint8),
                ("hadamard", c_uint8), ("loss_target", c_uint32),
                ("floor", c_uint32), ("ceiling", c_uint32),
                ("warmup", c_uint32), ("bound_us", c_uint32),
                ("wait_ppm", c_uint32), ("floor_us", c_uint32),
                ("ceiling_us", c_uint32)]


class Uncounted(Structure):
    _fields_ = [("op", c_uint64), ("chunk", c_uint32), ("chunks", c_uint32)]


class AreaConf(Structure):
    _fields_ = [("name", c_uint8 * AREA_NAME_MAX), ("flags", c_uint32),
                ("mode", c_uint32), ("bytes", c_uint64), ("memory", c_uint64),
                ("group", c_uint32), ("owner", c_uint32),
                ("copies", c_uint32), ("nranks", c_uint32),
                ("placement", c_uint32), ("jump", c_uint32),
                ("reserved", c_uint64 * 3)]


class Commit(Structure):
    _fields_ = [("step", c_uint64), ("flags", c_uint32),
                ("meta_len", c_uint32), ("bytes", c_uint64),
                ("meta", c_uint8 * AREA_META_MAX), ("reserved", c_uint64 * 2)]


class Generation(Structure):
    _fields_ = [("step", c_uint64), ("bytes", c_uint64), ("offset", c_uint64),
                ("rank", c_uint32), ("digest", c_uint32), ("flags", c_uint32),
                ("meta_len", c_uint32), ("meta", c_uint8 * AREA_META_MAX),
                ("reserved", c_uint64 * 2)]


class AreaStatus(Structure):
    _fields_ = [("step", c_uint64 * 2), ("bytes", c_uint64 * 2),
                ("complete", c_uint64), ("acked", c_uint64 * RANK_WORDS),
                ("digest", c_uint32 * 2), ("reserved", c_uint64 * 8)]


class AreaRead(Structure):
    _fields_ = [("step", c_uint64), ("offset", c_uint64),
                ("length", c_uint64), ("rank", c_uint32),
                ("holder", c_uint32), ("buffer", c_uint64),
                ("reserved", c_uint64 * 2)]


class AreaNewest(Structure):
    _fields_ = [("step", c_uint64), ("holders", c_uint64 * RANK_WORDS),
                ("reserved", c_uint64 * 2)]


class AreaEntry(Structure):
    _fields_ = [("conf", AreaConf), ("uid", c_uint32), ("gid", c_uint32),
                ("handles", c_uint32), ("mapped", c_uint32),
                ("step", c_uint64 * 2), ("reserved", c_uint64 * 2)]


# The header's name of each structure.
STRUCTURES = {
    "sockaddr_ored": SockaddrOred, "ored_peer": Peer, "ored_join": Join,
    "ored_op": Op, "ored_stage": Stage, "ored_result": Result,
    "ored_group": Group, "ored_peer_state": PeerState,
    "ored_policy": Policy, "ored_uncounted": Uncounted, "ored_area_conf": AreaConf,
    "ored_commit": Commit, "ored_generation": Generation,
    "ored_area_status": AreaStatus, "ored_area_entry": AreaEntry,
    "ored_area_read": AreaRead, "ored_area_newest": AreaNewest,
}

join_size, peer_size = sizeof(Join), sizeof(Peer)
