#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 360
"""In the lab on the patched kernel (kernel-support/boot.sh): what a Linux guest in QEMU counts with perf events.

The host has no PMU, so that cycles come from a clock (patch 6), and exits from the host (patch 7). What is true of the
cycles is told by the same clock of the host's, counting the vCPU's thread: before and after the guest counts, and
while it does. And Debian's perf in that guest, with what it links to: `perf stat -e cycles` of a busy second, and of some
asleep.
"""

import ctypes
import os
import re
import shutil
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import lab_guests  # noqa: E402
import native as n  # noqa: E402
import soft_pmu as s  # noqa: E402

PORTS = 1000  # load.c's
SAMPLES, A_SECOND = 20, 10  # so few that even the debug kernel has its time for each
BUSY = 2  # s
TRIES = 3
# What the command `shell` runs in that guest: no console is so fast that more than perf's own words should go there.
SHELL = """#!/bin/busybox sh
[ -e /sys/bus ] || { /bin/busybox mkdir /sys; /bin/busybox mount -t sysfs sysfs /sys; /bin/busybox --install -s /bin; }
for what in "-a timeout 1 /loop" "-a sleep 4" "timeout 1 /loop" "sleep 4"; do
	perf stat -e cycles -o /stat $what 2>/errors
	cat /stat /errors
	echo perf ended
done
"""
LOOP = """#!/bin/busybox sh
while :; do :; done
"""


class ThreadClock:
    """How long a thread was on a CPU, by a perf event as that of a soft counter: the thread's own CPU time leaves out what a
    task switch takes, which is long where the lab's CPU loses its real one in the middle of it."""

    PERF_EVENT_OPEN = 298
    SOFTWARE, CPU_CLOCK, PINNED = 1, 0, 1 << 2

    def __init__(self, tid):
        attr = struct.pack("IIQQQQQIIQ", self.SOFTWARE, 64, self.CPU_CLOCK, 0, 0, 0, self.PINNED, 0, 0, 0)
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.syscall(self.PERF_EVENT_OPEN, attr, tid, -1, -1, 0)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "perf_event_open")

    def read(self):
        """Seconds since it was made."""
        return struct.unpack("Q", os.read(self.fd, 8))[0] / 1e9


def numbers(guest, word, limit=60):
    """Those of the next line that begins with a word."""
    while (line := guest.console.next(limit)) is not None:
        if line.split()[:1] == [word]:
            return [int(w) for w in line.split()[1:]]
    raise RuntimeError(f"{guest.name} does not say {word}")


def count(guest, event, do):
    """The guest's count, and seconds that it took."""
    guest.console.send(f"count {event:x} 0 {do}")
    got, _samples, ns = numbers(guest, "count")
    return got, ns / 1e9


def count_busy(guest, clock, period, enough):
    """The guest's cycles and samples while it is busy, until enough() returns; the least and most seconds that it was."""
    before = clock.read()
    guest.console.send(f"count 0 {period} spin")
    numbers(guest, "counting")
    began = clock.read()
    enough()
    ended = clock.read()
    guest.console.send("stop")
    got, samples, _ns = numbers(guest, "count")
    after = clock.read()
    numbers(guest, "off")
    return got, samples, ended - began, after - before


class Overflows:
    """How often the guest's counters overflowed since it was made, by the host."""

    def __init__(self, guest):
        self.vm_id = next(d for d in os.listdir(os.path.join(n.DEBUGFS, "kvm")) if d.startswith(f"{guest.pid}-"))
        self.before = 0
        self.before = self.now()

    def now(self):
        return sum(int(c["overflows"]) for c in s.show(self.vm_id)[1].values()) - self.before

    def wait(self, wanted, limit=60):
        end = time.monotonic() + limit * n.PATIENCE
        while self.now() < wanted and time.monotonic() < end:
            time.sleep(0.1)


def cycles(guest, hz):
    clock = ThreadClock(guest.vcpu_tids()[0])
    got, _, least, most = count_busy(guest, clock, 0, lambda: time.sleep(BUSY))
    n.say(f"busy for {least:.3f} to {most:.3f} s: cycles for {got / hz:.3f} s")
    n.ok(least <= got / hz <= most, "cycles are the time on a CPU at the TSC's frequency", (least, got / hz, most))
    period, over = hz // A_SECOND, Overflows(guest)
    got, samples, _, most = count_busy(guest, clock, period, lambda: over.wait(SAMPLES))
    over = over.now()
    n.say(f"the same with interrupts, at most {most:.3f} s: {got / hz:.3f} s, {over} overflows, {samples} samples")
    n.ok(got / hz <= most, "no more with interrupts", (got / hz, most))
    n.ok(over >= SAMPLES, f"{SAMPLES} overflows", over)
    n.ok(samples * period <= got, "not more than it counts", (samples, got / hz))
    n.ok(samples <= over <= samples + 1, "each interrupts the guest, but where it stops counting just then", (samples, over))
    got, took = count(guest, 0, "sleep")
    n.say(f"idle for {took:.2f} s: cycles for {got / hz:.3f} s")
    n.ok(0 < got / hz < took / 4, "a CPU that sleeps, and has its timers and devices, counts few", (got, took))


