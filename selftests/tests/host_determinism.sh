#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# vm: virtual-time kernels=6.12 timeout=600
#
# In virtual time an op takes the same time in every run, to within 10 us or a
# thousandth of it, however busy the machine outside is. Runs on the host: it boots
# two guests.
set -eu

here=$(dirname "$(realpath "$0")")
kernel=${1:-6.12}
bound=10	# us
ops=18		# lines that latency.py prints
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
	paste -d' ' "$work/one" "$work/two" | awk -v ops="$ops" -v bound="$bound" '
		NF != 4 || $1 != $3 || $2 <= 0 || $4 <= 0 { bad = 1 }
		{
			d = $2 - $4
			if (d < 0)
				d = -d
			if ($2 / 1000 > bound)
				d -= $2 / 1000 - bound
			if (d > max)
				max = d
		}
		END {
			if (bad || NR != ops)
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
	echo "# the runs don't have the same $ops ops"
	echo "not ok 1 $name"
	exit 1
fi
echo "# largest difference, less what long ops may: $max us"
if [ "$max" -gt "$bound" ]; then
	echo "not ok 1 $name"
	exit 1
fi
echo "ok 1 $name"
