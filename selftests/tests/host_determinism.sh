#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=6.12 timeout=600
#
# In virtual time ops take the same time (the median of five) in every run, to within
# 10 us or a thousandth of it, however busy the machine outside is. Runs on the host:
# it boots two guests.
set -eu

here=$(dirname "$(realpath "$0")")
kernel=${1:-6.12}
bound=10	# us
lines=6		# that latency.py prints
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Nothing that Python draws by chance may change how much it computes.
measure() {
	"$here/../vm/run" --kernel "$kernel" --virtual-time --timeout 300 \
		--log "$work/console" -- /usr/bin/setarch -R \
		/usr/bin/env PYTHONHASHSEED=0 "$here/latency.py" >"$work/$1"
}

# The largest difference between two runs, less what a long op may differ by more
# than others: a packet that leaves a little earlier there has hundreds behind it.
# Fails if they differ in form.
difference() {
	join "$work/one" "$work/two" | awk -v lines="$lines" -v bound="$bound" '
		NF != 13 || $2 <= 0 || $8 <= 0 { bad = 1 }
		{
			d = $2 - $8
			if (d < 0)
				d = -d
			if ($2 / 1000 > bound)
				d -= $2 / 1000 - bound
			if (d > max)
				max = d
		}
		END {
			if (bad || NR != lines)
				exit 1
			print int(max + 0.5)
		}'
}

# Both runs side by side, as diagnostics.
show() {
	paste "$work/one" "$work/two" | sed 's/^/# /'
}

echo "TAP version 13"
echo "1..1"
name="latency_repeats_in_virtual_time"
if ! measure one || ! measure two; then
	echo "# a guest failed"
	tail -n 20 "$work/console" | sed 's/^/# /'
	echo "not ok 1 $name"
	exit 1
fi
show
if ! max=$(difference); then
	echo "# the runs don't print the same $lines lines"
	echo "not ok 1 $name"
	exit 1
fi
echo "# largest difference, less what long ops may: $max us"
if [ "$max" -gt "$bound" ]; then
	echo "not ok 1 $name"
	exit 1
fi
echo "ok 1 $name"
