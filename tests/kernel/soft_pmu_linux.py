#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 300
"""In the lab on the patched kernel (kernel-support/boot.sh): what a Linux guest in QEMU counts with perf events.

The host has no PMU, so that cycles come from a clock (patch 6), and exits from the host (patch 7).
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import gstime as g  # noqa: E402
import lab_guests  # noqa: E402
import native as n  # noqa: E402
import soft_pmu as s  # noqa: E402

PORTS = 1000  # load.c's


def answer(guest, command, limit=60):
    """The numbers of the line that answers."""
    guest.console.send(command)
    while (line := guest.console.next(limit)) is not None:
        if line.startswith(command.split()[0] + " "):
            return [int(w) for w in line.split()[1:]]
    raise RuntimeError(f"{guest.name} does not answer {command}")


def count(guest, event, do, period=0):
    """The guest's count, its samples, seconds that it took and of those the stolen ones."""
    before = answer(guest, "steal")[0]
    got, samples, ns = answer(guest, f"count {event:x} {period} {do}")
    return got, samples, ns / 1e9, (answer(guest, "steal")[0] - before) / g.TICKS


def cycles(guest, hz):
    got, samples, took, stolen = count(guest, 0, "spin", period=hz // 100)
    n.say(f"busy for {took:.2f} s, {stolen:.2f} s stolen: cycles for {got / hz:.2f} s, {samples} samples")
    n.ok(0.95 * (took - stolen) - 0.05 < got / hz < 1.02 * took, "cycles are elapsed time at the TSC's frequency",
         (got, hz, took, stolen))
    n.ok(0 < samples <= got * 100 / hz + 1, "the counter interrupts, not more often than it counts", samples)
    n.ok(samples >= got * 100 / hz / 2, "each hundredth of a second or nearly so", samples)
    got, _, took, _ = count(guest, 0, "sleep")
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
