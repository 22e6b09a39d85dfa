#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Whether `make check-kernel` has passed with the series, configurations, scripts and tests as they are now: a CI
# machine, which has no cache, builds a kernel only where it has not.
#
#   kernel-support/checked.sh              exit status 0: it has, and prints when and with which result; 1: it has not
#   kernel-support/checked.sh --note TEXT  notes that it has just passed; TEXT: its last line
set -eu
cd "$(dirname "$0")/.."
note=kernel-support/checked

# Of the contents alone: the same for a checkout anywhere. What is written about them does not count.
inputs() {
	find kernel-support tests/kernel tests/guests/chain-run.c tests/guests/pmu-run.c tests/guests/vmm.h \
		tests/lab/guest/load.c tests/lab/guest/init.sh -type f ! -name '*.md' ! -name checked ! -name 'each_step.sh' ! -name '*.pyc' |
		LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c 1-20
}

now=$(inputs)
if [ "${1:-}" = --note ]; then
	printf '%s %s: %s\n' "$now" "$(date -u +%F)" "$2" >"$note"
	exit
fi
if [ "$(cut -d' ' -f1 "$note" 2>/dev/null)" = "$now" ]; then
	echo "make check-kernel passed on $(cut -d' ' -f2- "$note")"
else
	echo "kernel-support or its tests changed since make check-kernel passed: it has to run" >&2
	exit 1
fi
