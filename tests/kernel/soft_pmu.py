#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 240
"""In the lab on the patched kernel (kernel-support/boot.sh): what guests count where the host has no PMU.

The guests are pmu-run's, each a few instructions that program counters, do something and read them. What is true is
told by the trace of KVM's exits, by the vCPU thread's CPU time, or by how often the guest did a thing.
"""

import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n  # noqa: E402

PMU_RUN = os.path.join(n.BUILD, "guests/pmu-run")
PERFMON_V2 = 0x80000022  # the leaf of CPUID by which AMD's CPUs have registers for all counters at once
VMM = [PMU_RUN, "-w", hex(PERFMON_V2)]  # guests without them; soft_pmu_global.py has those with
TMP = os.environ.get("TEST_TMP", "/tmp")
EVENTS = "/sys/module/kvm/parameters/soft_pmu_events"
ALL = "exits,halts,preemptions,userspace"
SELECT, COUNTER = 0xc0010000, 0xc0010004  # AMD's four; + number
CORE_SELECT, CORE_COUNTER = 0xc0010200, 0xc0010201  # its six; + 2 * number
EXITS, HALTS, PREEMPTIONS, USERSPACE, CYCLES = 0x1ff, 0x2ff, 0x3ff, 0x4ff, 0x76
ON, INTERRUPT = 0x430000, 0x100000  # enabled, in both modes; interrupts when it overflows
WIDTH = 48
LIMIT = 120 * n.PATIENCE  # s, for a few instructions


def program(*words):
    return " ".join(words)


def count(event, nr=0, value=0, flags=ON):
    """The words that make counter `nr` count, from `value`."""
    return program(f"wrmsr:{SELECT + nr:#x}:0", f"wrmsr:{COUNTER + nr:#x}:{value & ((1 << WIDTH) - 1):#x}",
                   f"wrmsr:{SELECT + nr:#x}:{event | flags:#x}")


def run(*programs, nmi_ms=0, denied=0):
    """What each of the VMs read and noted."""
    argv = [*VMM, "-n", str(nmi_ms), "-f", hex(denied), *programs]
    out = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
    return [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]


def allow(events):
    with open(EVENTS, "w", encoding="ascii") as f:
        f.write(events)


def allowed():
    with open(EVENTS, encoding="ascii") as f:
        return f.read().strip()


def grew(vm, what, i=0):
    return vm["mark"][i + 1][what] - vm["mark"][i][what]


def show(vm_id):
    """The file pmu of vCPU 0: its first line, {counter: line}."""
    with open(os.path.join(n.DEBUGFS, f"kvm/{vm_id}/vcpu0/pmu"), encoding="ascii") as f:
        lines = [dict(w.split("=") for w in line.split()) for line in f]
    return lines[0], {line["counter"]: line for line in lines[1:]}


