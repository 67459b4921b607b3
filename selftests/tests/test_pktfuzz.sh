#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: kernels=debug alone timeout=7200
#
# Damaged packets against a group at work: those that must be refused, and those
# of a peer that lies. ORED_FUZZ=200000 sends five times as many of each instead
# of a few; ORED_SEED=N is another choice of them.
set -euo pipefail
# shellcheck source=selftests/stress/tap.sh
. "$(dirname "$0")/../stress/tap.sh"

packets=$((5 * ${ORED_FUZZ:-2000}))
seed=${ORED_SEED:-1}
plan 3
check outsider pktfuzz --seed "$seed" --packets "$packets"
check insider pktfuzz --seed "$seed" --packets "$packets" --insider
module_unloads
finish
