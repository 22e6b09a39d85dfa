#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, debugfs, cgroup-cpu
# sanitize: no, it measures CPU time
# limit: 120
"""Steal of real vCPUs against what their threads really got.

Everything runs on the last CPU, in a cgroup of the highest weight, so that other programs of a
machine at work take little of it; kvmtop and this script keep to the other CPUs where there are any. What
was taken all the same is measured: K equal vCPUs share what is left, each shows 1 - left/K.
"""

import atexit
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

CPU = n.CPUS[-1]
SPIN = "spin:inf"


def run_ns(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0])


def stay_away():
    if len(n.CPUS) > 1:
        os.sched_setaffinity(0, set(n.CPUS[:-1]))


def mean(values):
    values = [v for v in values if v is not None]
    return sum(values) / len(values) if values else None


class Group:
    """A cgroup, v1 or v2, with the highest weight and, where wanted, a CPU quota in per cent."""

    def __init__(self, name, percent=None):
        v2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        self.path = f"/sys/fs/cgroup{'' if v2 else '/cpu'}/kvmtop-test-{os.getpid()}-{name}"
        if v2:
            n.put("/sys/fs/cgroup/cgroup.subtree_control", "+cpu")
        os.mkdir(self.path)
        atexit.register(self.remove)
        n.put(f"{self.path}/{'cpu.weight' if v2 else 'cpu.shares'}", "10000" if v2 else "262144")
        if percent and v2:
            n.put(f"{self.path}/cpu.max", f"{percent * 1000} 100000")
        elif percent:
            n.put(f"{self.path}/cpu.cfs_period_us", "100000")
            n.put(f"{self.path}/cpu.cfs_quota_us", str(percent * 1000))

    def guest(self, *args):
        g = n.Guest(*args)
        n.put(f"{self.path}/cgroup.procs", str(g.pid))
        return g.go()

    def throttled_ns(self):
        with open(f"{self.path}/cpu.stat", encoding="ascii") as f:
            stat = dict(line.split() for line in f)
        return int(stat.get("throttled_time") or 1000 * int(stat["throttled_usec"]))

    def remove(self):
        n.end_children()
        for _ in range(100):  # a process that just ended is in it for a moment longer
            try:
                os.rmdir(self.path)
                return
            except OSError:
                time.sleep(0.05)


HIGH = Group("high")


class Span:
    """CPU time of a guest's vCPU threads between two moments, in shares of one CPU."""

    def __init__(self, g):
        self.g, self.start = g, time.monotonic_ns()
        self.first = [run_ns(g.pid, v["tid"]) for v in g.vcpus]

    def shares(self):
        dt = time.monotonic_ns() - self.start
        return [(run_ns(self.g.pid, v["tid"]) - a) / dt
                for v, a in zip(self.g.vcpus, self.first)]


def equal_vcpus(k):
    g = HIGH.guest("-c", k, "-p", CPU, SPIN)
    top = n.Kvmtop(delay=0.5).skip(2)
    span = Span(g)
    first = len(top.records)
    top.skip(6)
    shares = span.shares()
    r = top.end()[first:first + 6]
    left = sum(shares)
    n.say(f"K={k}: the guests had {100 * left:.1f}% of CPU {CPU}, each {[round(100 * s, 1) for s in shares]}")
    for v in range(k):
        got = mean(vm["vcpus"][v]["steal_pct"] for x in r for vm in n.vms_of(x, g.pid))
        n.near(got, 100 * (1 - left / k), 3, f"{k} equal vCPUs on one CPU: steal of vCPU {v}")
    vm = n.vm_of(r[-1], g.pid)
    n.ok(vm and vm["steal_source"] == "rundelay" or vm["steal_source"] == "gstime",
         f"{k} equal vCPUs: the source of the figure is named", vm and vm["steal_source"])
    n.ok(any(f["rule"] == "pin-overlap" for x in r for f in x["findings"]),
         f"{k} equal vCPUs: a finding names the shared CPU", [f["rule"] for f in r[-1]["findings"]])
    g.stop()


def starved_in_every_interval():
    """The kernel itself shows such a thread nothing for seconds, then all at once."""
    busy = HIGH.guest("-p", CPU, SPIN)
    idle = HIGH.guest("-I", "-p", CPU, SPIN)
    top = n.Kvmtop(delay=0.1).skip(10)
    first, span = len(top.records), Span(busy)
    top.skip(40)
    share = span.shares()[0]
    r = top.end()[first:first + 40]
    got = [vm["vcpus"][0]["steal_pct"] for x in r for vm in n.vms_of(x, idle.pid)]
    n.ok(len(got) == 40 and all(v is not None and v >= 90 for v in got),
         "a SCHED_IDLE vCPU beside a busy loop: >= 90% in every 0.1 s interval", got)
    other = mean(vm["vcpus"][0]["steal_pct"] for x in r for vm in n.vms_of(x, busy.pid))
    n.near(other, 100 * (1 - share), 3, "and the busy one shows what it did not get")
    n.same([b for x in r for b in n.finite(x)], [], "and no figure is absurd")
    busy.stop()
    idle.stop()


