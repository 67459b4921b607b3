# SPDX-License-Identifier: GPL-2.0
# Builds, tests and installs ORED. `make help` lists the targets. The kernel
# module's own build file is Kbuild; everything built goes to build/.

VERSION		:= 0.1.0
PREFIX		?= /usr/local
export PREFIX DESTDIR

top		:= $(CURDIR)
kernels		:= selftests/vm/kernels

# The kernel to build the module for: the running one where its headers are
# installed, else the newest in the cache of `kernels`.
KDIR		?= $(or $(wildcard /lib/modules/$(shell uname -r)/build),$\
		   $(shell $(kernels) newest 2>/dev/null))
# What `uname -r` says there; config/kernel.release is another word in Debian.
KREL		= $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $\
		  '$(KDIR)/include/generated/utsrelease.h' 2>/dev/null)
# What holds that kernel's types, for kmod/btf: its image, or itself if it runs.
KIMAGE		?= $(firstword $(wildcard $(KDIR)/vmlinux /boot/vmlinuz-$(KREL) \
		   $(KDIR)/../../../boot/vmlinuz-$(KREL)) $\
		   $(if $(filter $(shell uname -r),$(KREL)),/sys/kernel/btf/vmlinux))
# With ORED_DEBUG=y the module checks itself and makes faults on purpose (Kbuild):
# another module, in a place of its own.
debug		= $(if $(filter y,$(ORED_DEBUG)),+debug)
out		?= build/$(KREL)$(debug)

# Debian's headers name their compiler, gcc, whatever LLVM=1 says.
kernel_cc	= $(if $(or $(LLVM),$(filter clang%,$(CC))),CC='$(top)/selftests/clang-kernel')

# Parts that bring their own Makefile.
parts		:= $(patsubst %/Makefile,%,$(wildcard libored/Makefile bpf/Makefile tools/Makefile))

.PHONY: all
all: module $(parts) ## the module for KDIR=, library, BPF programs and tools

.PHONY: module
module: headers ## the kernel module for KDIR= as build/RELEASE/ored.ko
	@selftests/vm/sources '$(out)/src'
	flock '$(out)/src' $(MAKE) -C '$(KDIR)' M='$(top)/$(out)/src' $(kernel_cc) modules
	@cmp -s '$(out)/src/ored.ko' '$(out)/plain.ko' && test -e '$(out)/ored.ko' || { \
		rm -f '$(out)/ored.ko' && cp '$(out)/src/ored.ko' '$(out)/plain.ko' && \
		cp '$(out)/plain.ko' '$(out)/ored.ko.new' && \
		{ kmod/btf '$(out)/ored.ko.new' '$(KIMAGE)' || \
			echo 'ored.ko: no type information (BTF): bpftool and fentry' \
				'will not know its types; all else works'; } && \
		mv '$(out)/ored.ko.new' '$(out)/ored.ko'; }

.PHONY: headers
headers:
	@test -n '$(KREL)' || { \
		echo "no kernel headers in KDIR='$(KDIR)':" \
		"set KDIR=, or fetch some with $(kernels) fetch" >&2; exit 1; }

.PHONY: $(parts)
$(parts):
	$(MAKE) -C $@ all

tools: $(filter libored bpf,$(parts))

.PHONY: install
install: all ## everything below $(DESTDIR)$(PREFIX), the module to /lib/modules
	install -D -m 644 '$(out)/ored.ko' \
		'$(DESTDIR)/lib/modules/$(KREL)/updates/ored.ko'
	for part in $(parts); do $(MAKE) -C $$part install || exit 1; done
	test -n '$(DESTDIR)' || depmod '$(KREL)'

.PHONY: uninstall
uninstall: headers ## what install put there
	rm -f '$(DESTDIR)/lib/modules/$(KREL)/updates/ored.ko'
	for part in $(parts); do $(MAKE) -C $$part uninstall || exit 1; done
	test -n '$(DESTDIR)' || depmod '$(KREL)'

.PHONY: unit
unit: ## tests that need no kernel
	$(MAKE) -C selftests unit
	$(MAKE) -C selftests unit-arm64
	$(MAKE) -C libored check
	$(MAKE) -C tools check

.PHONY: lint
lint: ## checkpatch, sparse, kernel-doc, shellcheck, compilers' warnings, ...
	selftests/lint

.PHONY: check
check: ## everything there is to test, on all kernels
	selftests/check

.PHONY: check-debug
check-debug: ## all that kernels full of checkers find: leaks, races, misuse, ...
	selftests/check --debug

# Hours of `make soak`.
HOURS		?= 1

.PHONY: soak
soak: ## random tests on the debug kernels, with new seeds, for HOURS=1
	selftests/deps build vm check demo
	selftests/soak --hours '$(HOURS)'

.PHONY: fuzz-full
fuzz-full: ## 200,000 random call sequences, 1,000,000 damaged packets, twice each
	selftests/deps build vm check demo
	ORED_FUZZ=200000 selftests/run --kernel debug test_sockfuzz test_pktfuzz

.PHONY: proofs
proofs: ## the arithmetic of 16-bit floats exhaustively, 15 billion sums of F32; half an hour
	$(MAKE) -s -C selftests proofs

.PHONY: coverage
coverage: ## which lines of the module the kernel selftests run, and why not all
	selftests/deps build vm check demo
	rm -rf build/coverage
	selftests/run --kernel debug --coverage build/coverage $(TESTS)
	selftests/vm/debug/coverage --lines --least 85 \
		--reasons selftests/vm/debug/uncovered build/coverage/*

# Groups of bars; each is a program selftests/bench/GROUP.
BARS		?= $(patsubst selftests/bench/%,%,$(filter-out %.py %.c %.cc %.sh,$(wildcard selftests/bench/*)))

.PHONY: bench
bench: ## figures against their limits; BARS=GROUP for one group
	selftests/deps build vm bench
	@status=0; for group in $(BARS); do \
		selftests/bench/$$group || status=1; done; exit $$status

.PHONY: demo
demo: ## a training run in a virtual machine
	selftests/deps build vm demo
	tools/demo/run

# Sources as DKMS takes them: no more than `module` needs.
dkms_tree	= $(DESTDIR)/usr/src/ored-$(VERSION)

.PHONY: dkms-install
dkms-install: ## the module's sources to /usr/src, for DKMS to build
	rm -rf '$(dkms_tree)'
	mkdir -p '$(dkms_tree)'
	cp -r --parents Kbuild Makefile dkms.conf kmod uapi selftests/clang-kernel \
		selftests/vm/sources '$(dkms_tree)/'
	sed -i 's/^PACKAGE_VERSION=.*/PACKAGE_VERSION="$(VERSION)"/' \
		'$(dkms_tree)/dkms.conf'
	test -n '$(DESTDIR)' || dkms add ored/'$(VERSION)'

.PHONY: clean
clean: ## removes build/
	rm -rf build

.PHONY: help
help: ## this list
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/p' Makefile | expand -t 14
