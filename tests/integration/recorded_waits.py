#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, cmd:bpftool
# limit: 150
"""A recording keeps who had the CPU while vCPUs waited: replay, on a screen too, diff and bundle show
it, and so do SQLite's views."""

import functools
import json
import os
import sqlite3
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n
import screen_lib
import why

TMP = os.environ["TEST_TMP"]
FILE = f"{TMP}/r.db"


run = functools.partial(n.run, limit=100)


def replayed(*args, file=FILE):
    return [json.loads(x) for x in run("replay", file, "-b", "--format", "json", *args).stdout.splitlines()]


def recorded():
    """Two guests and a task share a CPU; what is in the recording, by guest."""
    guests = [n.Guest("-p", why.CPU, why.SPIN).go() for _ in range(2)]
    why.hog(0)
    p = run("record", "-o", FILE, "-d", "0.5", "-n", "6", "--event", "userexit")
    n.ok(p.returncode == 0 and "6 intervals" in p.stderr, "recorded", p.stderr)
    records = replayed("--table", "waited")
    n.same(len(records), 6, "replay has all intervals")
    names = [n.vm_of(records[-1], g.pid)["name"] for g in guests]
    for i, g in enumerate(guests):
        rows = why.rows_of(records, g.pid)
        got, waited = why.sums(rows), sum(row["time_ns"] for row in rows)
        # Where more than eight others want the CPU as well, one of the two may be among the rest.
        n.ok(got.get(("vm", names[1 - i]), 0) + got.get(("task", why.HOG), 0) > 0, f"VM {i}: who shares its CPU is named", got)
        n.ok(waited and got.get(("unexplained", "unexplained"), 0) <= waited * 0.1, f"VM {i}: nearly all is explained",
             got)
        sums = [sum(row["share_pct"] for row in vm["waited"]) for r in records for vm in n.vms_of(r, g.pid) if vm["waited"]]
        n.ok(sums and all(abs(x - 100) < 0.1 for x in sums), f"VM {i}: shares add up to 100 in each interval", sums)
    per = [v["waited"] for r in replayed("--table", "vcpu-waited") for vm in n.vms_of(r, guests[0].pid) for v in vm["vcpus"]]
    # On a busy machine the three that are kept of a vCPU may be others.
    n.ok(any(per) and all(abs(sum(row["share_pct"] for row in rows) - 100) < 0.1 for rows in per if rows), "vCPUs have theirs",
         per)
    return guests, names


def asked_with_sqlite(guests, names):
    with sqlite3.connect(FILE) as db:
        db.text_factory = lambda b: b.decode(errors="replace")  # others' VMs may be called anything
        rows = db.execute("SELECT v.pid, w.by, w.by_kind, w.share_pct, w.waited_pct, w.waited_s, w.seconds FROM waits w "
                          "JOIN vms v ON v.interval=w.interval AND v.vm_id=w.vm_id WHERE v.pid=?",
                          (guests[0].pid,)).fetchall()
        version = db.execute("PRAGMA user_version").fetchone()[0]
    db.close()
    n.same(version, 6, "the schema's version")
    known = {row["by"] for r in replayed("--table", "waited") for vm in n.vms_of(r, guests[0].pid) for row in vm["waited"]}
    n.ok(rows and {r[1] for r in rows} <= known, "the view names them", rows)
    n.ok(n.every(1 <= r[4] <= 100 and 0 < r[3] <= 100 and 0 < r[5] < 60 for r in rows), "with its figures", rows)


def shown(guests, names):
    """The pane Steal of a replay."""
    t = screen_lib.Terminal(f"{n.KVMTOP} replay --color never -p {guests[0].pid} {FILE}", 100, 36)
    t.sees(names[0][:8], "replay: the VM is on screen", 30)
    t.keys("5")
    got = t.until(lambda s: "had the CPU while it waited" in s and (why.HOG in s or "(VM)" in s or "other" in s), 30)
    n.ok(got is not None, "pane Steal names who had the CPU", t.text())
    t.keys("q")
    t.end()


def compared(names, alone):
    """With one guest alone: who is gone from it."""
    later = f"{TMP}/later.db"
    p = run("record", "-o", later, "-d", "0.5", "-n", "4")
    n.ok(p.returncode == 0, "recorded again, with nobody beside", p.stderr)
    name = n.vm_of(replayed(file=later)[-1], alone.pid)["name"]
    who = "--map", f"{names[0]}={name}"
    p = run("diff", FILE, later, "--format", "json", *who)
    n.ok(p.returncode == 0, "and compared", p.stderr)
    rows = [r for r in json.loads(p.stdout)["rows"] if r["table"] == "waited" and r["vm_a"] == names[0]]
    by = {r["what"]: r for r in rows}
    gone = [by[x] for x in (why.HOG, names[1]) if x in by]
    n.ok(gone and all(x["a"] > x["b"] == 0 for x in gone), "diff: who shared the CPU is gone", rows)
    n.ok({x["kind"] for x in gone} <= {"task", "vm"}, "and it says what that was", gone)
    text = run("diff", FILE, later, *who).stdout
    n.ok("who had the CPU while vCPUs waited" in text and any(x["what"] in text for x in gone), "diff says it in words too", text)


def bundled(names):
    file = f"{TMP}/b.tar.gz"
    p = run("bundle", FILE, "-o", file)
    n.ok(p.returncode == 0, "bundled", p.stderr)
    with tarfile.open(file) as t:
        part = {m.name.split("/", 1)[1]: m for m in t.getmembers()}
        text = t.extractfile(part["tables/waited.txt"]).read().decode()
        with open(f"{TMP}/b.db", "wb") as f:
            f.write(t.extractfile(part["recording.db"]).read())
    n.ok(names[1] in text or why.HOG.replace(" ", "_") in text, "bundle: a table of it", text)
    got = [row for r in replayed("--table", "waited", file=f"{TMP}/b.db") for vm in r["vms"] for row in vm["waited"]]
    n.ok(any(row["by"] in (why.HOG, *names) for row in got), "and its recording has it", len(got))


def main():
    if len(n.CPUS) > 1:
        os.sched_setaffinity(0, set(n.CPUS[:-1]))
    guests, names = recorded()
    asked_with_sqlite(guests, names)
    shown(guests, names)
    bundled(names)
    n.end_children()
    alone = n.Guest("-p", why.CPU, why.SPIN).go()
    compared(names, alone)
    alone.stop()
    n.done()


main()
