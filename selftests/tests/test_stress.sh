#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: kernels=6.1,debug,debug-smp cpus=2 timeout=7200
#
# Everything at the same time on several processors. ORED_STRESS=N does it for N
# seconds; ORED_SEED=N starts from another number.
set -euo pipefail
# shellcheck source=selftests/stress/tap.sh
. "$(dirname "$0")/../stress/tap.sh"

plan 2
check all_at_once stress --seed "${ORED_SEED:-1}" --seconds "${ORED_STRESS:-20}"
module_unloads
finish
