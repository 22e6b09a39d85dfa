#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 150
"""In the lab (run.sh): a CPU of the host goes and comes back under guests whose exits are known.

As tests/integration/hotplug.py, with real pairs of kvm_exit and kvm_entry, of which one end can be on the CPU that went
and the other where the thread is now. What counts in the kernel misses none; of perf's rings that CPU's is made
anew, and what was missed there is said and marked.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lab_guests
import native as n

CPU = n.CPUS[-1]
ONLINE = f"/sys/devices/system/cpu/cpu{CPU}/online"
DELAY = 1 if lab_guests.shared_cpu() else 0.5


def switch(on):
    with open(ONLINE, "w", encoding="ascii") as f:
        f.write("1" if on else "0")


def online():
    with open("/sys/devices/system/cpu/online", encoding="ascii") as f:
        return {c for part in f.read().strip().split(",") for c in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)}


def away(top, g, intervals):
    """The CPU goes, for so many intervals; its guest goes back to it afterwards, as the kernel had to put it elsewhere."""
    try:
        switch(False)
        n.ok(CPU not in online(), f"CPU {CPU} is away")
        top.skip(intervals)
    finally:
        switch(True)
    for vcpu in g.vcpus:
        os.sched_setaffinity(vcpu["tid"], {CPU})


def exits(records, pid):
    """{reason: [count, timed]} of the VM's exits."""
    total = {}
    for r in records:
        for vm in n.vms_of(r, pid):
            for x in vm["exits"]:
                if x["kind"] == "vmexit":
                    t = total.setdefault(x["key"], [0, 0])
                    t[0] += x["count"]
                    t[1] += x["timed"] or 0
    return total


def counted_in_the_kernel():
    kinds = ("ioport", "mmio", "msr", "userexit")
    g = n.Guest("-c", 2, "-l", "inf", "-r", 200, "-p", CPU, "out:7 mmiow:3 rdmsr:2 cpuid:2", "in:5 mmior:2 wrmsr:2")
    top = n.Kvmtop("--event", "vmexit," + ",".join(kinds), "--events-by", "bpf", "--max-overhead", "0", delay=DELAY).skip(2)
    g.go()
    for intervals in (2, 0, 1):
        top.skip(2)
        away(top, g, intervals)
    top.skip(2)
    g.stop()
    r = top.settle().end()
    want = {"io": sum(c["port_out"] + c["port_in"] for c in g.counts), "msr": sum(c["rdmsr"] + c["wrmsr"] for c in g.counts),
            "cpuid": sum(c["cpuid"] for c in g.counts)}
    got = exits(r, g.pid)
    n.ok(want["io"] > 500, "the guest did something", want)
    n.same({k: got.get(k, [0])[0] for k in want}, want, "exits by reason: the guest's own counts, whichever CPU went")
    n.same(n.only(n.counted(r, g.pid), *kinds), n.truth(g.counts), "accesses and user exits as well")
    # A pair is the thread's: that it was begun on another CPU takes its time from it no more than a migration does.
    late = sum(x["host"]["late"] for x in r)
    n.ok(n.every(c - t <= 2 + 2 * late for c, t in got.values()), "and each has its time", (got, late))
    n.same((n.lost(r), sum(x["host"]["unmatched"] for x in r)), (0, 0), "nothing is lost, nor without its other end")
    n.same([f["text"] for x in r for f in x["findings"] if f["rule"] == "unwatched"], [], "and nothing is said to be")
    n.same((top.status, [b for x in r for b in n.finite(x)]), (0, []), "every figure is possible")


def by_rings():
    g = n.Guest("-l", "inf", "-r", 200, "-p", CPU, "out:100 spin:300").go()
    top = n.Kvmtop("--event", "vmexit", "--events-by", "perf", delay=DELAY)

    def counts(r):
        vm = n.vm_of(r, g.pid)
        return vm is not None and any(x["kind"] == "vmexit" and x["key"] == "io" and (x["count"] or 0) > 50 for x in vm["exits"])

    n.ok(top.until(counts, 30, "exits"), "rings: exits are counted before")
    away(top, g, 2)
    top.settle().skip(1)
    n.ok(top.until(counts, 30, "exits again"), "rings: and after")
    r = top.end()
    g.stop()
    gaps = [x for x in r if any(f["rule"] == "unwatched" and f"CPU {CPU} was not watched" in f["text"] for f in x["findings"])]
    n.ok(gaps, "rings: a finding says that the CPU was not watched", [x["findings"] for x in r])
    n.ok(n.every(x["partial"] for q in gaps for v in n.vms_of(q, g.pid) for x in v["exits"]), "rings: these counts are partial",
         [v["exits"] for q in gaps for v in n.vms_of(q, g.pid)])
    n.same((top.status, [b for x in r for b in n.finite(x)]), (0, []), "rings: every figure is possible")


def main():
    if not os.access(ONLINE, os.W_OK):
        n.skip("CPU hotplug", f"{ONLINE} cannot be written")
        n.done()
    counted_in_the_kernel()
    by_rings()
    n.done()


main()
