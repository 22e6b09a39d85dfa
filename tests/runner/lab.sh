#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# How the test runner takes one boot of the lab apart into its tests: for a made lab.
. "$TOP/tests/tap.sh"
here=$TOP
made=$TEST_TMP/made
mkdir -p "$made/tests/lab"
printf 'all guests lab-programs:\n' >"$made/Makefile"
touch "$made/tests/lab/one.py"
printf '# lab-sanitize: yes\n' >"$made/tests/lab/two.py"

# lab SCRIPT [ARG…]: the runner with a lab that does SCRIPT; its output in $out, status in $rc
lab() {
	printf '#!/bin/sh\n%s\n' "$1" >"$made/tests/lab/run.sh"
	chmod 755 "$made/tests/lab/run.sh"
	# shellcheck disable=SC2016 # for the made lab to expand
	out=$(CI="${CI_LAB:-}" RUNNER_TOP=$made "$here/tests/run" lab "${@:2}" 2>&1)
	rc=$?
	total=$(printf '%s\n' "$out" | tail -n 1)
}
begin='echo lab-begin lab/one; echo "ok 1 - a"'

# In each total four tests passed more than the scripts have: three builds and the boot.
lab "$begin"'; echo 1..1; echo lab-end lab/one 0 1.5
echo lab-begin lab/two; echo "ok 1 - a"; echo "not ok 2 - b"; echo 1..2; echo lab-end lab/two 1 2.0'
is "$total $rc" "6 passed, 1 failed, 0 skipped 1" "each script's lines are counted"
like "$out" 'ok   lab/one \(1 passed, 1.5 s\)' "one line a script, with the seconds that it took in there"
like "$out" 'FAIL lab/two \(1 passed, 1 failed, 2.0 s\)' "and one that failed"
lab "$begin"'; echo lab-end lab/one limit 180.0'
like "$out" "took longer than its limit" "a script's time limit"
lab "$begin"'; echo 1..1; echo lab-end lab/one 0 left 1.0'
like "$out" "left processes behind" "processes that are left are found"
lab "$begin"'; echo "not ok 1 - a broken boot"
echo "lab: starting it once more"; '"$begin"'; echo 1..1; echo lab-end lab/one 0 1.0'
is "$total $rc" "5 passed, 0 failed, 0 skipped 0" "a second boot counts, the first does not"
like "$out" "lab: starting it once more" "and that is printed"
lab "$begin"'; echo "lab: not at its end after 720 s" >&2; exit 124'
like "$out" "FAILED: the lab ended before it did" "a script in which the lab ended has failed"
# A second boot, with those scripts alone that failed in the first or that it did not come to.
again='[ -e "$TOP/tried" ] || { touch "$TOP/tried"; first=1; }; shift 3; echo "$*" >>"$TOP/words"
for w; do echo "lab-begin ${w%%=*}"'
# twice WHAT: asan/two does that at its first try
twice() {
	rm -f "$made/tried" "$made/words"
	lab "$again; [ \"\$first\${w%%=*}\" != 1lab/asan/two ] || { $1; }"'
echo "ok 1 - a"; echo 1..1; echo "lab-end ${w%%=*} 0 0.1"; done'
	asked=$(sed 's/=[^ ]*//g' "$made/words")
}
twice 'echo "not ok 1 - b"; echo "lab-end lab/asan/two 1 0.1"; continue'
is "$total $rc" "7 passed, 0 failed, 0 skipped 0" "a script that failed has a second try"
is "$asked" $'lab/one lab/two lab/asan/two\nlab/asan/two' "alone, in a boot of its own"
like "$out" "FAILED: b" "the first one is shown"
like "$out" "to be mended: lab/asan/two"$'\n' "and named at the end"
twice 'exit 125'
is "$total $rc" "7 passed, 0 failed, 0 skipped 0" "so has one in which the lab ended"
like "$out" "to be mended: lab/boot, lab/asan/two" "and the lab"
# A third one where the emulation failed in the second.
# fails FROM WHAT: asan/two does that at its first FROM tries
fails() {
	rm -f "$made/count"
	lab 'n=$(cat "$TOP/count" 2>/dev/null || echo 0); n=$((n + 1)); echo $n >"$TOP/count"
shift 3; for w; do echo "lab-begin ${w%%=*}"
	if [ $n -le '"$1"' ] && [ "${w%%=*}" = lab/asan/two ]; then
		'"$2"'; echo "not ok 1 - b"; echo "lab-end lab/asan/two 1 0.1"; continue
	fi
	echo "ok 1 - a"; echo 1..1; echo "lab-end ${w%%=*} 0 0.1"; done'
	tries=$(cat "$made/count")
}
fails 2 'echo "lab: CPU 1 was silent for 21 s, until an NMI"'
is "$total $tries" "7 passed, 0 failed, 0 skipped 3" "a third try where the lab stood still in the second"
like "$out" "to be mended: lab/asan/two"$'\n' "it is named once"
fails 3 'echo "lab: it was silent until new translation"'
is "$total $tries" "6 passed, 1 failed, 0 skipped 3" "and no fourth"
fails 2 ':'
is "$total $tries" "6 passed, 1 failed, 0 skipped 2" "nor a third where it did not"
twice 'echo "not ok 1 - a sanitizer'\''s report: x"; echo "lab-end lab/asan/two 1 0.1"; continue'
is "$total $asked" "6 passed, 1 failed, 0 skipped lab/one lab/two lab/asan/two" "not after a sanitizer's report"
twice 'echo "lab-end lab/asan/two -11 0.1"; continue'
is "$total $asked" "6 passed, 1 failed, 0 skipped lab/one lab/two lab/asan/two" "nor after a crash"
# shellcheck disable=SC2016
CI_LAB=true twice 'echo "ok 1 - a # SKIP needs:lab-quiet"; echo "lab-end lab/asan/two 0 0.1"; continue'
is "$total" "6 passed, 0 failed, 1 skipped" "what the lab measured of the machine's load is a reason to skip"
lab 'echo "lab: cannot fetch linux-image-x" >&2; exit 125'
is "$total $rc" "3 passed, 1 failed, 0 skipped 1" "a lab that does not start is one failure"
like "$out" "FAILED: lab: cannot fetch linux-image-x" "with one clear line"
# shellcheck disable=SC2016
lab 'shift 3; for w; do echo "lab-begin ${w%%=*}"; echo "lab-end ${w%%=*} 0 0.1"; done'
is "$(printf '%s\n' "$out" | grep -c '^ok   lab/')" 4 "both scripts, and the one that says so with ASan too"
# shellcheck disable=SC2016
lab 'shift 3; for w; do echo "lab-begin ${w%%=*}"; echo "lab-end ${w%%=*} 0 0.1"; done' -t two
is "$total" "6 passed, 0 failed, 0 skipped" "-t: only those that match"
printf '# by-hand: yes, it says why\n' >"$made/tests/lab/three.py"
# shellcheck disable=SC2016
each='shift 3; for w; do echo "lab-begin ${w%%=*}"; echo "lab-end ${w%%=*} 0 0.1"; done'
lab "$each"
is "$total" "7 passed, 0 failed, 0 skipped" "a script that is run by hand is none of all"
lab "$each" -t three
like "$out" 'ok   lab/three' "by its name it is run"
tap_done
