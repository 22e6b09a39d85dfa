#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs the benchmarks, tests/bench/*.sh, one after the other: each prints its table, with its peers
# measured in the same run, and fails when a figure misses its bound.
rc=0
for f in tests/bench/*.sh; do
	[ -e "$f" ] || { echo "no benchmarks"; exit 1; }
	echo "== ${f#tests/bench/}"
	KVMTOP=${KVMTOP:-$PWD/build/kvmtop} BUILD=$PWD/build TOP=$PWD bash "$f" || { rc=1; echo "FAILED: $f"; }
done
exit $rc
