#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Installs the Debian packages of packages.txt that are missing: deps.sh [-n] USE…
# (USE: build, check, bench, fresh, lab, kernel). -n only names them. Silent and fast when all is there; this is
# what lets `make run` and `make check` work on a machine that has git and make and nothing else.
set -eu
list=$(dirname "$0")/../packages.txt
dry=
[ "${1:-}" = -n ] && { dry=1; shift; }

if ! command -v dpkg-query >/dev/null; then
	# Not Debian: the build itself says what it misses (need-build in the Makefile).
	echo "no dpkg here: packages are not checked; packages.txt has the list" >&2
	exit 0
fi

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p')

has() { # is package $1 installed? (no process a package: this runs at every make)
	case "
$installed
" in
	*"
$1
"*) return 0 ;;
	esac
	return 1
}

missing=
while read -r use package; do
	case " $* " in *" $use "*) ;; *) continue ;; esac
	found=
	for p in $(echo "$package" | tr '|' ' '); do
		has "$p" && found=1
	done
	[ -n "$found" ] || missing="$missing $package"
done <"$list"
[ -n "$missing" ] || exit 0

echo "missing packages:$missing" >&2
[ -z "$dry" ] || exit 1

choose() { # the missing packages, of alternatives the first that apt knows
	for package in $missing; do
		chosen=${package%%|*}
		for p in $(echo "$package" | tr '|' ' '); do
			if apt-cache show "$p" >/dev/null 2>&1; then
				chosen=$p
				break
			fi
		done
		echo "$chosen"
	done
}

as_root=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || {
		# shellcheck disable=SC2046 # one line
		echo "not root and no sudo: as root, run: apt-get install" $(choose) >&2
		exit 1
	}
	as_root=sudo
	[ -t 0 ] || as_root="sudo -n" # nobody is there to type a password
fi
# A failed update is no reason to stop: the lists at hand may be enough.
$as_root apt-get -qq update || echo "apt-get update failed, going on with the lists at hand" >&2
# Somebody who waits at a terminal sees apt's progress; a log gets one line and the errors.
quiet="-qq -o Dpkg::Use-Pty=0"
if [ -t 1 ]; then
	quiet=-q
fi
# shellcheck disable=SC2086,SC2046 # words are wanted
set -- env DEBIAN_FRONTEND=noninteractive apt-get $quiet install -y --no-install-recommends $(choose)
if [ -t 1 ]; then
	$as_root "$@"
else
	$as_root "$@" >/dev/null
fi
