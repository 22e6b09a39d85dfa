#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The man pages are clean for mandoc's lint. What they list against the program's tables is the
# matter of tests/man/*.sh.
set -eu
pages=$(git ls-files 'man/*.[1-9]')
[ -n "$pages" ] || { echo "ok 1 - man pages: none yet"; exit 0; }
# shellcheck disable=SC2086 # words are wanted
exec mandoc -Tlint -W warning $pages
