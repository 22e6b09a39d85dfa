# SPDX-License-Identifier: GPL-2.0-only
"""How much longer than on an ordinary kernel a test has to wait before it gives up (make check-kernel-debug).

A kernel that watches its memory and its locks takes several times as long, the more so in an emulated CPU. It is the
limits that grow by this factor, not what is asked for.
"""

import gzip


def _factor():
    try:
        with gzip.open("/proc/config.gz", "rt", encoding="ascii", errors="replace") as f:
            return 10 if "CONFIG_KASAN=y\n" in f else 1
    except OSError:
        return 1


PATIENCE = _factor()