def add_to_initramfs():
    """The lab's, with perf, its libraries and the two scripts: the kernel unpacks one archive after the other."""
    top, out = "/tmp/perf-guest", "/tmp/perf-guest.cpio"
    files = {"/bin/perf": shutil.which("perf")}
    for path in re.findall(r"(/\S+) \(0x", n.sh("ldd", files["/bin/perf"])):
        files[path] = path
    for to, path in files.items():
        os.makedirs(os.path.dirname(top + to), exist_ok=True)
        shutil.copy(path, top + to)
    for name, text in (("shell", SHELL), ("loop", LOOP)):
        n.put(f"{top}/{name}", text)
        os.chmod(f"{top}/{name}", 0o755)
    with open(out, "wb") as f:
        with open(os.environ["LAB_INITRD"], "rb") as lab:
            shutil.copyfileobj(lab, f)
        f.flush()
        names = "\n".join(os.path.relpath(os.path.join(d, x), top) for d, dirs, rest in os.walk(top) for x in sorted(dirs) + rest)
        subprocess.run(["busybox", "cpio", "-o", "-H", "newc"], input=names.encode(), stdout=f, stderr=subprocess.DEVNULL,
                       check=True, cwd=top)
    shutil.rmtree(top)
    return out


def perf_says(guest):
    """Cycles and seconds of the next perf stat there, by its own words; it counted nothing: None."""
    text = []
    while (line := guest.console.next(60)) not in (None, "perf ended"):
        text.append(line)
    for line in filter(None, text):
        n.say(f"perf: {line}")
    got = re.search(r"^(\d+) +cycles\b", "\n".join(text), re.M)
    took = re.search(r"^([\d.]+) seconds time elapsed", "\n".join(text), re.M)
    return (int(got[1]), float(took[1])) if got and took else None


def perf_stat(guest, hz):
    """
    `perf stat -e cycles` of a busy second and of four asleep (what perf itself takes for a program is 0.15 s on the debug
    kernel): of the CPU, and of the program alone, with which perf shares the guest's one CPU. Anew where the lab's CPU was busy
    with something else.
    """
    for _ in range(TRIES):
        guest.console.send("shell")
        said = [perf_says(guest) for _ in range(4)]
        if not n.every(said):
            break
        busy, idle, program, asleep = (cycles / hz / took for cycles, took in said)
        n.say(f"cycles / (elapsed * frequency): CPU busy {busy:.3f}, idle {idle:.4f}; program busy {program:.3f}, "
              f"asleep {asleep:.4f}")
        if busy > 1.05 or (busy >= 0.95 and max(idle, asleep) < 0.1):
            break
    if n.ok(n.every(said), "perf stat -e cycles in the guest counts", said):
        n.ok(n.every(took >= 1 for _, took in said), "for a second each", said)
        n.near(busy, 1, 0.05, "a busy CPU: elapsed time * frequency")
        n.ok(0 < idle < 0.1, "an idle one: next to nothing", said)
        n.ok(0.6 <= program <= 1.05, "a busy program: the most of it", said)
        n.ok(0 < asleep < 0.1, "one that sleeps: next to nothing", said)


def exits(guest):
    before = count(guest, s.EXITS, "port")[0]
    n.same(before, 0, "exits: the host does not allow it")
    s.allow(s.ALL)
    try:
        got = {e: count(guest, e, "port")[0] for e in (s.EXITS, s.USERSPACE, s.HALTS)}
        halts = count(guest, s.HALTS, "sleep")[0]
    finally:
        s.allow("none")
    n.say(f"{PORTS} port writes: {got[s.EXITS]} exits, {got[s.USERSPACE]} to QEMU; halts in a sleep: {halts}")
    n.ok(PORTS <= got[s.USERSPACE] < 2 * PORTS, "a port that nobody has: each write is an exit to QEMU", got)
    n.ok(got[s.EXITS] >= got[s.USERSPACE], "and these are exits", got)
    n.ok(halts > 0, "a CPU that sleeps halts", halts)


def main():
    if why := lab_guests.missing() or (not os.path.exists(s.EVENTS) and "not the patched kernel"):
        n.skip("perf events of a Linux guest", why)
        n.done()
    guest = lab_guests.start(("db02",), add_to_initramfs())[0].ready()  # it has one CPU
    guest.rest()
    n.say(f"its PMU: {s.show(Overflows(guest).vm_id)[0]}")
    hz = s.run("mark")[0]["khz"] * 1000
    cycles(guest, hz)
    exits(guest)
    perf_stat(guest, hz)
    n.done()


if __name__ == "__main__":
    main()
