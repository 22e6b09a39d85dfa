#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# kvmtop guest-symbols: runs a command "in the guest" (here: a shell that has the recorded files of one),
# keeps what is good and says what is not. Under sudo the files are the caller's.
# needs: root
. "$TOP/tests/tap.sh"

data=$TOP/tests/data/symbols
export XDG_CONFIG_HOME=$TEST_TMP/config GUEST=$TEST_TMP/guest
unset SUDO_UID SUDO_GID
kept=$XDG_CONFIG_HOME/kvmtop/guests/web01
mkdir "$GUEST"
cp "$data/kallsyms-6.1.txt" "$GUEST/kallsyms"
cp "$data/modules-6.1.txt" "$GUEST/modules"
cp "$data/notes-6.1.bin" "$GUEST/notes"
echo 0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9 >"$GUEST/boot_id"

# A command as ssh is one: its last words are run elsewhere, where these paths mean other files.
cat >"$TEST_TMP/in-guest" <<'END'
#!/bin/bash
[ "$*" = "cat /proc/kallsyms /proc/modules /sys/kernel/notes /proc/sys/kernel/random/boot_id" ] || { echo "ran: $*"; exit 1; }
cat "$GUEST/kallsyms" "$GUEST/modules" "$GUEST/notes" "$GUEST/boot_id"
exit "${STATUS:-0}"
END
chmod +x "$TEST_TMP/in-guest"

fetch() { # its output and status; one line on standard error at most
	"$KVMTOP" guest-symbols "$@" >"$TEST_TMP/out" 2>"$TEST_TMP/err"
	echo $?
}

is "$(fetch web01 -- "$TEST_TMP/in-guest")" 0 "a guest's symbols are fetched"
like "$(cat "$TEST_TMP/out")" "^web01: 6[0-9][0-9] symbols, 14 modules, build-id 6a2b4ac77585b8cf, kept in $kept$" "what came is said"
is "$(cat "$TEST_TMP/err")" "kvmtop: web01: no VM of this name or UUID runs here now; the symbols are for one that does later" \
	"and that no such VM runs now"
cmp "$kept/kallsyms" "$GUEST/kallsyms"
ok $? "the files are there as they were"
cmp "$kept/modules" "$GUEST/modules"
ok $? "and the modules"
cmp "$kept/notes" "$GUEST/notes"
ok $? "and the notes"
is "$(stat -c %a "$kept" "$kept/kallsyms" | tr '\n' ' ')" "700 600 " "nobody else reads them"
is "$(find "$kept" -name '.*.new' | wc -l)" 0 "nothing half-written is left"

# What is not good is not kept, and what was there stays.
sed 's/^[0-9a-f]*/0000000000000000/' "$data/kallsyms-6.1.txt" >"$GUEST/kallsyms"
is "$(fetch web01 -- "$TEST_TMP/in-guest")" 1 "hidden addresses are refused"
like "$(cat "$TEST_TMP/err")" "kptr_restrict=1" "with what mends it"
cmp "$kept/kallsyms" "$data/kallsyms-6.1.txt"
ok $? "the older files are kept"
head -n 300 "$data/kallsyms-6.1.txt" >"$GUEST/kallsyms"
is "$(STATUS=255 fetch web01 -- "$TEST_TMP/in-guest")" 1 "a connection that broke is refused"
like "$(cat "$TEST_TMP/err")" "ended with status 255" "and said"
is "$(fetch web01 -- echo hello)" 1 "something else than kallsyms is refused"
like "$(cat "$TEST_TMP/err")" "not print the guest's /proc/kallsyms but 'hello cat" "and shown"
is "$(fetch web01 -- printf '\033[31mred')" 1 "and control characters in it"
is "$(grep -c $'\033' "$TEST_TMP/err")" 0 "are escaped"
is "$(fetch web01 -- yes ffffffff81000000 T _stext)" 1 "a command that goes on printing"
like "$(cat "$TEST_TMP/err")" "did not print a guest's kallsyms: far too large" "is said"
cp /proc/sys/kernel/random/boot_id "$GUEST/boot_id"
is "$(fetch web01 -- "$TEST_TMP/in-guest")" 1 "what this host's own kernel printed is refused"
like "$(cat "$TEST_TMP/err")" "^kvmtop: web01: this host's own symbols came: give a command that runs" "and said"
rm "$GUEST/boot_id"
is "$(STATUS=1 fetch web01 -- "$TEST_TMP/in-guest")" 0 "a guest that has no boot id is taken"
echo 0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9 >"$GUEST/boot_id"
is "$(fetch web01 -- "$TEST_TMP/nothing-here")" 1 "a command that is not there"
is "$(wc -l <"$TEST_TMP/err")" 1 "one line says so"
is "$(fetch web01)" 2 "no command: wrong usage"
is "$(fetch '' -- true)" 2 "no name: wrong usage"

