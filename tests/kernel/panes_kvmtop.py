#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 360
"""In the lab, on the patched kernel and on the stock one: the panes PMU and Symbols while VMMs are killed, in terminals down to
a few cells.

Guests that count, and that spin under known callers, come and are killed under the screen: files of vCPUs go while they are
read, the opened VM is gone, its symbol has no callers any more. kvmtop goes on, its terminal has its size in lines, and in
the end nobody is left on the screen.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import callchain as c  # noqa: E402
import native as n  # noqa: E402
import screen_lib  # noqa: E402
import soft_pmu as s  # noqa: E402

SIZES = ((80, 24), (132, 43), (40, 10), (9, 3), (1, 1))
# All panes' rows, an opened one, the totals, and back.
KEYS = ("8", "Tab", "Down", "Enter", "4", "Enter", "t", "Down", "Enter", "Escape", "g", "8", "Enter", "Escape", "Escape")


def counting():
    return s.Waiting(s.program(s.count(s.CYCLES), s.count(s.EXITS, 1), "spin:40000000 cpuid:5 wait spin:40000000"))


def kill(guests):
    for p in guests:
        p.kill()
        p.wait()


def churn(term, size, patched):
    """Guests that are seen, opened and killed, while keys are pressed. A stock kernel does not tell what was written before."""
    term.resize(*size)
    counts, chains = [counting() for _ in range(2)], [c.Guest("kernel")]
    if patched and size[0] >= 80:
        term.keys("Escape", "Escape", "Escape", "g", "Down", "Down", "4", "8")  # behind (all) and chain-run, before others
        term.sees("gp0", f"{size[0]}x{size[1]}: their counters are there", 60)
    for i, key in enumerate(KEYS):
        term.keys(key)
        term.until(lambda _text: False, 0.3)
        if i == len(KEYS) // 2:
            kill([counts[0].p])
    shown = term.lines()
    kill([counts[1].p, *(g.p for g in chains)])
    n.ok(term.alive(), f"{size[0]}x{size[1]}: it goes on", shown)
    n.ok(len(shown) <= size[1] and n.every(screen_lib.width(line) <= size[0] for line in shown),
         f"{size[0]}x{size[1]}: in its size", shown)


def main():
    patched = os.path.exists(s.EVENTS)
    if patched:
        s.allow(s.ALL)
    term = screen_lib.Terminal(f"{n.KVMTOP} -d 0.5 --sort name; echo status $?; read _")
    term.sees(" VM ", "the screen comes", 60)
    for size in SIZES:
        churn(term, size, patched)
    term.resize(80, 24)
    term.keys("Escape", "Escape", "Escape")
    n.ok(term.until(lambda t: " VM " in t and "-run" not in t, 60), "nobody of them is left on the screen", term.text())
    term.keys("q")
    term.sees("status 0", "it ends as it should", 30)
    if patched:
        s.allow("none")
    n.done()


main()
