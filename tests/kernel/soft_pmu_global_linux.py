#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 300
"""In the lab on the patched kernel (kernel-support/boot.sh): a Linux guest whose counters have a global control (patch 9).

Debian's QEMU does not pass the leaf of CPUID on that says so; perfmon_v2.c does it in its place. What the guest counts
and how it is interrupted is held to the same as without (soft_pmu_linux.py): another driver of the guest's does that.
"""

import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import lab_guests  # noqa: E402
import native as n  # noqa: E402
import soft_pmu as s  # noqa: E402
import soft_pmu_linux as linux  # noqa: E402

PRELOAD = os.path.join(n.BUILD, "lab/perfmon_v2.so")
NAME = "pmu03"


def control(vm_id):
    return int(s.show(vm_id)[0]["global_ctrl"], 16)


def while_counting(vm_id):
    """It is 0 for the moments in which the guest looks at a counter."""
    end = time.monotonic() + 20 * n.PATIENCE
    while (value := control(vm_id)) == 0 and time.monotonic() < end:
        time.sleep(0.05)
    return value


def enabled(vm_id):
    """How many event selects have their own bit."""
    return sum(int(c["select"], 16) >> 22 & 1 for c in s.show(vm_id)[1].values())


def switched(guest, vm_id):
    n.same(control(vm_id), 0, "a guest that counts nothing has all counters off by the global control")
    guest.console.send("count 0 0 spin")
    linux.numbers(guest, "counting")
    value = while_counting(vm_id)
    on = enabled(vm_id)
    guest.console.send("stop")
    linux.numbers(guest, "count")
    linux.numbers(guest, "off")
    n.same((value, on), (0x3f, 1), "one that counts cycles has it on, and one of its counters enabled")
    n.same(enabled(vm_id), 0, "and none when it has counted")


def main():
    if why := lab_guests.missing() or (not os.path.exists(s.EVENTS) and "not the patched kernel") or (
            not os.path.exists(PRELOAD) and f"no {PRELOAD}: make lab-programs"):
        n.skip("global control of a Linux guest", why)
        n.done()
    guest = lab_guests.start((NAME,), preload=PRELOAD)[0].ready()
    guest.rest()
    vm_id = linux.Overflows(guest).vm_id
    first = s.show(vm_id)[0]
    n.same((first["version"], first["gp"], first["soft"]), ("2", "6", "1"), "the guest has PerfMonV2, six counters")
    switched(guest, vm_id)
    linux.cycles(guest, s.run("mark")[0]["khz"] * 1000)
    os.kill(guest.pid, signal.SIGKILL)  # no other script has a use for it
    n.done()


main()
