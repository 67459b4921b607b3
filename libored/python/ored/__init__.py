# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""AllReduce and checkpoint areas over AF_ORED sockets.

    import numpy, ored

    with ored.Group(rank=0, peers=["10.0.0.1", "10.0.0.2"]) as group:
        gradients = numpy.ones(1_000_000, numpy.float32)
        group.allreduce(gradients, op="mean")

    with ored.Area("model", bytes=len(state)) as area:
        area.save(step, state)      # a new process finds it by its name

Nothing but plain sockets underneath: the kernel module ored.ko does the work.
Buffers go to the kernel and come back without a copy in between.
"""
from .area import Area, AreaInfo, Generation, View, areas, remove_area
from .env import from_env
from .error import Error, Timeout
from .group import Group
from .state import GroupState, PeerState, Result, Stage

__all__ = ["Area", "AreaInfo", "Error", "Generation", "Group", "GroupState",
           "PeerState", "Result", "Stage", "Timeout", "View", "areas",
           "from_env", "remove_area"]
__version__ = "0.1"
