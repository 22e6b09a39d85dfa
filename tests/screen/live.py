#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: kvm, tracefs, root, tmux
# limit: 240
"""The full screen on real guests: figures within a second, drill-down, sort, filter, panes, pause."""

import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native  # noqa: E402
from screen_lib import Terminal, width  # noqa: E402

QEMU = native.posing_as("qemu-system-x86_64")
cpu = native.CPUS[-1]

starved = native.Guest("-n", "-c", 2, "-p", cpu, "-l", "inf", "spin:inf", program=QEMU,
                       tail=("-name", "guest=starved,debug-threads=on"))
exits = native.Guest("-n", "-c", 1, "-l", "inf", "-r", 2000, "out:2 mmiow:1", program=QEMU,
                     tail=("-name", "guest=exits-10"))
hostile = native.Guest("-n", "-c", 1, "-l", "inf", "hlt:1 sleep:100", program=QEMU,
                       tail=("-name", "guest=bad\x1b[31m\nname"))

began = time.monotonic()
STATUS = os.path.join(os.environ.get("TEST_TMP", "/tmp"), "status")
t = Terminal(f"{native.KVMTOP}; echo $? > {STATUS}")  # tmux does not always learn it
t.sees("kvmtop", "the first frame comes", 3)
frame = time.monotonic() - began
text = t.until(lambda s: re.search(r"starved .*\d\d\.\d.*@", s), 5)
rates = time.monotonic() - began
native.ok(text is not None, "the starved VM has its figures", t.text())
native.say(f"first frame after {frame:.2f} s, figures after {rates:.2f} s, tmux's start in it")

on_top = t.until(lambda s: (re.findall(r"^ (?:starved|exits-10|bad)", s, re.M) or [""])[0] == " starved", 30)
native.ok(on_top is not None, "the starved VM is on top", t.text())
t.sees("waits for a CPU", "a finding says so in words", 40)  # each has its turn, of 4 s
native.ok(re.search(r"bad\\(e|x1b)", t.text()) is not None, "a hostile name is escaped", t.text())
native.ok(native.every(width(ln) <= 80 for ln in t.lines()), "no line is wider than the window", t.text())

t.keys("Enter")
t.sees("TID CPU PIN", "Enter opens the VM: a row a vCPU")
t.keys("Enter")
native.ok(t.until(lambda s: "vCPU 0" in s or "vCPU 1" in s) is not None, "Enter again: one vCPU", t.text())
t.keys("Escape")
time.sleep(0.3)
t.keys("Escape")
t.sees("exits-10", "Esc goes back up to the host")

t.keys("f")
t.keys("exits", "Enter")
native.ok(t.until(lambda s: "exits-10" in s and " starved " not in s.split("WHY")[-1]) is not None,
          "the filter leaves what matches", t.text())
t.keys("Escape")
t.sees(" starved ", "Esc clears the filter")

t.keys("/")
t.keys("exits", "Enter")
time.sleep(0.3)
t.keys("Enter")
t.sees("exits-10", "search goes to the row, Enter opens that VM")
t.keys("3")
t.keys("e")
text = t.until(lambda s: "0x3f8:POUT" in s or "0xd0000:W" in s, 6)
native.ok(text is not None, "pane Access: the port or the address that the guest writes to", t.text())
t.keys("5")
t.sees("rundelay", "pane Steal names its source")
t.keys("6")
t.sees("PINNED", "pane CPUs")
t.keys("9")
t.sees("THREAD", "pane Threads")
t.keys("Escape", "Escape")
time.sleep(0.3)

t.keys("Space")
t.sees("PAUSED", "space pauses")
first = t.text()
time.sleep(1.5)
native.same(t.text().split("\n")[3:], first.split("\n")[3:], "the paused picture stays")
t.keys(",")
native.ok(t.until(lambda s: re.search(r"PAUSED.*\(-\d", s)) is not None, "a step back in time", t.text())
t.keys("Space")
native.ok(t.until(lambda s: "PAUSED" not in s) is not None, "and on again", t.text())

for key, what in (("?", "Keys"), ("i", "PID"), ("s", "Sort by"), ("C", "olumn")):
    t.keys(key)
    t.sees(what, f"key {key} opens its window")
    t.keys("q")
    time.sleep(0.2)
    native.ok(t.alive(), f"q closes it and not the program ({key})")

for _ in range(3):
    t.keys("Escape")
    time.sleep(0.2)
t.sees(" (all) ", "the first row is all VMs together")
t.keys("g")
t.keys("3")
text = t.until(lambda s: re.search(r"Access: ioport .* all VMs .*^ 0x3f8:POUT.*^ by VM: .*exits-10 \d", s, re.M | re.S), 6)
native.ok(text is not None, "g 3: the ports of all VMs together, and whose they are", t.text())
t.keys("t")
exits.kill()
text = t.until(lambda s: "all VMs" in s and "0x3f8:POUT" in s and "exits-10" not in s, 6)
native.ok(text is not None, "with totals they stay when their VM is gone", t.text())
t.keys("t")
t.keys("Escape")
t.keys("Enter")
t.sees("TID", "Enter on (all) lists the vCPUs of the whole host")
t.keys("Escape")
t.sees(" (all) ", "and Esc goes back")
t.keys("j")
native.ok(t.until(lambda s: not re.search(r"^ exits-10 ", s, re.M), 5) is not None,
          "a VM that ended leaves the screen", t.text())
late = native.Guest("-n", "-c", 1, "-l", "inf", "hlt:1 sleep:50", program=QEMU, tail=("-name", "guest=late-vm"))
t.sees("late-vm", "a new one comes within an interval", 4)

t.keys("q")
native.ok(t.until(lambda s: not t.alive(), 5) is not None, "q quits")
with open(STATUS, encoding="ascii") as f:
    native.same(f.read().strip(), "0", "with status 0")
native.done()
