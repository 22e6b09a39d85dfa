#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, debugfs, perf-events
# sanitize: no, a slow reader is made on purpose here
# limit: 60
"""With a ring made too small on purpose, counted + lost is the true count, for each kind."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

SMALL = {"KVMTOP_TEST_SMALL_RING": "1"}


def one(kind, key, program, name):
    g = n.Guest(program)
    top = n.Kvmtop("--event", kind, env=SMALL, delay=0.5)
    top.skip(1)
    g.go().wait()
    r = top.settle().end()
    want = sum(c for k, c in n.truth(g.counts).items() if k[0] == kind)
    if key:
        want = n.truth(g.counts)[(kind, key)]
    got = sum(n.only(n.counted(r, g.pid), kind).values())
    lost = n.lost(r)
    n.say(f"{name}: {got} counted, {lost} lost, {want} true")
    n.ok(lost > 0, f"{name}: the small ring does lose events", f"lost {lost}")
    n.same(got + lost, want, f"{name}: counted + lost = true")
    n.ok(any(f["rule"] == "lost" for x in r for f in x["findings"]),
         f"{name}: a finding says that events were lost")


def main():
    one("ioport", None, "out:200000", "port writes")
    one("mmio", None, "mmiow:200000", "MMIO writes")
    one("msr", None, "wrmsr:200000 rdmsr:100000", "MSR accesses")
    one("userexit", None, "in:200000", "user exits")
    n.done()


main()
