#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What a CI machine runs (.ci/run): one total over its parts, in a made tree.
. "$TOP/tests/tap.sh"
made=$TEST_TMP/made
mkdir -p "$made/.ci" "$made/kernel-support" "$made/tests/kernel" "$made/tests/guests" "$made/tests/lab/guest"
cp .ci/run "$made/.ci/run"
cp kernel-support/checked.sh "$made/kernel-support/"
touch "$made"/tests/{guests/{chain-run.c,pmu-run.c,vmm.h},lab/guest/{load.c,init.sh},kernel/x.py}
"$made/kernel-support/checked.sh" --note "3 passed, 0 failed, 0 skipped"

# ci CHECK LAB [KERNEL]: what the recipes of the parts do; the last line in $total, status in $rc
ci() {
	printf '.SILENT:\ncheck:\n\t%s\ncheck-lab:\n\t%s\ncheck-kernel:\n\t%s\n' "$1" "$2" "${3:-exit 1}" >"$made/Makefile"
	out=$(env -u CHECK_TOTAL "$made/.ci/run")
	rc=$?
	total=$(printf '%s\n' "$out" | tail -n 1)
}
says() {
	echo "echo \"$1\" >\$\$CHECK_TOTAL"
}

ci "$(says '5 passed, 0 failed, 1 skipped')" "$(says '7 passed, 0 failed, 0 skipped')"
is "$total $rc" "12 passed, 0 failed, 1 skipped 0" "both parts in one total"
ci "$(says '5 passed, 0 failed, 1 skipped')" "$(says '7 passed, 2 failed, 1 skipped'); exit 1"
is "$total $rc" "12 passed, 2 failed, 2 skipped 1" "failures of the second"
ci "$(says '5 passed, 1 failed, 1 skipped'); exit 1" "$(says '7 passed, 0 failed, 0 skipped')"
is "$total $rc" "12 passed, 1 failed, 1 skipped 1" "of the first, and the second is run"
ci "echo no packages; exit 2" "$(says '7 passed, 0 failed, 0 skipped')"
is "$total $rc" "7 passed, 1 failed, 0 skipped 1" "a part without a total has failed"
ci "$(says '5 passed, 0 failed, 0 skipped'); exit 2" "$(says '7 passed, 0 failed, 0 skipped')"
is "$total $rc" "12 passed, 0 failed, 0 skipped 1" "one that ends badly all the same is not green"
ci "$(says '1 passed, 0 failed, 0 skipped'); echo CI=\$\$CI; [ ! -t 0 ]" "exit 1"
like "$out" "CI=true" "tests know that it is CI"

one=$(says '1 passed, 0 failed, 0 skipped')
ci "$one" "$one"
like "$rc $total $out" "^0 2 passed, 0 .*make check-kernel passed on .*: 3 passed" "the kernel's part has passed as it is: it is not run"
touch "$made/kernel-support/README.md" "$made/tests/kernel/x.pyc"
ci "$one" "$one"
is "$rc $total" "0 2 passed, 0 failed, 0 skipped" "nor where what is written of it changes"
echo changed >"$made/tests/kernel/x.py"
ci "$one" "$one" "$(says '9 passed, 0 failed, 0 skipped')"
is "$rc $total" "0 11 passed, 0 failed, 0 skipped" "one of its tests changes: it is run, and part of the total"
ci "$one" "$one"
is "$rc $total" "1 2 passed, 1 failed, 0 skipped" "and its failure is one"
rm "$made/kernel-support/checked"
ci "$one" "$one" "$one"
is "$rc $total" "0 3 passed, 0 failed, 0 skipped" "without a note it is run"
tap_done
