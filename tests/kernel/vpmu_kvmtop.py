#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 240
"""In the lab: kvmtop shows what a vCPU's file pmu in debugfs says, or on a stock kernel what the guest wrote.

The guest sets up its counters, counts for a while, and waits in its VMM: then all stands still, and the figures are
equal. On the patched kernel it then stops them all at once, by the global control (patch 9), and lets them go on.
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
WRITES = 3  # to set one up: stopped, its value, its select (soft_pmu.py, count())
NEVER = 0xffff00000000  # far from an overflow, so that none comes
STOPPED = "off by the guest's global control"


def vcpu_of(record, pid):
    vm = n.vm_of(record, pid)
    return vm["vcpus"][0] if vm and vm["vcpus"] else None


def looking(record):
    """What is written from now on it sees."""
    return any(x["name"] == "vpmu" and x["state"] != "off" for x in record["sources"])


def shown(record, pid, source="debugfs"):
    v = vcpu_of(record, pid)
    return v and v["pmu_source"] == source and len(v["pmu_counters"]) >= len(COUNTERS) and v["pmu_counters"]


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


def until_counted(g, top, what):
    """The guest waits: the record with the exits that the file has now; it had others before."""
    value = int(s.show(g.id())[1]["gp1"]["value"], 16)
    return top.until(lambda r: any(x["counter"] == "gp1" and x["value"] == value for x in shown(r, g.p.pid) or ()), 60,
                     what)


def as_the_file_says(g, top):
    path = os.path.join(n.DEBUGFS, f"kvm/{g.id()}/vcpu0/pmu")
    with open(path, encoding="ascii") as f:
        text = f.read()
    for line in text.splitlines():
        n.say(line)
    r = until_counted(g, top, "kvmtop shows the guest's counters")
    if r:
        compare(vcpu_of(r, g.p.pid), *s.show(g.id()))
    g.go()
    n.ok(g.wait(), "the guest goes on, and waits again")
    n.ok(until_counted(g, top, "what it counted since is shown, too"), "what it counted since is shown, too")


def global_control(g, top, value, words, note):
    """The guest has written it: what kvmtop says of that, and of each counter; the record."""
    on = bool(value)
    n.ok(g.wait(), "the guest goes on, and waits again")
    r = top.until(lambda r: (v := vcpu_of(r, g.p.pid)) and v["pmu_global"] == words and shown(r, g.p.pid), 60,
                  f"kvmtop shows the global registers: {words}")
    first, counters = s.show(g.id())
    n.same(int(first["global_ctrl"], 16), value, "the file has the global control that the guest wrote")
    for i, row in enumerate(shown(r, g.p.pid)[:len(COUNTERS)] if r else ()):
        line = counters[f"gp{i}"]
        n.same((row["enabled"], row["note"], row["value"], row["select"]),
               ("on" if on else "off", note, int(line["value"], 16), line["select"]), f"gp{i}: {note or 'it counts'}")
    return [int(counters[f"gp{i}"]["value"], 16) for i in range(len(COUNTERS))]


def stopped_at_once(g, top):
    g.go()
    before = global_control(g, top, 0, "ctrl 0x0 status 0x0", STOPPED)
    g.go()
    n.same(global_control(g, top, 0, "ctrl 0x0 status 0x0", STOPPED), before, "none has gone on meanwhile")
    g.go()
    after = global_control(g, top, 0x3f, "ctrl 0x3f status 0x0", None)
    n.ok(n.every(b > a for a, b in zip(before[:2], after[:2])), "let go they go on", (before, after))


def without_debugfs(g, top):
    """It is unmounted under kvmtop and mounted again: said, and the counters come back."""
    n.sh("umount", n.DEBUGFS)
    try:
        r = top.until(lambda r: any(x["name"] == "vpmu" and x["state"] == "off" for x in r["sources"]), 60,
                      "debugfs goes: nothing tells of PMUs")
    finally:
        n.sh("mount", "-t", "debugfs", "debugfs", n.DEBUGFS)
    if r:
        n.same(next((x["why"], x["mend"]) for x in r["sources"] if x["name"] == "vpmu"),
               ("/sys/kernel/debug/kvm is gone", "mount -t debugfs debugfs /sys/kernel/debug"), "which is said, and what mends it")
        n.ok(not (vcpu_of(r, g.p.pid) or {}).get("pmu_counters"), "no counters without", vcpu_of(r, g.p.pid))
    r = top.until(lambda r: looking(r) and shown(r, g.p.pid), 60, "it comes back: the counters are shown")
    n.ok(r, "it comes back: the counters are shown")


def written(i):
    """What the guest wrote last to counter i's select, as a row has it."""
    return f"{COUNTERS[i][0] | s.ON | (s.INTERRUPT if i == 1 else 0):#x}"


def as_the_guest_wrote(g, top):
    last = len(COUNTERS) - 1
    r = top.until(lambda r: any(x["counter"] == f"gp{last}" and x["select"] == written(last)
                                for x in shown(r, g.p.pid, "inferred") or ()), 60, "kvmtop shows what the guest wrote")
    for i, row in enumerate(shown(r, g.p.pid, "inferred")[:len(COUNTERS)] if r else ()):
        event, name, mode = COUNTERS[i]
        if name.startswith("host:"):  # it is our patches that give the number a meaning
            name = f"r{event:04x}"
        n.same([row[k] for k in ("counter", "event", "mode", "select", "enabled", "source")],
               [f"gp{i}", name, mode, written(i), "on", "inferred"], f"gp{i}: {name}, as it was set up")
    if r:
        n.same(vcpu_of(r, g.p.pid)["pmu_msrs"], WRITES * len(COUNTERS), "and what that cost: an exit for each write")
    g.go()
    n.ok(g.wait(), "the guest goes on, and waits again")


def main():
    patched = os.path.exists(s.EVENTS)
    if patched:
        s.allow(s.ALL)
    setup = [s.count(event, i, NEVER if i == 1 else 0, s.ON | (s.INTERRUPT if i == 1 else 0))
             for i, (event, *_rest) in enumerate(COUNTERS)]
    s.VMM[:] = [s.PMU_RUN]  # the global control, where KVM has it
    more = ("wrmsr:0xc0000301:0", "wait", "out:5 spin:20000", "wait", "wrmsr:0xc0000301:0x3f", "out:5 spin:20000", "wait")
    g = s.Waiting(s.program("wait", *setup, "spin:20000 out:30", "wait", "out:10", "wait", *(more if patched else ())))
    n.ok(g.wait(), "the guest waits in its VMM")
    top = n.Kvmtop("--table", "pmu", "-p", g.p.pid, delay=1)
    if top.until(looking, 60, "kvmtop looks at guests' PMUs"):
        g.go()
        n.ok(g.wait(), "the guest has set up its counters")
        (as_the_file_says if patched else as_the_guest_wrote)(g, top)
        if patched:
            stopped_at_once(g, top)
            without_debugfs(g, top)
    top.end()
    g.go()
    g.wait()
    if patched:
        s.allow("none")
    n.done()


main()
