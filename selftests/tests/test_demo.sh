#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=debug timeout=600
#
# A shorter demo: it judges itself, by what was learnt, by the replicas' hashes, and by
# the time of steps of bounded ops beside those of reliable ones. So few epochs teach
# it less.
set -euo pipefail

top=$(realpath "$(dirname "$0")/../..")
echo "TAP version 13"
echo "1..1"
if ORED_DEMO_WANTED=0.9 "$top/tools/demo/in-vm" --epochs 6 | sed 's/^/# /'; then
	echo "ok 1 trains_and_compares"
else
	echo "not ok 1 trains_and_compares"
	exit 1
fi
