#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 60
# beside: yes
"""kvmtop report of other architectures' recordings: a recording of x86 is given arm64's formats (as that kernel's
trace_arm.h has them) and its records arm64's fields, so that what must come out is known from what the same records are
on x86. report_arm64.py has arm64's own."""

import csv
import functools
import io
import json
import lzma
import os
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n
import perfdata_lib as pd

TMP = os.environ["TEST_TMP"]
X86, ARM, BARE = f"{TMP}/x86.data", f"{TMP}/arm64.data", f"{TMP}/bare.data"
ENTRY = "\tfield:unsigned long vcpu_pc;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"PC: 0x%016lx\", REC->vcpu_pc"
EXIT = ("\tfield:int ret;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:unsigned int esr_ec;\toffset:12;\tsize:4;\tsigned:0;\n"
        "\tfield:unsigned long vcpu_pc;\toffset:16;\tsize:8;\tsigned:0;\n\n"
        "print fmt: \"ret %d esr_ec 0x%04x PC 0x%016lx\", REC->ret, REC->esr_ec, REC->vcpu_pc")
# SVM's reason: arm64's return code and exception class, and their name.
TRAP, HVC = 2, (2, 0x16, "HVC64")
REASONS = {"hlt": (TRAP, 0x01, "WFx"), "npf": (TRAP, 0x24, "DABT_LOW"), "interrupt": (0, 0, "IRQ")}
NUMBERS = {0x78: "hlt", 0x400: "npf", 0x60: "interrupt"}


run = functools.partial(n.run, "report")


def rows(file, event):
    out = run("-i", file, "--event", event, "--format", "csv")
    return {r["key"]: (int(r["count"]), int(r["timed"]), int(r["time_ns"] or 0))
            for r in csv.DictReader(io.StringIO(out.stdout))}


def with_format(tail, event, fields):
    """The event's own fields replaced; blanks fill the text up, so that nothing else moves."""
    m = re.search(rb"name: %s\nID: \d+\nformat:\n(?:.*\n){4}\n" % event.encode(), tail)
    end = tail.index(b"\n", tail.index(b"print fmt", m.end()))
    new = fields.encode()
    return tail[:m.end()] + new + b" " * (end - m.end() - len(new)) + tail[end:]


def records(rec):
    for r in rec.records:
        event, raw = rec.event(r), rec.raw(r)
        if event == "kvm_exit":
            old = NUMBERS.get(rec.get(r, event, "exit_reason"))
            ret, ec, _ = REASONS.get(old, HVC)
            r = r[:raw + 8] + struct.pack("<iI", ret, ec) + r[raw + 16:]
        yield r


def make_arm(rec):
    tail = with_format(with_format(bytes(rec.tail), "kvm_entry", ENTRY), "kvm_exit", EXIT)
    tail = tail.replace(b"x86_64\0\0\0\0\0\0", b"aarch64\0\0\0\0\0").replace(b"AuthenticAMD,15,107,1", b"0x00000000410fd0c0\0\0\0")
    rec.save(ARM, records(rec), tail)
    return rec.features()[pd.FEATURE_TRACING]


def folded(x86):
    """x86's rows under the names that they have as arm64's."""
    want = {}
    for key, figures in x86.items():
        name = REASONS.get(key, HVC)[2]
        want[name] = tuple(a + b for a, b in zip(want.get(name, (0, 0, 0)), figures))
    return want


def main():
    with open(X86, "wb") as f, lzma.open(f"{n.TOP}/tests/data/perf/kvm-6.1-svm.perf.data.xz") as xz:
        f.write(xz.read())
    rec = pd.Recording(X86)
    make_arm(rec)
    x86 = rows(X86, "vmexit")
    n.ok(set(REASONS) <= set(x86) and len(x86) > 4, "x86: reasons of each kind", x86)
    n.same(rows(ARM, "vmexit"), folded(x86), "arm64: return codes and exception classes, counted and timed")
    n.same(rows(ARM, "mmio"), rows(X86, "mmio"), "accesses have one format everywhere")
    d = n.run("diff", X86, ARM, "--map", "134=134", "--format", "json")
    rates = {r["what"]: r for r in json.loads(d.stdout or '{"rows":[]}')["rows"] if r["table"] == "exit"}
    n.ok("npf" in rates and "DABT_LOW" in rates and rates["npf"]["a"] == rates["DABT_LOW"]["b"], "diff names each by its own",
         d.stderr or rates)
    # Pipe mode, so that the machine's kind stands in front, and no formats.
    rec.tail = bytearray(bytes(rec.tail).replace(b"x86_64\0\0\0\0\0\0", b"aarch64\0\0\0\0\0"))
    whole = rec.features
    rec.features = lambda: {k: b"" if k == pd.FEATURE_TRACING else v for k, v in whole().items()}
    rec.save_pipe(BARE)
    out = run("-i", BARE)
    n.ok(out.returncode == 1 and "no events of KVM in it, or no formats of them" in out.stderr,
         "this machine's formats are not another's", out.stderr + out.stdout[:300])
    n.done()


main()
