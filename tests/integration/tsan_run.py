#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, debugfs, perf-events
# limit: 120
"""The whole program under ThreadSanitizer while guests come and go; a report fails it (tests/run)."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n


def coming_and_going(seconds):
    """At each moment up to three VMs, each of another sort, living 0.05 to 2 s."""
    kinds = [("-e", 50, "-r", 5000, "out:inf"),
             ("-c", 3, "-e", 700, "-r", 2000, "mmior:inf"),
             ("-s", "hop", "-k", 20, "-t", "", "-e", 1500, "-r", 2000, "in:inf"),
             ("-V", 2, "-c", 2, "-e", 2000, "-r", 500, "-l", "inf", "wrmsr:20 out:10 sleep:5")]
    end, live, i = time.monotonic() + seconds, [], 0
    while time.monotonic() < end:
        live.append(n.Guest(*kinds[i % len(kinds)]).go())
        i += 1
        if len(live) == 3:
            g = live.pop(0)
            if i % 5 == 0:
                g.kill()
            else:
                g.wait()
        yield
    for g in live:
        g.wait()


def main():
    top = n.Kvmtop("--event", "vmexit,ioport,mmio,msr,userexit,halt", delay=0.1)
    top.skip(2)
    for _ in coming_and_going(12):
        top.skip(1)
    r = top.settle().skip(3).end()
    n.same(top.status, 0, "it ends well")
    n.ok(len(r) > 20, "it wrote its records", len(r))
    n.ok(len({vm["vm_id"] for x in r for vm in x["vms"]}) >= 5, "it saw the guests come")
    n.same(r[-1]["vms"] and [vm["pid"] for vm in r[-1]["vms"] if not os.path.exists(f"/proc/{vm['pid']}")],
           [], "and go")
    n.same([b for x in r for b in n.finite(x)], [], "no figure is absurd")
    n.done()


main()
