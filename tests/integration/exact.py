#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, debugfs, perf-events
# limit: 240
# sanitize: no, exact_perf.py decodes each event; all others read what was counted in the kernel
"""kvmtop's counts of real KVM events equal what the guests did, to the last one."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

KINDS = ("ioport", "mmio", "msr", "userexit")
MIX = "out:1000 in:1001 mmior:1002 mmiow:1003 rdmsr:1004 wrmsr:1005 hlt:1006"


def watched(guests, *args, env=None, delay=0.25):
    """Runs the guests from before their first event to after their last one under kvmtop."""
    # At full rate the default bound would close kinds: that is another test.
    top = n.Kvmtop("--event", ",".join(KINDS), "--max-overhead", "0", *args, env=env, delay=delay)
    top.skip(2)
    for g in guests:
        g.go()
    for g in guests:
        g.wait()
    return top.settle().end()


def check(records, g, name):
    n.same(n.only(n.counted(records, g.pid), *KINDS), n.truth(g.counts), name)


def one_vm():
    g = n.Guest(MIX)
    r = watched([g])
    check(r, g, "one VM: each count of each kind is the guest's own")
    n.same(n.lost(r), 0, "one VM: nothing was lost")
    n.same([b for x in r for b in n.finite(x)], [], "one VM: no absurd figure")


def several_vms():
    guests = [n.Guest("-c", 2, "out:20000 mmiow:300", "in:5000 wrmsr:700 sleep:1"),
              n.Guest("-t", "", "-l", 50, "mmior:40 out:3 hold:1"),
              n.Guest("-c", 3, "-m", "user", "out:4001", "spin:5 in:2002", "mmiow:999")]
    r = watched(guests)
    for i, g in enumerate(guests):
        want = n.truth(g.counts)
        for port, op in (("0xf1:POUT", "hold"), ("0xf2:POUT", "sleep")):
            m = sum(c[op] for c in g.counts if op == "hold" or not c["hlts"])
            if m:
                want[("ioport", port)] = m
        n.same(n.only(n.counted(r, g.pid), *KINDS), want, f"three VMs at once: counts of VM {i}")
        for v, c in enumerate(g.counts):
            got = sum(n.only(n.counted(r, g.pid, vcpu=v), "userexit").values())
            n.same(got, c["userexit"], f"three VMs at once: VM {i}, user exits of vCPU {v}")
    n.same(n.lost(r), 0, "three VMs at once: nothing was lost")


def host_rows(records):
    """{(kind, key): count} of the rows of all VMs together."""
    total = {}
    for x in records:
        n.add_counts(x["host"]["exits"], total)
    return n.only(total, *KINDS)


def the_host():
    """Rows of the host against the guests' own counts, and against all VMs that were seen."""
    guests = [n.Guest("-c", 2, "out:3000 mmiow:300 rdmsr:7", "in:500 wrmsr:70"),
              n.Guest("mmior:40 out:301 hlt:3"),
              n.Guest("-c", 3, "out:401", "spin:5 in:202", "mmiow:99 out:5")]
    ours = {g.pid for g in guests}
    top = n.Kvmtop("--event", ",".join(KINDS), "--max-overhead", "0", "--totals").skip(2)
    for g in guests:
        g.go()
    for g in guests:
        g.wait()
    top.settle().until(lambda x: not any(n.vms_of(x, p) for p in ours), 10, "the guests are gone")
    r = top.end()
    now = watched([n.Guest("out:100"), n.Guest("out:23 in:7")])
    want, apart = {}, {}
    for g in guests:
        for k, m in n.truth(g.counts).items():
            want[k] = want.get(k, 0) + m
    # Guests of others may run on this machine: what they did is no mistake of ours.
    for x in r:
        for vm in x["vms"]:
            if vm["pid"] not in ours:
                apart[vm["vm_id"]] = n.only(n.add_counts(vm["exits"]), *KINDS)
    for m in apart.values():
        for k in m:
            want[k] = want.get(k, 0) + m[k]
    n.same(n.only(n.add_counts(r[-1]["host"]["exits"]), *KINDS), want,
           "the host's rows with --totals: the guests' own counts, when they are gone")
    for records, what in ((now, "of each interval"), (r, "with --totals, while all are there")):
        bad, seen = [], set()
        for x in records:
            vms, seen = {}, seen | {vm["vm_id"] for vm in x["vms"]}
            for vm in x["vms"]:
                n.add_counts(vm["exits"], vms)
            got = n.add_counts(x["host"]["exits"])
            # The host keeps the counts of those that are gone, others' too.
            if "--totals" in what and (not all(n.vms_of(x, p) for p in ours)
                                       or seen - {vm["vm_id"] for vm in x["vms"]}):
                continue
            if n.only(got, *KINDS) != n.only(vms, *KINDS):
                bad.append((got, vms))
        n.same(bad, [], f"the host's rows {what}: the sum of the VMs' rows")


def full_rate():
    guests = [n.Guest("out:250000"), n.Guest("in:100000 mmior:100000")]
    r = watched(guests)
    for g in guests:
        check(r, g, "full rate on each CPU: the counts are exact")
    n.same(n.lost(r), 0, "full rate on each CPU: nothing was lost")


def totals():
    g = n.Guest(MIX)
    r = watched([g], "--totals")
    last = n.add_counts(n.vm_of(r[-1], g.pid)["exits"]) if n.vm_of(r[-1], g.pid) else {}
    seen = [x for x in r if n.vm_of(x, g.pid)]
    if not last and seen:
        last = n.add_counts(n.vm_of(seen[-1], g.pid)["exits"])
    n.same(n.only(last, *KINDS), n.truth(g.counts), "--totals: the last record has them all")


def wakeups(counts):
    """Without the changes of how long KVM polls: after a sleep that was short there are some."""
    return sum(c for (kind, key), c in counts.items() if kind == "halt" and "size" not in key)


def halts():
    """HLT that waits in the kernel, woken by an NMI when it sleeps: one kvm_vcpu_wakeup each."""
    g = n.Guest("-c", 2, "-H", 2, "hlt:100", "hlt:60")
    top = n.Kvmtop("--event", "halt").skip(2)
    g.go().wait()
    r = top.settle().end()
    n.same([c["hlt"] for c in g.counts], [100, 60], "halts in the kernel: what the guest did")
    n.same(wakeups(n.counted(r, g.pid)), 160, "halts in the kernel: all of them")
    for v, want in ((0, 100), (1, 60)):
        n.same(wakeups(n.counted(r, g.pid, vcpu=v)), want, f"halts in the kernel: those of vCPU {v}")


def no_times_without_entries(records, g):
    """Where KVM fires no kvm_entry, times are not known; they are never 0."""
    rows = [x for r in records for vm in n.vms_of(r, g.pid) for x in vm["exits"]]
    if n.HW:
        n.ok(n.every(x["timed"] <= x["count"] for x in rows), "no more pairs than events")
        return
    n.same({x["avg_ns"] for x in rows} | {x["p99_ns"] for x in rows}, {None},
           "without kvm_entry times are null, not 0")


def main():
    one_vm()
    several_vms()
    the_host()
    full_rate()
    totals()
    halts()
    g = n.Guest("out:5000")
    no_times_without_entries(watched([g]), g)
    n.done()


main()
