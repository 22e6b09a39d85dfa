#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs shellcheck over every tracked shell script, those without .sh by their first line.
set -eu
files=$({
	git ls-files '*.sh' '*.bash'
	git grep -lE '^#!.*[/ ](sh|bash)$' -- ':!*.sh' ':!*.bash' ':!*.md'
} | sort -u)
# Warnings and errors; 1091: files that are sourced by a variable path are checked on their own.
# shellcheck disable=SC2086 # words are wanted
exec shellcheck -S warning -e SC1091 $files
