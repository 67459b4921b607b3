# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""<linux/ored.h> in Python: numbers and layouts, nothing else."""
import struct

SOL_ORED = 300
FAMILY_DEFAULT = 18
FAMILY_PARAMETER = "/sys/module/ored/parameters/family"

MAX_RANKS = 256
MAX_DEPTH = 16
MAX_BUCKET = 1 << 30
PORT_DEFAULT = 4741
TIMEOUT_DEFAULT = 30000
ERROR_MAX = 256
PAYLOAD_MIN = 512    # a full chunk is never shorter
RANK_WORDS = MAX_RANKS // 64

PROTO_REDUCE = 0
PROTO_CKPT = 1

# enum ored_option
JOIN = 1
OP = 4
RESULT = 5
RESULTS = 6
ERROR = 7
GROUP = 8
PEERS = 9
STATS = 10
POLICY = 11
UNCOUNTED = 12

AREA_OPEN = 32
AREA_REMOVE = 33
AREA_COMMIT = 34
AREA_ABORT = 35
AREA_READ = 37
AREA_NEWEST = 38
AREA_ROLL_BACK = 39
AREA_GENERATIONS = 41
AREA_LIST = 42

JOIN_SLOTS = 2      # bit of ored_join.flags
OP_SLOT = 1         # bit of ored_op.flags

# enum ored_kind, by name
KINDS = {"allreduce": 0, "reduce_scatter": 1, "all_gather": 2, "broadcast": 3,
         "barrier": 4}

# enum ored_dtype, by name, and the bytes of each
DTYPES = {"f32": 0, "f64": 1, "f16": 2, "bf16": 3, "i32": 4, "i64": 5}
DTYPE_SIZES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i32": 4, "i64": 8}

# enum ored_reduction, ored_mode, ored_limit, ored_verdict, ...: by name
REDUCTIONS = {"sum": 0, "mean": 1, "min": 2, "max": 3}
MODES = {"default": 0, "bounded": 1, "reliable": 2}
LIMITS = ("none", "complete", "early", "hard", "behind")
VERDICTS = ("ok", "partial", "skip", "halt")
STATES = ("new", "joining", "joined", "failed", "left")
PEER_STATUSES = ("unknown", "heard", "live", "silent", "left", "refused",
                 "stalled")
HADAMARD = {"default": 0, "on": 1 << 2, "off": 1 << 3}   # ored_op.flags
RESULT_RESYNC, RESULT_HADAMARD = 1, 2    # bits of ored_result.flags
COUNTERS = (
    "rx_packets", "rx_data", "tx_packets", "tx_trains", "tx_dropped", "resent",
    "duplicate", "late", "ahead", "mismatch", "bad_source", "bad_chunk",
    "bad_control", "path_shrunk", "nomem", "ns_short", "ns_version",
    "ns_type", "ns_session", "ns_group", "ns_epoch")

# Checkpoint areas
AREA_NAME_MAX = 64
AREA_META_MAX = 256
AREA_CREATE = 1
AREA_EXCLUSIVE = 2
AREA_READONLY = 4
COMMIT_DIGEST_ONLY = 1
GENERATION_COMPLETE = 1
PLACE_GROUP, PLACE_RING = range(2)
ANY_HOLDER = 0xffffffff
NO_STEP = 0xffffffffffffffff

# The structures, field by field; reserved ones are padding ("x")
JOIN_STRUCT = struct.Struct("=6I2QI2H2I16s32x")
PEER_STRUCT = struct.Struct("=2HI16s")
OP_STRUCT = struct.Struct("=4B5IQ16x")
RESULT_STRUCT = struct.Struct(
    f"=3Q4Q4Q{RANK_WORDS}Q{RANK_WORDS}QI6BHIII2I2Q3Q24x")
GROUP_STRUCT = struct.Struct("=6I2Q2I2HI4QI4xQ16x")
PEER_STATE_STRUCT = struct.Struct("=2I3Q4I5Q32x")
UNCOUNTED_STRUCT = struct.Struct("=Q2I")
AREA_CONF_STRUCT = struct.Struct("=64s2I2Q6I24x")
COMMIT_STRUCT = struct.Struct("=Q2IQ256s16x")
GENERATION_STRUCT = struct.Struct("=3Q4I256s16x")
AREA_READ_STRUCT = struct.Struct("=3Q2IQ16x")
AREA_NEWEST_STRUCT = struct.Struct(f"=Q{RANK_WORDS}Q16x")
AREA_ENTRY_STRUCT = struct.Struct("=64s2I2Q6I24x4I2Q16x")
POLICY_STRUCT = struct.Struct("=3I4B8I")
POLICY_FIELDS = (
    "loss_skip", "loss_halt", "min_ranks", "mode", "deadline", "incast",
    "hadamard", "loss_target", "floor", "ceiling", "warmup", "bound_us",
    "wait_ppm", "floor_us", "ceiling_us")
