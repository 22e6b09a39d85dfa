#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Boots the patched kernel in the lab (tests/lab/run.sh, whose options it takes) and runs a script there:
#
#   kernel-support/boot.sh [--results DIR] [--seconds N] SCRIPT [ARG…]
#
# It is the lab's host, and the kernel of the guests in it. It is built first where it has to be.
# KERNEL_DEBUG=1: the host is the debug kernel (build.sh), which is slow; its guests are not.
set -eu
# As AMD's CPUs have it: QEMU's own says that it has no leaf of CPUID so high, and KVM raises that for guests only where
# the host's goes far enough (patch 9).
cpu=max,-la57,min-xlevel=0x8000001f
top=$(cd "$(dirname "$0")/.." && pwd)
# The cache may be under /tmp, which is empty in the lab, and the guests there need it too.
mkdir -p "$top/build/lab"
guest=$top/build/lab/vmlinux-patched
kernel=$(KERNEL_DEBUG='' "$top/kernel-support/build.sh")
cp -u "$kernel/vmlinux" "$guest"
if [ "${KERNEL_DEBUG:-}" != 1 ]; then
	exec "$top/tests/lab/run.sh" --kernel "$guest" --cpu $cpu "$@"
fi
# It has to unpack itself: where an unpacked one begins (PVH) KASAN is called before it is ready, and nothing comes of it.
host=$top/build/lab/bzImage-debug
kernel=$("$top/kernel-support/build.sh")
cp -u "$kernel/bzImage" "$host"
exec "$top/tests/lab/run.sh" --kernel "$host" --guest-kernel "$guest" --silence 300 --cpu $cpu "$@"
