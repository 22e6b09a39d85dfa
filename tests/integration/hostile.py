#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm
# limit: 60
# beside: yes
"""VMs whose owners chose their names, UUIDs and threads to do harm: what reaches a terminal or a
file is valid UTF-8 without control characters, a cell stays a cell, and the other VMs keep their rows."""

import csv
import io
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

NAMES = [
    b"\x1b[2J\x1b]0;owned\x07clear",
    b"line\none,\"two\"\r\nthree",
    "\u202egnp.exe\u2066\u200b".encode(),
    "\U0001f427\u6f22\u5b57 e\u0301".encode(),
    b"\xff\xfe\xc3(\xed\xa0\x80bad",
    "\x85\x9b31m".encode(),
    b"x" * 10000,
    b"=cmd|' /C calc'!A0",
    b"",
    b" \t ",
    b"guest=twice,,guest=%s%n%d",
    b"../../../etc/passwd",
]
UUIDS = [b"", b"\x1b[31m", b"9" * 5000, b"00000000-0000-4000-8000-0000000000\xff1"]
# What no output may have: C0, DEL, C1, bidi overrides and isolates, line separators.
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
PROGRAM = ("-n", "-e", "40000", "hold:100000")


def start():
    """A VM a name, and one of a usual name among them."""
    qemu = n.posing_as("qemu-system-x86_64")
    guests = []
    for i, name in enumerate(NAMES):
        args = [b"-name", b"guest=" + name + b",debug-threads=on", b"-uuid", UUIDS[i % len(UUIDS)]]
        thread = ("CPU %d/KVM", "\x1b[7m%d", "\u202e%d\n", "")[i % 4]
        guests.append(n.Guest("-t", thread, *PROGRAM, program=qemu, tail=args))
    guests.append(n.Guest(*PROGRAM, program=qemu, tail=("-name", "guest=honest")))
    return guests


def batch(*args):
    p = n.run("--batch", "-d", "0.2", "-n", "2", *args, text=False)
    n.same((p.returncode, p.stderr), (0, b""), f"{' '.join(args)}: it ends well and says nothing")
    try:
        text = p.stdout.decode()
    except UnicodeDecodeError as e:
        n.ok(False, f"{' '.join(args)}: valid UTF-8", e)
        return p.stdout.decode(errors="replace")
    return text


def clean(text, name):
    found = RAW.search(text)
    n.ok(not found, f"{name}: no control character, no bidi override",
         found and repr(text[max(0, found.start() - 80):found.end() + 20]))


def json_lines(guests):
    text = batch("--format", "json")
    clean(text, "JSON, the bytes")
    record = n.json.loads(text.splitlines()[-1])
    mine = {g.pid for g in guests}
    rows = [vm for vm in record["vms"] if vm["pid"] in mine]
    n.same(sorted(vm["pid"] for vm in rows), sorted(mine), "JSON: every VM has its row")
    n.same(len({vm["vm_id"] for vm in rows}), len(mine),
           "JSON: and an id of its own, though UUIDs are the same")
    n.ok("honest" in {vm["name"] for vm in rows}, "JSON: the usual name among them is as it was")
    for vm in rows:
        if not 0 < len(vm["name"]) < 300 or not 0 < len(vm["uuid"] or "-") < 100:
            n.ok(False, "JSON: names and UUIDs are there, and bounded", vm)
    n.same(n.finite(record), [], "JSON: every figure is possible")


def tables(guests):
    for table in ("cpu", "vm", "vcpu", "thread", "finding"):
        text = batch("--format", "csv", "--table", table)
        clean(text.replace("\r\n", "\n"), f"CSV, {table}")
        rows = list(csv.reader(io.StringIO(text, newline="")))
        n.same({len(r) for r in rows}, {len(rows[0])}, f"CSV, {table}: one width")
    pids = {r[6] for r in csv.reader(io.StringIO(batch("--format", "csv", "--table", "vm"), newline=""))}
    n.same([g.pid for g in guests if str(g.pid) not in pids], [], "CSV: every VM has its row")
    for table in ("vm", "vcpu", "thread"):
        text = batch("--format", "text", "--table", table)
        clean(text, f"text, {table}")
        lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
        n.ok(len({len(line) for line in lines}) == 1, f"text, {table}: no blank inside a cell",
             [(len(line), " ".join(line)[:300]) for line in lines][:40])


def main():
    guests = start()
    json_lines(guests)
    tables(guests)
    for g in guests:
        g.kill()
    n.done()


main()
