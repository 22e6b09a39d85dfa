#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 240
"""In the lab on the patched kernel (kernel-support/boot.sh): field 53 of /proc/<pid>/stat, guest steal.

Against the scheduler's run delay, for threads that do nothing but run a vCPU; and where the two must
differ: threads that are no vCPUs, time before the first vCPU, threads that ended, fork and exec. The
guests here never heard of a steal clock. This script is a VMM itself where it wants to know each step.
"""

import ctypes
import fcntl
import mmap
import os
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

TICKS = os.sysconf("SC_CLK_TCK")
CPU = n.CPUS[-1]
RESULTS = os.environ.get("RESULTS", "/tmp")
GSTIME = 53


# --- readings -----------------------------------------------------------------------------------
def stat_of(where):
    with open(f"/proc/{where}/stat", encoding="utf-8", errors="surrogateescape") as f:
        return f.read()


def fields(text):
    """By their numbers in proc(5); comm may have blanks and brackets."""
    return [None, None, None, *text[text.rindex(")") + 2:].split()]


def patched():
    return len(fields(stat_of("self"))) > GSTIME


def gstime(where):
    return int(fields(stat_of(where))[GSTIME]) / TICKS


def run_delay(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[1]) / 1e9


def delays(guest):
    return [run_delay(guest.pid, v["tid"]) for v in guest.vcpus]


def steals(guest):
    return [gstime(f"{guest.pid}/task/{v['tid']}") for v in guest.vcpus]


# --- a VMM of our own ---------------------------------------------------------------------------
KVM_CREATE_VM, KVM_CREATE_VCPU, KVM_RUN, KVM_GET_VCPU_MMAP_SIZE = 0xae01, 0xae41, 0xae80, 0xae04
KVM_SET_USER_MEMORY_REGION, KVM_GET_SREGS, KVM_SET_SREGS, KVM_SET_REGS = 0x4020ae46, 0x8138ae83, 0x4138ae84, 0x4090ae82
KVM_XEN_HVM_CONFIG, XEN_MSR = 0x4038ae7a, 0x40000000
# mov ecx, N; loop: loop (by ecx); out 0x10, al; jmp to the begin
CODE = b"\x66\xb9" + struct.pack("<I", 300000) + b"\x67\xe2\xfd\xe6\x10\xeb\xf3"


class Vcpu:
    """A vCPU (of a VM of its own) that comes out of the guest every few milliseconds."""

    def __init__(self, xen=False):
        kvm = os.open("/dev/kvm", os.O_RDWR)
        self.vm = fcntl.ioctl(kvm, KVM_CREATE_VM, 0)
        if xen:
            fcntl.ioctl(self.vm, KVM_XEN_HVM_CONFIG, struct.pack("<II48x", 0, XEN_MSR))
        self.memory = mmap.mmap(-1, 4096)
        self.memory.write(CODE)
        at = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        fcntl.ioctl(self.vm, KVM_SET_USER_MEMORY_REGION, struct.pack("<IIQQQ", 0, 0, 0x1000, 4096, at))
        self.fd = fcntl.ioctl(self.vm, KVM_CREATE_VCPU, 0)
        self.run = mmap.mmap(self.fd, fcntl.ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0))
        os.close(kvm)
        sregs = bytearray(0x138)
        fcntl.ioctl(self.fd, KVM_GET_SREGS, sregs)
        sregs[0:8] = bytes(8)  # cs: base 0, selector 0
        sregs[12:14] = bytes(2)
        fcntl.ioctl(self.fd, KVM_SET_SREGS, bytes(sregs))
        regs = [0] * 18
        regs[16], regs[17] = 0x1000, 2  # rip, rflags
        fcntl.ioctl(self.fd, KVM_SET_REGS, struct.pack("<18Q", *regs))

    def once(self):
        fcntl.ioctl(self.fd, KVM_RUN, 0)


def pinned(cpu):
    os.sched_setaffinity(0, {cpu})


def in_thread(job, *args):
    """job(*args) in a thread on CPU, to its end: that of the kernel's task, too, which comes after Python's."""
    tids = []

    def body():
        tids.append(threading.get_native_id())
        pinned(CPU)
        job(*args)
    t = threading.Thread(target=body)
    t.start()
    t.join()
    while os.path.exists(f"/proc/self/task/{tids[0]}"):
        time.sleep(0.01)


