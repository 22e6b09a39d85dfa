#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 120
# lab-sanitize: yes
"""In the lab (run.sh): guests whose TSC really has an offset, merged with the host's trace by the offsets in it."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../integration")]
import merge  # noqa: E402
import native as n  # noqa: E402


def main():
    host, _ = merge.record(1, 20, 0, 0)
    n.ok(merge.offset_is_taken(host), "this KVM's guests have TSCs of their own", host[:2000])
    merge.real_guest("one vCPU", (1, 200, 0, 0), 200)
    merge.real_guest("two vCPUs of different offsets", (2, 200, 5 * 10 ** 12, 0), 400)
    merge.real_guest("two vCPUs that write their TSC, forwards", (2, 200, 0, 10 ** 12), 400)
    merge.real_guest("two vCPUs that write their TSC, back", (2, 200, 10 ** 13, -10 ** 12), 400)
    merge.real_guest("a TSC that passes 2^64", (2, 200, 2 ** 64 - 10 ** 6, 0), 400)
    n.done()


main()
