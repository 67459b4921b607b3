#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: kernels=debug alone timeout=7200
#
# Random calls on sockets, by root. ORED_FUZZ=200000 makes that many sequences of
# them instead of a few; ORED_SEED=N is another choice of them.
set -euo pipefail
# shellcheck source=selftests/stress/tap.sh
. "$(dirname "$0")/../stress/tap.sh"

plan 2
check root sockfuzz --seed "${ORED_SEED:-1}" --sequences "${ORED_FUZZ:-1000}"
module_unloads
finish
