#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: kvm
# limit: 120
"""kvmtop report on recordings of kvmtop's own: the sums of what replay shows interval by interval."""

import csv
import datetime
import functools
import io
import json
import os
import re
import shutil
import sqlite3
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

TMP = os.environ["TEST_TMP"]
A = f"{TMP}/a.db"
KINDS = ("--event", "userexit,ioport")
CSV = ("--format", "csv")


run = functools.partial(n.run, limit=100)


def record(intervals):
    p = run("record", "-o", A, "-d", "0.2", "-n", str(intervals), *KINDS)
    n.ok(p.returncode == 0, "recorded", p.stderr)


def table(*args):
    out = run("report", *args, *KINDS, *CSV)
    return {(r["kind"], r["key"]): r for r in csv.DictReader(io.StringIO(out.stdout))}


def replayed(file, pid=None, vcpu=None):
    """(kind, key): [count, timed, time] over all intervals, of all VMs, one of them, or its vCPU."""
    sums = {}
    for line in run("replay", file, "-b", "--format", "json").stdout.splitlines():
        rec = json.loads(line)
        if pid is None:
            exits = rec["host"]["exits"]
        else:
            of = [vm for vm in rec["vms"] if vm["pid"] == pid]
            of = [v for vm in of for v in vm["vcpus"] if v["vcpu"] == vcpu] if vcpu is not None else of
            exits = [e for o in of for e in o["exits"]]
        for e in exits:
            s = sums.setdefault((e["kind"], e["key"]), [0, 0, 0])
            s[0] += e["count"]
            s[1] += e["timed"] or 0
            s[2] += e["time_ns"] or 0
    return {k: v for k, v in sums.items() if k[0] in ("userexit", "ioport") and v[0] + v[1]}


def plain(rows):
    return {k: [int(r["count"]), int(r["timed"]), int(r["time_ns"] or 0)] for k, r in rows.items()}


def sums(pids):
    n.same(plain(table("-i", A)), replayed(A), "all VMs: the sums of all intervals")
    for pid in pids:
        want = replayed(A, pid)
        n.same(plain(table("-i", A, "-p", str(pid))), want, "of one process")
        n.ok(want and sum(v[0] for v in want.values()) > 100, "which did something", want)
        n.same(plain(table("-i", A, "-p", str(pid), "--vcpu", "0")), replayed(A, pid, 0), "of one vCPU")
    n.same(plain(table("-i", A, "-M", "web01")), plain(table("-i", A, "-p", str(pids[0]))), "by name as by process")
    both = plain(table("-i", A, "-p", ",".join(map(str, pids))))
    n.same(sorted(both), sorted(set(replayed(A, pids[0])) | set(replayed(A, pids[1]))), "of two processes")


def figures():
    rows = table("-i", A)
    timed = [r for r in rows.values() if int(r["timed"])]
    if timed:
        wrong = [r for r in timed if not float(r["min_ns"]) <= float(r["avg_ns"]) <= float(r["max_ns"])]
        n.ok(not wrong, "mean between least and most", wrong)
        some = [r for r in timed if r["p50_ns"]]
        wrong = [r for r in some if not float(r["p50_ns"]) <= float(r["p99_ns"]) <= float(r["p999_ns"])]
        n.ok(some and not wrong, "percentiles in order", wrong)
    else:
        n.skip("times in order", "needs:kvm-exits nothing is timed where no kvm_exit is fired")
    for kind in "userexit", "ioport":
        share = sum(float(r["count_pct"]) for (k, _), r in rows.items() if k == kind)
        n.near(share, 100, 0.1, f"{kind}: shares of 100 %")
    j = json.loads(run("report", "-i", A, *KINDS, "--format", "json").stdout)
    n.same({(e["kind"], e["key"]): [e["count"], e["timed"], e["time_ns"] or 0] for e in j["exits"]}, plain(rows),
           "JSON has the same rows")
    with sqlite3.connect(A) as db:
        want = db.execute("SELECT count(*), round(sum(dt)/1e9, 3) FROM interval").fetchone()
    n.same((j["intervals"], j["seconds"]), want, "and how long that was")
    by = [int(r["count"]) for r in csv.DictReader(io.StringIO(run(
        "report", "-i", A, "--event", "userexit", "-k", "key", "-r", *CSV).stdout))]
    n.same(len(by), len([k for k in rows if k[0] == "userexit"]), "turned round by key: the same rows")
    text = run("report", "-i", A, *KINDS).stdout
    said = run("report", "-i", A)
    want = sum(v[0] for k, v in replayed(A).items() if k[0] == "userexit")
    n.ok(f"--event userexit has {want}\n" in said.stderr, "no vmexit in it: what there is instead", (want, said.stderr))
    n.ok("userexit" not in run("report", "-i", A, "--event", "userexit").stderr, "which is not said where it was asked for")
    n.ok("# userexit: " in text and "KVM_EXIT_IO" in text and " intervals, " in text, "text", text)


