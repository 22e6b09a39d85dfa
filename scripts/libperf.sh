#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Builds libperf from Debian's kernel source package into DIR (argument 1), static.
set -eu
out=$1
src=$(ls /usr/src/linux-source-*.tar.xz | sort -V | tail -n 1)
top=$(basename "$src" .tar.xz)
work=$out/src
rm -rf "$out"
mkdir -p "$work" "$out/obj"
tar xf "$src" --strip-components=1 -C "$work" "$top"/tools/lib/perf "$top"/tools/lib/api \
	"$top"/tools/lib/zalloc.c "$top"/tools/lib/str_error_r.c "$top"/tools/build \
	"$top"/tools/scripts "$top"/tools/include "$top"/tools/arch/x86/include
make -s -C "$work/tools/lib/perf" O="$out/obj" prefix=/usr libdir=/usr/lib DESTDIR="$out" \
	install_lib install_headers install_pkgconfig >"$out/build.log" 2>&1 ||
	{ tail -n 20 "$out/build.log" >&2; exit 1; }
cp "$out/obj/libapi.a" "$out/libapi.a"
rm -rf "$work"
