#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=dash
# The first process of a QEMU guest inside the lab: load.c at its serial console, nothing else.
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
# Samples take long here; perf would stop its counters for that from time to time.
echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent
/bin/busybox ifconfig lo 127.0.0.1 up
exec /load </dev/ttyS0 >/dev/ttyS0 2>&1
