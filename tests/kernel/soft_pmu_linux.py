#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 300
"""In the lab on the patched kernel (kernel-support/boot.sh): what a Linux guest in QEMU counts with perf events.

The host has no PMU, so that cycles come from a clock (patch 6), and exits from the host (patch 7). What is true of the
cycles is told by the same clock of the host's, counting the vCPU's thread: before and after the guest counts, and
while it does.
"""

import ctypes
import os
import struct
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
    guest = lab_guests.start(("db02",))[0].ready()  # it has one CPU
    guest.rest()
    hz = s.run("mark")[0]["khz"] * 1000
    cycles(guest, hz)
    exits(guest)
    n.done()


main()
