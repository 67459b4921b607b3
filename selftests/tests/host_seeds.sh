#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=debug timeout=300
#
# The same seed has the same packets at the same times, to the nanosecond and the
# bit, though they are lost, delayed, swapped and doubled by chance; another seed
# has others. Runs on the host: it boots three guests.
set -eu

here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What seed $1 says, in line $2. Nothing that Python draws by chance may matter.
schedule() {
	"$here/../vm/run" --kernel debug --virtual-time --seed "$1" --timeout 80 \
		--no-build --log "$work/console" -- \
		/usr/bin/env PYTHONHASHSEED=0 "$here/schedule.py" >"$work/$2"
}

fail() {
	echo "# $1"
	cat "$work"/{one,two,other} | sed 's/^/# /'
	echo "not ok 1 $name"
	exit 1
}

echo "TAP version 13"
echo "1..1"
name="seed_repeats_lossy_schedule"
touch "$work"/{one,two,other}
if ! schedule 7 one || ! schedule 7 two || ! schedule 8 other; then
	tail -n 20 "$work/console" | sed 's/^/# /'
	fail "a guest failed"
fi
read -r packets resent _ <"$work/one"
if [ "$packets" -lt 100 ] || [ "$resent" -eq 0 ]; then fail "nothing was lost"; fi
cmp -s "$work/one" "$work/two" || fail "the same seed has had another schedule"
! cmp -s "$work/one" "$work/other" || fail "another seed has had the same schedule"
echo "# $packets packets, $resent of them resent"
echo "ok 1 $name"
