#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 90
"""In the lab on the patched kernel (kernel-support/boot.sh): the parameter soft_pmu of the module kvm.

KVM is built in, so each value is a boot (tests/run): without the parameter, with 0, with 1. What the guest has is told
by its CPUID and its counters, and by the host's file and kvmtop.
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import native as n  # noqa: E402
import soft_pmu as s  # noqa: E402

PARAMETER = "/sys/module/kvm/parameters/soft_pmu"
CORE = 1 << 23  # CPUID 0x80000001, ecx: six counters


def asked_for():
    """What the command line says; without a word -1: where the host has no PMU, as here."""
    with open("/proc/cmdline", encoding="ascii") as f:
        found = re.findall(r"(?<!\S)kvm\.soft_pmu=(\S+)", f.read())
    return found[-1] if found else "-1"


def guest(on):
    """A guest that starts two counters, works, reads them; what the host has of it before its end."""
    w = s.Waiting(s.program("leaf:0x80000001:1", f"leaf:{s.PERFMON_V2:#x}", s.count(s.CYCLES), s.count(s.USERSPACE, 1),
                            "spin:2000000 out:3", f"wrmsr:{s.SELECT:#x}:0", f"wrmsr:{s.SELECT + 1:#x}:0", "rdpmc:0", "rdpmc:1",
                            f"rdmsr:{s.COUNTER:#x}", "wait"))
    n.ok(w.wait(), "a guest that has tried to count")
    top = n.Kvmtop("--table", "pmu", "-p", w.p.pid, delay=0.5)
    first, counters = s.show(w.id())
    words = r"soft, version 2, 6 counters of 48 bits" if on else r"off: KVM gives this guest no PMU"
    r = top.until(lambda r: (vm := n.vm_of(r, w.p.pid)) and vm["vcpus"] and re.match(words, vm["vcpus"][0]["pmu"] or ""), 60,
                  f"kvmtop says of it: {words}")
    n.ok(r, f"kvmtop says of it: {words}")
    top.end()
    w.go()
    w.wait()
    return w.vm["read"], first, counters


def main():
    if os.path.exists("/sys/bus/event_source/devices/cpu") or not os.path.exists(PARAMETER):
        n.skip("soft_pmu", "the host has a PMU, or its kernel is not the patched one")
        n.done()
    with open(PARAMETER, encoding="ascii") as f:
        value = f.read().strip()
    n.same(value, asked_for(), "the parameter is what the kernel was booted with")
    on = value != "0"
    s.VMM[:] = [s.PMU_RUN]
    s.allow(s.ALL)
    (features, leaf, cycles, outs, again), first, counters = guest(on)
    s.allow("none")
    n.say(f"soft_pmu={value}: {first}")
    n.same((bool(features & CORE), leaf), (on, 6 << 32 | 1 if on else 0), "its CPUID has the counters, or has not")
    n.same((first["enabled"], first["soft"]), ("1", "1") if on else ("0", "0"), "the file says whether KVM gives it a PMU, and which")
    if on:
        n.ok(cycles > 0 and (outs, again) == (3, cycles), "its counters count", (cycles, outs, again))
        n.same([int(counters[f"gp{i}"]["value"], 16) for i in range(2)], [cycles, outs], "and the file has their values")
    else:
        n.same((cycles, outs, again), (0, 0, 0), "it has none that count")
        n.ok(n.every((c["value"], c["select"], c["enabled"], c["event"]) == ("0x0", "0x0", "0", "none") for c in counters.values()),
             "and in the file none is set up", counters)
    n.done()


main()
