#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: kvm
# limit: 240
"""kvmtop diff over recordings of real guests whose load is changed between them."""

import csv
import datetime
import functools
import json
import lzma
import os
import sqlite3
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

TMP = os.environ["TEST_TMP"]
A, B = f"{TMP}/a.db", f"{TMP}/b.db"
# Other guests may run on this host meanwhile.
OURS = "-M", "web01", "-M", "frontend", "-M", "db01"
UUID = "8f7c2c1e-1b2d-4c3e-9f00-0000000000aa"


run = functools.partial(n.run, limit=120)


def qemu():
    """The test's VMM under QEMU's name, with the words in it by which QEMU's version is known."""
    path = n.posing_as("qemu-system-x86_64")
    with open(path, "ab") as f:
        f.write(b"QEMU emulator version 9.9.1 (test)\n")
    return path


def guests(program, web, db, name="web01"):
    """Two guests that leave guest mode at most so often a second."""
    return [n.Guest("-l", "inf", "-r", str(web), "out:10 sleep:1", program=program,
                    tail=("-name", f"guest={name}", "-uuid", UUID)).go(),
            n.Guest("-l", "inf", "-r", str(db), "in:10 sleep:1", program=program,
                    tail=("-name", "guest=db01")).go()]


def record(file, intervals, *args):
    p = run("record", "-o", file, "-d", "0.1", "-n", str(intervals), "--event", "userexit,ioport", *args)
    n.ok(p.returncode == 0, f"recorded: {os.path.basename(file)}", p.stderr)


def rows(*args):
    p = run("diff", *args, *OURS, "--format", "json")
    if p.returncode:
        n.ok(False, f"diff {' '.join(args)}", p.stderr)
        return {"rows": [], "vms": [], "only_a": [], "only_b": [], "host_differs": {}, "a": {}, "b": {}}
    return json.loads(p.stdout)


def row(d, vm, kind, what):
    return next((r for r in d["rows"] if (r["vm_b"], r["kind"], r["what"]) == (vm, kind, what)), None)


def mean_of(file, vm, kind, key):
    """Counts a second of one vCPU, from the recording's own intervals."""
    count = seconds = 0
    for line in run("replay", file, "-b", "--format", "json").stdout.splitlines():
        r = json.loads(line)
        for v in r["vms"]:
            if v["name"] == vm:
                count += n.add_counts(v["exits"]).get((kind, key), 0)
                seconds += r["seconds"] if "seconds" in r else 0
    return count, seconds


def changed():
    d = rows(A, B)
    more = row(d, "web01", "userexit", "KVM_EXIT_IO")
    less = row(d, "db01", "userexit", "KVM_EXIT_IO")
    n.ok(more and 0 < more["a"] < more["b"] and more["larger_than_noise"] and more["low"] > 0,
         "many times as many exits: seen, and larger than the noise", more)
    n.ok(less and less["a"] > less["b"] > 0 and less["change"] < 0, "what shrank has a minus", less)
    exits = [r for r in d["rows"] if r["table"] == "exit"]
    sure = [bool(r["larger_than_noise"]) for r in exits]
    n.ok(sure == sorted(sure, reverse=True), "what is larger than the noise comes first", sure)
    for part in True, False:
        size = [abs(r["change"]) for r in exits if bool(r["larger_than_noise"]) == part]
        n.ok(size == sorted(size, reverse=True), "and what changed most", size)
    n.same({(v["a"]["name"], v["by"]) for v in d["vms"]}, {("web01", "uuid"), ("db01", "name")},
           "each VM is found by what is known of it")
    n.same(d["a"]["intervals"], 20, "all intervals are in it")
    for r in exits:
        if r["kind"] == "userexit" and r["vm_a"] == "web01":
            with sqlite3.connect(A) as db:
                seconds = db.execute("SELECT sum(dt)/1e9 FROM interval").fetchone()[0]
            count, _ = mean_of(A, "web01", "userexit", r["what"])
            n.near(r["a"], count / seconds, count / seconds * 0.001 + 0.01,
                   f"{r['what']}: counts by vCPU-seconds, as replay has them")


