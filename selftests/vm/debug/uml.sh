# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # set in lib.sh and run
#
# Boots User-Mode Linux: the kernel is a program and its root is the machine's,
# read-only under an overlay in memory. See lib.sh for what a backend is.

uml_prepare() {
	local tool
	for tool in depmod gcc flock; do
		command -v "$tool" >/dev/null ||
			die "no $tool: run selftests/deps"
	done
	[ "$cpus" -eq 1 ] || [ -z "$cpus_asked" ] ||
		die "User-Mode Linux has one CPU, not $cpus"
	"$here/kernels" fetch "$kernel" || exit 125
	tree=$("$here/kernels" dir "$kernel")
	release=$("$here/kernels" release "$kernel")
	image=$("$here/kernels" image "$kernel")
	# Counters for --coverage, which costs little enough to be always on.
	export ARCH=um GCOV_PROFILE=y
	stage_modules "$tree" "$release"
}

# The guest's first root, as small as the RAM file system of a QEMU guest.
uml_root() {
	local root=$work/root
	mkdir -p "$root"/{dev,proc,ro,rw,keep,new}
	cp "$(helper debug/init.c -static)" "$root/init"
	cp -r "$work/guest" "$root/ored"
	printf '%s\n' "${visible[@]}" | sort -u >"$root/visible"
	echo "$modules" >"$root/modules-from"
}

# The kernel's arguments, one a line. The checkers go on after a first finding
# (no panic_on_warn): a run of many tests tells about all of them. The arguments
# go into the guest's random numbers, so they name no folder that has a name of
# its own in each run.
uml_arguments() {
	printf '%s\n' "mem=${memory}M" root=/dev/root rootfstype=hostfs \
		rootflags=/proc/self/cwd/root rw init=/init \
		uml_dir=. umid=uml con=null con0=null,fd:1 \
		ssl=null ssl0=null,fd:3 ssl1=null,fd:4 ssl2=null,fd:5 ssl3=null,fd:6 \
		panic=-1 oops=panic ignore_loglevel log_buf_len=1M \
		sysctl.kernel.hung_task_panic=1 \
		kasan_multi_shot slub_debug=F,net_namespace
	# Idle time is skipped and work takes none.
	[ -z "$virtual" ] || printf '%s\n' time-travel=inf-cpu \
		time-travel-start=1700000000000000000 norandmaps
}

uml_boot() {
	local arguments=() fixed=() status=0
	uml_root
	readarray -t arguments < <(uml_arguments)
	# The host's randomness seeds the guest's, see detrand.c; and what the host
	# leaves between a program and its heap becomes memory that the guest sizes
	# its tables by.
	[ -z "$virtual$seed" ] || fixed=(setarch -R env
		"LD_PRELOAD=$(helper debug/detrand.c -shared -fPIC)"
		"ORED_SEED=${seed:-0}")
	trap 'uml_end; on_signal INT 130' INT
	trap 'uml_end; on_signal TERM 143' TERM
	(
		cd "$work" || exit
		ulimit -c 0
		exec "${fixed[@]}" "$image" "${arguments[@]}" \
			5>"$work/status" 6>"$work/coverage.tar" \
			</dev/null >"$console" 2>&1
	) &
	uml_pid=$!
	uml_wait || status=$?
	[ -z "$coverage" ] || uml_keep_coverage
	# A panic ends in abort().
	[ "$status" -ne 134 ] || status=1
	return "$status"
}

uml_keep_coverage() {
	mkdir -p "$coverage"
	[ ! -s "$work/coverage.tar" ] ||
		tar -C "$coverage" -xf "$work/coverage.tar" ||
		die "can't unpack the coverage counters"
}

# Waits for the kernel for $limit seconds.
uml_wait() {
	local watchdog status=0
	uml_watch >/dev/null 2>&1 3>&- 4>&- &
	watchdog=$!
	# bash would tell that a panic aborted it.
	wait "$uml_pid" 2>/dev/null || status=$?
	kill "$watchdog" 2>/dev/null || :
	wait "$watchdog" 2>/dev/null || :
	uml_end
	[ ! -e "$work/late" ] || status=124
	return "$status"
}

uml_watch() {
	trap 'kill $!; exit' TERM
	sleep "$limit" &
	wait $!
	: >"$work/late"
	uml_explain >>"$console"
	uml_end
}

# What does it wait for? Told on the console before the end: by the kernel, or
# by the host about the kernel.
uml_explain() {
	if "$here/debug/mconsole" "$work/uml/mconsole" sysrq w >/dev/null; then
		sleep 0.5
		return
	fi
	echo "run: the kernel doesn't answer; it is, to the host:"
	grep -E '^(State|Threads|SigPnd|ShdPnd|SigBlk)' "/proc/$uml_pid/status"
	cat "/proc/$uml_pid/wchan" "/proc/$uml_pid/syscall" \
		"/proc/$uml_pid/stack"
}

# Ends the kernel and its helpers, if they live: it leads a process group.
uml_end() {
	kill -KILL -- "-$uml_pid" 2>/dev/null ||
		kill -KILL "$uml_pid" 2>/dev/null || :
}
