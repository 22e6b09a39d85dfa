#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Every tracked source names its licence in its first line (scripts: after the #!).
set -eu
rc=0
for f in $(git ls-files '*.c' '*.h' '*.sh' '*.py' Makefile '*/Makefile' '*.patch' '*.config' \
	tests/run .ci/run packages.txt); do
	head -n 2 "$f" | grep -q 'SPDX-License-Identifier: GPL-2.0-only' || {
		echo "$f: no SPDX-License-Identifier: GPL-2.0-only in its first two lines"
		rc=1
	}
done
exit $rc
