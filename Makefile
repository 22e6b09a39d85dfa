# SPDX-License-Identifier: GPL-2.0-only
# Builds, tests and installs kvmtop. `make help` lists the targets.
#
# Two things here are less plain than usual. `make run` and `make check` must work where not even
# pkg-config is installed, so nothing that needs a package runs while this file is read: the flags
# are asked for when the first recipe uses them. And all tests go through one runner, tests/run,
# which builds what it needs by calling this file again, so that a build that breaks is counted too.
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:

ifeq ($(origin CC),default)
CC := gcc
endif
B ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
PKGS = ncursesw libtraceevent libelf libproc2 jansson expat zlib liblzma libzstd sqlite3
# BPF=0: without the programs that read and count inside the kernel, and without clang and libbpf.
BPF ?= 1
ifeq ($(BPF),1)
PKGS += libbpf
BPF_OBJ = $(patsubst collectors/bpf/%.bpf.c,$(B)/bpf/%.bpf.o,$(wildcard collectors/bpf/*.bpf.c))
BPF_CFLAGS = -DKVMTOP_BPF='"$(abspath $(B))/bpf"'
CLANG ?= clang
endif
LIBPERF = $(abspath build)/libperf

# --- flags -------------------------------------------------------------------------------------
WARN = -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wwrite-strings
OPT ?= -O2 -g
# SAN=address,undefined or SAN=thread; fortified functions hide faults from a sanitizer.
ifdef SAN
# gcc says that TSan does not understand fences; ours order memory shared with the kernel, which it cannot see.
HARDEN = -fPIE -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer \
	$(if $(findstring thread,$(SAN)),-Wno-tsan)
OPT = -O1 -g
LDFLAGS_SAN = -fsanitize=$(SAN)
else
# Without optimization there is nothing to fortify, and glibc warns.
HARDEN = -fPIE -fstack-protector-strong -fstack-clash-protection \
	-U_FORTIFY_SOURCE $(if $(findstring -O0,$(OPT)),,-D_FORTIFY_SOURCE=2)
endif
# Asked once, at first use (see above).
PKG_CFLAGS = $(eval PKG_CFLAGS := $$(shell pkg-config --cflags $$(PKGS)))$(PKG_CFLAGS)
PKG_LIBS = $(eval PKG_LIBS := $$(shell pkg-config --libs $$(PKGS)))$(PKG_LIBS)
# -iquote and not -I: <sched.h> is libc's, "sched.h" is ours.
CFLAGS_ALL = -std=gnu17 -D_GNU_SOURCE $(OPT) $(WARN) $(HARDEN) -pthread -MMD -MP \
	-iquote src -iquote collectors -iquote symbols -iquote ui -isystem $(LIBPERF)/usr/include $(PKG_CFLAGS) $(CFLAGS)
LDFLAGS_ALL = -pie -Wl,-z,relro,-z,now,-z,noexecstack $(LDFLAGS_SAN) -pthread $(LDFLAGS)
LIBS = $(LIBPERF)/usr/lib/libperf.a $(LIBPERF)/libapi.a $(PKG_LIBS) -lm

# --- what is built -----------------------------------------------------------------------------
SRC = $(wildcard src/*.c collectors/*.c symbols/*.c ui/*.c)
OBJ = $(SRC:%.c=$(B)/obj/%.o)
LIBOBJ = $(filter-out $(B)/obj/src/main.o,$(OBJ))
UNIT = $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/test_*.c))
BENCH = $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))
FUZZ = $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
LAB = $(patsubst tests/lab/guest/%.c,$(B)/lab/programs/%,$(wildcard tests/lab/guest/*.c))
PRELOAD = $(patsubst tests/kernel/%.c,$(B)/lab/%.so,$(wildcard tests/kernel/*.c))
TOOL = $(patsubst tests/tools/%.c,$(B)/tools/%,$(wildcard tests/tools/*.c))
GUEST = $(patsubst tests/guests/%.c,$(B)/guests/%,$(wildcard tests/guests/*.c))

all: $(B)/kvmtop
units: $(UNIT)
guests: $(GUEST)
fuzzers: $(FUZZ)
lab-programs: $(LAB) $(PRELOAD) $(TOOL)
# Everything that can be compiled: what a build under another compiler or sanitizer wants.
everything: all units guests lab-programs $(BENCH)

# What is done, a line a file; V=1: the commands themselves.
Q = $(if $(V),,@)
SAY = @$(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),:,echo)

# From the archive the linker takes what main.o needs, as it does for the tests.
$(B)/kvmtop: $(B)/obj/src/main.o $(B)/libkvmtop.a $(LIBPERF)/stamp
	$(SAY) LINK $@
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(B)/obj/src/main.o $(B)/libkvmtop.a $(LIBS)

$(B)/obj/%.o: %.c $(B)/flags | $(LIBPERF)/stamp
	@mkdir -p $(@D)
	$(SAY) CC $<
	$(Q)$(CC) $(CFLAGS_ALL) $(CFLAGS_OBJ) -c -o $@ $<

# Made by clang whatever compiles the rest, and a part of the program (.incbin). The debug sections go,
# the type information stays: by it libbpf fits a program to the running kernel.
$(B)/bpf/%.bpf.o: collectors/bpf/%.bpf.c $(wildcard collectors/bpf/*.h) | need-build
	@mkdir -p $(@D)
	$(SAY) BPF $<
	$(Q)$(CLANG) -O2 -g -mcpu=v3 -Wall -Wextra -Werror -target bpf -I/usr/include/$$(gcc -print-multiarch) -c -o $@ $<
	$(Q)if command -v llvm-strip >/dev/null; then llvm-strip -g $@; fi

BPF_USERS = $(patsubst %,$(B)/obj/collectors/%.o,sched_iter kvm_bpf wait_bpf vpmu_msrs bpf_cost bpf_load)
$(BPF_USERS): CFLAGS_OBJ = $(BPF_CFLAGS)
$(BPF_USERS): $(BPF_OBJ)

$(B)/libkvmtop.a: $(LIBOBJ)
	$(SAY) AR $@
	$(Q)rm -f $@ && ar rcs $@ $(LIBOBJ)

$(B)/unit/%: tests/unit/%.c $(B)/libkvmtop.a $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -MF $@.d -MT $@ -iquote tests/unit -o $@ $< $(LDFLAGS_ALL) $(B)/libkvmtop.a $(LIBS) -lcmocka

$(B)/bench/%: tests/bench/%.c $(B)/libkvmtop.a $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -MF $@.d -MT $@ -iquote tests/unit -o $@ $(filter %.c,$^) $(LDFLAGS_ALL) $(B)/libkvmtop.a $(LIBS)

$(B)/bench/bench_store $(B)/bench/bench_week: tests/unit/made_snapshot.c

# The tests' small VMMs (their counts are the truth that kvmtop is held to): one a file.
$(B)/guests/%: tests/guests/%.c $(B)/libkvmtop.a $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -MF $@.d -MT $@ -o $@ $< $(LDFLAGS_ALL) $(B)/libkvmtop.a $(LIBS)

$(B)/tools/%: tests/tools/%.c $(B)/libkvmtop.a $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -MF $@.d -MT $@ -iquote tests/unit -o $@ $< $(LDFLAGS_ALL) $(B)/libkvmtop.a $(LIBS)

# What runs inside the lab's QEMU guests: alone there, so without any library to load.
$(B)/lab/programs/%: tests/lab/guest/%.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE -O2 -g $(WARN) -pthread -static -MMD -MP -MF $@.d -MT $@ -o $@ $<

# For a QEMU in the lab, which is this machine's.
$(B)/lab/%.so: tests/kernel/%.c $(B)/flags
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE -O2 -g $(WARN) -shared -fPIC -MMD -MP -MF $@.d -MT $@ -o $@ $<

# A fuzz target is linked with a plain main that replays files, or with libFuzzer (make fuzz).
ifdef LIBFUZZER
FUZZ_MAIN = -fsanitize=fuzzer
else
FUZZ_MAIN = $(B)/obj/tests/fuzz/main_replay.o
endif
$(B)/fuzz/%: tests/fuzz/%.c $(B)/obj/tests/fuzz/main_replay.o $(B)/libkvmtop.a $(B)/flags
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Wno-missing-prototypes -MF $@.d -MT $@ -o $@ $< $(FUZZ_MAIN) $(LDFLAGS_ALL) $(B)/libkvmtop.a $(LIBS)

# Rewritten only when it differs: other flags or another compiler make everything old.
$(B)/flags: FORCE | need-build
	@mkdir -p $(@D)
	@echo '$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) BPF=$(BPF)' | cmp -s - $@ || \
		echo '$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) BPF=$(BPF)' >$@

$(LIBPERF)/stamp: FORCE | need-build
	@CC='$(CC)' sh scripts/libperf.sh $(LIBPERF)

need-build:
	@command -v $(firstword $(CC)) >/dev/null || { echo "no compiler $(CC): run make deps" >&2; exit 1; }
	@command -v pkg-config >/dev/null || { echo "no pkg-config: run make deps" >&2; exit 1; }
	@pkg-config --print-errors --exists $(PKGS) || { echo "libraries are missing: run make deps" >&2; exit 1; }

# For tools that parse the code as the compiler does (clang-tidy). Their database would hold paths.
print-cflags: | $(LIBPERF)/stamp
	@echo '$(filter-out -MMD -MP -Werror,$(CFLAGS_ALL)) -iquote tests/unit'

# --- run ---------------------------------------------------------------------------------------
# The full screen; without a terminal three batch intervals. ARGS='…' goes to the program.
run:
	@sh scripts/deps.sh build
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@if [ -t 0 ] && [ -t 1 ]; then exec $(B)/kvmtop $(ARGS); \
	else exec $(B)/kvmtop --batch -n 3 $(ARGS); fi

# --- checks ------------------------------------------------------------------------------------
# One part each; `check` is all of them but check-tidy-all. tests/run --help says more.
PARTS = unit native screen deps format tidy tidy-all asan tsan man clang hardening install \
	shell python spdx style runner
CHECKS = $(PARTS:%=check-%)

check: need-check
	@tests/run all
$(CHECKS): check-%: need-check
	@tests/run $*
fuzz-replay: need-check
	@tests/run fuzz
# Real kvm_exit, kvm_entry and QEMU guests in an emulated host (tests/lab/run.sh).
check-lab: need-check
	@sh scripts/deps.sh lab
	@tests/run lab
# The patched kernel (kernel-support/) built, booted there, and what kvmtop makes of it.
check-kernel: need-check
	@sh scripts/deps.sh lab kernel
	@tests/run kernel
# The same on a kernel with KASAN and lockdep: by hand, for hours.
check-kernel-debug: need-check
	@sh scripts/deps.sh lab kernel
	@tests/run kernel-debug
need-check:
	@sh scripts/deps.sh build check

# libFuzzer on every target for FUZZ_SECONDS each; what it finds is kept in build/fuzz/.
fuzz: need-check
	@sh scripts/fuzz.sh $(FUZZ_SECONDS)

bench:
	@sh scripts/deps.sh build check bench lab
	@$(MAKE) --no-print-directory -j$(JOBS) all guests $(BENCH)
	@sh scripts/bench.sh

# The README's two commands in a minimal Debian made for the purpose (root, some minutes).
check-fresh:
	@sh scripts/deps.sh fresh
	@sh scripts/check_fresh.sh

# --- the rest ----------------------------------------------------------------------------------
deps:
	@sh scripts/deps.sh build check bench

install: all
	@DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' sh scripts/install.sh install $(B)/kvmtop
uninstall:
	@DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' sh scripts/install.sh uninstall $(B)/kvmtop

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

# libperf stays: it takes longer than all the rest and depends on nothing here. distclean takes it too.
clean:
	@[ ! -d build ] || find build -mindepth 1 -maxdepth 1 ! -name libperf -exec rm -rf {} +
distclean:
	rm -rf build

help:
	@sed -n 's/^## //p' Makefile
## all          build/kvmtop (default)
## run          installs what is missing, builds, starts it (three batch intervals without a terminal)
## check        installs what is missing, then every test; check-PART runs one part of:
##              unit native screen deps format tidy asan tsan man clang hardening install shell
##              python spdx style runner; check-tidy-all: clang-tidy over all files, not only changed ones
## check-lab    real exits and QEMU guests in an emulated host (fetches a kernel, some minutes)
## check-kernel the patches of kernel-support/: applied, built (long, then cached), booted in the lab
## check-kernel-debug  the same under KASAN, lockdep and the like (hours)
## fuzz-replay  every fuzz target over its corpus        fuzz  libFuzzer, FUZZ_SECONDS each
## bench        the figures of kvmtop beside its peers   check-fresh  all of it in a new Debian
## install, uninstall   DESTDIR, PREFIX (/usr/local)     deps  only the packages
## format       clang-format over all files              clean, distclean (libperf too)
## CC=clang, OPT='-O0 -g', CFLAGS, LDFLAGS, B=another build folder, BPF=0: without clang and libbpf

FORCE:
-include $(OBJ:.o=.d) $(GUEST:=.d) $(LAB:=.d) $(PRELOAD:=.d) $(TOOL:=.d) $(UNIT:=.d) $(BENCH:=.d) $(FUZZ:=.d)
.PHONY: all units guests fuzzers lab-programs everything need-build run check $(CHECKS) check-lab check-kernel check-kernel-debug fuzz-replay need-check fuzz \
	bench check-fresh deps install uninstall format clean distclean help print-cflags FORCE
