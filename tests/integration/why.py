#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, cmd:bpftool
# sanitize: no, it measures CPU time
# limit: 240
"""Who had the CPU while vCPUs waited, against what everybody really got.

Three VMs and a hog share one CPU with different weights. While a vCPU that always wants to run waits,
the CPU belongs to the others: whoever ran for a share s of all the time has s / (1 - own share) of what
it waited. What they ran the kernel tells by schedstat, read at the edges of the same span.
"""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

CPU = n.CPUS[-1]
SPIN = "spin:inf"
HOG = "hog 1"  # a blank in the name, as tasks may have
NICE = (0, 2, 4)
INTERVALS = 8


def schedstat(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
        return [int(x) for x in f.read().split()]


def hog(nice):
    code = ("import ctypes,os;"
            f"ctypes.CDLL(None).prctl(15, {HOG.encode()!r}, 0, 0, 0);"
            f"os.sched_setaffinity(0, {{{CPU}}});os.nice({nice});\n"
            "while True: pass")
    return n.child([sys.executable, "-c", code])


class Runner:
    """A thread, and what it ran and waited between two moments."""

    def __init__(self, pid, tid):
        self.at = pid, tid
        self.run = self.delay = 0

    def begin(self):
        self.first = schedstat(*self.at)

    def end(self):
        now = schedstat(*self.at)
        self.run, self.delay = (now[i] - self.first[i] for i in (0, 1))


def rows_of(records, pid):
    return [row for r in records for vm in n.vms_of(r, pid) for row in vm["waited"]]


def sums(rows):
    total = {}
    for row in rows:
        at = row["by_kind"], row["by"]
        total[at] = total.get(at, 0) + row["time_ns"]
    return total


def measure(top, runners, intervals):
    """Runs for so many intervals; their records, with the runners' times between about the same moments."""
    top.settle()
    for r in runners:
        r.begin()
    first = len(top.records)
    start = time.monotonic_ns()
    top.skip(intervals)
    top.settle()
    for r in runners:
        r.end()
    return top.records[first:], time.monotonic_ns() - start


def shares_named():
    guests = [n.Guest("-p", CPU, "-N", nice, SPIN).go() for nice in NICE]
    task = hog(1)
    runners = [Runner(g.pid, g.vcpus[0]["tid"]) for g in guests] + [Runner(task.pid, task.pid)]
    top = n.Kvmtop("--table", "waited", delay=1).skip(2)
    records, span = measure(top, runners, INTERVALS)
    names = [n.vm_of(records[-1], g.pid)["name"] for g in guests]
    for i, (g, own) in enumerate(zip(guests, runners)):
        rows = rows_of(records, g.pid)
        got, waited = sums(rows), sum(row["time_ns"] for row in rows)
        free = span - own.run  # of which the others had their shares
        want = {("vm", name): r.run for k, (name, r) in enumerate(zip(names, runners)) if k != i}
        want["task", HOG] = runners[-1].run
        n.say(f"VM {i}: waited {waited / 1e6:.0f} ms, by the kernel {own.delay / 1e6:.0f} ms; it ran {own.run / 1e6:.0f} ms of {span / 1e6:.0f}")
        for who, ns in want.items():
            n.near(100 * got.get(who, 0) / max(waited, 1), 100 * ns / free, 3, f"VM {i}: share of {who[0]} {who[1].split(':')[0]}")
        unknown = sum(ns for (kind, _), ns in got.items() if kind == "unexplained")
        n.ok(waited and unknown <= waited * 0.05, f"VM {i}: at least 95% is explained", (unknown, waited))
        n.near(100 * (waited - unknown) / own.delay, 100, 5, f"VM {i}: what is explained is the kernel's run delay")
        per = [sum(row["share_pct"] for row in vm["waited"]) for r in records for vm in n.vms_of(r, g.pid) if vm["waited"]]
        n.ok(len(per) >= INTERVALS and all(abs(s - 100) < 0.1 for s in per), f"VM {i}: shares add up to 100 in each interval", per)
        pct = [(vm["waited_pct"], vm["steal_pct"]) for r in records for vm in n.vms_of(r, g.pid)]
        n.near(sum(a for a, _ in pct) / len(pct), sum(b for _, b in pct) / len(pct), 3, f"VM {i}: %WAITED is close to %STEAL")
    top.end()
    for g in guests:
        g.stop()
    task.kill()


def programs():
    """The ids of such programs, of whatever kvmtop."""
    out = subprocess.run(["bpftool", "prog", "show"], capture_output=True, text=True, check=True).stdout
    return {line.split(":")[0] for line in out.splitlines() if "name kvmtop_migrate" in line}


def nothing_stays():
    """Others may watch meanwhile: what counts are the programs that come and go with ours."""
    top = n.Kvmtop("--table", "waited", delay=0.25)
    before = programs()
    top.skip(3)
    mine = programs() - before
    if not mine:  # loaded before we looked
        mine = before
    n.ok(mine, "asked for: the programs are there", programs())
    top.p.kill()
    top.p.wait()
    n.ok(n.wait_for(lambda: not mine <= programs()), "after kill -9 they are gone", (mine, programs()))
    before = programs()
    plain = n.Kvmtop(delay=0.25).skip(3)
    n.ok(n.wait_for(lambda: not programs() - before), "not asked for: no such program is loaded", programs() - before)
    plain.end()


def moved_while_waiting():
    """A vCPU that is moved from CPU to CPU: what it waited is explained all the same."""
    if len(n.CPUS) < 2:
        n.skip("moved while waiting", "needs:cpus2 one CPU")
        return
    hogs = [n.Guest("-p", c, SPIN).go() for c in n.CPUS[-2:]]
    g = n.Guest(SPIN).go()
    tid = g.vcpus[0]["tid"]
    own = Runner(g.pid, tid)
    top = n.Kvmtop("--table", "vcpu-waited", delay=0.5).skip(2)
    top.settle()
    own.begin()
    first = len(top.records)
    for i in range(200):
        os.sched_setaffinity(tid, {n.CPUS[-1 - i % 2]})
        time.sleep(0.02)
    top.settle()
    own.end()
    rows = [row for r in top.records[first:] for vm in n.vms_of(r, g.pid) for v in vm["vcpus"] for row in v["waited"]]
    got, waited = sums(rows), sum(row["time_ns"] for row in rows)
    unknown = got.get(("unexplained", "unexplained"), 0)
    n.say(f"moved: waited {waited / 1e6:.0f} ms, by the kernel {own.delay / 1e6:.0f} ms, {unknown / 1e6:.1f} ms unexplained")
    n.ok(waited and unknown <= waited * 0.05, "moved 200 times: at least 95% is explained", got)
    n.near(100 * (waited - unknown) / own.delay, 100, 5, "and it is the kernel's run delay")
    for h in hogs:
        name = n.vm_of(top.records[-1], h.pid)["name"]
        n.ok(got.get(("vm", name), 0) > 0, "both neighbours are named", got)
    top.end()
    for x in (*hogs, g):
        x.stop()


def woken():
    """A guest that halts and is woken: its wake-ups have a latency."""
    g = n.Guest("-H", 5, "-m", "real", "-l", "inf", "hlt:1").go()
    top = n.Kvmtop("--table", "vm", "--fields", "name,wakeups_per_s,wake_p50_ns,wake_p99_ns", delay=0.5).skip(1)
    r = top.until(lambda x: any((vm["wakeups_per_s"] or 0) > 20 and vm["wake_p99_ns"] for vm in n.vms_of(x, g.pid)), 30,
                  "wake-ups are counted")
    if r:
        vm = n.vm_of(r, g.pid)
        n.ok(0 < vm["wake_p50_ns"] <= vm["wake_p99_ns"] < 10 ** 10, "and have their times", vm)
    top.end()
    g.kill()


def main():
    if len(n.CPUS) > 1:
        os.sched_setaffinity(0, set(n.CPUS[:-1]))
    shares_named()
    moved_while_waiting()
    woken()
    nothing_stays()
    n.done()


if __name__ == "__main__":
    main()
