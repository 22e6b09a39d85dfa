#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# sanitize: no, it only compiles
# make BPF=0: the same program without clang and libbpf; it says so and reads /proc.
. tests/tap.sh
B=$TEST_TMP/build
make -s BPF=0 B="$B" "$B/obj/collectors/sched_iter.o" "$B/obj/collectors/kvm_bpf.o" "$B/obj/collectors/wait_bpf.o" >"$TEST_TMP/log" 2>&1
is "$?" 0 "compiles without BPF"
between "$(nm -u "$B"/obj/collectors/{sched_iter,kvm_bpf,wait_bpf}.o | grep -c bpf_)" 0 0 "asks for nothing of libbpf"
tap_done