class Waiting:
    """pmu-run with one program whose `wait`s are answered by go()."""

    def __init__(self, text):
        self.p = n.child([*VMM, text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.vm = None

    def wait(self):
        """Until it waits; False at its end, when `vm` is what it read."""
        line = self.p.stdout.readline()
        if line.startswith("wait"):
            return True
        self.vm = json.loads(line)
        return False

    def go(self):
        self.p.stdin.write("\n")
        self.p.stdin.flush()

    def id(self):
        """Of the VM in debugfs, by the thread that made it."""
        tids = os.listdir(f"/proc/{self.p.pid}/task")
        return next(d for d in os.listdir(os.path.join(n.DEBUGFS, "kvm")) if d.split("-")[0] in tids)


def nothing_is_allowed_at_first():
    n.same(allowed(), "none", "guests may count nothing of the host's at first")
    vm, = run(program(count(EXITS), "cpuid:10", "rdpmc:0"))
    n.same(vm["read"], [0], "and a guest that tries reads a counter that stands still")
    for words, what in (("exits,nonsense", "an event that there is not"), ("none,exits", "none beside an event"),
                        ("halts, none", "the same the other way round")):
        try:
            allow(words)
            n.ok(False, f"{what} is refused")
        except OSError:
            n.same(allowed(), "none", f"{what} is refused, and nothing changes")
    allow("none,")
    n.same(allowed(), "none", "none alone is none")


def traced(*programs):
    """The VMs as of run(), and for each what its RDPMCs should give: the exits since the last MSR, itself included."""
    data = os.path.join(TMP, "exits.data")
    out = subprocess.run(["perf", "record", "-B", "-N", "-q", "-m", "1024", "-e", "kvm:kvm_exit", "-o", data, "--",
                          *VMM, *programs], check=True, stdout=subprocess.PIPE, text=True, timeout=LIMIT,
                         stdin=subprocess.DEVNULL).stdout
    trace = subprocess.run(["perf", "script", "-i", data, "-F", "comm,trace"], check=True, stdout=subprocess.PIPE,
                           text=True, stderr=subprocess.DEVNULL).stdout
    true, since = [[] for _ in programs], [0] * len(programs)
    for vm, reason in re.findall(r"^ *CPU (\d)/KVM .*\breason (?:EXIT_)?(\w+)", trace, re.M):
        vm, reason = int(vm), reason.lower()
        since[vm] = 0 if reason == "msr" else since[vm] + 1
        if reason == "rdpmc":
            true[vm].append(since[vm])
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")], true


def exits():
    """The counter is programmed in an exit that it does not count, and read in one that it does."""
    times, k = 20, 5
    vms, true = traced(program(*[count(EXITS), f"cpuid:{k}", "rdpmc:0"] * times))
    n.same(vms[0]["read"], true[0], f"{k} exits, {times} times: the guest's counter and the trace of kvm_exit")
    n.same(min(vms[0]["read"]), k + 1, "where the host was not interrupted meanwhile: its own and that of the RDPMC")
    vm, = run(program("mark", f"wrmsr:{CORE_SELECT + 10:#x}:{EXITS | ON:#x}", "cpuid:1000",
                      f"rdmsr:{CORE_COUNTER + 10:#x}", "mark", "rdpmc:5"))
    most = grew(vm, "exits") - 2  # the WRMSR, and the second mark
    n.ok(1001 <= vm["read"][0] <= most, "the sixth of the CPU's newer counters counts too, read by RDMSR", (vm, most))
    n.ok(vm["read"][1] >= vm["read"][0] + 2, "and by RDPMC", vm["read"])


def two_guests():
    sizes = (3000, 9000)
    vms, true = traced(*[program(count(EXITS), f"cpuid:{k}", "rdpmc:0") for k in sizes])
    for i, k in enumerate(sizes):
        n.same(vms[i]["read"], true[i], f"two at once: the one with {k} exits counts its own, and none of the other's")
        n.ok(true[i][0] > k, "these and the RDPMC's", true)


def halts_and_userspace():
    vm, = run(program(count(HALTS), count(USERSPACE, 1), "hlt:5", "out:7", "rdpmc:0", "rdpmc:1"), nmi_ms=30)
    n.same(vm["read"], [5, 7], "5 halts that the kernel waits for, 7 returns to the VMM")


def preemptions():
    cpu = min(os.sched_getaffinity(0))
    hog = subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c", "while True: pass"])
    try:
        text = program("mark", count(PREEMPTIONS), "spin:60000000", "rdpmc:0", "mark")
        out = subprocess.run(["taskset", "-c", str(cpu), *VMM, text], check=True, stdout=subprocess.PIPE, timeout=LIMIT,
                             stdin=subprocess.DEVNULL, text=True)
    finally:
        hog.kill()
        hog.wait()
    vm = json.loads(out.stdout)
    got, most = vm["read"][0], grew(vm, "preempted")
    n.say(f"{got} preemptions, by the thread {most}")
    n.ok(0 < got <= most, "beside another task on the CPU: some preemptions, not more than the thread had", (got, most))
    n.ok(got >= most / 2, "most of them", (got, most))


def overflows():
    vm, = run(program(count(USERSPACE, value=-3, flags=ON | INTERRUPT), *["mark"] * 5, "rdpmc:0"))
    n.same([m["nmis"] for m in vm["mark"]], [0, 0, 0, 1, 1],
           "a counter 3 below its end: an interrupt when it was entered after the third")
    n.same(vm["read"], [2], "and it counts on from 0")
    vm, = run(program(count(USERSPACE, value=-3), *["mark"] * 5))
    n.same(vm["mark"][-1]["nmis"], 0, "no interrupt where none is asked for")
    vm, = run(program(count(HALTS, value=-1, flags=ON | INTERRUPT), "hlt:1", "mark"))
    n.same(vm["mark"][0]["nmis"], 1, "a halt that overflows the counter of halts ends by the interrupt")


def halted():
    """
    For each try to its first success: cycles of a halt, how many there may be, how many went by. Where the lab's CPU is taken
    away in the middle of a task switch, the event has that time and the thread has not: one try alone shows nothing.
    """
    seen = []
    for _ in range(6):
        vm, = run(program(count(CYCLES), "rdpmc:0", "mark", "hlt:1", "mark", "rdpmc:0"), nmi_ms=1500)
        got, cpu, slept = vm["read"][1] - vm["read"][0], grew(vm, "cpu_ns"), grew(vm, "mono_ns")
        seen.append((got, cpu * vm["khz"] / 1e6 + 5 * vm["khz"], slept * vm["khz"] / 1e6))
        if got <= seen[-1][1]:
            break
    return seen


def cycles():
    vm, = run(program(count(CYCLES), "rdpmc:0", "mark", "spin:60000000", "rdpmc:0", "mark", "spin:1000", "rdpmc:0"))
    got, cpu = vm["read"][1] - vm["read"][0], grew(vm, "cpu_ns") * vm["khz"] / 1e6
    n.near(got, cpu, 0.05 * cpu + 2 * vm["khz"], "busy: cycles are the vCPU's CPU time at the guest's TSC frequency")
    seen = halted()
    n.ok(seen[-1][0] <= seen[-1][1], "halted: no more than what the thread ran", seen)
    n.ok(n.every(got < slept / 4 for got, _most, slept in seen), "it stands still", seen)
    vm, = run(program(f"wrmsr:{SELECT:#x}:{CYCLES | 0x410000:#x}", f"wrmsr:{SELECT + 1:#x}:{0xc0 | ON:#x}", "spin:1000000",
                      "rdpmc:0", "rdpmc:1"))
    n.same(vm["read"], [0, 0], "cycles of one mode alone, and instructions: not counted")


def interrupts_at_its_end(what, *start):
    """Cycles from 200 ms of them below the counter's end on, which `start` has begun."""
    vm, = run(program(*start, *["spin:2000000 rdpmc:0 mark"] * 60))
    nmis, over = [m["nmis"] for m in vm["mark"]], [v < 1 << (WIDTH - 1) for v in vm["read"]]
    n.ok(over[-1], f"{what} 200 ms of cycles below its end went over it", vm["read"])
    first = over.index(True)
    n.ok(n.every(i == 0 for i in nmis[:max(first - 1, 0)]), f"{what}: no interrupt before it did", (first, nmis))
    n.same(set(nmis[first + 1:]), {1}, f"{what}: one after it did")


def cycles_interrupt():
    end = -200 * run("mark")[0]["khz"]
    interrupts_at_its_end("a counter", count(CYCLES, value=end, flags=ON | INTERRUPT))
    interrupts_at_its_end("one written while it counts", count(CYCLES, flags=ON | INTERRUPT), "spin:60000000",
                          f"wrmsr:{COUNTER:#x}:{end & ((1 << WIDTH) - 1):#x}")


def debugfs_and_rdpmc():
    """With the counters stopped they show what the guest reads; while they count, what is behind them."""
    w = Waiting(program(count(EXITS), count(CYCLES, 1), count(0xc0, 2), "cpuid:50", "wait", f"wrmsr:{SELECT:#x}:0",
                        f"wrmsr:{SELECT + 1:#x}:0", "rdpmc:0", "rdpmc:1", "wait"))
    n.ok(w.wait(), "a guest that counts")
    first, counters = show(w.id())
    n.same((first["enabled"], first["soft"], first["gp"]), ("1", "1", "6"), "six counters, none of hardware")
    n.same([counters[f"gp{i}"]["event"] for i in (0, 2, 3)], ["host", "none", "none"],
           "a host event, an event that nothing counts, an idle counter")
    n.ok(counters["gp1"]["event"] in ("active", "inactive"), "cycles have a clock", counters["gp1"])
    n.ok(int(counters["gp0"]["value"], 0) >= 51, "they are read while they count", counters["gp0"])
    w.go()
    w.wait()
    counters = show(w.id())[1]
    w.go()
    w.wait()
    n.same([int(counters[f"gp{i}"]["value"], 0) for i in range(2)], w.vm["read"],
           "with the counters stopped debugfs shows what the guest read")
    n.same([counters[f"gp{i}"]["enabled"] for i in range(3)], ["0", "0", "1"], "and which are enabled")


def filtered():
    vm, = run(program(count(EXITS), count(USERSPACE, 1), "cpuid:10", "out:3", "rdpmc:0", "rdpmc:1"), denied=EXITS)
    n.same(vm["read"], [0, 3], "an event that the VM's filter denies stands still, and another counts")


def allowed_no_more():
    w = Waiting(program(count(EXITS), "cpuid:20", "wait", "rdpmc:0", "cpuid:100", "rdpmc:0", "wait", "cpuid:9", "rdpmc:0"))
    w.wait()
    allow("halts")
    w.go()
    w.wait()
    allow(ALL)
    w.go()
    n.ok(not w.wait(), "a guest that goes on to its end")
    first, second, third = w.vm["read"]
    n.ok(first >= 21, "what was counted while it was allowed stays", first)
    n.same(second, first, "an event that is allowed no more stands still at once")
    n.ok(third >= second + 10, "and goes on when it is again", (second, third))


def main():
    if os.path.exists("/sys/bus/event_source/devices/cpu") or not os.path.exists(EVENTS):
        n.skip("soft PMU", "the host has a PMU, or its kernel is not the patched one")
        n.done()
    nothing_is_allowed_at_first()
    allow(ALL)
    n.same(allowed(), ALL, "the host allows them")
    try:
        for test in (exits, two_guests, halts_and_userspace, preemptions, overflows, cycles, cycles_interrupt,
                     debugfs_and_rdpmc, filtered, allowed_no_more):
            test()
    finally:
        allow("none")
    n.done()


if __name__ == "__main__":
    main()