def busy_neighbour():
    p = n.child(["taskset", "-c", str(CPU), "sh", "-c", "while :; do :; done"])
    return p


def until_kept_waiting(seconds, *vcpus):
    """
    Runs vCPUs, or nothing, until this thread was ready for so long and not run: that a busy CPU gives its half of the
    time to each, nobody promises. Returns its run delay before they ran last: what they have as steal reaches so far at
    least, as what a thread has waited is added when it enters a guest.
    """
    tid = threading.get_native_id()
    start = before = run_delay("self", tid)
    while before < start + seconds:
        before = run_delay("self", tid)
        for v in vcpus:
            v.once()
    return before


# --- tests --------------------------------------------------------------------------------------
def the_field():
    for where in ("self", "1", "thread-self", "2"):
        f = fields(stat_of(where))
        n.ok(len(f) == GSTIME + 1 and f[GSTIME] == "0", f"/proc/{where}/stat: one field more, 0 for what is no VM", f)


def against_run_delay():
    g = n.Guest("-c", 2, "-p", f"{CPU},{CPU}", "spin:inf").go()
    time.sleep(1)
    d0, s0, last = delays(g), steals(g), (0, [0, 0])
    backwards, end = [], time.monotonic() + 12
    while time.monotonic() < end:
        now = (gstime(g.pid), steals(g))
        if now[0] < last[0] or any(a < b for a, b in zip(now[1], last[1])):
            backwards.append((last, now))
        last = now
        time.sleep(0.2)
    d1, s1 = delays(g), steals(g)
    total = gstime(g.pid)
    n.same(backwards, [], "two vCPUs on one CPU: gstime never goes back")
    for v in range(2):
        delay, steal = d1[v] - d0[v], s1[v] - s0[v]
        n.say(f"vCPU {v}: run delay {delay:.3f} s, gstime {steal:.2f} s")
        n.ok(delay > 3, f"vCPU {v}: it did wait", delay)
        n.near(steal, delay, 0.07 * delay + 2 / TICKS, f"vCPU {v}: gstime is the run delay")
    n.ok(sum(s1) - 0.02 <= total <= sum(steals(g)) + 0.02, "the process has the sum", (s1, total))
    main = gstime(f"{g.pid}/task/{g.pid}")
    n.same(main, 0, "a thread that runs no vCPU has none")
    record(g, "half", 0.25, 24)
    g.stop()


def line(pid, tid):
    """As tests/data/sched/record.py has them."""
    task = f"/proc/{pid}/task/{tid}"
    stat, now = stat_of(f"{pid}/task/{tid}").strip(), time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    with open(f"{task}/schedstat", encoding="ascii") as f:
        sched = f.read().strip()
    with open(f"{task}/status", encoding="utf-8", errors="replace") as f:
        switches = [x.split()[1] for x in f if "voluntary_ctxt" in x]
    return f"{now}|{','.join(switches)}|0|{sched}|{stat}\n"


def record(g, name, step, lines):
    """A recording of vCPU 0 in the results: tests/unit/test_use.c plays some of these."""
    with open(os.path.join(RESULTS, f"gstime-{name}.txt"), "w", encoding="utf-8") as f:
        for _ in range(lines):
            f.write(line(g.pid, g.tid(0)))
            time.sleep(step)


def starved():
    """The kernel shows such a vCPU nothing for seconds, then all at once; kvmtop all the time."""
    busy = n.Guest("-p", CPU, "spin:inf").go()
    idle = n.Guest("-I", "-p", CPU, "spin:inf").go()
    time.sleep(0.5)
    record(idle, "starved", 0.25, 24)
    top = n.Kvmtop(delay=0.5).skip(4)
    first = len(top.records)
    top.skip(8)
    got = [(vm["vcpus"][0]["steal_pct"], vm["vcpus"][0]["cpu_pct"]) for r in top.end()[first:first + 8]
           for vm in n.vms_of(r, idle.pid)]
    # Where the lab's CPU loses its real one just when the vCPU had its turn, that was a long one.
    n.ok(len(got) == 8 and min(map(sum, got)) >= 85, "kvmtop: a starved vCPU's steal in every interval, but when it ran", got)
    n.ok(sum(steal for steal, _cpu in got) >= 50 * len(got), "and most of the time it did not", got)
    busy.stop()
    idle.kill()


