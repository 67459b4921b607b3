# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# TAP for the wrappers of stress/: plan N, then `check NAME PROGRAM ARG...` N
# times, then `finish`. A case passes if its program exits with 0.

programs=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../build/selftests")
cases=0 failed=0

plan() {
	echo "TAP version 13"
	echo "1..$1"
	modprobe ored
}

check() {
	local name=$1 status=0
	shift
	cases=$((cases + 1))
	"$programs/$1" "${@:2}" 2>&1 | sed 's/^[^#]/# &/' || status=$?
	if [ "$status" -eq 0 ]; then
		echo "ok $cases $name"
	else
		echo "# $1 ended with $status"
		echo "not ok $cases $name"
		failed=1
	fi
}

# Nothing of the family outlives its programs for long.
module_unloads() {
	local try
	cases=$((cases + 1))
	for ((try = 0; try < 50; try++)); do
		if rmmod ored 2>/dev/null; then
			echo "ok $cases module_unloads"
			return
		fi
		sleep 0.2
	done
	echo "# $(cat /sys/module/ored/refcnt) references are left"
	echo "not ok $cases module_unloads"
	failed=1
}

finish() {
	exit "$failed"
}
