#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs the benchmarks: one table with kvmtop's figures beside its peers' (bench.sh [PART…]). What cannot
# be measured here without root is said before anything is started.
set -eu
export TOP="$PWD" BUILD="$PWD/build" KVMTOP="${KVMTOP:-$PWD/build/kvmtop}"
[ "$(id -u)" = 0 ] || { echo "make bench needs root: real events are counted" >&2; exit 1; }
exec /usr/bin/python3 tests/bench/bench.py "$@"
