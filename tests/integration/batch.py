#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 240
# beside: yes
"""kvmtop --batch as a program: formats by real parsers, conditions, doctor."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile

import jsonschema

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

TABLES = [line.split("\t")[0] for line in subprocess.run(
    [n.KVMTOP, "--dump-tables", "tables"], capture_output=True, text=True,
    check=True).stdout.splitlines()]


def schema():
    with open(f"{n.TOP}/docs/kvmtop.schema.json", encoding="utf-8") as f:
        s = json.load(f)
    jsonschema.Draft202012Validator.check_schema(s)
    check = jsonschema.Draft202012Validator(s)
    for args in [(), ("--event", "all", "--totals"), ("--fields", "cpu_pct,steal_pct,pin"),
                 *(("--table", t) for t in TABLES)]:
        p = n.run("-b", "-n", "2", "-d", "0.1", "--format", "json", *args)
        lines = p.stdout.splitlines()
        errors = [f"{list(e.absolute_path)}: {e.message[:200]}" for line in lines
                  for e in check.iter_errors(json.loads(line))]
        n.ok(len(lines) == 2 and not errors and p.returncode == 0,
             f"json {' '.join(args)}: two lines that the schema takes", errors[:5] or p.stderr)


def tables():
    for t in TABLES:
        p = n.run("-b", "-n", "2", "-d", "0.1", "--format", "csv", "--table", t)
        rows = list(csv.reader(io.StringIO(p.stdout, newline="")))
        n.ok(rows and len(set(rows[0])) == len(rows[0]) and {len(r) for r in rows} == {len(rows[0])},
             f"csv {t}: no column twice, all rows as wide as the head", rows[:2])
        n.same(rows[0][:10] if rows else None, "time interval_s node level vm vm_id pid vcpu table key".split(),
               f"csv {t}: the columns in front")


def text():
    p = n.run("-b", "-n", "2", "-d", "0.1", env={"TZ": "Asia/Kolkata", "LC_ALL": "de_DE.UTF-8",
                                               "LC_NUMERIC": "de_DE.UTF-8"})
    n.ok("\x1b" not in p.stdout and p.stderr == "", "text has no escape codes", p.stderr)
    n.same(len([x for x in p.stdout.splitlines() if x.startswith("TIME")]), 2,
           "a line of titles every interval")
    n.ok(re.search(r"^# \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+05:30 ", p.stdout),
         "the time has its zone", p.stdout[:100])
    rows = [x.split() for x in p.stdout.splitlines() if not x.startswith("#")]
    n.same(len({len(r) for r in rows}), 1, "all rows have as many cells as there are titles")
    n.ok(not re.search(r"\d,\d", p.stdout), "numbers are not localised", p.stdout)


def conditions():
    p = n.run("-b", "-n", "3", "-d", "0.1", "--table", "host", "--when", "ncpu>0 for 2", "--format", "json")
    n.same((p.returncode, len(p.stdout.splitlines())), (3, 2), "--when … for 2: from the second interval on")
    p = n.run("-b", "-n", "2", "-d", "0.1", "--table", "host", "--when", "ncpu<0")
    n.same((p.returncode, p.stdout), (0, ""), "--when that never holds: nothing, status 0")


def no_exits():
    """On a KVM that fires no kvm_exit the table of exits is empty for ever: it says why, once."""
    g = n.Guest("-r", 100, "-l", "inf", "out:3").go()
    p = n.run("-b", "-n", "3", "-d", "0.2", "--table", "exit", "-p", str(g.pid))
    rows = len([x for x in p.stdout.splitlines() if "vmexit" in x])
    n.ok((rows > 0 and not p.stderr) if n.HW else (not rows and p.stderr.count("no kvm_exit was seen") == 1),
         "exits that this KVM does not fire are not just missing", p.stdout + p.stderr)
    p = n.run("-b", "-n", "3", "-d", "0.2", "--table", "exit", "--event", "userexit", "-p", str(g.pid))
    n.ok("KVM_EXIT_IO" in p.stdout and not p.stderr, "and those that it does fire are there", p.stdout + p.stderr)
    p = n.run("-b", "-n", "1", "-d", "0.5", "--format", "json", "-p", str(g.pid))
    vm = n.vm_of(json.loads(p.stdout), g.pid)
    n.ok(vm["exits_per_s"] is not None and vm["exits_per_s"] > 0, "EXIT/s is there from the first record on",
         [vm["exits_per_s"], p.stderr])
    p = n.run("-b", "-n", "1", "-d", "0.5", "--format", "csv", "-p", str(g.pid), "--table", "pcpu")
    n.ok(n.every(r["npinned"] for r in csv.DictReader(io.StringIO(p.stdout))), "so are the vCPUs pinned to each CPU",
         p.stdout)
    g.kill()


def doctor():
    p = n.run("doctor")
    n.ok(p.returncode == 0 and "perf_event_paranoid" in p.stdout, "doctor reports", p.stderr)
    n.ok(re.search(r"^ok +symbols +host kernel +works: \d{4,} names$", p.stdout, re.M), "and counts the host kernel's names",
         p.stdout)
    r = json.loads(n.run("doctor", "--format", "json").stdout)
    n.ok(n.every(s["state"] in ("ok", "partial", "off") and s["why"] for s in r["sources"]),
         "each source has a state and words", r["sources"])
    n.ok({"kernel", "lockdown", "capabilities"} <= set(r["host"]), "and the host is described", r["host"])
    with tempfile.TemporaryDirectory() as folder:
        for command in (("doctor",), ("bundle", "-o", os.path.join(folder, "b.tar"))):
            p = n.run(*command, "--root", folder)
            n.ok(p.returncode == 1 and not p.stdout and re.fullmatch(r"kvmtop: --root '.*': its proc cannot be opened .*\n", p.stderr),
                 f"{command[0]} --root at an empty folder: one line says that it is no host's", (p.returncode, p.stdout, p.stderr))
        os.mkdir(os.path.join(folder, "proc"))
        p = n.run("doctor", "--root", folder)
        n.ok("mount" in p.stdout or "KVM" in p.stdout, "an empty proc: it says what is missing", p.stdout)


# Line ends, escape codes, quotes, a formula, bytes that are no UTF-8, a C1 control, right-to-left.
HOSTILE = b'=evil ;"x"\n\x1b[31m\xff\xc2\x9b\xe2\x80\xae$(reboot)'


def hostile_name():
    g = n.Guest("-r", 1000, "-l", "inf", "spin:100 out:3", program=n.posing_as("qemu-system-x86_64"),
                tail=("-name", b"guest=" + HOSTILE + b",debug-threads=on")).go()
    r = [json.loads(x) for x in n.run("-b", "-n", "2", "-d", "0.3", "--format", "json", "--event", "ioport",
                                    "-p", str(g.pid)).stdout.splitlines()]
    vm = n.vm_of(r[-1], g.pid) or {}
    n.same(vm.get("name"), HOSTILE.replace(b"\xff", b"\\xff").decode(), "json: a hostile name as it is")
    n.ok(vm.get("exits") and vm["exits"][0]["key"] == "0x3f8:POUT", "json: its exits", vm.get("exits"))
    for fmt in ("csv", "text"):
        p = n.run("-b", "-n", "3", "-d", "0.5", "--format", fmt, "--table", "vm", "-p", g.pid, text=False)
        n.ok(b"$(reboot)" in p.stdout and not re.search(rb"[\x00-\x09\x0b-\x1f\x7f\xff]|\xc2\x9b|\xe2\x80\xae",
                                                      p.stdout),
             f"{fmt}: nothing in a hostile name reaches a terminal", p.stdout)
        lines = [x for x in p.stdout.decode().splitlines() if not x.startswith("#")]
        rows = [x.split() for x in lines] if fmt == "text" else list(csv.reader(lines))
        n.ok(len(rows) > 1 and len({len(r) for r in rows}) == 1, f"{fmt}: and a line is a row", lines)
        if fmt == "csv":
            n.ok(rows[-1][4].startswith("\\x3devil ;\"x\"\\n\\e[31m"), "csv: no formula for a spreadsheet",
                 rows)
    schema()
    tables()
    g.kill()


def main():
    if os.access("/dev/kvm", os.R_OK | os.W_OK) and os.geteuid() == 0:
        hostile_name()
        no_exits()
    else:
        n.skip("a hostile name", "needs:kvm,root")
        schema()
        tables()
    text()
    conditions()
    doctor()
    n.done()


main()
