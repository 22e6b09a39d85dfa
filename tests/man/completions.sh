#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The bash completion, used as bash would: words for what stands before the cursor.
. "$TOP/tests/tap.sh"
# shellcheck source=/dev/null # made by scripts/generated.py
. "$TOP/contrib/completions/kvmtop.bash"

words() { # words WORD… : what the last one is completed to
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	_kvmtop
	echo "${COMPREPLY[*]}"
}

is "$(words kvmtop --max-o)" "--max-overhead" "an option"
is "$(words kvmtop doc)" "doctor" "a command"
is "$(words kvmtop --format j)" "json" "a value"
is "$(words kvmtop -s steal_m)" "steal_max_pct steal_max_vcpu" "a column behind a short option"
is "$(words kvmtop --table vcpu-)" "vcpu-exit vcpu-symbol vcpu-waited" "a table"
is "$(words kvmtop --collectors sch)" "sched" "a collector"
is "$(words kvmtop -n 5)" "" "nothing where anything may stand"
like "$(words kvmtop --pid "$$")" "\b$$\b" "a process"
tap_done