def own_quota():
    g = Group("quota", 40).guest("-p", CPU, SPIN)
    top = n.Kvmtop(delay=1).skip(2)
    span = Span(g)
    top.skip(4)
    share = span.shares()[0]
    r = top.end()[2:6]
    n.say(f"quota 40%: the vCPU had {100 * share:.1f}% of CPU {CPU}")
    vms = [vm for x in r for vm in n.vms_of(x, g.pid)]
    n.near(mean(vm["vcpus"][0]["steal_pct"] for vm in vms), 100 * (1 - share), 3,
           "alone under a quota: steal is what it did not get")
    n.near(100 * share, 40, 3, "alone under a quota of 40%: it did get 40%")
    n.ok(n.every(vm["throt_pct"] is not None and vm["throt_pct"] >= vm["steal_pct"] / 2
             for vm in vms[1:]), "and it is marked as its own quota",
         [(vm["throt_pct"], vm["steal_pct"]) for vm in vms])
    mine = {f["rule"] for x in r[1:] for f in x["findings"] if f["vm"] == vms[0]["name"]}
    n.ok("quota" in mine, "a finding says: its own quota", mine)
    n.ok(not mine & {"steal", "pin-overlap", "smt-siblings"}, "no finding names a neighbour",
         ({f["text"] for x in r[1:] for f in x["findings"]},
          {(vm["name"], vm["pid"]) for x in r[1:] for vm in x["vms"]}))
    g.kill()


def shared_quota():
    """vCPUs that share a CPU are all held back while their group is: the kernel counts that once."""
    group = Group("shared", 60)
    g = group.guest("-c", 3, "-p", CPU, SPIN)
    top = n.Kvmtop(delay=0.5).skip(3)
    first, start, before = len(top.records), time.monotonic_ns(), group.throttled_ns()
    top.skip(8)
    held = 100 * (group.throttled_ns() - before) / (time.monotonic_ns() - start)
    r = top.end()[first:first + 8]
    vms = [vm for x in r for vm in n.vms_of(x, g.pid)]
    n.ok(n.every(vm["own_quota"] and n.every(v["own_quota"] for v in vm["vcpus"]) for vm in vms),
         "three vCPUs on one CPU under a quota of 60%: their own quota in every interval",
         [(vm["throt_pct"], vm["steal_pct"]) for vm in vms])
    n.near(mean(vm["throt_pct"] for vm in vms), held, 5, "and it held back each of them for as long as the kernel says")
    mine = {f["rule"] for x in r for f in x["findings"] if f["vm"] == vms[0]["name"]}
    n.ok("quota" in mine and "steal" not in mine, "a finding says so, and none names a neighbour", mine)
    g.kill()


def stopped():
    g = HIGH.guest("-p", CPU, SPIN)
    top = n.Kvmtop(delay=0.25).skip(4)
    os.kill(g.pid, signal.SIGSTOP)
    top.skip(2)
    a = len(top.records)
    top.skip(4)
    b = len(top.records)
    os.kill(g.pid, signal.SIGCONT)
    top.skip(5)
    r = top.end()
    still = [vm["vcpus"][0] for x in r[a:b] for vm in n.vms_of(x, g.pid)]
    n.ok(still and all(v["steal_pct"] is not None and v["steal_pct"] < 2 and v["cpu_pct"] < 2
                       for v in still), "a stopped VM neither runs nor is it starved",
         [(v["cpu_pct"], v["steal_pct"]) for v in still])
    n.same([b for x in r for b in n.finite(x)], [], "stopped and continued: no figure is absurd")
    again = [vm["vcpus"][0]["cpu_pct"] for x in r[b + 1:] for vm in n.vms_of(x, g.pid)]
    n.ok(again and max(c for c in again if c is not None) > 50, "continued: it runs again", again)
    g.stop()


def killed_and_started():
    old = HIGH.guest("-p", CPU, SPIN)
    top = n.Kvmtop(delay=0.5).skip(3)
    time.sleep(0.2)
    old.kill()
    new = HIGH.guest("-p", CPU, SPIN)
    a = len(top.records)
    top.skip(4)
    r = top.end()
    n.ok(n.vm_of(r[a - 1], old.pid), "a VM killed in mid-interval was there before")
    n.ok(not any(n.vm_of(x, old.pid) for x in r[a + 2:]), "and is gone after")
    n.ok(n.vm_of(r[a], new.pid) or n.vm_of(r[a + 1], new.pid),
         "a VM started in mid-interval is there within one interval")
    late = n.vm_of(r[a + 2], new.pid)
    n.ok(late and late["cpu_pct"] is not None and late["cpu_pct"] > 30, "and has its CPU time",
         late and late["cpu_pct"])
    n.same([b for x in r for b in n.finite(x)], [], "killed and started: no figure is absurd")
    new.stop()


def host_adds_up():
    """Host and VM rows plus (other) are the host line, within 2%."""
    g = n.Guest("-c", 2, "-p", CPU, SPIN, "out:inf").go()
    top = n.Kvmtop(delay=1).skip(2)
    top.skip(4)
    r = top.end()[2:6]
    for x in r:
        h = x["host"]
        parts = [h[k] for k in ("usr_pct", "sys_pct", "irq_pct", "wa_pct", "st_pct", "guest_pct",
                                "idle_pct")]
        if None in parts or abs(sum(parts) - 100) > 0.5:
            n.ok(False, "the host line sums to 100", parts)
            break
    else:
        n.ok(True, "the host line sums to 100")
    busy = mean(100 - x["host"]["idle_pct"] - x["host"]["wa_pct"] - x["host"]["st_pct"] for x in r)
    rows = mean((sum(vm["cpu_pct"] for vm in x["vms"] if vm["cpu_pct"] is not None)
                 + x["host"]["other_cpu_pct"]) / len(n.CPUS) for x in r)
    n.near(rows, busy, 2, "VM rows and (other) add up to the host line")
    g.stop()


def main():
    stay_away()
    for k in (3,) if os.environ.get("TEST_THREADS_BY") else (2, 3, 4):
        equal_vcpus(k)
    starved_in_every_interval()
    own_quota()
    shared_quota()
    stopped()
    killed_and_started()
    host_adds_up()
    n.done()


main()
