# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# TAP for the test scripts: `. "$TOP/tests/tap.sh"`, then ok/is/like/skip, and `tap_done` at the end.
# Each writes one result line; a failed one also writes what it saw, and the script goes on.
tap_n=0
tap_failed=0

ok() { # ok STATUS NAME: passed when STATUS is 0 (ok $? 'it started')
	tap_n=$((tap_n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tap_n - $2"
	else
		echo "not ok $tap_n - $2"
		tap_failed=$((tap_failed + 1))
		return 1
	fi
}

is() { # is GOT WANTED NAME
	local rc=0
	[ "$1" = "$2" ] || rc=1
	ok $rc "$3" || {
		printf '%s\n' "got:    $1" "wanted: $2" | sed 's/^/# /'
		return 1
	}
}

like() { # like TEXT REGEX NAME: extended regular expression, somewhere in TEXT
	local rc=0
	printf '%s\n' "$1" | grep -Eq -- "$2" || rc=1
	ok $rc "$3" || {
		printf '%s\n' "wanted: $2" "in:" "$1" | sed 's/^/# /'
		return 1
	}
}

between() { # between VALUE LOW HIGH NAME: numbers, decimals allowed
	local rc=0
	awk -v v="$1" -v lo="$2" -v hi="$3" \
		'BEGIN { exit !(v ~ /^-?[0-9.]+([eE][-+]?[0-9]+)?$/ && v >= lo && v <= hi) }' || rc=1
	ok $rc "$4" || {
		echo "# got $1, wanted $2…$3"
		return 1
	}
}

skip() { # skip NAME REASON: REASON starts with needs:WORD where the machine lacks something
	tap_n=$((tap_n + 1))
	echo "ok $tap_n - $1 # SKIP $2"
}

tap_done() {
	echo "1..$tap_n"
	exit $((tap_failed > 0))
}