# A kernel without modules, whose cat complains, and one with a name that is no path.
cp "$data/kallsyms-6.1.txt" "$GUEST/kallsyms"
: >"$GUEST/modules"
is "$(STATUS=1 fetch web01 -- "$TEST_TMP/in-guest")" 0 "no modules, cat's status 1"
is "$(test -e "$kept/modules" && echo there)" "" "older modules are gone"
is "$(fetch '../../etc/x y' -- "$TEST_TMP/in-guest")" 0 "any name will do"
test -f "$XDG_CONFIG_HOME/kvmtop/guests/%2E.%2F..%2Fetc%2Fx%20y/kallsyms"
ok $? "and stays in its folder"

# Folders above that are not there are made, and what is in their names stays off a terminal.
deep=$TEST_TMP/not/there$'\e[31m'/yet
is "$(XDG_CONFIG_HOME=$deep fetch web01 -- "$TEST_TMP/in-guest")" 0 "missing folders above"
test -f "$deep/kvmtop/guests/web01/kallsyms"
ok $? "are made"
is "$(stat -c %a "$TEST_TMP/not" "$deep" | tr '\n' ' ')" "700 700 " "for nobody else"
is "$(grep -c $'\e' "$TEST_TMP/out")/$(grep -cF 'not/there\e[31m/yet/kvmtop/guests/web01' "$TEST_TMP/out")" 0/1 "their names are escaped"
: >"$TEST_TMP/file"
is "$(XDG_CONFIG_HOME=$TEST_TMP/file/x$'\e'y fetch web01 -- "$TEST_TMP/in-guest")" 1 "a file in their way"
like "$(tail -1 "$TEST_TMP/err")" "^kvmtop: $TEST_TMP/file/x.*: no folder" "is said"
is "$(grep -c $'\e' "$TEST_TMP/err")" 0 "escaped"

chmod 777 "$kept"
is "$(fetch web01 -- "$TEST_TMP/in-guest")" 1 "a folder in which everybody may write is not used"
like "$(cat "$TEST_TMP/err")" "$kept: it is another user's, or everybody may write there" "and why"
chmod 700 "$kept"

# With a VM of that name there is nothing to warn of.
if [ -w /dev/kvm ]; then
	cp "$BUILD/guests/tinyvm-run" "$TEST_TMP/qemu-system-x86_64"
	coproc vm { exec "$TEST_TMP/qemu-system-x86_64" -l inf out:1 -- -name guest=web01,debug-threads=on; }
	guest=$!
	while read -r line <&"${vm[0]}" && [[ $line != go* ]]; do :; done
	is "$(fetch web01 -- "$TEST_TMP/in-guest")$(cat "$TEST_TMP/err")" 0 "a VM that runs: no warning"
	is "$(fetch web0 -- "$TEST_TMP/in-guest")" 0 "a name with a slip in it"
	is "$(grep -c "web0: no VM of this name" "$TEST_TMP/err")/$(wc -l <"$TEST_TMP/err")" 1/1 "is warned of, in one line"
	kill "$guest" && wait "$guest"
else
	skip "a VM of that name" "needs:kvm"
fi

# A disk that becomes full: said, what was there stays, and nothing half-written.
mkdir "$TEST_TMP/small"
if mount -t tmpfs -o size=40k none "$TEST_TMP/small"; then
	small=$TEST_TMP/small/kvmtop/guests/web01
	mkdir -p "$small" && echo older >"$small/kallsyms"
	is "$(XDG_CONFIG_HOME=$TEST_TMP/small fetch web01 -- "$TEST_TMP/in-guest")" 1 "a full disk"
	like "$(cat "$TEST_TMP/err")" "$small: No space left on device" "is said"
	is "$(ls -A "$small")/$(cat "$small/kallsyms")" "kallsyms/older" "and only what was there is there"
	umount "$TEST_TMP/small"
else
	skip "a full disk" "needs:root cannot mount here"
fi

# Under sudo: the caller's home, the caller's files; a link that she put there leads nowhere.
mkdir -m 755 "$TEST_TMP/alice"
chmod 755 "$TEST_TMP"
chown 4242:4242 "$TEST_TMP/alice"
{ cat /etc/passwd && echo "alice:x:4242:4242::$TEST_TMP/alice:/bin/sh"; } >"$TEST_TMP/passwd"
# The leak check of a sanitizer's build needs rights that are given up then.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
if mount --bind "$TEST_TMP/passwd" /etc/passwd; then
	is "$(SUDO_UID=4242 fetch web01 -- "$TEST_TMP/in-guest")" 0 "under sudo"
	hers=$TEST_TMP/alice/.config/kvmtop/guests/web01
	is "$(stat -c '%u:%g' "$hers" "$hers/kallsyms" | tr '\n' ' ')" "4242:4242 4242:4242 " "the files are the caller's"
	rm -r "$TEST_TMP/alice/.config/kvmtop/guests"
	mkdir "$TEST_TMP/roots"
	ln -s "$TEST_TMP/roots" "$TEST_TMP/alice/.config/kvmtop/guests"
	is "$(SUDO_UID=4242 fetch web01 -- "$TEST_TMP/in-guest")" 1 "a link in the way is refused"
	like "$(cat "$TEST_TMP/err")" "no folder \\(symbolic links are not followed here\\)" "and said"
	is "$(ls "$TEST_TMP/roots")" "" "and nothing is written behind it"
	umount /etc/passwd
else
	skip "under sudo" "needs:root cannot mount here"
fi
tap_done
