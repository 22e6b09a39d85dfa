#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# install.sh install|uninstall PROGRAM: puts kvmtop, its man pages and shell completions under
# $DESTDIR$PREFIX, or takes exactly those files away. One list serves both.
set -eu
what=$1 program=$2
prefix=${PREFIX:-/usr/local}
root=${DESTDIR:-}$prefix

put() { # put MODE FILE FOLDER [NAME]
	to=$root/$3/${4:-$(basename "$2")}
	if [ "$what" = uninstall ]; then
		rm -f "$to"
	elif [ -e "$2" ]; then
		install -D -m "$1" "$2" "$to"
	fi
}

put 755 "$program" bin kvmtop
for page in man/*.[1-9]; do
	put 644 "$page" "share/man/man${page##*.}"
done
put 644 docs/kvmtop.schema.json share/doc/kvmtop
put 644 docs/recording.md share/doc/kvmtop
put 644 contrib/systemd/kvmtop-record.service lib/systemd/system
if [ "$what" = uninstall ]; then
	# A folder of ours alone; somebody else's file in it keeps it.
	rmdir "$root/share/doc/kvmtop" 2>/dev/null || [ ! -e "$root/share/doc/kvmtop" ] || echo "left: $root/share/doc/kvmtop"
else
	# systemd wants the whole path of the program.
	unit=$root/lib/systemd/system/kvmtop-record.service
	quoted=$(printf '%s' "$prefix" | sed 's/[\\&|]/\\&/g')
	sed -i "s|^ExecStart=/usr/local/|ExecStart=$quoted/|" "$unit"
fi
put 644 contrib/completions/kvmtop.bash share/bash-completion/completions kvmtop
put 644 contrib/completions/_kvmtop share/zsh/site-functions
put 644 contrib/completions/kvmtop.fish share/fish/vendor_completions.d
