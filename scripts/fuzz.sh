#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs every fuzz target under libFuzzer with ASan and UBSan: fuzz.sh SECONDS (each). New inputs go
# to build/fuzz/<target>/, crashes beside them; what is worth keeping is copied to tests/fuzz/corpus/.
set -eu
seconds=$1
b=build/libfuzzer
# fuzzer-no-link instruments our library without a main; the target itself is linked with one.
make -s -j"$(nproc)" B=$b CC=clang LIBFUZZER=1 SAN=address,undefined \
	CFLAGS=-fsanitize=fuzzer-no-link fuzzers
rc=0
for bin in "$b"/fuzz/fuzz_*; do
	case $bin in *.d | "$b/fuzz/fuzz_*") continue ;; esac
	name=$(basename "$bin")
	found=build/fuzz/$name
	mkdir -p "$found"
	echo "== $name"
	"$bin" -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$found/" \
		"$found" "tests/fuzz/corpus/${name#fuzz_}" || rc=1
done
exit $rc
