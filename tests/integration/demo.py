#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, debugfs
# limit: 90
"""kvmtop demo: its guests differ in the way that they should, and they end with it."""

import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

NAMES = ["demo-busy", "demo-exits", "demo-starved"]


def start(records, events="ioport,mmio,msr"):
    return n.child([n.KVMTOP, "demo", "--batch", "--format", "json", "-d", "0.5", "-n", str(records),
                    "--event", events], stdin=subprocess.DEVNULL,
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def guests_of(parent):
    """Pids of the guests that this kvmtop started."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                if f.read().rpartition(")")[2].split()[1] == str(parent):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def differ():
    p = start(6)
    out, err = p.communicate(timeout=60)
    n.same((p.returncode, err), (0, ""), "it runs and ends well")
    records = [json.loads(line) for line in out.splitlines()]
    vms = {vm["name"]: vm for vm in records[-1]["vms"]}
    if not n.ok(all(name in vms for name in NAMES), "the three guests have their names", list(vms)):
        return
    starved = vms["demo-starved"]["vcpus"][2]
    n.ok(starved["steal_pct"] is not None and starved["steal_pct"] > 50,
         "vCPU 2 of demo-starved is starved", starved["steal_pct"])
    worst = [max(((v["steal_pct"] or 0, vm["name"], v["vcpu"]) for vm in r["vms"] if vm["name"] in NAMES
                  for v in vm["vcpus"]), default=(0, "", 0)) for r in records]
    # Where others want the CPUs too any of them may be, now and then.
    n.ok(any(w[1:] == ("demo-starved", 2) for w in worst), "and it is the worst of all", worst)
    rate = {name: sum(x["count"] for x in vms[name]["exits"]) for name in NAMES}
    n.ok(rate["demo-exits"] > 20 * max(1, rate["demo-busy"], rate["demo-starved"]),
         "demo-exits leaves guest mode most", rate)
    n.ok({x["kind"] for x in vms["demo-exits"]["exits"]} >= {"ioport", "mmio", "msr"},
         "in several ways", vms["demo-exits"]["exits"])
    busy = vms["demo-busy"]
    n.ok(busy["demand_pct"] > 25 and busy["guest_pct"] > 0.7 * busy["cpu_pct"],
         "demo-busy spends its time in guest mode",
         (busy["demand_pct"], busy["cpu_pct"], busy["guest_pct"]))
    load = sum(vms[name]["cpu_pct"] for name in NAMES)
    n.ok(load < 220, "together they take less than two CPUs or so", load)


def doctor_agrees():
    """Where %EXIT is n/a although all events can be opened, doctor must say why."""
    p = start(8, "vmexit,userexit")
    time.sleep(1.5)
    said = n.run("doctor").stdout
    last = json.loads(p.communicate(timeout=60)[0].splitlines()[-1])
    none = any(s["name"] == "kvm_events" and "fires no kvm_entry" in s["why"] for s in last["sources"])
    lines = [x for x in said.splitlines() if "kvm exits" in x]
    n.ok(len(lines) == 1 and lines[0].startswith("partial" if none else "ok"),
         "doctor and the figures agree whether this KVM fires kvm_exit", (none, lines))


def ends(sig, what):
    p = start(100)
    p.stdout.readline()
    mine = guests_of(p.pid)
    n.same(len(mine), 3, f"{what}: three guests run before")
    n.ok(n.every(os.getpriority(os.PRIO_PROCESS, g) >= 10 for g in mine), f"{what}: and they are nice")
    p.send_signal(sig)
    p.wait(20)
    n.ok(n.wait_for(lambda: not any(os.path.exists(f"/proc/{x}") for x in mine)), f"{what}: and none after", mine)
    p.communicate()


def without_kvm():
    n.sh("mount", "-t", "tmpfs", "tmpfs", "/dev")
    try:
        p = n.run("demo", "--batch", "-n", "1", stdin=subprocess.PIPE)  # there is no /dev/null now
    finally:
        n.sh("umount", "/dev")
    n.same(p.returncode, 1, "without /dev/kvm it fails")
    n.ok(p.stderr.count("\n") == 1 and "modprobe" in p.stderr, "and says why in one line", p.stderr)


def main():
    differ()
    doctor_agrees()
    ends(signal.SIGTERM, "SIGTERM")
    ends(signal.SIGKILL, "SIGKILL")
    without_kvm()
    n.done()


main()
