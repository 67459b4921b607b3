# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # set in lib.sh and run
#
# Boots a kernel in QEMU over the machine's root: 9p, read-only, with an overlay
# in memory. By KVM where a probe shows that it can, else by TCG.

qemu="qemu-system-x86_64"

# Modules of the first stage. What a kernel has built in costs nothing.
qemu_modules=(virtio_pci virtio_console 9p 9pnet_virtio overlay pvpanic_pci)

qemu_prepare() {
	local tool
	for tool in "$qemu" busybox cpio depmod flock gcc modprobe setpriv; do
		command -v "$tool" >/dev/null ||
			die "no $tool: run selftests/deps vm"
	done
	"$here/kernels" fetch "$kernel" || exit 125
	tree=$("$here/kernels" dir "$kernel")
	release=$("$here/kernels" release "$kernel")
	image=$("$here/kernels" image "$kernel")
	# Has built in all but this one: its panics are told by the console.
	[ "$kernel" != debug-smp ] || unset 'qemu_modules[-1]'
	stage_modules "$tree" "$release"
}

# Packs folder $1 as an initial RAM file system into $2.
qemu_pack() {
	# Not compressed: unpacking costs the guest more than reading.
	(cd "$1" && find . -print0 | cpio -0 -o -H newc --quiet) >"$2"
}

qemu_initrd() {
	local root=$work/initrd.d module
	mkdir -p "$root"/{bin,proc,sys,dev,modules,ro,rw,keep,new}
	cp "$(command -v busybox)" "$root/bin/busybox"
	cp "$here/guest-stage1" "$root/init"
	cp -r "$work/guest" "$root/ored"
	printf '%s\n' "${visible[@]}" | sort -u >"$root/visible"
	echo "$modules" >"$root/modules-from"
	: >"$root/modules/order"
	modprobe -d "$tree" -S "$release" -D -a "${qemu_modules[@]}" |
		awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$work/insmod"
	while read -r module; do
		case $module in
		*.xz) xz -dc "$module" >"$root/modules/$(basename "$module" .xz)" ;;
		*) cp "$module" "$root/modules/" ;;
		esac
		module=${module##*/}
		echo "${module%.xz}" >>"$root/modules/order"
	done <"$work/insmod"
	qemu_pack "$root" "$work/initrd"
}

# Says whether KVM boots a kernel here; the answer is kept until kernel,
# processor or QEMU change.
qemu_kvm() {
	local memo=$cache/kvm key
	[ -w /dev/kvm ] || return 1
	key="$(uname -r) $("$qemu" --version | head -n 1) $(
		sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
	if [ "$(head -n 1 "$memo" 2>/dev/null)" != "$key" ]; then
		printf '%s\n%s\n' "$key" "$(qemu_probe)" >"$work/kvm"
		mv "$work/kvm" "$memo"
	fi
	[ "$(tail -n 1 "$memo")" = yes ]
}

# Prints yes if a guest under KVM reaches user space in a few seconds.
qemu_probe() {
	local root=$work/probe.d
	mkdir -p "$root"/{bin,dev,proc}
	cp "$(command -v busybox)" "$root/bin/busybox"
	cat >"$root/init" <<-'INIT'
	#!/bin/busybox sh
	busybox mount -t devtmpfs dev /dev
	echo alive >/dev/ttyS1
	busybox poweroff -f
	INIT
	chmod +x "$root/init"
	qemu_pack "$root" "$work/probe"
	timeout -k 1 8 "$qemu" -accel kvm -cpu host -m 512 -nodefaults -no-reboot \
		-display none -kernel "$image" -initrd "$work/probe" \
		-append "console=ttyS0 panic=-1" -serial null \
		-serial "file:$work/probed" </dev/null >/dev/null 2>&1 || true
	if grep -qs alive "$work/probed"; then echo yes; else echo no; fi
}

# Sets $machine: how instructions and time run.
qemu_machine() {
	if [ -n "$virtual" ]; then
		# One instruction is one nanosecond, idle time is skipped; clock
		# and random numbers start alike in every run.
		machine=(-accel tcg -icount 'shift=0,sleep=off' -smp 1 -cpu max
			-rtc 'base=2024-01-01T00:00:00,clock=vm' -seed 1)
	elif qemu_kvm; then
		machine=(-accel kvm -smp "$cpus" -cpu host)
	else
		machine=(-accel 'tcg,thread=multi' -smp "$cpus" -cpu max)
	fi
}

# The kernel's command line. Faults end the guest at once; the lock-up limits
# are generous since an emulated processor on a busy machine is slow.
qemu_append() {
	echo console=ttyS0 loglevel=6 panic=-1 oops=panic panic_on_warn=1
	echo sysctl.kernel.softlockup_panic=1 watchdog_thresh=30
	echo sysctl.kernel.panic_on_rcu_stall=1
	echo rcupdate.rcu_cpu_stall_timeout=90 workqueue.watchdog_thresh=90
	echo random.trust_cpu=on mitigations=off audit=0 apparmor=0
	# Emulated clocks are not compared with each other, nor one measured by
	# another while this machine may be busy.
	echo tsc=reliable no_timer_check
	[[ " ${machine[*]} " != *,thread=multi* ]] || echo "tsc_early_khz=$("$(helper tsc.c)")"
	# As in debug/uml.sh: checkers go on after a finding. Setting up interrupts by
	# ACPI takes this kernel half a minute, and virtio needs none of those.
	[ "$kernel" != debug-smp ] || echo panic_on_warn=0 pci=noacpi ignore_loglevel \
		log_buf_len=1M kasan_multi_shot slub_debug=F,net_namespace
	if [ -n "$virtual" ]; then
		echo nokaslr norandmaps
	else
		# Not in virtual time: it leaps while a file is read from outside.
		echo sysctl.kernel.hung_task_panic=1
		echo sysctl.kernel.hung_task_timeout_secs=240
	fi
}

qemu_boot() {
	local code=0 port args=() machine=()
	qemu_initrd
	qemu_machine
	for port in stdout:3 stderr:4; do
		args+=(-chardev "file,id=${port%:*},path=/dev/fd/${port#*:}"
			-device "virtserialport,chardev=${port%:*},name=ored.${port%:*}")
	done
	# setpriv: the guest ends when we do, however that comes about.
	setpriv --pdeathsig KILL timeout -k 5 "$limit" \
		setpriv --pdeathsig KILL "$qemu" "${machine[@]}" -m "$memory" \
		-nodefaults -display none -no-reboot -action panic=exit-failure \
		-kernel "$image" -initrd "$work/initrd" \
		-append "$(qemu_append | xargs)" \
		-device virtio-serial-pci,max_ports=8 "${args[@]}" \
		-chardev "file,id=status,path=$work/status" \
		-device virtserialport,chardev=status,name=ored.status \
		-device pvpanic-pci -serial "file:$console" \
		-virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
		</dev/null >&2 &
	# Not in the foreground, where the shell couldn't heed a signal.
	guest_pid=$!
	wait "$guest_pid" || code=$?
	guest_pid=
	return "$code"
}
