#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: kernels=debug alone timeout=7200
#
# Random calls on sockets, by an unprivileged user; as test_sockfuzz.sh.
set -euo pipefail
# shellcheck source=selftests/stress/tap.sh
. "$(dirname "$0")/../stress/tap.sh"

plan 2
check user sockfuzz --seed "${ORED_SEED:-1}" --sequences "${ORED_FUZZ:-1000}" --user
module_unloads
finish
