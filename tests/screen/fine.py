#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: kvm, tracefs, root, tmux, cmd:bpftool
# limit: 180
"""Key z: the events of the vCPU on screen, and of no other, come one by one while all are counted in the kernel."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n  # noqa: E402
from screen_lib import Terminal  # noqa: E402

TAKEN = r"200ms a column \(([0-9.]+)(k?) events taken\)"


def taken(text):
    """How many were taken in the interval, 0: the title does not say it."""
    m = re.search(TAKEN, text or "")
    return float(m[1]) * (1000 if m[2] else 1) if m else 0


def one_by_one(title):
    """A guest of few exits is on screen, one of very many is not; title: of the histogram before."""
    g = n.Guest("-m", "user", "-l", "inf", "-r", 50, "out:5").go()
    other = n.Guest("-m", "user", "-l", "inf", "out:inf").go()
    t = Terminal(f"{n.KVMTOP} --color never --events-by bpf --max-overhead 0 -d 2 -p {g.pid},{other.pid}", 100, 36)
    n.ok(t.until(lambda s: str(g.pid) in s and str(other.pid) in s, 60) is not None, "the VMs are on screen", t.text())
    t.keys("/")
    t.keys("-l", str(g.pid))
    t.keys("Enter")
    t.keys("Enter")
    n.ok(t.until(lambda s: re.search(rf"^ kvmtop \S*{g.pid} ", s, re.M), 30) is not None, "its vCPUs are", t.text())
    t.keys("Enter")
    n.ok(t.until(lambda s: "Esc back" in s, 30) is not None, "one vCPU", t.text())
    t.keys("2")
    n.ok(t.until(lambda s: title in s, 60) is not None, "its exits are", t.text())
    n.ok("bpf" in t.text() and "+vCPU" not in t.text(), "counted in the kernel, and nothing more", t.text())
    t.keys("z")
    got = t.until(lambda s: taken(s) > 0 and "bpf+vCPU" in s, 60)
    n.ok(got is not None, "z: a column is a tenth of the interval", t.text())
    # At most 50 exits a second of three events each; the other guest makes as many in a moment.
    n.ok(0 < taken(got) <= 1000, "as many are taken as that vCPU makes", got)
    rate = t.until(lambda s: 0 < taken(s) <= 1000, 30)
    n.ok(rate is not None, "and no more in the next interval", t.text())
    if os.environ.get("RESULTS"):
        with open(os.path.join(os.environ["RESULTS"], "fine-screen.txt"), "w", encoding="utf-8") as f:
            f.write(got or t.text())
    t.keys("Escape")
    t.keys("Escape")
    n.ok(t.until(lambda s: str(other.pid) in s and "+vCPU" not in s, 60) is not None, "another selection ends it", t.text())
    t.keys("q")
    t.end()
    g.stop()
    other.stop()


if __name__ == "__main__":
    one_by_one("rate over time")
    n.done()
