#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: kvm, tracefs, root
# limit: 240
"""Slow exits of guests whose VMM sleeps in exits of known number, with both sources of events.

Where this machine's KVM fires kvm_exit, tests/lab/slow.py has more to say. Where it does not, the VMM's part of
an exit is seen alone, and which ones are slow is known just as well."""

import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

LIMIT = "100ms"  # far above what a loaded machine does to the others
HOLD = 250


def lines_of(records, pid):
    return [x for r in records for vm in n.vms_of(r, pid) for x in vm["slow"]]


def counted(records, pid):
    return sum(vm["slow_exits"] or 0 for r in records for vm in n.vms_of(r, pid))


def known(top):
    """Whether this KVM fires kvm_exit shows in its events only, some thousands of them."""
    warm = n.Guest("-l", "inf", "out:2000 sleep:1").go()
    said = top.until(lambda r: any(s["name"] == "kvm_events" and "kvm_exit" in (s["why"] or "") for s in r["sources"])
                     or any(vm["exit_pct"] is not None for vm in r["vms"]), 60, "whether kvm_exit fires is found out")
    top.skip(2)
    warm.stop()
    return said


def each_is_told(how):
    top = n.Kvmtop("--events-by", how, "--slow", LIMIT, "--max-overhead", "0", delay=0.5).skip(2)
    if not known(top):
        return
    g = n.Guest("-c", 2, "-l", 5, f"out:50 hold:{HOLD} mmior:20", f"in:100 hold:{HOLD} hold:{HOLD} hlt:1")
    quick = n.Guest("-l", 20, "out:500 mmiow:50 hold:1 spin:150")
    g.go(), quick.go()
    g.wait(120), quick.wait(120)
    r = top.settle().end()
    x = [x for x in lines_of(r, g.pid) if x["took_ns"] >= HOLD * 1e6]
    per = collections.Counter(v["vcpu"] for v in x)
    n.ok(per[0] >= 5 and per[1] >= 10, f"{how}: each exit in which the VMM slept has a line, by vCPU", per)
    n.same({(v["vcpu"], v["tid"]) for v in x}, {(i, g.tid(i)) for i in (0, 1)}, "with its thread")
    n.same({v["user_exit"] for v in x}, {"KVM_EXIT_IO"}, "and what the VMM was asked for")
    n.ok(n.every(HOLD * 1e6 <= v["user_ns"] <= v["took_ns"] for v in x), "the VMM's part is in its time",
         [(v["user_ns"], v["took_ns"]) for v in x])
    for vcpu in (0, 1):
        t = [v["ended"] for v in x if v["vcpu"] == vcpu]
        n.same(t, sorted(set(t)), f"vCPU {vcpu}: each at its own time, in order")
    lines, all_of_it = lines_of(r, g.pid), counted(r, g.pid)
    n.same(all_of_it, len(lines), "as many are counted as have a line")
    n.ok(n.every(v["took_ns"] > 100e6 for v in lines + lines_of(r, quick.pid)), "none is shorter than the limit")
    n.ok(len(lines) - 15 <= 3 and len(lines_of(r, quick.pid)) <= 3,
         "what the guest computes between two exits is none, however long (but for a machine that stood still)",
         (lines, lines_of(r, quick.pid)))
    n.same(n.lost(r), 0, "nothing was lost")


def nobody_asks():
    g = n.Guest("-l", 3, "out:50 hold:120")
    top = n.Kvmtop("--event", "userexit", delay=0.5).skip(2)
    g.go().wait(60)
    r = top.settle().end()
    n.same([vm["slow_exits"] for q in r for vm in q["vms"] if vm["slow_exits"] is not None], [],
           "nobody asks: how many are slow is not known")
    n.ok(n.every("slow" not in vm for q in r for vm in q["vms"]), "and there is no table of them")


def main():
    for how in ("bpf", "perf"):
        each_is_told(how)
        n.end_children()
    nobody_asks()
    n.done()


main()
