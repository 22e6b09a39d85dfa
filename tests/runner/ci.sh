#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What a CI machine runs (.ci/run): one total over both parts, in a made tree.
. "$TOP/tests/tap.sh"
made=$TEST_TMP/made
mkdir -p "$made/.ci"
cp .ci/run "$made/.ci/run"

# ci CHECK LAB: what the recipes of the two parts do; the last line in $total, status in $rc
ci() {
	printf '.SILENT:\ncheck:\n\t%s\ncheck-lab:\n\t%s\n' "$1" "$2" >"$made/Makefile"
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
tap_done
