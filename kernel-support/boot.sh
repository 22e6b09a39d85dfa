#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Boots the patched kernel in the lab (tests/lab/run.sh, whose options it takes) and runs a script there:
#
#   kernel-support/boot.sh [--results DIR] [--seconds N] SCRIPT [ARG…]
#
# It is the lab's host, and the kernel of the guests in it. It is built first where it has to be.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
kernel=$("$top/kernel-support/build.sh")
# The cache may be under /tmp, which is empty in the lab, and the guests there need it too.
mkdir -p "$top/build/lab"
cp -u "$kernel/vmlinux" "$top/build/lab/vmlinux-patched"
exec "$top/tests/lab/run.sh" --kernel "$top/build/lab/vmlinux-patched" "$@"
