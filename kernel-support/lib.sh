# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What apply.sh, build.sh and boot.sh share: where the kernel's source is, which patches are meant,
# and the cache, outside the tree, in which there is one patched source, one build of it, and results.

support=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${KVMTOP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kvmtop}/kernel
# KERNEL_DEBUG=1: the kernel that watches itself; it has a build of its own beside the other.
# shellcheck disable=SC2034 # build.sh has a use for it
configs=("$support/config/lab.config") flavour=''
if [ "${KERNEL_DEBUG:-}" = 1 ]; then
	configs+=("$support/config/debug.config")
	# shellcheck disable=SC2034
	flavour=-debug
fi

die() {
	echo "kernel-support: $*" >&2
	exit 1
}

# Debian's tarball; KERNEL_SOURCE=FILE names another one.
find_source() {
	tarball=${KERNEL_SOURCE:-$(find /usr/src -maxdepth 1 -name 'linux-source-*.tar.xz' 2>/dev/null | sort -V | tail -n 1)}
	[ -r "$tarball" ] || die "no kernel source in /usr/src (package linux-source-*): run scripts/deps.sh kernel"
	name=$(basename "$tarball" .tar.xz)
	patches=$support/patches/v${name#linux-source-}
	[ -d "$patches" ] || die "no patches for $name: there are $(cd "$support/patches" && echo *)"
	# Package version where dpkg knows it; size and time tell a replaced tarball as well.
	version="$name $(dpkg-query -W -f '${Version}' "$name" 2>/dev/null || true) $(stat -c '%s.%Y' "$tarball")"
}

list_patches() { # in their order
	find "$patches" -name '*.patch' | LC_ALL=C sort
}

# Everything that a built kernel depends on, as a word.
build_key() {
	{
		echo "$version $(${CC:-cc} --version | head -n 1)"
		cat "${configs[@]}"
		list_patches | xargs -r cat
	} | sha256sum | cut -c 1-20
}

# One at a time works on the source and the build. Nothing that is started here inherits the lock.
lock_cache() {
	mkdir -p "$cache"
	exec 7>"$cache/lock"
	flock 7
}
