#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, debugfs, tmux
# limit: 180
"""What guests do with their PMUs on a kernel without our patches: the event selects that they write.

A guest that writes and reads PMU MSRs says itself which accesses worked and which got #GP: table, counts, screen
and recording must say the same.
"""

import json
import os
import shlex
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n
import screen_lib as s

MSR_RUN = os.path.join(n.BUILD, "guests/msr-run")
TIMES = 20
# MSR, value or None (read), what it is: the counter, and what its select counts.
STEPS = (
    (0x186, 0x53003c, "gp0", "cycles", "user+kernel int"),
    (0x187, 0x41412e, "gp1", "cache-misses", "user"),
    (0x188, 0x4201b1, "gp2", "r01b1", "kernel"),
    (0x38d, 0xb, None, None, None),
    (0x38f, 0x100000007, None, None, None),
    (0xc1, None, "gp0", None, None),
)


class PmuGuest:
    """msr-run: it begins when it is told, and says what it saw."""

    def __init__(self, vcpus, times, *steps):
        self.p = n.child([MSR_RUN, str(vcpus), str(times), *steps], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.out = n.Lines(self.p.stdout)
        self.pid = int(self.out.next(30).split("=")[1])
        for _ in range(vcpus):
            self.out.next(30)

    def go(self):
        """{step: (worked, value)} of vCPU 0, the same for all."""
        self.p.stdin.write(b"go\n")
        self.p.stdin.flush()
        seen = {}
        while (line := self.out.next(60)) != "done":
            vcpu, step, how, *value = line.split()
            if vcpu == "0":
                seen[step] = (how == "ok", int(value[0], 16) if value else None)
        return seen

    def end(self):
        self.p.stdin.close()
        self.p.wait(30)


def steps():
    return [hex(msr) if value is None else f"{msr:#x}={value:#x}" for msr, value, *_ in STEPS]


def guests_may():
    try:
        with open("/sys/module/kvm/parameters/enable_pmu", encoding="ascii") as f:
            return f.read().strip() in ("Y", "1")
    except OSError:
        return True


def vcpus_of(record, pid):
    vm = n.vm_of(record, pid)
    return {v["vcpu"]: v for v in vm["vcpus"]} if vm else {}


def all_there(record, pid, count, vcpus=2):
    v = vcpus_of(record, pid)
    return len(v) == vcpus and all(x["pmu_msrs"] == count for x in v.values())


def looking(record):
    """kvmtop's program is there: what is written from now on it sees."""
    return any(x["name"] == "vpmu" and x["state"] != "off" for x in record["sources"])


def check_counters(rows, seen):
    for msr, value, counter, event, mode in STEPS:
        if event is None:
            continue
        worked = seen[f"{msr:#x}={value:#x}"][0]
        row = next((r for r in rows if r["counter"] == counter), None)
        if not n.ok(row is not None, f"{counter} has a row", rows):
            continue
        if not worked:
            n.ok("#GP" in (row["note"] or ""), f"{counter}: refused, and said so", row)
            continue
        n.same([row[k] for k in ("event", "mode", "select", "enabled", "source")],
               [event, mode, f"{value:#x}", "on", "inferred"], f"{counter}: what the guest wrote")
        if not guests_may():
            n.same(row["note"], "does not count: KVM gives this guest no PMU", f"{counter}: and why it does not count")


def check_fixed(rows, seen):
    """Counters of which only the control is written."""
    fixed = [r["event"] for r in rows if r["counter"] == "fixed0"]
    worked = seen["0x38d=0xb"][0]
    n.same(fixed, ["instructions"] if worked else [], "fixed counters follow from their control, where the guest has it")


def batch(guest):
    """Counts are exact, and each vCPU has its own."""
    top = n.Kvmtop("--table", "pmu", "-p", guest.pid)
    if not top.until(looking, 60, "kvmtop looks at PMU MSRs"):
        return
    seen = guest.go()
    refused = sum(not worked for worked, _ in seen.values())
    r = top.until(lambda r: all_there(r, guest.pid, TIMES * len(STEPS)), 60, "every access is counted")
    if not r:
        return
    n.ok(True, "every access of both vCPUs is counted")
    for vcpu, v in sorted(vcpus_of(r, guest.pid).items()):
        n.say(f"vCPU {vcpu}: {v['pmu']}, {v['pmu_msrs']} accesses, {v['pmu_refused']} refused")
        n.same(v["pmu_refused"], TIMES * refused, f"vCPU {vcpu}: and every refused one")
    v = vcpus_of(r, guest.pid)[1]
    check_counters(v["pmu_counters"], seen)
    check_fixed(v["pmu_counters"], seen)
    n.ok(r["host"]["pmu_why"], "the host says why counters may lie", r["host"])
    guest.go()
    n.ok(top.until(lambda r: all_there(r, guest.pid, 2 * TIMES * len(STEPS)), 60, "what it does later is counted too"),
         "what it does later is counted too")
    records = top.end()
    per_s = [vm["pmu_msr_per_s"] for r in records for vm in n.vms_of(r, guest.pid)]
    n.ok(any(x for x in per_s if x), "the VM's exits by these MSRs have a rate", per_s)


def on_screen(guest):
    t = s.Terminal(f"{shlex.quote(n.KVMTOP)} -d 0.3 -p {guest.pid}", cols=100, rows=30)
    if not t.sees("msr-run", "the VM is on the screen", 30):
        return
    t.keys("8")
    if not t.sees("has not touched its PMU", "pane 8: nothing is known yet, and it says so", 30):
        return
    guest.go()
    t.sees("cycles", "then the counter that the guest set up", 30)
    t.sees("cache-misses", "and the other one")
    t.end()


def recorded(guest):
    path = os.path.join(os.environ.get("TEST_TMP", "/tmp"), "pmu.db")
    p = n.child([n.KVMTOP, "record", "-d", "0.25", "--event", "msr", "-o", path], stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    rows = []
    end = time.monotonic() + 90
    while not rows and time.monotonic() < end:
        guest.go()  # whether its program is there already, the recorder does not say
        time.sleep(0.6)
        rows = replay(path)
    p.terminate()
    p.wait(60)
    if n.ok(rows, "a recording with MSR exits has them", rows):
        n.same({r["event"] for r in rows if r["counter"] == "gp0"}, {"cycles"}, "replay shows the same counters")


def replay(path):
    if not os.path.exists(path):
        return []
    out = n.run("replay", path, "--batch", "--table", "pmu", "--format", "json").stdout
    return [x for line in out.splitlines() for vm in json.loads(line)["vms"] for v in vm["vcpus"]
            for x in v["pmu_counters"]]


def main():
    guest = PmuGuest(2, TIMES, *steps())
    if any(os.path.exists(os.path.join(n.DEBUGFS, f"kvm/{d}/vcpu0/pmu"))
           for d in os.listdir(os.path.join(n.DEBUGFS, "kvm")) if d.startswith(f"{guest.pid}-")):
        n.skip("inferred selectors", "this kernel has our patches: tests/kernel/vpmu.py")
        n.done()
    batch(guest)
    guest.end()
    guest = PmuGuest(1, 1, *steps())
    on_screen(guest)
    guest.end()
    guest = PmuGuest(1, 1, *steps())
    recorded(guest)
    guest.end()
    n.done()


main()
