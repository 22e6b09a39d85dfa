#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# clang-format has nothing to change in any C file, committed or not (`make format` mends it).
set -eu
git ls-files -z -co --exclude-standard '*.c' '*.h' | xargs -0 clang-format --dry-run -Werror
