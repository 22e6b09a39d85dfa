#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 150
"""In the lab (run.sh), where kvm_exit fires: Enter on an exit shows the guest code that makes it, of the VM on screen,
whose exits are taken one by one while those of all VMs are counted in the kernel."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n  # noqa: E402
from screen_lib import Terminal  # noqa: E402


def main():
    g = n.Guest("-m", "user", "-l", "inf", "-r", 50, "out:5").go()
    other = n.Guest("-m", "user", "-l", "inf", "out:inf").go()
    t = Terminal(f"{n.KVMTOP} --color never --events-by bpf --max-overhead 0 -p {g.pid},{other.pid}", 120, 36)
    n.ok(t.until(lambda s: str(g.pid) in s and str(other.pid) in s, 60) is not None, "the VMs are on screen", t.text())
    t.keys("/")
    t.keys("-l", str(g.pid))
    t.keys("Enter")
    t.keys("Enter")
    n.ok(t.until(lambda s: re.search(rf"^ kvmtop \S*{g.pid} ", s, re.M), 30) is not None, "one of them is", t.text())
    t.keys("2")
    n.ok(t.until(lambda s: re.search(r"^ +io ", s, re.M), 60) is not None, "its exits are", t.text())
    t.keys("Tab")  # from the list to the pane
    t.keys("Enter")
    got = t.until(lambda s: "the guest code that makes it" in s and re.search(r"^ +[\d.]+% +\[guest 0x", s, re.M), 60)
    n.ok(got is not None, "Enter: the code that makes the exit", t.text())
    n.ok("bpf" in t.text(), "and they are counted in the kernel", t.text())
    t.keys("q")
    t.end()
    g.stop()
    other.stop()
    n.done()


main()
