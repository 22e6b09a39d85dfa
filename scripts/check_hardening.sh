#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The built program is hardened: read from the ELF file itself, not from the flags.
# check_hardening.sh [PROGRAM]
. "$(dirname "$0")/../tests/tap.sh"
bin=${1:-${KVMTOP:-build/kvmtop}}

elf() { LC_ALL=C readelf -W "$@" "$bin"; }
elf -h | grep -q 'Type: *DYN'; ok $? "PIE: a position-independent file"
elf -d | grep -q 'FLAGS_1.*PIE'; ok $? "PIE: marked as a program"
elf -l | grep -q GNU_RELRO; ok $? "RELRO"
elf -d | grep -Eq 'BIND_NOW|FLAGS.*NOW'; ok $? "RELRO: bound at start (now)"
elf -l | grep 'GNU_STACK' | grep -q ' RW '; ok $? "the stack is not executable"
! elf -d | grep -q TEXTREL; ok $? "no relocations in code"
elf --dyn-syms | grep -q __stack_chk_fail; ok $? "stack protector"
elf --dyn-syms | grep -Eq '__[a-z]+_chk(@| |$)'; ok $? "fortified library calls"
! elf -d | grep -Eq 'RPATH|RUNPATH'; ok $? "no run path"
tap_done
