#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 180
"""In the lab (run.sh): slow exits, with both sources of events. The VMM sleeps inside exits of known number
and for a known time, so which exits must have a line is known; the limit is far above all others."""

import collections
import csv
import io
import os
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n
import screen_lib

LIMIT = "20ms"  # emulated CPUs are slow, and wait for each other: what is not slow must not look so


def lines_of(records, pid):
    return [x for r in records for vm in n.vms_of(r, pid) for x in vm["slow"]]


def counted(records, pid):
    return sum(vm["slow_exits"] or 0 for r in records for vm in n.vms_of(r, pid))


def slept(records, pid):
    """The lines of the instruction that has most of them: it writes to the port at which the VMM sleeps. An
    exit of another may be slow as well, on a machine like this one."""
    lines = lines_of(records, pid)
    where = collections.Counter(x["rip"] for x in lines)
    return [x for x in lines if where and x["rip"] == where.most_common(1)[0][0]]


def each_is_told(how):
    """40 exits of 60 ms between thousands of short ones, and halts that last as long."""
    g = n.Guest("-m", "user", "-l", 40, "hold:60 out:20 cpuid:10")
    idle = n.Guest("-H", 100, "-l", 20, "hlt:1 out:5")
    top = n.Kvmtop("--events-by", how, "--slow", LIMIT, "--max-overhead", "0", delay=0.5).skip(2)
    g.go(), idle.go()
    g.wait(120), idle.wait(120)
    r = top.settle().end()
    x = slept(r, g.pid)
    n.same(len(x), 40, f"{how}: a line for each exit in which the VMM slept")
    took = sorted(v["took_ns"] for v in x)
    n.ok(took and took[0] >= 60e6, "none of them took less", took)
    n.ok(took and took[len(took) // 2] < 250e6, "nor, but when the CPU was away, much more", took)
    n.ok(n.every(0 < v["user_ns"] <= v["took_ns"] and v["user_ns"] >= 60e6 for v in x), "of which the VMM had 60 ms",
         [v["user_ns"] for v in x])
    n.same({v["vcpu"] for v in x}, {0}, "of its vCPU")
    n.same({v["tid"] for v in x}, {g.tid(0)}, "and thread")
    n.same({(v["key"], v["user_exit"]) for v in x}, {("io", "KVM_EXIT_IO")}, "by reason, and by what the VMM did")
    ended = [v["ended"] for v in x]
    n.same((ended, len(set(ended))), (sorted(ended), 40), "each at its own time, in order")
    n.ok(n.every(v["took_ns"] > 20e6 for v in lines_of(r, g.pid)), "no line is shorter than the limit")
    n.same(counted(r, g.pid), len(lines_of(r, g.pid)), "as many are counted as have a line")
    hlt = [v["key"] for v in lines_of(r, idle.pid) if v["key"] == "hlt"]
    n.same(hlt, [], "halts of 100 ms are waiting, and have none")
    n.same(n.lost(r), 0, "nothing was lost")


def many(how):
    """More in an interval than lines are kept: counted all the same."""
    g = n.Guest("-m", "user", "-l", 300, "hold:1 out:1")
    top = n.Kvmtop("--events-by", how, "--slow", "900us", "--max-overhead", "0", delay=4).skip(1)
    g.go().wait(120)
    r = top.settle().end()
    lines = lines_of(r, g.pid)
    n.ok(counted(r, g.pid) >= 300, f"{how}: more than there is room for are counted", counted(r, g.pid))
    n.ok(len(lines) < counted(r, g.pid) and len(lines) <= 32 * len(r), "and some of them have a line",
         (len(lines), len(r)))


def live_limit():
    """The key x, in the middle of a run, and pane 0."""
    g = n.Guest("-m", "user", "-l", "inf", "hold:50 out:20").go()
    t = screen_lib.Terminal(f"{n.KVMTOP} --color never --max-overhead 0 -p {g.pid}", 100, 30)
    n.ok(t.until(lambda s: "tinyvm" in s or str(g.pid) in s, 40) is not None, "the VM is on screen", t.text())
    t.keys("0")
    n.ok(t.until(lambda s: "not looked for" in s, 20) is not None, "nobody asked: the pane says so", t.text())
    t.keys("x")
    n.ok(t.until(lambda s: "exits longer than" in s, 20) is not None, "x asks how long is slow", t.text())
    for _ in range(8):
        t.keys("BSpace")
    t.keys("-l", "20ms")
    t.keys("Enter")
    shot = t.until(lambda s: "KVM_EXIT_IO" in s and "> 20" in s, 40)
    n.ok(shot is not None, "pane 0 has lines of what the VMM did", t.text())
    if os.environ.get("RESULTS"):
        with open(os.path.join(os.environ["RESULTS"], "slow-screen.txt"), "w", encoding="utf-8") as f:
            f.write(shot or t.text())
    t.keys("x")
    n.ok(t.until(lambda s: "not looked for" in s, 20) is not None, "x again ends it", t.text())
    t.keys("q")
    t.end()
    g.stop()


def recorded():
    """What was slow last night."""
    db = os.path.join(os.environ.get("TEST_TMP", "/tmp"), "slow.db")
    g = n.Guest("-m", "user", "-l", 10, "hold:60 out:20")
    rec = n.child([n.KVMTOP, "record", "-o", db, "--slow", LIMIT, "-d", "0.5", "--max-overhead", "0"], stdin=subprocess.DEVNULL,
                  stderr=subprocess.DEVNULL)
    while not os.path.exists(db) or not intervals(db):
        time.sleep(0.2)
    g.go().wait(60)
    had = intervals(db)
    while intervals(db) < had + 3:
        time.sleep(0.2)
    rec.terminate()
    rec.wait(20)
    out = n.sh(n.KVMTOP, "replay", "-b", "--table", "slow", "--format", "csv", db)
    rows = [x for x in csv.DictReader(io.StringIO(out)) if int(x["pid"]) == g.pid]
    where = collections.Counter((x["rip"], x["key"], x["user_exit"]) for x in rows)
    (_, *what), count = where.most_common(1)[0]
    n.same((what, count), (["io", "KVM_EXIT_IO"], 10), "a recording has them, and replay lists them")


def not_on_a_network():
    """$RESULTS is the machine's outside, by 9p: SQLite gets no locks there, and kvmtop says that and not whose they are."""
    p = subprocess.run([n.KVMTOP, "record", "-o", os.path.join(os.environ["RESULTS"], "net.db"), "-d", "1"], text=True,
                       capture_output=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
    n.ok(p.returncode == 1 and "a network's, which has not the locks for it: record into a local folder" in p.stderr,
         "no recording on a file system of a network", p.stderr)


def intervals(db):
    try:
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as c:
            return c.execute("SELECT count(*) FROM interval").fetchone()[0]
    except sqlite3.Error:
        return 0


def main():
    for how in ("bpf", "perf"):
        each_is_told(how)
        n.end_children()
        many(how)
        n.end_children()
    live_limit()
    n.end_children()
    recorded()
    not_on_a_network()
    n.done()


main()
