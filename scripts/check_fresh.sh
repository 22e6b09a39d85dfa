#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Proves the README's two commands on a machine that has nothing: makes a minimal Debian 12 in a
# temporary folder, clones the committed tree into it, installs git and make only, and runs `make run`
# and `make check` there. Root; needs this machine's Debian mirror, and shares its kernel, /proc, /sys and
# /dev (so tests that need /dev/kvm or tracefs run for real). The mounts are in a mount namespace of
# their own, so that they end with this script whatever becomes of it.
# check_fresh.sh [COMMAND…]   default: "make run" "make check"
# FRESH_DIR=FOLDER: where (default under TMPDIR). KEEP=1: the folder stays for a look (unmounted).
set -eu
suite=bookworm
[ "$(id -u)" = 0 ] || { echo "check-fresh needs root (debootstrap, mount, chroot)" >&2; exit 1; }
[ -n "${FRESH_INSIDE:-}" ] || FRESH_INSIDE=1 exec unshare --mount --propagation private sh "$0" "$@"
[ $# -gt 0 ] || set -- "make run" "make check"
top=$(git rev-parse --show-toplevel)
[ -z "$(git status --porcelain --untracked-files=no)" ] ||
	echo "note: what is not committed is not tested" >&2

# The mirror that this machine's apt uses for Debian itself: "URI suite component…" a line.
sources() {
	apt-get indextargets --format '$(CREATED_BY) $(SITE) $(RELEASE) $(COMPONENT)' 2>/dev/null |
		awk '$1 == "Packages" { print $2, $3, $4 }' | sort -u
}
mirror=$(sources | awk -v s=$suite '$2 == s && $3 == "main" { print $1; exit }')
[ -n "$mirror" ] || { echo "apt has no source for $suite main: sources.list?" >&2; exit 1; }

dir=$(mktemp -d "${FRESH_DIR:-${TMPDIR:-/tmp}}/kvmtop-fresh.XXXXXX")
root=$dir/root
cleanup() {
	# Before the folder is removed, innermost first: /dev and /sys in it are this machine's own.
	awk -v r="$root/" 'index($2 "/", r) == 1 { print $2 }' /proc/self/mounts | sort -r |
		while read -r m; do
			umount "$m" 2>/dev/null || umount -l "$m"
		done
	if grep -q " ${root}[/ ]" /proc/self/mounts; then
		echo "still mounted below $root: nothing is removed" >&2
	elif [ -z "${KEEP:-}" ]; then
		rm -rf --one-file-system "$dir"
	else
		echo "kept: $root" >&2
	fi
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

echo "== minimal $suite from $mirror"
debootstrap --variant=minbase $suite "$root" "$mirror" >"$dir/debootstrap.log" 2>&1 ||
	{ tail -n 20 "$dir/debootstrap.log" >&2; exit 1; }
sources | awk -v s=$suite '$2 == s || index($2, s "-") == 1 {
	print "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]", $1, $2, $3 }' \
	>"$root/etc/apt/sources.list"
# How this machine reaches its mirror (proxy, timeouts, dates) holds inside as well.
apt-config dump | grep -E '^Acquire::(http|https|ftp|Check|Retries|Max)' \
	>"$root/etc/apt/apt.conf.d/99host" || true
cp /etc/resolv.conf /etc/hosts "$root/etc/"

# A mount point itself: what is inside wants to make mount namespaces, and those change "/" as a mount.
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"

inside() {
	chroot "$root" /usr/bin/env -i HOME=/root TERM="${TERM:-dumb}" LC_ALL=C.UTF-8 \
		PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -c "$1" </dev/null
}
inside "apt-get -qq update && apt-get -qq install -y --no-install-recommends git make" \
	>"$dir/apt.log" 2>&1 || { tail -n 20 "$dir/apt.log" >&2; exit 1; }
git clone -q --no-hardlinks "$top" "$root/root/kvmtop"

rc=0
for command in "$@"; do
	start=$(date +%s)
	echo "== $command"
	if inside "cd /root/kvmtop && $command" 2>&1; then
		echo "== $command: passed, $(($(date +%s) - start)) s"
	else
		echo "== $command: FAILED, $(($(date +%s) - start)) s"
		rc=1
	fi
done
exit $rc