def nothing_changed():
    d = rows(A, A)
    n.ok(d["rows"] and not any(r["change"] or r["larger_than_noise"] for r in d["rows"]),
         "a recording does not differ from itself")
    n.same(d["host_differs"], {}, "nor its host")
    n.ok(run("diff", A, B).stdout == run("diff", A, B).stdout, "each run says the same")


def facts():
    d = rows(A, B)
    n.same([k for k in d["host_differs"] if k != "boot_id"], [], "the same host in both")
    with sqlite3.connect(B) as db:
        got = dict(db.execute("SELECT name, value FROM facts"))
    with open("/proc/sys/kernel/osrelease", encoding="ascii") as f:
        n.same(got.get("kernel"), f.read().strip(), "the kernel is recorded")
    n.same(got.get("vmm.qemu"), "9.9.1 (test)", "and the VMM's version")
    with sqlite3.connect(f"file:{B}?mode=rw", uri=True) as db:
        db.execute("UPDATE facts SET value='6.1.0-other' WHERE name='kernel'")
        db.execute("INSERT INTO facts SELECT since, 'mitigation.new', 'Vulnerable' FROM facts LIMIT 1")
    d = rows(A, B)
    n.same(d["host_differs"].get("kernel"), {"a": got["kernel"], "b": "6.1.0-other"}, "another kernel is said")
    n.same(d["host_differs"].get("mitigation.new"), {"a": None, "b": "Vulnerable"}, "what one side lacks too")
    out = run("diff", A, B).stdout.splitlines()
    at = [i for i, line in enumerate(out) if "6.1.0-other" in line]
    n.ok(at and at[0] < next(i for i, line in enumerate(out) if "CPU and steal" in line),
         "what the hosts differ in comes first", "\n".join(out[:12]))


def formats():
    p = run("diff", A, B, *OURS, "--format", "csv")
    table = list(csv.DictReader(p.stdout.splitlines()))
    got = [r for r in table if r["table"] != "fact"]
    d = rows(A, B)
    n.same([(r["table"], r["vm_a"] or None, r["what"]) for r in got],
           [(r["table"], r["vm_a"], r["what"]) for r in d["rows"]], "CSV and JSON have the same rows")
    n.ok(n.every(r["a"] == "" or abs(float(r["a"]) - j["a"]) < 1e-6 * (1 + abs(j["a"]))
             for r, j in zip(got, d["rows"])), "and the same figures")
    few = run("diff", A, B, "--rows", "1").stdout
    n.ok("more: --rows 0 shows all" in few and "more: --rows" not in run("diff", A, B, "--rows", "0").stdout,
         "--rows", few)


def ranges():
    with sqlite3.connect(A) as db:
        first, dt, last = db.execute("SELECT min(time), max(dt), max(time) FROM interval").fetchone()

    def at(ns):
        return datetime.datetime.fromtimestamp(ns / 1e9).isoformat(timespec="seconds")
    middle = first + (last - first) // 2
    one = f"{A}@{at(first - 2 * dt - 10**9)}..{at(middle)}"
    two = f"{A}@{at(middle)}..{at(last + 2 * 10**9)}"
    d = rows(one, two)
    got = d["a"].get("intervals", 0) + d["b"].get("intervals", 0)
    n.ok(20 <= got <= 21 or d["a"] == {}, "two halves of one recording are all of it", (one, two, got))
    d = rows(A, f"{A}@-1d")
    n.same((d["a"]["intervals"], d["b"]["intervals"]), (20, 20), "from a day before its end on: all of it")
    os.link(A, f"{TMP}/x@03:00")
    n.ok(len(rows(f"{TMP}/x@03:00", A)["rows"]) > 0, "a file with an @ in its name is a file")


