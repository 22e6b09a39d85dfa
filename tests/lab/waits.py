#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: cmd:bpftool
# limit: 150
"""In the lab (run.sh), whose kernel is another than that of most machines: the programs that see who runs while a
vCPU waits load, and find the fields of the scheduler's events by their formats; and the events of one vCPU come one
by one while all others are counted in the kernel, with times, for its histogram finer than the interval."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../integration"), os.path.join(HERE, "../screen")]
import fine  # noqa: E402
import native as n  # noqa: E402
import why  # noqa: E402


def doctor():
    said = subprocess.run([n.KVMTOP, "doctor"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False).stdout.splitlines()
    for source in "waits", "vcpu_events":
        line = next((x for x in said if source in x), "")
        n.ok("works" in line, f"doctor: {source} can be had", line)


def who_ran():
    """Two guests share a CPU: whoever of them waited, the other had it."""
    guests = [n.Guest("-m", "user", "-p", why.CPU, why.SPIN).go() for _ in range(2)]
    top = n.Kvmtop("--table", "waited", "--collectors", "vms,sched,waits", "--max-overhead", "0", delay=2)
    there = top.until(lambda r: all(vm["waited"] for g in guests for vm in n.vms_of(r, g.pid) or [{"waited": None}]), 60,
                      "both wait")
    if not there:
        n.say(str(top.records[-1:])[:2000])
        return
    records = [there] + [top.next() for _ in range(4)]
    names = [n.vm_of(records[-1], g.pid)["name"] for g in guests]
    for i, g in enumerate(guests):
        rows = why.rows_of(records, g.pid)
        got, waited = why.sums(rows), sum(row["time_ns"] for row in rows)
        n.say(f"VM {i} waited {waited / 1e6:.0f} ms: {json.dumps({' '.join(k): v // 1000000 for k, v in got.items()})}")
        n.ok(waited > 0 and got.get(("vm", names[1 - i]), 0) > 0, f"VM {i}: the other one is named", got)
        unknown = got.get(("unexplained", "unexplained"), 0)
        n.ok(unknown <= waited * 0.1, f"VM {i}: nearly all is explained", (unknown, waited))
    top.end()
    for g in guests:
        g.stop()


def main():
    doctor()
    who_ran()
    n.end_children()
    why.woken()
    n.end_children()
    fine.one_by_one("how long they took")
    n.done()


main()
