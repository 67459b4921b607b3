#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# netns_rsh.sh [OPTION...] ADDRESS COMMAND...: mpirun's remote shell. Runs COMMAND on
# the host of the cluster that has ADDRESS, 10.9.0.(I+1), under a host name of its
# own, by which Open MPI tells hosts apart.
set -eu

while [[ $1 == -* ]]; do shift; done
i=$((${1##*.} - 1))
shift
exec ip netns exec "ored-h$i" unshare --uts sh -c "hostname h$i; $*"
