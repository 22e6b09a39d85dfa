#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# scripts/deps.sh with a made package list and made dpkg-query, apt-get, apt-cache, sudo and id.
. "$TOP/tests/tap.sh"
bin=$TEST_TMP/bin tree=$TEST_TMP/tree
mkdir -p "$bin" "$tree/scripts"
cp scripts/deps.sh "$tree/scripts/"
printf '# a comment\nbuild\tcc\nbuild\tlibnew|libold\ncheck\tlint\nfresh\tother\n' >"$tree/packages.txt"

fake() { # fake NAME SCRIPT
	printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1"
	chmod +x "$bin/$1"
}
# shellcheck disable=SC2016 # expands in the made programs
fakes() {
	fake dpkg-query 'for p in $INSTALLED; do echo "installed $p"; done; echo "config-files lint"'
	fake apt-get 'echo "apt-get $*" >>"$CALLS"; case $1$2 in *update) exit ${UPDATE:-0} ;; esac'
	fake apt-cache 'case $2 in libnew) exit 100 ;; esac'
	fake sudo 'echo "sudo" >>"$CALLS"; [ "$1" != -n ] || shift; exec "$@"'
	fake id 'echo ${UID_IS:-0}'
}
fakes
export CALLS=$TEST_TMP/calls

deps() { # deps INSTALLED ARGUMENT…: $out, $rc, $calls
	: >"$CALLS"
	out=$(INSTALLED=$1 PATH=$bin:$PATH sh "$tree/scripts/deps.sh" "${@:2}" 2>&1)
	rc=$?
	calls=$(cat "$CALLS")
}

deps "cc libold lint" build check
is "$rc$out$calls" 0 "all there: silent, nothing is called"
deps "cc libold" build
is "$rc$out$calls" 0 "a use that was not asked for is not looked at"
deps "cc" -n build check
is "$rc $out" "1 missing packages: libnew|libold lint" "-n names what is missing (a removed package is)"
is "$calls" "" "and installs nothing"
deps "cc" build check
is "$rc" 0 "what is missing is installed"
like "$calls" "install -y --no-install-recommends libold lint$" "only that; of two names the one that apt knows"
like "$calls" "^apt-get .*update" "after an update of the lists"
UPDATE=100 deps "cc" build
like "$rc $calls" "install .* libold$" "a failed update does not stop it"
UID_IS=1000 deps "cc" build
like "$calls" "^sudo" "not root: through sudo"
rm "$bin/sudo"
mkdir "$TEST_TMP/few"
for p in sh sed tr dirname cat; do ln -s "$(command -v $p)" "$TEST_TMP/few/"; done
out=$(INSTALLED=cc UID_IS=1000 PATH=$bin:$TEST_TMP/few sh "$tree/scripts/deps.sh" build 2>&1)
like "$? $out" "as root, run: apt-get install libold" "neither root nor sudo: the command to run"
tap_done
