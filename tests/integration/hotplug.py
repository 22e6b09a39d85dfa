#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, debugfs, perf-events, cpus2
# limit: 120
"""A CPU that goes and comes back: the events on it count again, also when kvmtop never saw it away.

Through perf's rings, of which that CPU's has to be opened anew, something is missed, and that is said;
what counts in the kernel has none, and misses nothing.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

CPU = n.CPUS[-1]
ONLINE = f"/sys/devices/system/cpu/cpu{CPU}/online"


def switch(on):
    with open(ONLINE, "w", encoding="ascii") as f:
        f.write("1" if on else "0")


def low_fields(r):
    """The figures that are marked as missing what an unwatched CPU did."""
    return [f for s in r["sources"] if s["name"] == "figures" and "not watched" in s["why"]
            for f in s["fields"]]


def told(records, name):
    """The gap is no loss: it is said in words, and the counts of its intervals are marked."""
    gaps = [r for r in records if any(f["rule"] == "unwatched" for f in r["findings"])]
    n.ok(gaps and f"CPU {CPU} was not watched for up to" in
         next(f for f in gaps[0]["findings"] if f["rule"] == "unwatched")["text"],
         f"{name}: a finding says that the CPU was not watched", [r["findings"] for r in records])
    n.ok(n.every({"exit.count", "exit.count_per_s", "vm.exits_per_s"} <= set(low_fields(r)) and
             n.every(x["partial"] for v in r["vms"] for x in v["exits"]) for r in gaps),
         f"{name}: the counts of these intervals are partial", [r["sources"] for r in gaps])
    others = [r for r in records if r not in gaps and not r["lost"] and not n.opened(r) and any(v["exits"] for v in r["vms"])]
    n.ok(n.every(not low_fields(r) and not any(x["partial"] for v in r["vms"] for x in v["exits"]) for r in others),
         f"{name}: and those of no others", [(low_fields(r), r["vms"]) for r in others])


def away_for(intervals, name):
    g = n.Guest("-l", "inf", "-r", 1000, "-p", CPU, "out:100 spin:300").go()
    top = n.Kvmtop("--event", "ioport", "--events-by", "perf", delay=0.5)

    def counts(r):
        vm = n.vm_of(r, g.pid)
        return vm is not None and (vm["exits_per_s"] or 0) > 300 and (vm["samples"] or 0) > 0

    n.ok(top.until(counts, 10, f"{name}: before"), f"{name}: exits and samples are counted before")
    try:
        switch(False)
        top.skip(intervals)
    finally:
        switch(True)
    os.sched_setaffinity(g.tid(0), {CPU})  # the kernel widened it when the CPU went
    top.settle().skip(2)
    n.ok(top.until(counts, 15, f"{name}: after"), f"{name}: and after")
    top.skip(2)
    # An interval of half a second may have been slept through; samples are few where their rate was lowered.
    after = [n.vm_of(top.next(), g.pid) or {} for _ in range(4)]
    n.ok(sum((v.get("exits_per_s") or 0) > 300 for v in after) >= 3 and any(v.get("samples") for v in after),
         f"{name}: and from then on", [(v.get("exits_per_s"), v.get("samples")) for v in after])
    told(top.records, name)
    bad = [x for r in top.end() for x in n.finite(r)]
    n.same((top.status, bad), (0, []), f"{name}: every figure is possible")
    g.stop()


def exact():
    """A guest goes from CPU to CPU with the one that goes; all it did is counted."""
    kinds = ("ioport", "mmio", "userexit")
    g = n.Guest("-c", 2, "-l", "inf", "-r", 1500, "-p", CPU, "out:7 mmiow:3", "in:5 mmior:2")
    top = n.Kvmtop("--event", ",".join(kinds), "--events-by", "bpf", delay=0.25).skip(2)
    g.go()
    for away in (2, 0, 1):
        top.skip(2)
        try:
            switch(False)
            top.skip(away)
        finally:
            switch(True)
        for v in range(2):
            os.sched_setaffinity(g.tid(v), {CPU})
    top.skip(3)
    g.stop()
    r = top.settle().end()
    want = n.truth(g.counts)
    n.ok(sum(want.values()) > 1000, "counted in the kernel: the guest did something", want)
    n.same(n.only(n.counted(r, g.pid), *kinds), want, "counted in the kernel: its counts are exact, whichever CPU went")
    n.same((n.lost(r), [f for x in r for f in x["findings"] if f["rule"] == "unwatched"]), (0, []),
           "counted in the kernel: nothing is lost, and nothing said to be")
    marked = [x for q in r if not n.opened(q) for v in n.vms_of(q, g.pid) for x in v["exits"] if x["partial"]]
    n.same(marked, [], "counted in the kernel: no count is marked")
    n.same((top.status, [b for x in r for b in n.finite(x)]), (0, []), "counted in the kernel: every figure is possible")


def main():
    if not os.access(ONLINE, os.W_OK):
        n.skip("CPU hotplug", f"{ONLINE} cannot be written")
        n.done()
    away_for(3, "a CPU away for three intervals")
    away_for(0, "a CPU away between two looks")
    exact()
    n.done()


main()
