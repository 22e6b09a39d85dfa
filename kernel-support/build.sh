#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Builds the patched kernel with config/lab.config (KERNEL_DEBUG=1: and config/debug.config); prints
# the folder with vmlinux, bzImage, config and the build's log. Nothing is built again while patches, configuration, source and compiler
# are those of a result in the cache. From nothing it takes some 17 minutes of CPU time.
# JOBS=N, and BUILD_PREFIX="chrt -i 0 nice" for a machine that has other work.
# shellcheck disable=SC2154 # lib.sh sets them
set -eu
# shellcheck source=kernel-support/lib.sh
. "$(dirname "$0")/lib.sh"

find_source
built=$cache/built$flavour
out=$built/$(build_key)
if [ -e "$out/vmlinux" ]; then
	echo "$out"
	exit
fi
for tool in flex bison bc; do
	command -v $tool >/dev/null || die "no $tool: run scripts/deps.sh kernel"
done
src=$("$support/apply.sh")
lock_cache
obj=$cache/obj$flavour
log=$cache/build$flavour.log
mkdir -p "$obj"

# make's variables of our own build are not meant for the kernel's.
kmake() {
	# shellcheck disable=SC2086 # words are wanted
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u CFLAGS -u LDFLAGS -u OPT -u B -u V ${BUILD_PREFIX:-} \
		make -s -C "$src" O="$obj" LOCALVERSION= KBUILD_BUILD_USER=kvmtop KBUILD_BUILD_HOST=localhost "$@" 7>&-
}

configure() {
	kmake tinyconfig
	(cd "$obj" && "$src/scripts/kconfig/merge_config.sh" -m .config "${configs[@]}")
	kmake olddefconfig
}

# What we ask for and do not get, because something else it needs is missing.
check_config() {
	local line
	cat "${configs[@]}" | grep '^CONFIG_' | while read -r line; do
		grep -qxF "$line" "$obj/.config" || die "$line: not possible in this kernel"
	done
}

echo "kernel-support: building $version, log in $log" >&2
cp "$obj/.config" "$obj/.config.before" 2>/dev/null || true
configure >"$log" 2>&1 || die "cannot configure: see $log"
check_config
kmake -j"${JOBS:-$(nproc)}" vmlinux bzImage >>"$log" 2>&1 || {
	tail -n 20 "$log" >&2
	die "the kernel does not build: see $log"
}
rm -rf "$out.new"
mkdir -p "$out.new"
cp "$obj/vmlinux" "$obj/.config" "$log" "$out.new/"
cp "$obj/arch/x86/boot/bzImage" "$out.new/"
mv "$out.new/.config" "$out.new/config"
rm -rf "$out"
mv "$out.new" "$out"
# The three newest are kept.
find "$built" -mindepth 1 -maxdepth 1 -printf '%T@ %p\n' | sort -rn | tail -n +4 | cut -d' ' -f2- | xargs -r rm -rf
echo "$out"
