#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, perf-events, tmux
# limit: 90
# beside: yes
"""The pane Symbols over a real guest: names, domains on and off, an opened row, and HOT SYMBOL."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native
from screen_lib import Terminal

g = native.Guest("-m", "user", "-l", "inf", "out:60 spin:1").go()
t = Terminal(f"{native.KVMTOP} -d 0.5 --max-overhead 0 -p {g.pid}", cols=120, rows=40)

text = t.until(lambda s: re.search(r"HOT SYMBOL", s) and re.search(r" [hkuv]:\S+ +\d+%", s), 30)
native.ok(text is not None, "the list has HOT SYMBOL with its share", t.text())
t.keys("4")
text = t.until(lambda s: "host kernel" in s and re.search(r"^ +[\d.]+ \w\S+ .*host-kernel", s, re.M), 30)
native.ok(text is not None, "4: the host's kernel has names, the four domains stand above", t.text())
native.ok("cpu-clock" in t.text() or "cycles" in t.text(), "the title says which event takes the samples", t.text())
native.ok(t.until(lambda s: "host-user" in s and "guest-" in s, 20) is not None, "guest and host stand side by side", t.text())
t.keys("Tab")
t.keys("H")
native.ok(t.until(lambda s: "host-kernel" not in s and "host-user" not in s and "(" in s.split("host kernel")[-1][:9]) is not None,
          "H takes the host's away", t.text())
t.keys("H")
native.ok(t.until(lambda s: "host-kernel" in s) is not None, "and brings it back", t.text())
t.keys("U")
native.ok(t.until(lambda s: "host-user" not in s and "guest-user" not in s) is not None, "U takes user space away", t.text())
t.keys("U", "Enter")
native.ok(t.until(lambda s: re.search(r" on \S*.*\n vCPU 0 +[\d.]+%", s)) is not None, "Enter: on which vCPUs", t.text())
t.keys("Escape")
native.ok(t.until(lambda s: not re.search(r"\n vCPU 0 +[\d.]+%", s)) is not None, "Esc closes it", t.text())
t.keys("Escape", "2")
native.ok(t.until(lambda s: "2 Exits" in s and t.alive()) is not None, "other panes still come", t.text())
t.keys("q")
native.ok(t.until(lambda s: not t.alive(), 5) is not None, "q quits")
g.stop()
native.done()
