#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: tmux
# limit: 120
# beside: yes
"""kvmtop replay in a terminal: steps, jumps, plays, while another kvmtop goes on recording."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native  # noqa: E402
from screen_lib import Terminal  # noqa: E402

FILE = f"{os.environ['TEST_TMP']}/r.db"


def ends(before_ns=None):
    """The local time of each interval's end, as the screen shows it; of those that end later than so long before the last."""
    with sqlite3.connect(FILE, timeout=5) as db:
        rows = db.execute("SELECT time/1000000000 FROM interval WHERE ? IS NULL OR time > "
                          "(SELECT max(time) FROM interval) - ? ORDER BY id", (before_ns, before_ns)).fetchall()
    db.close()
    return [time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(r[0])) for r in rows]


def shown(t):
    m = re.search(r"REPLAY (\d+-\d+-\d+ \d+:\d+:\d+)", t.text())
    return m.group(1) if m else None


def goes_to(t, want, name):
    native.ok(t.until(lambda s: f"REPLAY {want}" in s) is not None, name, f"{want}\n{t.text()}")


def main():
    subprocess.run([native.KVMTOP, "record", "-o", FILE, "-n", "6"], stdin=subprocess.DEVNULL, check=True,
                   stderr=subprocess.DEVNULL)
    at = ends()
    t = Terminal(f"{native.KVMTOP} replay {FILE}")
    goes_to(t, at[-1], "it begins with the last interval")
    t.keys(",", ",")
    goes_to(t, at[-3], "two steps back")
    t.keys(".")
    goes_to(t, at[-2], "one on")
    t.keys("[")
    goes_to(t, at[0], "a minute back is the beginning")
    t.keys(",")
    t.sees("the beginning of the recording", "before it there is nothing")
    t.keys("+", "+", " ")
    goes_to(t, at[-1], "it plays to the end")
    t.sees("the end of the recording", "and stops there")
    t.keys("b", "-3.5s", "Enter")
    goes_to(t, ends(7 * 10**9 // 2)[0], "the interval in which the moment 3.5 s before the end lies")
    t.keys("b", "noon", "Enter")
    t.sees("a time: 03:12", "what is no time")
    t.keys("r")
    t.sees("not in replay", "r")
    w = native.child([native.KVMTOP, "record", "-o", FILE, "-d", "0.5"], stdin=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
    native.ok(t.until(lambda s: len(ends()) >= 9) is not None, "another one records into it")
    t.keys("b", ends()[-1].replace(" ", "T"), "Enter")
    native.ok(t.until(lambda s: (shown(t) or "") > at[-1]) is not None, "what is new can be gone to", t.text())
    w.send_signal(signal.SIGTERM)
    w.wait()
    t.keys("q")
    native.ok(t.until(lambda s: not t.alive(), 5) is not None, "q quits", t.text())
    t.end()
    native.done()


main()
