#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 300
"""In the lab on the patched kernel (kernel-support/boot.sh): gstime against what a Linux guest itself says.

A QEMU guest of two busy vCPUs on one CPU, with KVM's steal clock. Its own count and the host's are read at
one moment, twice, over at least a minute: what both grew by has to be the same. Meanwhile the host's never goes back.
"""

import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import gstime as g  # noqa: E402
import lab_guests  # noqa: E402
import native as n  # noqa: E402

SECONDS = 60


def steals(guest, tids):
    return [g.gstime(f"{guest.pid}/task/{t}") for t in tids]


def both(guest, tids):
    """Seconds: the guest's steal, the host's gstime and run delay of its vCPUs."""
    guest.console.send("steal")
    while (line := guest.console.next(30)) is not None:
        if line.startswith("steal "):
            return (int(line.split()[1]) / g.TICKS, sum(steals(guest, tids)), sum(g.run_delay(guest.pid, t) for t in tids))
    raise RuntimeError("the guest does not tell its steal")


def backwards(guest, tids, seconds):
    """Readings, for so long, of which one is less than the one before."""
    odd, last, end = [], steals(guest, tids), time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(1)
        now = steals(guest, tids)
        if any(a < b for a, b in zip(now, last)):
            odd.append((last, now))
        last = now
    return odd


def main():
    if why := lab_guests.missing():
        n.skip("gstime against a guest's steal clock", why)
        n.done()
    guest = lab_guests.start(("web01",))[0].ready()
    tids = list(guest.vcpu_tids().values())
    for tid in tids:
        os.sched_setaffinity(tid, {g.CPU})
    guest.load("lock")  # two threads
    time.sleep(2)
    first = both(guest, tids)
    odd = backwards(guest, tids, SECONDS)
    last = both(guest, tids)
    told, steal, delay = (b - a for a, b in zip(first, last))
    n.say(f"the guest {told:.2f} s, gstime {steal:.2f} s, run delay {delay:.3f} s")
    n.ok(told > SECONDS / 4, "the guest was kept waiting, and knows it", told)
    n.near(steal, told, 0.05 * told + 20 / g.TICKS, "gstime is what the guest says was stolen from it")
    n.near(steal, delay, 0.07 * delay + 2 / g.TICKS, "and the run delay of its vCPUs")
    n.same(odd, [], "and never goes back")
    guest.rest()
    n.done()


main()
