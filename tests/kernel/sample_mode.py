#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 240
"""In the lab on the patched kernel (kernel-support/boot.sh): samples of a guest's kernel and of its programs.

A Linux guest's kernel has the upper half of the addresses: a sample marked as guest kernel has an address there,
and one marked as guest user has not. A stock 6.1 goes by what the vCPU did when it was preempted last.
"""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lab_guests  # noqa: E402
import native as n  # noqa: E402

KERNEL, USER = 4, 5  # PERF_RECORD_MISC_GUEST_KERNEL, _USER
TMP = os.environ.get("TEST_TMP", "/tmp")


def samples(guest, name, load, seconds):
    """{(mode, address in the upper half): how many} of the guest's samples under a load."""
    data = os.path.join(TMP, f"{name}.data")
    guest.load(load)
    n.sh("perf", "record", "-B", "-N", "-q", "-e", "cpu-clock", "-F", "500", "-p", str(guest.pid), "-o", data,
         "--", "sleep", str(seconds))
    guest.rest()
    out = subprocess.run(["perf", "script", "-D", "-i", data], check=True, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, errors="replace").stdout
    found = {}
    for m in re.finditer(r"PERF_RECORD_SAMPLE\(IP, 0x([0-9a-f]+)\): \d+/\d+: 0x([0-9a-f]+)", out):
        mode, address = int(m.group(1), 16) & 7, int(m.group(2), 16)
        if mode in (KERNEL, USER):
            at = (mode, address >> 63 == 1)
            found[at] = found.get(at, 0) + 1
    return found


def main():
    if why := lab_guests.missing():
        n.skip("samples of a guest's kernel and user mode", why)
        n.done()
    guest = lab_guests.start(("web01",))[0].ready()
    guest.rest()
    kernel, user = samples(guest, "kernel", "shrink", 10), samples(guest, "user", "user", 10)
    n.say(f"a load in the kernel {kernel}, one in user mode {user}: (mode, upper half): samples")
    n.ok(kernel.get((KERNEL, True), 0) > 200, "a load in the guest's kernel: samples say so", kernel)
    n.ok(user.get((USER, False), 0) > 200, "a load in the guest's user mode: samples say so", user)
    for what, found in (("kernel", kernel), ("user", user)):
        wrong = found.get((KERNEL, False), 0) + found.get((USER, True), 0)
        n.same(wrong, 0, f"a load in {what} mode: no sample is marked as the other mode")
    n.done()


main()
