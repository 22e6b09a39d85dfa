#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Builds libperf (and libapi, which it needs) statically from Debian's kernel source package:
# libperf.sh DIR. Debian has no libperf package, and we keep no copy of kernel code. DIR/stamp names
# what DIR was built from; nothing is done while that is the installed source. DIR appears by one
# rename, so that a build killed half-way is never taken for a whole one.
# KVMTOP_CACHE=FOLDER keeps built copies there for other trees. LIBPERF_SOURCE=FILE names another tarball.
set -eu
out=$1
src=${LIBPERF_SOURCE:-$(find /usr/src -maxdepth 1 -name 'linux-source-*.tar.xz' 2>/dev/null | sort -V | tail -n 1)}
if [ ! -r "$src" ]; then
	echo "no kernel source in /usr/src (package linux-source-*): run make deps" >&2
	exit 1
fi
top=$(basename "$src" .tar.xz)
access=$(dirname "$0")/../src/libperf/access.c
# Package version where dpkg knows it; size and time tell a replaced tarball as well.
version="$top $(dpkg-query -W -f '${Version}' "$top" 2>/dev/null || true) $(stat -c '%s.%Y' "$src") $(cksum <"$access")"
[ "$(cat "$out/stamp" 2>/dev/null || true)" != "$version" ] || exit 0

parent=$(dirname "$out")
mkdir -p "$parent"
exec 9>"$parent/.libperf.lock"
flock 9 # two makes in one tree
[ "$(cat "$out/stamp" 2>/dev/null || true)" != "$version" ] || exit 0

rm -rf "$parent"/.libperf.?????? # of one that was killed; we hold the lock
tmp=$(mktemp -d "$parent/.libperf.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

# The compiler's target is in the key: a cache may be shared by machines of several kinds.
key=$(echo "$version $(${CC:-cc} -dumpmachine)" | tr -c 'A-Za-z0-9.\n_-' _)
cached=${KVMTOP_CACHE:+$KVMTOP_CACHE/libperf-$key}
if [ -n "$cached" ] && [ -f "$cached/stamp" ]; then
	cp -r "$cached" "$tmp/whole"
else
	echo "building libperf from $src" >&2
	w=$tmp/whole
	mkdir -p "$tmp/src" "$w/obj"
	tar xf "$src" --strip-components=1 -C "$tmp/src" "$top"/tools/lib/perf "$top"/tools/lib/api \
		"$top"/tools/lib/zalloc.c "$top"/tools/lib/str_error_r.c "$top"/tools/build \
		"$top"/tools/scripts "$top"/tools/include "$top"/tools/arch
	# Our own flags, warnings and make variables are not meant for the kernel's makefiles.
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u CFLAGS -u LDFLAGS -u CC -u OPT -u B \
		make -s -C "$tmp/src/tools/lib/perf" O="$w/obj" prefix=/usr libdir=/usr/lib DESTDIR="$w" \
		EXTRA_CFLAGS=-fPIC install_lib install_headers install_pkgconfig >"$tmp/log" 2>&1 </dev/null || {
		tail -n 20 "$tmp/log" >&2
		exit 1
	}
	mv "$w/obj/libapi.a" "$w/libapi.a"
	# Our accessors see the private headers of the same tree, and only they do.
	t=$tmp/src/tools
	${CC:-cc} -std=gnu11 -O2 -g -fPIC -D_GNU_SOURCE -I"$t/lib/perf/include" -I"$t/lib" -I"$t/include" \
		-I"$t/include/uapi" -I"$t/arch/x86/include" -c -o "$tmp/access.o" "$access"
	ar rs "$w/usr/lib/libperf.a" "$tmp/access.o" 2>/dev/null
	rm -rf "$w/obj"
	echo "$version" >"$w/stamp"
	if [ -n "$cached" ]; then
		mkdir -p "$KVMTOP_CACHE"
		cp -r "$w" "$cached.$$"
		mv -T "$cached.$$" "$cached" 2>/dev/null || rm -rf "$cached.$$" # another was first
	fi
fi
rm -rf "$out"
mv -T "$tmp/whole" "$out"
touch "$out/stamp" # newer than what was linked with the former one
