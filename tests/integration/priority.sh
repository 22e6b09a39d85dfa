#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# needs: root
# kvmtop's threads go first on a host without CPU left, unless its user gave another priority; what it
# starts has the usual one.
. tests/tap.sh
renice -n 0 -p $$ >/dev/null # whatever the tests run with

nice_of() { # the nice values of process $1's threads, "NAME VALUE" each
	local t
	for t in /proc/"$1"/task/*; do
		sed -E 's/^[0-9]+ \((.*)\) (\S+ ){16}(\S+).*/\1 \3/' "$t/stat"
	done
}

watch() { # watch COMMAND…: starts it, and prints the nice values of its threads when there are records
	rm -f "$TEST_TMP/out" # what the one before has written says nothing of this one
	"$@" >"$TEST_TMP/out" 2>&1 &
	for _ in $(seq 600); do
		[ -s "$TEST_TMP/out" ] && break
		sleep 0.1
	done
	nice_of $!
	kill $!
	wait $! 2>/dev/null
}

usual=$(watch "$KVMTOP" --batch -d 0.1)
like "$usual" 'kvmtop-collect -20' "the collecting thread goes first"
like "$usual" 'kvmtop -20' "so does the one that writes"
wanted=$(watch nice -n 5 "$KVMTOP" --batch -d 0.1)
like "$wanted" 'kvmtop-collect 5' "who asked for another priority gets it"
is "$(grep -c -- -20 <<<"$wanted")" 0 "in all threads"
"$KVMTOP" record -o "$TEST_TMP/r.db" -d 0.1 -- sh -c "cat /proc/self/stat >$TEST_TMP/stat; sleep 1" >/dev/null 2>&1
is "$(sed -E 's/^[0-9]+ \((.*)\) (\S+ ){16}(\S+).*/\3/' "$TEST_TMP/stat")" 0 "a command that is recorded has the usual one"
tap_done
