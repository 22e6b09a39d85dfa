#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: tmux, root, kvm
# limit: 120
"""kvmtop replay goes to the worst moment of a recording: that in which a real guest was starved."""

import os
import re
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native  # noqa: E402
from screen_lib import Terminal  # noqa: E402

FILE = f"{os.environ['TEST_TMP']}/worst.db"


def intervals():
    """[(local time of the end, steal of the vCPU that waited most, the VM of that)]: others' guests may run here too."""
    with sqlite3.connect(FILE, timeout=10) as db:
        db.text_factory = lambda b: b.decode(errors="replace")
        rows = db.execute("SELECT time/1000000000, coalesce(steal_max,0)/1000.0, coalesce((SELECT name FROM vms WHERE "
                          "interval=id ORDER BY steal_max_pct DESC LIMIT 1),'') FROM interval ORDER BY id").fetchall()
    db.close()
    return [(time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(t)), s, name) for t, s, name in rows]


def main():
    p = native.child([native.KVMTOP, "record", "-o", FILE, "-d", "0.5", "-n", "16"], stdin=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
    native.wait_for(lambda: os.path.exists(FILE))
    time.sleep(2)
    guest = native.Guest("-c", 4, "-p", native.CPUS[0], "spin:inf", tail=("-name", "guest=starved"),
                         program=native.posing_as("qemu-system-x86_64")).go()
    time.sleep(2)
    guest.kill()
    p.wait(60)
    rows = intervals()
    worst = max(rows, key=lambda r: r[1])
    native.ok(worst[1] >= 50, "four vCPUs on one CPU were starved", rows)
    t = Terminal(f"{native.KVMTOP} replay {FILE}")
    t.sees("REPLAY", "replay")
    first, last = rows[0][0][11:], rows[-1][0][11:]
    native.ok(t.until(lambda s: re.search(f"^ {first} .*▼.* {last}$", s, re.M)) is not None,
              "the time line has the recording's ends, and the worst moment is marked", t.text())
    t.keys("w")
    native.ok(t.until(lambda s: f"REPLAY {worst[0]}" in s and "the worst moment: a vCPU waited" in s) is not None,
              "w goes there and says what it was", f"{worst}\n{t.text()}")
    t.sees(worst[2][:5], "the VM is on screen")  # names are cut in the middle
    t.keys("w", "w", "w", "w", "w", "w", "w", "w")
    native.ok(t.until(lambda s: "worst moment" in s) is not None, "and again, round and round", t.text())
    t.keys("q")
    native.ok(t.until(lambda s: not t.alive(), 10) is not None, "q quits", t.text())
    t.end()
    native.done()


main()
