# SPDX-License-Identifier: GPL-2.0-only
"""How much longer than on an ordinary machine a test has to wait before it gives up.

A debug kernel (make check-kernel-debug) watches its memory and its locks and takes several times as long, the more so
in an emulated CPU. And the lab is silent now and then for half a minute before it is helped on (tests/lab/run.sh), in
which nothing of what a test waits for happens. It is the limits that grow by this factor, not what is asked for.
"""

import gzip
import os


def _debug_kernel():
    try:
        with gzip.open("/proc/config.gz", "rt", encoding="ascii", errors="replace") as f:
            return "CONFIG_KASAN=y\n" in f
    except OSError:
        return False


DEBUG_KERNEL = _debug_kernel()
PATIENCE = 10 if DEBUG_KERNEL else 3 if "LAB_KERNEL" in os.environ else 1