def renamed(program):
    g = guests(program, 500, 500, name="frontend")
    file = f"{TMP}/c.db"
    record(file, 8)
    for x in g:
        x.kill()
    d = rows(A, file)
    n.same({(v["a"]["name"], v["b"]["name"], v["by"]) for v in d["vms"]},
           {("web01", "frontend", "uuid"), ("db01", "db01", "name")}, "a VM of another name is known by its UUID")
    d = rows(A, file, "--map", "web01=db01")
    n.same([(v["a"]["name"], v["b"]["name"], v["by"]) for v in d["vms"]], [("web01", "db01", "map")],
           "--map says who is whom")
    n.same(([v["name"] for v in d["only_a"]], [v["name"] for v in d["only_b"]]), (["db01"], ["frontend"]),
           "who is on one side only is said")


def refusals():
    other = f"{TMP}/c.db"
    with open(f"{TMP}/perf.data", "wb") as f:
        f.write(b"PERFILE2" + bytes(200))
    for args, status, want in [
            ((A,), 2, "give two recordings"), ((A, B, A), 2, "give two recordings"),
            ((A, "/nonexistent.db"), 1, "/nonexistent.db: No such file"),
            ((A, f"{A}@2001-01-01"), 0, ""),
            ((A, f"{A}@2001-01-01..2001-01-02"), 1, "no interval lies in"),
            ((A, f"{A}@25:00"), 2, "not a range of time"),
            ((A, other, "-M", "web01"), 1, "no VM is on both sides (A: web01; B: none)"),
            ((A, B, "--map", "web01=nobody"), 2, "--map 'web01=nobody'"),
            ((A, B, "--rows", "-1"), 2, "--rows"),
            ((A, f"{TMP}/perf.data"), 1, "a broken one"),
            ((A, "/etc/passwd"), 1, "/etc/passwd"),
            ((A, B, "-d", "1"), 2, "--delay: not for kvmtop diff")]:
        p = run("diff", *args)
        n.ok(p.returncode == status and want in p.stderr and p.stderr.count("\n") == (status != 0),
             f"diff {' '.join(os.path.basename(a) for a in args)}: {status}, one line", p.stderr)
    with sqlite3.connect(other) as db:
        db.executescript("DROP VIEW waits; DROP TABLE waited; DROP TABLE facts; DROP TABLE tsc; PRAGMA user_version=1;")
    p = run("diff", other, other)
    n.ok(p.returncode == 0 and "facts of the host are not in A" in p.stdout, "a recording of an older kvmtop",
         p.stderr)


def with_perf():
    """A recording beside a file of perf's of another machine: both have rates of accesses."""
    file = f"{TMP}/kvm.data"
    with open(file, "wb") as f, lzma.open(f"{n.TOP}/tests/data/perf/kvm-6.1-svm.perf.data.xz") as xz:
        f.write(xz.read())
    d = rows(A, file, "--map", "web01=134")
    n.same([(v["a"]["name"], v["b"]["name"]) for v in d["vms"]], [("web01", "tinyvm-run:134")],
           "a process is who it is said to be")
    n.ok(any(r["table"] == "exit" and r["kind"] == "ioport" and r["a"] is not None and r["b"] is not None and r["b"] > 0
             for r in d["rows"]), "rates of both", d["rows"])
    n.same((d["b"]["from"], d["b"]["intervals"]), (None, 100), "slices for intervals")


def record_both(program):
    """Loads that are far apart, since a busy machine lets guests do less; it may have been too busy."""
    for _ in range(4):
        for file, web, db in (A, 100, 2000), (B, 20000, 100):
            for suffix in "", "-wal", "-shm":
                if os.path.exists(file + suffix):
                    os.unlink(file + suffix)
            g = guests(program, web, db)
            time.sleep(0.3)
            record(file, 20)
            for x in g:
                x.kill()
        r = row(rows(A, B), "web01", "userexit", "KVM_EXIT_IO")
        if r and r["larger_than_noise"]:
            return
        n.say(f"the machine was too busy: {r}")


def main():
    program = qemu()
    record_both(program)
    for test in changed, nothing_changed, formats, ranges, facts, with_perf:
        test()
    renamed(program)
    refusals()
    n.done()


main()
