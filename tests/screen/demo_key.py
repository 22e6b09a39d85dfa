#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tmux
# limit: 60
"""Where no VM runs the screen says so, and one key starts the demo's; they end with kvmtop, also when it is killed.

A pid namespace of its own is such a host, whatever else runs on this machine.
"""

import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native  # noqa: E402
from screen_lib import Terminal  # noqa: E402


def inside(t):
    """What runs in that namespace, by its pids out here: kvmtop and its guests."""
    found, todo = [], [t.pid()]
    while todo:
        pid = todo.pop()
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
                mine = [int(x) for x in f.read().split()]
        except OSError:  # it ended
            mine = []
        found += mine
        todo += mine
    return found


def named(pids, name):
    got = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
                if f.read().strip() == name:
                    got.append(pid)
        except OSError:
            pass
    return got


t = Terminal(f"unshare --pid --fork --mount-proc sh -c '{native.KVMTOP}; echo ended; sleep 60'")
t.sees("no VM runs on this host; D starts three small ones", "without guests the screen says so, and offers the demo's",
       20)
t.keys("D")
t.sees("demo-starved", "D: the demo's guests come", 20)
starved = t.until(lambda s: re.search(r"^ demo-starved .*@2", s, re.M), 20)
native.ok(starved is not None, "and the starved vCPU has its name and number", t.text())
kvmtop = named(inside(t), "kvmtop")
native.same((len(kvmtop), len(named(inside(t), "kvmtop-demo"))), (1, 3), "one kvmtop, three guests")
os.kill(kvmtop[0], signal.SIGKILL)
t.sees("ended", "killed: the shell goes on", 20)
native.ok(t.until(lambda s: not named(inside(t), "kvmtop-demo"), 20) is not None, "and the guests are gone with it",
          inside(t))
native.done()
