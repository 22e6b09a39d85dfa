#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 120
# beside: yes
"""kvmtop diff with files of perf's: rates by what kvmtop report says of the same file, what was taken out of a
recording is found, and the host's side of a file beside its guests'."""

import csv
import functools
import io
import json
import lzma
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n
import perfdata_lib as pd

TMP, DATA = os.environ["TEST_TMP"], f"{n.TOP}/tests/data/perf"
EVENTS, SAMPLES = f"{TMP}/events.data", f"{TMP}/samples.data"
PIDS = "134", "138"
MAPS = [w for p in PIDS for w in ("--map", f"{p}={p}")]


run = functools.partial(n.run, limit=100)


def diff(*args):
    p = run("diff", *args, "--format", "json")
    if p.returncode:
        n.ok(False, f"diff {' '.join(args)}", p.stderr)
        return {"rows": [], "vms": [], "a": {}, "b": {}}
    return json.loads(p.stdout)


def reported(pid, file=EVENTS):
    out = run("report", "-i", file, "-p", pid, "--event", "vmexit,mmio,ioport,msr", "--format", "csv").stdout
    return {(r["kind"], r["key"]): r for r in csv.DictReader(io.StringIO(out))}


def rates(d):
    """Counts by vCPU-seconds, times as a share of them, shares: as the report has them."""
    for pid in PIDS:
        vm = next(v["a"] for v in d["vms"] if v["a"]["name"].endswith(f":{pid}"))
        seconds, want = d["a"]["seconds"] * vm["vcpus"], reported(pid)
        got = {(r["kind"], r["what"]): r for r in d["rows"] if r["table"] == "exit" and r["vm_a"] == vm["name"]}
        n.same(sorted(got), sorted(want), f"{pid}: the report's rows")
        wrong = [k for k, r in got.items() if abs(r["a"] * seconds - int(want[k]["count"])) > 1e-3 * int(want[k]["count"])]
        n.ok(not wrong, f"{pid}: rates are the report's counts", wrong)
        wrong = [k for k, r in got.items() if abs(r["share_a_pct"] - float(want[k]["count_pct"])) > 0.01]
        n.ok(not wrong, f"{pid}: and so are the shares", wrong)
        times = {(r["kind"], r["what"]): r["a"] for r in d["rows"] if r["table"] == "exit-time" and r["vm_a"] == vm["name"]}
        wrong = [k for k, v in times.items()
                 if abs(v / 100 * seconds * 1e9 - int(want[k]["time_ns"])) > 1e-3 * int(want[k]["time_ns"]) + 1]
        n.ok(times and not wrong and ("vmexit", "hlt") not in times, f"{pid}: times too, without waiting", (wrong, times))


def nothing_changed():
    d = diff(EVENTS, EVENTS, *MAPS)
    n.ok(d["rows"] and not any(r["change"] or r["larger_than_noise"] for r in d["rows"]),
         "a file does not differ from itself")
    n.ok(n.every(r["larger_than_noise"] is not None for r in d["rows"]), "its slices tell the noise")
    n.same([v["by"] for v in d["vms"]], ["map", "map"], "who is whom was said")
    n.same((d["a"]["from"], d["a"]["intervals"]), (None, 100), "no time of day, a hundred slices")
    rates(d)


def without(rec, reason):
    """Three in four exits of this reason did not happen, nor what came with them."""
    drop, seen = set(), 0
    for r in rec.records:
        event, tid = rec.event(r), rec.tid(r) if rec.event(r) else 0
        if event == "kvm_exit":
            drop.discard(tid)
            if rec.get(r, event, "exit_reason") == reason:
                seen += 1
                if seen % 4:
                    drop.add(tid)
        if event and tid in drop:
            continue
        yield r


def changed(rec):
    file = f"{TMP}/fewer.data"
    rec.save(file, without(rec, 0x7b))  # io
    d = diff(EVENTS, file, *MAPS)
    io_rows = [r for r in d["rows"] if r["table"] == "exit" and r["what"] == "io"]
    n.ok(io_rows and all(r["larger_than_noise"] and r["high"] < 0 and 0.15 < r["b"] / r["a"] < 0.4 for r in io_rows),
         "fewer exits of one reason: seen, and larger than the noise", io_rows)
    back = diff(file, EVENTS, *MAPS)
    n.ok(n.every(r["larger_than_noise"] and r["low"] > 0 for r in back["rows"] if r["table"] == "exit" and r["what"] == "io"),
         "the other way round they are more")
    rest = [r for r in d["rows"] if r["table"] == "exit" and r["kind"] in ("mmio", "msr")]
    n.ok(rest and not any(r["larger_than_noise"] for r in rest), "what stayed did not change", rest)


