#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# clang-format has nothing to change in any tracked C file (`make format` mends it).
set -eu
git ls-files -z '*.c' '*.h' | xargs -0 clang-format --dry-run -Werror
