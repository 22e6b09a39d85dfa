#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 150
"""In the lab on the patched kernel (kernel-support/boot.sh): kvmtop shows what a vCPU's file pmu in debugfs says.

The guest sets up its counters, counts for a while, and waits in its VMM: then all stands still, and the figures are
equal.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import native as n  # noqa: E402
import soft_pmu as s  # noqa: E402

# What each counter counts, and its name.
COUNTERS = ((s.CYCLES, "cycles", "user+kernel"), (s.EXITS, "host:exits", "user+kernel int"),
            (s.HALTS, "host:halts", "user+kernel"))
NEVER = 0xffff00000000  # far from an overflow, so that none comes


def vcpu_of(record, pid):
    vm = n.vm_of(record, pid)
    return vm["vcpus"][0] if vm and vm["vcpus"] else None


def shown(record, pid):
    v = vcpu_of(record, pid)
    return v and v["pmu_source"] == "debugfs" and v["pmu_counters"]


def compare(v, first, counters):
    n.same((v["pmu"].startswith("soft, version "), v["pmu"].split(", ")[-1]),
           (first["soft"] == "1", f"{first['gp']} counters of {first['gp_width']} bits"), "the PMU in words")
    n.same([r["counter"] for r in v["pmu_counters"]], list(counters), "a row for each counter")
    for row in v["pmu_counters"]:
        line = counters[row["counter"]]
        n.same((row["select"], row["value"], row["overflows"], row["host_event"], row["enabled"], row["source"]),
               (line["select"], int(line["value"], 16), int(line["overflows"]), line["event"],
                "on" if line["enabled"] == "1" else "off", "debugfs"), f"{row['counter']}: as the file says")
    for row, (_event, name, mode) in zip(v["pmu_counters"], COUNTERS):
        n.same((row["event"], row["mode"], row["note"]), (name, mode, None), f"{row['counter']}: {name}, and it counts")


def main():
    s.allow(s.ALL)
    setup = [s.count(event, i, NEVER if i == 1 else 0, s.ON | (s.INTERRUPT if i == 1 else 0))
             for i, (event, *_rest) in enumerate(COUNTERS)]
    g = s.Waiting(s.program(*setup, "spin:20000 out:30", "wait", "out:10", "wait"))
    n.ok(g.wait(), "the guest waits in its VMM")
    path = os.path.join(n.DEBUGFS, f"kvm/{g.id()}/vcpu0/pmu")
    with open(path, encoding="ascii") as f:
        text = f.read()
    for line in text.splitlines():
        n.say(line)
    top = n.Kvmtop("--table", "pmu", "-p", g.p.pid, delay=1)
    r = top.until(lambda r: shown(r, g.p.pid), 60, "kvmtop shows the guest's counters")
    if r:
        compare(vcpu_of(r, g.p.pid), *s.show(g.id()))
    g.go()
    n.ok(g.wait(), "the guest goes on, and waits again")
    first, counters = s.show(g.id())
    value = int(counters["gp1"]["value"], 16)
    n.ok(top.until(lambda r: any(x["counter"] == "gp1" and x["value"] == value for x in shown(r, g.p.pid) or ()), 60,
                   "what it counted since is shown, too"), "what it counted since is shown, too")
    top.end()
    g.go()
    g.wait()
    n.done()


main()
