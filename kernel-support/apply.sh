#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Debian's kernel source with our patches, in the cache; prints its folder.
#
#   kernel-support/apply.sh          the series, in its order; no patch may need any fuzz
#   kernel-support/apply.sh --am     the same by `git am`, which wants good mail headers: a trial in a
#                                    repository of the touched files alone, whatever the cache has
#
# Where only patches changed since the last time, only the files that came out different look new
# to make, so that the next build is short.
# shellcheck disable=SC2154 # lib.sh sets them
set -eu
# shellcheck source=kernel-support/lib.sh
. "$(dirname "$0")/lib.sh"

touched() { # the files that patches ($@) change, below the source's top
	[ $# -eq 0 ] || sed -n 's|^+++ b/||p; s|^--- a/||p' "$@" | LC_ALL=C sort -u
}

extract() {
	echo "kernel-support: unpacking $tarball" >&2
	rm -rf "$cache/linux" "$cache/linux.new" "$cache/applied"
	mkdir "$cache/linux.new"
	tar xf "$tarball" --strip-components=1 -C "$cache/linux.new"
	echo "$version" >"$cache/linux.new/.version-of-source"
	mv "$cache/linux.new" "$cache/linux"
}

put_back() { # the files $@ of the source as Debian has them
	local f
	for f; do
		rm -f "$cache/linux/$f"
		[ ! -e "$cache/original/$f" ] || cp -p "$cache/original/$f" "$cache/linux/$f"
	done
}

keep() { # the originals of the files $@
	local f
	for f; do
		[ ! -e "$cache/linux/$f" ] || (cd "$cache/linux" && cp -p --parents "$f" "$cache/original/")
	done
}

apply() { # the patches $@ instead of those in the folder `applied`
	local f old new before=$cache/before
	mapfile -t old < <(touched "$cache"/applied/*.patch 2>/dev/null)
	mapfile -t new < <(touched "$@")
	rm -rf "$before"
	mkdir -p "$before" "$cache/original"
	for f in "${old[@]}"; do
		[ ! -e "$cache/linux/$f" ] || (cd "$cache/linux" && cp -p --parents "$f" "$before/")
	done
	put_back "${old[@]}"
	rm -rf "$cache/original" "$cache/applied"
	mkdir -p "$cache/original" "$cache/applied"
	keep "${new[@]}"
	for f; do
		cp "$f" "$cache/applied/" # first: what fails in its middle has to be put back as well
		patch -d "$cache/linux" -p1 -F0 -s -N --no-backup-if-mismatch <"$f" || \
			die "$(basename "$f") does not fit $version; the series was made for $(cat "$patches/made-for")"
	done
	for f in "${old[@]}" "${new[@]}"; do
		cmp -s "$before/$f" "$cache/linux/$f" && touch -r "$before/$f" "$cache/linux/$f"
	done
	rm -rf "$before"
}

try_am() { # the patches $@
	local files
	trial=$(mktemp -d)
	trap 'rm -rf "$trial"' EXIT
	mapfile -t files < <(touched "$@")
	tar xf "$tarball" -C "$trial" "${files[@]/#/$name/}"
	cd "$trial/$name"
	git init -q .
	git add -f .
	git -c user.name=base -c user.email=base@localhost commit -qm base
	git -c user.name=base -c user.email=base@localhost am --whitespace=error-all -q "$@"
	git log --reverse --format='%h %s' HEAD~$#..HEAD
}

find_source
mapfile -t series < <(list_patches)
if [ "${1:-}" = --am ]; then
	try_am "${series[@]}"
	exit
fi
lock_cache
if [ "$(cat "$cache/linux/.version-of-source" 2>/dev/null || true)" != "$version" ]; then
	extract
fi
if ! cmp -s <(cat "${series[@]}") <(cat "$cache"/applied/*.patch 2>/dev/null); then
	apply "${series[@]}"
fi
echo "$cache/linux"
