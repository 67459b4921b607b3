#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: kernels=debug timeout=7200
#
# Random calls on sockets, by root and by a user. ORED_FUZZ=200000 makes that
# many sequences of each instead of a few; ORED_SEED=N is another choice of them.
set -euo pipefail
# shellcheck source=selftests/stress/tap.sh
. "$(dirname "$0")/../stress/tap.sh"

sequences=${ORED_FUZZ:-1000}
seed=${ORED_SEED:-1}
plan 3
check root sockfuzz --seed "$seed" --sequences "$sequences"
check user sockfuzz --seed "$seed" --sequences "$sequences" --user
module_unloads
finish
