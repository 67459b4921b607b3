#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: kernels=6.1,6.12
#
# The BPF programs are accepted by this kernel and do on it what they do elsewhere.
set -eu
exec "$(dirname "$0")/../../build/selftests/bpf/programs"
