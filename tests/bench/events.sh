#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# kvmtop's CPU time per KVM event, all but drawing, beside libperf's own reader: at most 0.8 of it.
set -eu
bench=$BUILD/bench/bench_events
if [ "$(id -u)" != 0 ] || [ ! -w /dev/kvm ]; then
	echo "needs root and /dev/kvm: skipped"
	exit 0
fi
# A mount namespace of its own: whoever has no tracefs keeps having none.
out=$(unshare -m sh -c '[ -d /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing
	exec "$0"' "$bench")
echo "$out"
echo "$out" | awk '/and model/ { seen = 1; if ($NF > 0.8) { print "above its bound of 0.80"; exit 1 } }
	END { if (!seen) exit 1 }'
