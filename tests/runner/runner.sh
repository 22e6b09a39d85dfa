#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The test runner itself: what it counts as passed, failed and skipped, for made test files.
. "$TOP/tests/tap.sh"
here=$TOP
made=$TEST_TMP/made
mkdir -p "$made/tests/integration" "$made/tests/unit" "$made/build/unit"
# Builds nothing: the folder's Makefile has the targets, empty.
printf 'all units guests:\n' >"$made/Makefile"

# run_one NAME SCRIPT [CI]: runs one made test file, leaves the output in $out and its status in $rc
run_one() {
	rm -f "$made"/tests/integration/*
	printf '%s\n' "$2" >"$made/tests/integration/$1.sh"
	out=$(CI=${3:-} RUNNER_TOP=$made "$here/tests/run" native 2>&1)
	rc=$?
	total=$(printf '%s\n' "$out" | tail -n 1)
}

# In each total one test passed more than the file has: the build.
run_one good $'echo "ok 1 - a"; echo "ok 2 - b"; echo 1..2'
is "$total $rc" "3 passed, 0 failed, 0 skipped 0" "TAP lines are counted"
run_one bad $'echo "ok 1 - a"; echo "not ok 2 - b"; echo "because c"; echo 1..2; exit 1'
is "$total $rc" "2 passed, 1 failed, 0 skipped 1" "a failed line fails the run, and once"
like "$out" "FAILED: b" "its name is shown"
like "$out" "because c" "its output is shown"
run_one plain 'exit 0'
is "$total" "2 passed, 0 failed, 0 skipped" "no TAP: one test, by its status"
run_one plain 'exit 3'
is "$total" "1 passed, 1 failed, 0 skipped" "no TAP, status 3: failed"
like "$out" "FAILED: exit status 3" "its status is shown"
run_one short $'echo 1..3; echo "ok 1 - a"'
is "$total" "2 passed, 1 failed, 0 skipped" "fewer tests than planned: failed"
run_one late $'echo "ok 1 - a"; exit 1'
is "$total" "2 passed, 1 failed, 0 skipped" "all ok but status 1: failed"
run_one skips $'echo "ok 1 - a # SKIP not today"'
is "$total $rc" "1 passed, 0 failed, 1 skipped 0" "a skip is counted"
like "$out" "skipped: a: not today" "and its reason shown"
run_one skips $'echo "ok 1 - a # SKIP not today"' true
is "$total $rc" "1 passed, 1 failed, 0 skipped 1" "in CI a skip without a lack fails"
run_one skips $'echo "ok 1 - a # SKIP needs:never really"' true
is "$total $rc" "1 passed, 0 failed, 1 skipped 0" "in CI a skip for what is not here is fine"
run_one skips $'echo "ok 1 - a # SKIP needs:cmd:sh not here"' true
is "$total" "1 passed, 1 failed, 0 skipped" "in CI a skip for what is here fails"
run_one needs $'# needs: never\nexit 1' true
is "$total $rc" "1 passed, 0 failed, 1 skipped 0" "a file whose needs are not met is skipped"
run_one needs $'# needs: cmd:no-such-program\nexit 1'
is "$total $rc" "1 passed, 0 failed, 1 skipped 0" "so is one whose program is not installed"
run_one needs $'# needs: cmd:no-such-program\nexit 1' true
is "$total $rc" "1 passed, 1 failed, 0 skipped 1" "in CI that is a failure: the packages have to bring it"
run_one skips $'echo "ok 1 - a # SKIP needs:cmd:no-such-program really"' true
is "$total $rc" "1 passed, 1 failed, 0 skipped 1" "and for a single test"
run_one needs $'# needs: cmd:sh, magic\nexit 0'
like "$out" "unknown word 'magic'" "an unknown need is a failure"
run_one slow $'# limit: 1\ntrap "echo undone; exit 1" TERM\nsleep 30 & wait'
like "$out" "took longer than 1 s" "the time limit"
like "$out" "undone" "SIGTERM first, so that a test can undo what it did"
run_one left $'sleep 30 &\necho "ok 1 - a"'
like "$out" "left processes behind" "processes that are left are found"
run_one report $'echo "==1==ERROR" >"$TEST_TMP/sanitizer.1"; echo "ok 1 - a"'
is "$total" "2 passed, 1 failed, 0 skipped" "a sanitizer's report fails a test that saw nothing"
run_one escape $'printf "not ok 1 - \\033[2Ja\\n"'
like "$out" 'FAILED: \\x1b\[2Ja' "control characters are escaped"
# A live test that fails has a second try, after the others.
run_one twice $'echo x >>"$TOP/tries"; [ "$(wc -l <"$TOP/tries")" = 2 ] && echo "ok 1 - a" || echo "not ok 1 - a"'
is "$total $rc" "2 passed, 0 failed, 0 skipped 0" "a second try counts"
like "$out" "FAILED: a" "the first one is shown"
like "$out" "to be mended: integration/twice.sh" "and named at the end"
rm -f "$made/tries"
run_one never $'echo x >>"$TOP/tries"; echo "not ok 1 - a"'
is "$total $(wc -l <"$made/tries")" "1 passed, 1 failed, 0 skipped 2" "there is no third one"
rm -f "$made/tries"
run_one report $'echo x >>"$TOP/tries"; echo "==1==ERROR" >"$TEST_TMP/sanitizer.1"; echo "ok 1 - a"'
is "$total $(wc -l <"$made/tries")" "2 passed, 1 failed, 0 skipped 1" "nor a second one after a sanitizer's report"
# Each of two waits for the other: side by side both pass; one after the other neither can.
pair=$'touch "$TOP/$me"; for _ in $(seq 300); do [ -e "$TOP/$you" ] && exit 0; sleep 0.1; done; exit 1'
rm -f "$made"/tests/integration/*
for names in "a b" "b a"; do
	read -r me you <<<"$names"
	printf '# beside: yes\nme=%s you=%s\n%s\n' "$me" "$you" "$pair" >"$made/tests/integration/$me.sh"
done
printf '%s\n' '[ -e "$TOP/a" ] && [ -e "$TOP/b" ]' >"$made/tests/integration/a_first.sh"
is "$(CI='' RUNNER_TOP=$made "$here/tests/run" native 2>&1 | tail -n 1)" "4 passed, 0 failed, 0 skipped" \
	"beside: those side by side, and before the others"
if [ "$(id -u)" = 0 ] && unshare --mount --propagation private true 2>/dev/null; then
	run_one mount $'mount -t tmpfs none "$TEST_TMP"; echo "ok 1 - a"'
	is "$total" "2 passed, 0 failed, 0 skipped" "a test may mount"
	is "$(grep -c " $TEST_TMP/" /proc/mounts)" 0 "and its mounts do not stay"
else
	skip "a test may mount, and its mounts do not stay" needs:mount-namespace
fi

printf 'all units guests:\n\t@echo broken; false\n' >"$made/Makefile"
run_one good 'exit 0'
is "$total $rc" "0 passed, 1 failed, 0 skipped 1" "a broken build is one failure"
printf 'all units guests:\n' >"$made/Makefile"

# cmocka's TAP, as version 1.1.5 prints it (a skip is "not ok … # SKIP name").
rm -f "$made"/tests/integration/*
echo '/* needs: cmd:sh */' >"$made/tests/unit/test_made.c"
printf '%s\n' '#!/bin/sh' 'echo 1..3; echo "ok 1 - a"' 'echo "not ok 2 - b"; echo "# x.c:7: error"' \
	'echo "not ok 3 # SKIP c"; echo "# not ok - group"; exit 1' >"$made/build/unit/test_made"
chmod +x "$made/build/unit/test_made"
total=$(CI='' RUNNER_TOP=$made "$here/tests/run" unit 2>&1 | tail -n 1)
is "$total" "2 passed, 1 failed, 1 skipped" "cmocka's TAP"
# Its reason is what the test printed before it.
printf '%s\n' '#!/bin/sh' 'echo 1..3; echo "# needs:never really"; echo "not ok 1 # SKIP a"; echo "ok 2 - b"' \
	'echo "not ok 3 # SKIP c"' >"$made/build/unit/test_made"
total=$(CI=true RUNNER_TOP=$made "$here/tests/run" unit 2>&1 | tail -n 1)
is "$total" "2 passed, 1 failed, 1 skipped" "cmocka's skip with its reason, and one without"
printf '%s\n' '#!/bin/sh' 'echo 1..3; echo "ok 1 - a"; echo "not ok 2 - b"' \
	'echo "not ok 3 # SKIP c"; exit 1' >"$made/build/unit/test_made"
CI='' RUNNER_TOP=$made CHECK_TOTAL=$TEST_TMP/total "$here/tests/run" unit >/dev/null 2>&1
is "$(cat "$TEST_TMP/total")" "2 passed, 1 failed, 1 skipped" "CHECK_TOTAL gets the total"
tap_done
