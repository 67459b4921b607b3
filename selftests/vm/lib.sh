# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # backends and `run` share these variables
#
# What all ways of booting a kernel share: options, the guest's script and
# environment, and what a finished guest means.
#
# A backend is a file NAME.sh with two functions:
#   NAME_prepare   checks and builds what it needs; dies with one sentence
#   NAME_boot      boots the guest and returns when it has gone. The guest runs
#                  `guest-init` as process 1 with $work/guest as its /run/ored.
#                  The command's stdout and stderr stream to descriptors 3 and 4,
#                  the console to $console; $work/status gets what guest-init
#                  reports. Returns 0 if the guest went by itself, 124 if its
#                  time was up, 1 if it panicked, anything else if the machine
#                  itself failed.

kernel=6.1 virtual= cpus= memory=2048 limit=600 console= build=1
seed= coverage= cpus_asked=
command=()

die() {
	echo "run: $*" >&2
	exit 125
}

usage() {
	sed -n '/^# run:/,/^set/{s/^# \{0,1\}//p}' "$0" >&2
	exit 2
}

number() {
	[[ $2 =~ ^[1-9][0-9]*$ ]] || die "$1 needs a positive number, not '$2'"
}

parse() {
	while [ $# -gt 0 ]; do
		case $1 in
		--kernel|--cpus|--memory|--timeout|--log|--seed|--coverage)
			[ $# -ge 2 ] || usage ;;
		esac
		case $1 in
		--kernel) kernel=$2; shift 2 ;;
		--cpus) number "$@"; cpus=$2 cpus_asked=1; shift 2 ;;
		--memory) number "$@"; memory=$2; shift 2 ;;
		--timeout) number "$@"; limit=$2; shift 2 ;;
		--log) console=$(realpath -m "$2"); shift 2 ;;
		--seed) number "$@"; seed=$2; shift 2 ;;
		--coverage) coverage=$(realpath -m "$2"); shift 2 ;;
		--virtual-time) virtual=1; shift ;;
		--no-build) build=; shift ;;
		--build-only) build=only; shift ;;
		--) shift; break ;;
		*) usage ;;
		esac
	done
	[ $# -gt 0 ] || [ "$build" = only ] || usage
	command=("$@")
	[ -z "$virtual" ] || [ "${cpus:=1}" = 1 ] ||
		die "virtual time has one CPU, not $cpus"
	[ -z "$seed$coverage" ] || [ "$kernel" = debug ] ||
		die "--seed and --coverage go with --kernel debug only"
	: "${cpus:=2}"
}

# Builds the module for the kernel of tree $1 and release $2 and lays out a
# lib/modules for it: the kernel's own modules, ours in updates/, one index.
# Sets $modules to the folder that holds RELEASE/.
stage_modules() {
	local tree=$1 release=$2 out checks=
	# Debug kernels get the module that checks itself and makes faults.
	[[ $kernel != debug* ]] || checks=y
	out=$top/build/$release${checks:++debug}
	mkdir -p "$out"
	exec 7>"$out/.stage.lock"
	flock -w 600 7 || die "another build in $out has lasted 10 minutes"
	if [ -n "$build" ] && [ -e "$top/Kbuild" ]; then
		make -s -C "$top" module \
			KDIR="$tree/usr/src/linux-headers-$release" \
			ORED_DEBUG="$checks" out="${out#"$top/"}" >&2 </dev/null 7>&- ||
			die "the module doesn't build for $release (--no-build goes on without)"
	fi
	stage_tree "$tree" "$release" "$out"
	exec 7>&-
}

