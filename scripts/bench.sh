#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs the benchmarks, tests/bench/*.sh and *.py, one after the other: each prints its table, with its
# peers measured in the same run, and fails when a figure misses its bound.
rc=0
export TOP="$PWD" BUILD="$PWD/build" KVMTOP="${KVMTOP:-$PWD/build/kvmtop}"
for f in tests/bench/*.sh tests/bench/*.py; do
	[ -e "$f" ] || continue
	some=1
	echo "== ${f#tests/bench/}"
	case $f in
	*.py) /usr/bin/python3 "$f" ;;
	*) bash "$f" ;;
	esac || { rc=1; echo "FAILED: $f"; }
done
[ -n "${some:-}" ] || { echo "no benchmarks"; exit 1; }
exit $rc
