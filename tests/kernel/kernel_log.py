#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""In the lab on the patched kernel, after all others (tests/run): what its log says of what they did.

On the debug kernel (make check-kernel-debug) that is what KASAN, lockdep and the rest have found.
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

REPORT = re.compile(r"WARNING|BUG:|BUG |KASAN|Oops|general protection|refcount_t|hung task|blocked for more than|"
                    r"possible (circular|recursive)|suspicious RCU|inconsistent lock state|sleeping function|"
                    r"soft lockup|rcu.*stall|list_(add|del) corruption")


def main():
    config = n.sh("zcat", "/proc/config.gz").split()
    debug = [o for o in ("KASAN", "PROVE_LOCKING", "DEBUG_ATOMIC_SLEEP") if f"CONFIG_{o}=y" in config]
    log = n.sh("dmesg").splitlines()
    n.say(f"the kernel watches itself by {', '.join(debug) or 'nothing'}; {len(log)} lines of log")
    n.same([line for line in log if REPORT.search(line)], [], "the kernel has nothing to report")
    if "PROVE_LOCKING" in debug:
        with open("/proc/lockdep_stats", encoding="ascii") as f:
            n.ok(re.search(r"debug_locks: +1", f.read()), "lockdep watched to the end")
    n.done()


main()
