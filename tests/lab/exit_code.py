#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 240
"""In the lab (run.sh), where kvm_exit fires: Enter on an exit shows the guest code that makes it, of the VM on screen,
whose exits are taken one by one while those of all VMs are counted in the kernel. What that costs the VM is kept within
--max-overhead."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n  # noqa: E402
from screen_lib import Terminal  # noqa: E402


def overhead(record):
    return next((x["why"] for x in record["sources"] if x["name"] == "overhead"), "")


def gives_up():
    """Where more is taken than may be these exits go first, and what is counted of them stays."""
    g = n.Guest("-m", "user", "-l", "inf", "out:inf").go()
    top = n.Kvmtop("--events-by", "bpf", "-F", 0, "--max-overhead", 0.01, "-p", g.pid, "--table", "exit-code", delay=1)

    def code(r):
        return sum(x["count"] for vm in n.vms_of(r, g.pid) for x in vm["exit_code"])

    n.ok(top.until(code, 60, "exits are counted by their code") is not None, "some are")
    top.until(lambda r: "not collected" in overhead(r), 60, "it costs more than it may")
    said = overhead(top.records[-1])
    n.ok(said.startswith("the code that makes exits not collected"), "the code that makes exits goes first", said)
    top.skip(2)  # the interval in which they were closed has some
    n.same(code(top.records[-1]), 0, "no exit is taken one by one any more")
    host = top.records[-1]["host"]
    n.ok(host["exits_per_s"], "all of them are counted", host)
    top.end()
    g.stop()


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
    gives_up()
    n.done()


main()
