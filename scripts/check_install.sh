#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# `make install` into a folder gives a program that starts; `make uninstall` leaves nothing.
. "$(dirname "$0")/../tests/tap.sh"
dest=$(mktemp -d)
trap 'rm -rf "$dest"' EXIT
env -u KVMTOP make -s install DESTDIR="$dest" PREFIX=/usr >"$dest/log" 2>&1
ok $? "install" || sed 's/^/# /' "$dest/log"
"$dest/usr/bin/kvmtop" --version >/dev/null
ok $? "the installed program starts"
for page in man/*.[1-9]; do
	[ ! -e "$page" ] || { cmp -s "$page" "$dest/usr/share/man/man${page##*.}/$(basename "$page")"; ok $? "$page"; }
done
is "$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$dest/usr/lib/systemd/system/kvmtop-record.service")" /usr/bin/kvmtop \
	"the unit starts the program that was installed"
make -s uninstall DESTDIR="$dest" PREFIX=/usr >"$dest/log" 2>&1
ok $? "uninstall" || sed 's/^/# /' "$dest/log"
is "$(find "$dest/usr" -type f)" "" "nothing is left"
is "$(find "$dest/usr" -name '*kvmtop*')" "" "nor a folder of kvmtop's"
tap_done