def gaps_and_losses():
    out = run("report", "-i", A, *KINDS)
    n.ok(re.search(r"nothing was recorded for [0-9.]+ s of that time, in [0-9]+ gap", out.stderr), "the gap between two runs is said",
         out.stderr)
    with sqlite3.connect(A) as db:
        ids = [r[0] for r in db.execute("SELECT id FROM interval ORDER BY id")]
        db.execute("UPDATE interval SET skipped=7 WHERE id=?", (ids[2],))
        db.execute("UPDATE frame SET data=zeroblob(40) WHERE interval=?", (ids[3],))
    out = run("report", "-i", A, *KINDS)
    n.ok(out.returncode == 0 and "7 intervals are missing: writing was too slow" in out.stderr, "skipped ones too",
         out.stderr)
    n.ok("1 interval could not be read" in out.stderr, "and what is damaged", out.stderr)
    out = run("report", "-i", A, "--event", "msr")
    n.ok("msr was not collected" in out.stderr and out.returncode == 0, "a kind that was not asked for then", out.stderr)


def ranges():
    with sqlite3.connect(A) as db:
        first, dt, last = db.execute("SELECT min(time), max(dt), max(time) FROM interval").fetchone()

    def at(ns):
        return datetime.datetime.fromtimestamp(ns / 1e9).isoformat(timespec="seconds")
    middle = first + (last - first) // 2
    parts = [plain(table("-i", f"{A}@{at(x)}..{at(y)}")) for x, y in
             ((first - dt - 2 * 10**9, middle), (middle, last + 2 * 10**9))]
    whole = plain(table("-i", A))
    got = {k: sum(p.get(k, [0])[0] for p in parts) for k in whole}
    # An interval whose middle is the very moment of the border is in both.
    n.ok(n.every(whole[k][0] <= got[k] <= 2 * whole[k][0] for k in whole) and all(parts), "two ranges are the whole",
         (got, whole))
    n.same(plain(table("-i", f"{A}@-1d")), whole, "from a day before its end on: all of it")
    shutil.copy(A, f"{TMP}/x@y")
    n.same(plain(table("-i", f"{TMP}/x@y")), whole, "a file with an @ in its name is a file")


def refusals():
    for args, want in [
            (("-i", f"{A}@2001-01-01..2001-01-02"), "no interval lies in"),
            (("-i", f"{A}@25:00"), "not a range of time"),
            (("-i", f"{TMP}/none.db@-1h"), "No such file"),
            (("-i", A, "-p", "1"), "no such VM or vCPU in it"),
            (("-i", A, "-M", "nobody"), "no such VM or vCPU in it"),
            (("-i", A, "--perf-compat"), "--perf-compat: for files of perf's"),
            (("-i", A, "--explain-perf"), "--explain-perf: for files of perf's"),
            (("-i", "/etc/passwd"), "not a recording of perf"),
            (("-M", "web01", "-i", "/etc/passwd"), "knows processes only")]:
        p = run("report", *args)
        usage = "--perf-compat" in args or "--explain-perf" in args or "-M" in args and "/etc/passwd" in args
        n.ok(p.returncode == 1 + usage and want in p.stderr and p.stderr.count("\n") == 1 and not p.stdout,
             f"report {' '.join(os.path.basename(a) for a in args)}: one line", p.stderr)
    if n.no_default_recording():
        p = run("report")
        n.ok(p.returncode == 1 and "nothing was recorded yet in /var/lib/kvmtop/recording.db" in p.stderr,
             "without a file: the default recording", p.stderr)


def symbols(pids):
    text = run("report", "-i", A, *KINDS).stdout
    j = json.loads(run("report", "-i", A, *KINDS, "--format", "json").stdout)
    shown = [json.loads(line) for line in run("replay", A, "-b", "--format", "json").stdout.splitlines()]
    want = sum(r["host"]["samples"] or 0 for r in shown)
    n.same(j.get("samples", 0), want, "samples: the sum of what all VMs had")
    n.same(f"# {want} samples: host-kernel " in text, want > 0, "they are in the text too")
    n.same(sum(y["samples"] for y in j.get("symbols", [])), want, "of all symbols together, with what is other")
    vm = json.loads(run("report", "-i", A, "-p", str(pids[0]), *KINDS, "--format", "json").stdout)
    want = sum(v["samples"] or 0 for r in shown for v in r["vms"] if v["pid"] == pids[0])
    n.same(vm.get("samples", 0), want, "of one VM")
    none = json.loads(run("report", "-i", A, "--vcpu", "0", *KINDS, "--format", "json").stdout)
    n.ok("symbols" not in none, "of vCPUs none are recorded", none)


def without_tracefs():
    if os.geteuid():
        n.skip("without tracefs", "needs:root nothing is unmounted")
        return
    n.unmount(n.TRACEFS)
    n.unmount(n.DEBUGFS)
    file = f"{TMP}/no.db"
    run("record", "-o", file, "-d", "0.2", "-n", "2")
    out = run("report", "-i", file)
    n.ok(out.returncode == 0 and "vmexit was not collected: tracefs is not mounted: mount -t tracefs" in out.stderr
         and "record --event" not in out.stderr, "what was missing is said, not an option that was there", out.stderr)


def main():
    web = n.Guest("-l", "inf", "-r", "2000", "out:10 sleep:1", tail=("-name", "guest=web01"),
                  program=n.posing_as("qemu-system-x86_64")).go()
    db = n.Guest("-l", "inf", "-r", "500", "in:10 sleep:1").go()
    record(8)
    time.sleep(1.5)
    record(4)
    pids = [web.pid, db.pid]
    for g in web, db:
        g.kill()
    sums(pids)
    figures()
    ranges()
    symbols(pids)
    gaps_and_losses()
    refusals()
    without_tracefs()
    n.done()


main()