# One tree for each build of the module, since a guest may still use another.
stage_tree() {
	local tree=$1 release=$2 out=$3 root to name=none
	[ ! -e "$out/ored.ko" ] ||
		name=$(cat "$tree/release" "$out/ored.ko" | sha256sum | cut -c 1-12)
	root=$out/root/$name
	to=$root/lib/modules/$release
	modules=$root/lib/modules
	if [ ! -e "$root/whole" ]; then
		rm -rf "$root"
		mkdir -p "$to/updates"
		ln -s "$tree/lib/modules/$release"/{kernel,modules.order,modules.builtin*} "$to"
		[ ! -e "$out/ored.ko" ] || cp "$out/ored.ko" "$to/updates/"
		depmod -b "$root" "$release" || die "depmod failed for $release"
	fi
	touch "$root/whole"
	# No guest runs for a day.
	find "$out"/root/*/whole -mtime +0 -printf '%h\0' | xargs -0r rm -rf
}

# What guest-init finds in its /run/ored: the command, its folder, its
# environment and the settings.
stage_guest() {
	local guest=$work/guest name word
	mkdir -p "$guest"
	cp "$here/guest-init" "$guest/init"
	printf '%q ' "${command[@]}" >"$guest/command"
	case $kernel in debug|debug-smp) cp "$here/debug/judge" "$guest/" ;; esac
	[ -z "$coverage" ] || mkdir "$guest/coverage"
	# The guest has a /tmp of its own; these stay visible below it.
	visible=("$PWD" "$top" "${cache%/vm}")
	for word in "${command[@]}"; do
		[[ $word != /* || ! -e $word ]] || visible+=("$(realpath "$word")")
	done
	{
		printf 'cd %q\n' "$PWD"
		printf 'export PATH=%q\n' "$top/build/tools:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
		printf 'export LD_LIBRARY_PATH=%q\n' "$top/build/libored"
		printf 'export PYTHONPATH=%q PYTHONDONTWRITEBYTECODE=1\n' "$top/libored/python"
		printf 'export HOME=/root LANG=C.UTF-8 TMPDIR=/tmp\n'
		# What a test is told by its caller.
		for name in $(compgen -e | grep '^ORED_' || true); do
			printf 'export %s=%q\n' "$name" "${!name}"
		done
		printf 'export ORED_VM=%q\n' "$kernel${virtual:+ virtual-time}"
	} >"$guest/env"
}

# The console's last lines: they explain, they never decide.
show_console() {
	[ -s "$console" ] || return 0
	echo "run: the console ended with:" >&2
	tail -n 40 "$console" | tr -d '\r' | sed 's/^/  | /' >&2
	echo "run: the whole console is in $console" >&2
	keep_console=1
}

# What the console says of a panic's reason.
panic_reason() {
	local reason
	reason=$(sed -nE 's/.*(Kernel panic - not syncing: |(WARNING|BUG): )/\2: /p' \
		"$console" | tr -d '\r' | sed 's/^: //' | head -n 1)
	echo "${reason:-no reason on the console}"
}

fail() {
	local code=$1
	shift
	echo "run: kernel $kernel: $*" >&2
	show_console
	exit "$code"
}

# Tells what a debug kernel's checkers found, in the log and in its state; false
# if there is something.
judge_debug() {
	local clean=0
	case $kernel in debug|debug-smp) ;; *) return 0 ;; esac
	if ! "$here/debug/splats" "$console" >"$work/splats"; then
		echo "run: kernel $kernel: the kernel complained:" >&2
		sed 's/^/  | /' "$work/splats" >&2
		clean=1
	fi
	if grep -s '^finding ' "$work/status" >"$work/findings"; then
		sed "s/^finding /run: kernel $kernel: /" "$work/findings" >&2
		clean=1
	fi
	return "$clean"
}

# Turns how the guest went ($1) and what it reported into our exit status.
judge() {
	local gone=$1 status taint state='was not yet running' clean=1
	status=$(sed -n 's/^status \([0-9]*\)$/\1/p' "$work/status" 2>/dev/null || true)
	taint=$(sed -n 's/^taint \(.*\)$/\1/p' "$work/status" 2>/dev/null || true)
	judge_debug || clean=
	if [ "$gone" -eq 124 ]; then
		! grep -qsx started "$work/status" || state='was running'
		[ -z "$status" ] || state="had ended with $status"
		fail 124 "time-out: not finished after $limit seconds;" \
			"the command $state"
	elif [ "$gone" -eq 1 ]; then
		fail 125 "panic: $(panic_reason)"
	elif [ "$gone" -ne 0 ]; then
		fail 125 "the virtual machine failed ($gone)"
	elif [ -z "$status" ] && grep -q 'Kernel panic' "$console"; then
		fail 125 "panic: $(panic_reason)"
	elif [ -z "$status" ]; then
		fail 125 "the guest ended without a word from the command"
	elif [ -z "$clean" ]; then
		keep_console=1
		echo "run: the whole console is in $console" >&2
		exit 125
	elif [ -n "$taint" ]; then
		fail 125 "the kernel is tainted: $taint"
	fi
	return "$status"
}

# A helper program, compiled once per version of its source: prints its path.
# $1: source in this folder, the rest: compiler flags.
helper() {
	local source=$here/$1 program
	shift
	program=$cache/${source##*/}-$(sha256sum <"$source" | cut -c1-12)
	if [ ! -e "$program" ]; then
		gcc -O2 "$@" -o "$work/helper" "$source" ||
			die "can't compile $source"
		mv "$work/helper" "$program"
	fi
	echo "$program"
}