def losses(rec):
    """The file is read once more there; nothing counts twice."""
    file = f"{TMP}/lost.data"
    rec.save(file, (x for i, r in enumerate(rec.records)
                    for x in ((rec.lost(r, 7), r) if rec.event(r) and i % 900 == 450 else (r,))))
    d = diff(file, file, *MAPS)
    n.ok(d["a"]["lost"] > 0, "losses are said", d["a"])
    for pid in PIDS:
        vm = next(v["a"] for v in d["vms"] if v["a"]["name"].endswith(f":{pid}"))
        want = sum(int(r["count"]) for r in reported(pid, file).values())
        got = sum(r["a"] for r in d["rows"] if r["table"] == "exit" and r["vm_a"] == vm["name"])
        n.near(got * d["a"]["seconds"] * vm["vcpus"], want, want * 1e-3, f"{pid}: counted once")


def sides():
    d = diff("--host", "--guest", SAMPLES)
    j = json.loads(run("report", "-i", SAMPLES, "-p", "142", "--format", "json").stdout)
    of = {}
    for r in j["symbols"]:
        of[r["domain"]] = of.get(r["domain"], 0) + r["samples"]
    got = {r["kind"]: r for r in d["rows"] if r["what"] == "(all)"}
    n.same(sorted(got), ["kernel", "user"], "kernel and user of either side")
    for kind in "kernel", "user":
        n.near(got[kind]["a"] / got["kernel"]["a"], of[f"host-{kind}"] / of["host-kernel"], 0.01, f"the host's {kind}")
        n.near(got[kind]["b"] / got["kernel"]["a"], of[f"guest-{kind}"] / of["host-kernel"], 0.01, f"the guest's {kind}")
    n.ok(n.every(r["table"] == "symbol" for r in d["rows"]), "nothing but samples", d["rows"][:3])
    text = run("diff", "--host", "--guest", SAMPLES).stdout
    n.ok(", the host's side: " in text and ", the guests' side: " in text, "it is said which is which", text)
    n.ok(" B - A " in text and not any(w in text.split() for w in ("new", "gone", "CHANGE")),
         "nothing came or went between two sides of one time", text)
    rows = [line[:57] for line in text.splitlines() if line.startswith("tinyvm:142 ")]
    n.ok(len(rows) == len(set(rows)) > 5 and any("[guest 0xffffffff80012000]" in r for r in rows),
         "pages of a guest's kernel can be told apart", text)
    d = diff(SAMPLES, SAMPLES)
    n.same([v["by"] for v in d["vms"]], ["there being one"], "one VM in either file needs no map")
    n.ok({r["kind"] for r in d["rows"]} >= {"host-kernel", "guest-kernel", "guest-user"}, "domains of whole files")


def refusals():
    broken = f"{TMP}/broken.data"
    with open(broken, "wb") as f:
        f.write(b"PERFILE2" + struct.pack("<Q", 104) + bytes(200))
    for args, status, want in [
            ((EVENTS, EVENTS), 1, "no VM is on both sides (A: "),
            ((EVENTS, f"{TMP}/none.data"), 1, "No such file"),
            ((EVENTS, broken), 1, "a broken one"),
            ((EVENTS, f"{EVENTS}@03:00-03:10"), 2, "no time of day"),
            ((EVENTS, EVENTS, "-M", "web01"), 2, "no names of VMs"),
            (("--host", EVENTS, EVENTS), 2, "--host and --guest together"),
            (("--host", "--guest", EVENTS, EVENTS), 2, "--host and --guest together")]:
        p = run("diff", *args)
        n.ok(p.returncode == status and want in p.stderr and p.stderr.count("\n") == 1 and not p.stdout,
             f"diff {' '.join(os.path.basename(a) for a in args)}: {status}, one line", p.stderr)


def main():
    for file, name in (EVENTS, "kvm-6.1-svm"), (SAMPLES, "guest-samples-6.1-svm"):
        with open(file, "wb") as f, lzma.open(f"{DATA}/{name}.perf.data.xz") as xz:
            f.write(xz.read())
    rec = pd.Recording(EVENTS)
    nothing_changed()
    changed(rec)
    losses(rec)
    sides()
    refusals()
    n.done()


main()
