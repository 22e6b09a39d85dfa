#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The kernel's own checkpatch.pl --strict over the series: nothing to say about any patch.
# shellcheck disable=SC2154 # lib.sh sets them
set -eu
# shellcheck source=kernel-support/lib.sh
. "$(dirname "$0")/lib.sh"

find_source
src=$("$support/apply.sh")
list_patches | xargs "$src/scripts/checkpatch.pl" --root="$src" --strict --quiet --no-summary --show-types
