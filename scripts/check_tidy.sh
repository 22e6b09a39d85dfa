#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# clang-tidy with .clang-tidy: check_tidy.sh changed|all. `changed` takes the .c files that differ
# from where this branch left main, on main those of its last five commits, and those not committed
# yet: that is what `make check` has time for. `all` is for `make check-tidy-all`.
set -eu
if [ "$1" = all ]; then
	files=$(git ls-files '*.c')
else
	base=$(git merge-base HEAD main 2>/dev/null || true)
	if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
		base=$(git log -n 6 --first-parent --format=%H | tail -n 1)
	fi
	files=$(git diff --name-only --diff-filter=d "$base" -- '*.c')
fi
# src/libperf/ is compiled against libperf's own tree, which is gone after that; arm64's guest by a cross compiler.
files=$(echo "$files" | grep -v -e '^src/libperf/' -e '^tests/guests/arm64/' || true)
[ -n "$files" ] || { echo "# nothing changed"; exit 0; }
flags=$(make -s print-cflags CC=clang)
# What runs inside the kernel is another machine's code.
bpf="-O2 -g -target bpf -I/usr/include/$(gcc -print-multiarch)"
echo "# $(echo "$files" | wc -l) files"
# One file a process: an analyzer's time differs much from file to file.
# shellcheck disable=SC2016 # for the inner shell
echo "$files" | xargs -P "$(nproc)" -n 1 sh -c '
	case $2 in *.bpf.c) flags=$1 ;; *) flags=$0 ;; esac
	out=$(clang-tidy --quiet "$2" -- $flags 2>&1) || { printf "%s\n" "$out"; exit 1; }' "$flags" "$bpf"
