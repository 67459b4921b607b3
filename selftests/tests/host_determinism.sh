#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In virtual time an op takes the same time in every run, to within 10 us,
# however busy the machine outside is. Runs on the host: it boots two guests.
set -eu

here=$(dirname "$(realpath "$0")")
kernel=${1:-6.12}
bound=10	# us
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

measure() {
	"$here/../vm/run" --kernel "$kernel" --virtual-time --timeout 300 \
		--log "$work/console" -- /usr/bin/setarch -R /usr/bin/env PYTHONHASHSEED=0 "$here/latency.py" >"$work/$1"
}

# The largest difference between two runs; fails if they don't match in form.
difference() {
	paste -d' ' "$work/one" "$work/two" | awk '
		NF == 0 || NF % 2 || $1 != $(NF / 2 + 1) { exit 1 }
		{
			for (i = 2; i <= NF / 2; i++) {
				d = $i - $(NF / 2 + i)
				if (d < 0)
					d = -d
				if (d > max)
					max = d
			}
			lines++
		}
		END { if (lines != 5) exit 1; print max + 0 }'
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
sed 's/^/# us: /' "$work/one"
if ! max=$(difference); then
	sed 's/^/# second run: /' "$work/two"
	echo "not ok 1 $name"
	exit 1
fi
echo "# largest difference: $max us"
if [ "$max" -gt "$bound" ]; then
	sed 's/^/# second run: /' "$work/two"
	echo "not ok 1 $name"
	exit 1
fi
echo "ok 1 $name"
