#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, debugfs, perf-events
# sanitize: no, a thousand threads at once, and the sanitizers' own time is not what is looked at
# limit: 90
"""A real VM of 1,000 vCPUs, and 500 real VMs: all of them are there, once, and have their figures."""

import fcntl
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

VCPUS, VMS = 1000, 500
KVM_CHECK_EXTENSION, KVM_CAP_MAX_VCPUS = 0xAE03, 66


def max_vcpus():
    fd = os.open("/dev/kvm", os.O_RDWR)
    try:
        return fcntl.ioctl(fd, KVM_CHECK_EXTENSION, KVM_CAP_MAX_VCPUS)
    finally:
        os.close(fd)


def unknown(rows, *fields):
    return [(r.get("name"), r.get("vcpu"), f) for r in rows for f in fields if r[f] is None]


def all_known(records, pick, what):
    """After the first ticks' window, a second, nothing of these is null."""
    fields = ("cpu_pct", "guest_pct", "steal_pct", "throt_pct", "csw_per_s")
    bad = [unknown(pick(r), *fields) for r in records[3:]]
    n.ok(len(bad) >= 3 and not any(bad), f"{what}: every row has its figures", [b[:5] for b in bad])
    odd = [x for r in records for x in n.finite(r)]
    n.same(odd[:5], [], f"{what}: and every figure is possible")


def one_large_vm():
    name = f"a VM of {VCPUS} vCPUs"
    if max_vcpus() < VCPUS:
        n.skip(name, f"this KVM allows {max_vcpus()} vCPUs")
        return
    # Not all at once: a thousand runnable threads on a few CPUs keep the reader off for seconds.
    g = n.Guest("-c", VCPUS, "-l", "inf", *(f"sleep:{100 + i * 1700 // VCPUS} out:5" for i in range(VCPUS)))
    top = n.Kvmtop("--event", "ioport", delay=0.5).skip(1)
    g.go()
    records = list(top.skip(7).records)
    g.stop()
    everything = top.settle().end()
    seen = [n.vms_of(r, g.pid) for r in records]
    n.same([(len(x), x[0]["nvcpu"] if x else 0) for x in seen], [(1, VCPUS)] * len(records),
           f"{name}: one VM with all of them, from the first record on")
    vm = seen[-1][0]
    n.same(sorted(v["vcpu"] for v in vm["vcpus"]), list(range(VCPUS)), f"{name}: each number once")
    n.same({v["vcpu"]: v["tid"] for v in vm["vcpus"]}, {v["vcpu"]: v["tid"] for v in g.vcpus},
           f"{name}: each with its own thread")
    n.same(sum(v["vcpu_guessed"] for v in vm["vcpus"]), 0, f"{name}: by their names")
    out = ("ioport", "0x3f8:POUT")
    if n.lost(everything):
        n.skip(f"{name}: the counts are exact", f"lost {n.lost(everything)}")
    else:
        n.same(n.counted(everything, g.pid).get(out), n.truth(g.counts)[out], f"{name}: the counts are exact")
    all_known(records, lambda r: n.vm_of(r, g.pid)["vcpus"], name)
    n.same((top.status, top.stderr()), (0, ""), f"{name}: it ends well")


def many_vms():
    name = f"{VMS} VMs"
    argv = [n.TINYVM, "-n", "-c", "2", "-l", "inf", "sleep:1000"]
    vms = [n.child(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for _ in range(VMS)]
    for vm in vms:
        for line in vm.stdout:
            if line.startswith(b"go"):
                break
    pids = {vm.pid for vm in vms}

    def ours(r):
        return [v for v in r["vms"] if v["pid"] in pids]

    top = n.Kvmtop(delay=0.5)
    if top.until(lambda r: len(ours(r)) == VMS, 30, f"{name}: all are found"):
        n.ok(True, f"{name}: all are found")
    n.say(f"found after {len(top.records)} records of 0.5 s")
    records = top.skip(5).records[-6:]
    n.same([len(ours(r)) for r in records], [VMS] * 6, f"{name}: and stay")
    n.same({len(v["vcpus"]) for r in records for v in ours(r)}, {2}, f"{name}: each with its two vCPUs")
    n.same({len({v["vm_id"] for v in ours(r)}) for r in records}, {VMS}, f"{name}: no two have one id")
    all_known(records, lambda r: ours(r) + [c for v in ours(r) for c in v["vcpus"]], name)
    for vm in vms[: VMS // 2]:
        vm.kill()
    for vm in vms[: VMS // 2]:
        vm.wait()
    top.settle().skip(2)
    n.same(len(ours(top.next())), VMS - VMS // 2, f"{name}: half of them end at once, and are gone")
    top.end()
    n.same((top.status, top.stderr()), (0, ""), f"{name}: it ends well")


one_large_vm()
many_vms()
n.done()
