#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What record and replay say where they cannot do what was asked, and what they leave alone.
. tests/tap.sh

echo "not ours" >"$TEST_TMP/x.txt"
chmod 644 "$TEST_TMP/x.txt"
said=$("$KVMTOP" record -o "$TEST_TMP/x.txt" -n 1 2>&1)
like "$said" 'not a recording' "another's file is refused"
is "$(stat -c %a "$TEST_TMP/x.txt") $(cat "$TEST_TMP/x.txt")" "644 not ours" "and stays as it was"
said=$("$KVMTOP" record -o - -n 1 2>&1)
is "$?" 2 "a recording does not go to standard output"
said=$("$KVMTOP" record -o "$TEST_TMP/nowhere/r.db" -n 1 2>&1)
like "$said" 'No such file.*give -o FILE' "a folder that is not there: what would help"
"$KVMTOP" record -o "$TEST_TMP/r.db" -d 0.1 -n 3 2>/dev/null
said=$("$KVMTOP" replay -b --at 2001-01-01T00:00-2001-01-01T00:10 "$TEST_TMP/r.db" 2>&1)
is "$?" 1 "a time that is not in the recording"
like "$said" "the recording holds $(date +%Y)-" "and which times are"
like "$("$KVMTOP" replay -b --at -1h --format csv --table host --fields nvm "$TEST_TMP/r.db")" 'host' \
	"a range that reaches before its begin"
is "$("$KVMTOP" replay -b --table slow "$TEST_TMP/r.db" 2>&1 >/dev/null)" "kvmtop: nothing of table slow was recorded" \
	"a table that was not recorded"
is "$("$KVMTOP" replay -b --table host "$TEST_TMP/r.db" 2>&1 >/dev/null)" "" "and one that was"
like "$("$KVMTOP" replay -b --at 06:37:10-06:37:08 "$TEST_TMP/r.db" 2>&1)" 'its end is before its beginning' \
	"a range that ends before it begins"
# Without rights: the folder that is not there cannot be made.
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o mode=755 none /var/lib; then
	cp "$KVMTOP" /var/lib/kvmtop-copy
	said=$(setpriv --reuid 65534 --regid 65534 --clear-groups /var/lib/kvmtop-copy record -n 1 2>&1)
	is "$?" 1 "record as nobody"
	is "$said" "kvmtop: /var/lib/kvmtop cannot be made: Permission denied: give -o FILE, or run as root" "says why"
	cp "$TEST_TMP/r.db" /var/lib/r.db
	echo "a log" >/var/lib/r.db-wal
	chmod 644 /var/lib/r.db /var/lib/r.db-wal
	said=$(setpriv --reuid 65534 --regid 65534 --clear-groups /var/lib/kvmtop-copy replay -b /var/lib/r.db 2>&1)
	is "$said" "kvmtop: /var/lib/r.db: its log beside it cannot be used: that needs the right to write in its folder" \
		"replay as nobody, while it is recorded"
	rm /var/lib/r.db-wal
	said=$(setpriv --reuid 65534 --regid 65534 --clear-groups /var/lib/kvmtop-copy replay -b /var/lib/r.db 2>&1)
	is "$?" 0 "and of one that is whole"
	umount /var/lib
else
	skip "record as nobody" "needs:root cannot mount here"
fi
tap_done
