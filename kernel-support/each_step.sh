#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Each patch of the series builds by itself: applies one after the other with `git am`, and after each builds what
# the series touches, with W=1. Fails where a step does not build, brings a warning that the source before it had not,
# or uses a function that a later step brings.
#
# x86, and PowerPC and ARM (for the lines that the series has there) where Debian's cross compiler is installed:
# gcc-powerpc64le-linux-gnu, gcc-aarch64-linux-gnu. It has a source tree (hard links) and builds of its own in the
# cache, beside those of build.sh, whose kernel has to be there and is made where it is not. JOBS=N; ONLY=ARCH.
# shellcheck disable=SC2154 # lib.sh sets them
set -eu
# shellcheck source=kernel-support/lib.sh
. "$(dirname "$0")/lib.sh"

# ARCH, its compiler's prefix, configuration; then what is built: what the series touches, KVM as a whole, and who else
# includes the headers that it touches and has most to do with them.
ARCHS=("x86 - lab arch/x86/kvm/ arch/x86/events/core.o fs/proc/array.o kernel/events/ kernel/sched/core.o kernel/exit.o kernel/fork.o"
	"powerpc powerpc64le-linux-gnu- pseries_le_defconfig arch/powerpc/kvm/book3s_hv.o fs/proc/array.o kernel/exit.o kernel/fork.o kernel/events/"
	"arm64 aarch64-linux-gnu- defconfig arch/arm64/kvm/arm.o fs/proc/array.o kernel/exit.o kernel/fork.o kernel/events/")
SHARED=virt/kvm/kvm_main.c # built as a part of arch/x86/kvm/

touched() {
	sed -n 's|^+++ b/||p; s|^--- a/||p' "$@" | LC_ALL=C sort -u
}

make_tree() { # the source as Debian has it, in a repository of the files that the series touches
	local f
	rm -rf "$steps/linux"
	cp -al "$patched" "$steps/linux"
	cd "$steps/linux"
	git init -q .
	for f in "${files[@]}"; do
		rm -f "$f"
		[ ! -e "$cache/original/$f" ] || cp "$cache/original/$f" "$f"
		[ ! -e "$f" ] || git add -f "$f"
	done
	git -c user.name=base -c user.email=base@localhost commit -qm base
}

kmake() { # of $arch
	local cross=()
	[ "$prefix" = - ] || cross=("CROSS_COMPILE=$prefix")
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u CFLAGS -u LDFLAGS -u OPT -u B -u V \
		make -s -C "$steps/linux" O="$obj" ARCH="$arch" LOCALVERSION= "${cross[@]}" "$@" 8>&-
}

configure() { # $arch
	[ ! -e "$obj/.config" ] || return 0
	mkdir -p "$obj"
	if [ "$config" = lab ]; then
		kmake tinyconfig
		(cd "$obj" && "$steps/linux/scripts/kconfig/merge_config.sh" -m .config "${configs[@]}")
		kmake olddefconfig
	else
		kmake "$config"
	fi
}

warnings() { # of the log $1, without the numbers of lines
	sed -n "s|$steps/linux/||g; s/:[0-9:]*: warning: /: warning: /p" "$1" | LC_ALL=C sort -u
}

objects() { # of $arch, newest build
	find "$obj/arch/$arch/kvm" "$obj/virt/kvm" "$obj/kernel" "$obj/fs/proc" "$obj/arch/$arch/events" \
		-name '*.o' -newer "$steps/begun" 2>/dev/null
}

symbols() { # of these objects, by an option of nm
	objects | xargs nm "$1" -j 2>/dev/null | grep -v '[: ]' | grep . | LC_ALL=C sort -u
}

missing() { # $1: what the objects of this step use, and none of them nor the rest of the kernel has
	symbols --defined-only >"$1.has"
	LC_ALL=C comm -23 <(symbols -u) "$1.has" >"$1.needs"
	[ "$step" != base ] || cp "$1.needs" "$steps/$arch.base.external"
	LC_ALL=C comm -23 "$1.needs" "$steps/$arch.base.external"
}

build() { # $arch at this step
	local log=$steps/$arch.$step new
	kmake -j"${JOBS:-$(nproc)}" W=1 "${targets[@]}" >"$log" 2>&1 || {
		tail -n 20 "$log" >&2
		die "$arch does not build at $step: see $log"
	}
	warnings "$log" >"$log.warnings"
	[ "$step" != base ] || cp "$log.warnings" "$steps/$arch.known"
	new=$(LC_ALL=C comm -13 "$steps/$arch.known" "$log.warnings")
	[ -z "$new" ] || die "$step: new for $arch: $new"
	missing "$log" >"$log.missing"
}

each_arch() { # does $@ with the variables of each
	local line
	for line in "${ARCHS[@]}"; do
		read -r arch prefix config targets <<<"$line"
		[ "${ONLY:-$arch}" = "$arch" ] || continue
		read -ra targets <<<"$targets"
		obj=$steps/obj-$arch
		[ "$prefix" = - ] || command -v "${prefix}gcc" >/dev/null || continue
		"$@"
	done
}

# A function of the kernel's that a step begins to use is in the built kernel, and none of the series' own.
check_symbols() {
	local late
	[ "$arch" = x86 ] || return 0
	late=$(LC_ALL=C comm -12 <(cat "$steps/$arch".*.missing | LC_ALL=C sort -u) "$steps/$arch.$step.has")
	[ -z "$late" ] || die "used before the step that brings it: $late"
	late=$(LC_ALL=C comm -23 <(cat "$steps/$arch".*.missing | LC_ALL=C sort -u) <(nm -j "$kernel/vmlinux" | LC_ALL=C sort -u))
	[ -z "$late" ] || die "nowhere in the kernel: $late"
}

# Nothing that the series touches is left out.
check_targets() {
	local f t rest
	for f in "${files[@]}"; do
		case $f in
		arch/*.c | fs/*.c | kernel/*.c | virt/*.c) rest=$f ;;
		*) continue ;;
		esac
		[ "$f" != "$SHARED" ] || continue
		for t in $(printf '%s\n' "${ARCHS[@]}"); do
			case $f in
			"${t%.o}.c") rest='' ;;
			*) case $t in */) [ "${f#"$t"}" = "$f" ] || rest='' ;; esac ;;
			esac
		done
		[ -z "$rest" ] || die "$f is not among what is built here"
	done
}

report() {
	echo "# $arch, $step: $(grep -c . "$steps/$arch.$step.warnings" || true) warnings of W=1, none of them new; $(objects | wc -l) objects"
}

find_source
mapfile -t series < <(list_patches)
mapfile -t files < <(touched "${series[@]}" | grep -v '^dev/null$')
check_targets
kernel=$("$support/build.sh")
patched=$("$support/apply.sh")
steps=$cache/steps
mkdir -p "$steps"
exec 8>"$steps/lock"
flock 8
: >"$steps/begun"
rm -f "$steps"/*.*
lock_cache
make_tree
exec 7>&-
step=base
each_arch configure >"$steps/configure.log" 2>&1 || die "cannot configure: see $steps/configure.log"
each_arch build
each_arch report
echo "1..${#series[@]}"
for patch in "${series[@]}"; do
	step=$(basename "$patch" .patch)
	git -c user.name=base -c user.email=base@localhost am --whitespace=error-all -q "$patch" 8>&-
	each_arch build
	each_arch report
	echo "ok - $step"
done
each_arch check_symbols
rm -rf "$steps/linux"