def threads_that_end():
    v, neighbour, seen = Vcpu(), busy_neighbour(), {}
    before = gstime("self")

    def body():
        until_kept_waiting(1, v)
        seen["own"] = gstime("thread-self")
        seen["process"] = float(fields(n.sh("cat", "/proc/self/stat"))[GSTIME])
        child = threading.Thread(target=lambda: seen.update(thread=gstime("thread-self")))
        child.start()
        child.join()

    in_thread(body)
    after = gstime("self")
    n.ok(seen["own"] > 0.5, "a thread that ran a vCPU has some", seen)
    n.same((seen["process"], seen["thread"]), (0, 0), "a process and a thread that it makes begin with 0")
    n.ok(after - before >= seen["own"] - 1 / TICKS, "when it has ended its own stays in the process's sum", (before, after, seen))
    left = [gstime(f"self/task/{t}") for t in os.listdir("/proc/self/task")]
    n.same(sum(left), 0, "and in no thread's that is left")
    neighbour.kill()
    neighbour.wait()


def xen_guest():
    """record_steal_time() has nothing to tell such a guest, whose steal is in its runstate area."""
    v, neighbour = Vcpu(xen=True), busy_neighbour()
    before = gstime("self")
    in_thread(until_kept_waiting, 1, v)
    neighbour.kill()
    neighbour.wait()
    n.ok(gstime("self") - before > 0.5, "a guest by Xen's interface counts as any other", (before, gstime("self")))


def before_the_first_vcpu():
    """A thread that waited, and only then became a vCPU."""
    v, neighbour, seen = Vcpu(), busy_neighbour(), {}

    def body():
        tid = threading.get_native_id()
        until_kept_waiting(1)
        seen["waited"] = run_delay("self", tid)
        v.once()
        v.once()
        seen["at first"] = gstime(f"self/task/{tid}")
        seen["until"] = run_delay("self", tid)
        before = until_kept_waiting(1, v)
        seen["then"] = gstime(f"self/task/{tid}")
        seen["delay"] = (before, run_delay("self", tid))

    in_thread(body)
    neighbour.kill()
    neighbour.wait()
    n.say(str(seen))
    n.ok(seen["waited"] >= 1, "it waited before it was a vCPU", seen)
    n.ok(seen["at first"] <= seen["until"] - seen["waited"] + 2 / TICKS, "which is not steal", seen)
    least, most = seen["delay"][0] - seen["until"], seen["delay"][1] - seen["waited"]
    n.ok(least - 2 / TICKS <= seen["then"] <= most + 2 / TICKS, "what it waited since is", seen)


def two_vcpus_of_one_thread():
    a, b, neighbour, seen = Vcpu(), Vcpu(), busy_neighbour(), {}

    def body():
        tid = threading.get_native_id()
        a.once()
        seen["first"] = run_delay("self", tid)
        b.once()
        before = gstime(f"self/task/{tid}")
        seen["from"] = run_delay("self", tid)
        seen["until"] = until_kept_waiting(1, a, b)
        seen["steal"] = gstime(f"self/task/{tid}") - before
        seen["last"] = run_delay("self", tid)

    in_thread(body)
    neighbour.kill()
    neighbour.wait()
    n.say(str(seen))
    least, most = seen["until"] - seen["from"], seen["last"] - seen["first"]
    n.ok(least > 0.5, "a thread that runs two vCPUs in turn: it did wait", seen)
    n.ok(least - 2 / TICKS <= seen["steal"] <= most + 2 / TICKS, "its waiting counts once", seen)


def exec_keeps_it():
    """The process goes on as another program; its thread that ran the vCPU is gone by then."""
    neighbour = busy_neighbour()
    code = (f"import sys, os; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); import gstime as g; "
            "g.in_thread(g.until_kept_waiting, 1, g.Vcpu()); print(g.gstime('self'), flush=True); "
            "os.execv('/bin/cat', ['cat', '/proc/self/stat'])")
    out = subprocess.run([sys.executable, "-B", "-c", code], check=True, capture_output=True, text=True).stdout.split("\n")
    neighbour.kill()
    neighbour.wait()
    after = int(fields(out[1])[GSTIME]) / TICKS
    n.ok(float(out[0]) > 0.3 and after >= float(out[0]), "exec keeps it", out)


def main():
    the_field()
    against_run_delay()
    starved()
    threads_that_end()
    xen_guest()
    before_the_first_vcpu()
    two_vcpus_of_one_thread()
    exec_keeps_it()
    n.done()


if __name__ == "__main__":
    main()
