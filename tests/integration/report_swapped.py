#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: cmd:perf
# limit: 200
# beside: yes
"""kvmtop report of files of the other byte order. No big-endian host was at hand: real recordings are turned round
(tests/perfdata_big.py), so that all that is said of them is what is said of the originals, to the last digit; and Debian's
perf, which reads both orders, says that they were turned round rightly.

The last part is a recording as of s390. Real in it: its records' order, threads, CPUs and times, which are those of x86's,
and the formats of kvm_s390_sie_enter and kvm_s390_sie_exit, which are as that kernel's trace-s390.h declares them. Not
real: what the exits were (x86's reasons have been given codes of s390's), the program status words, and that such a
host has events of port and MMIO accesses."""

import csv
import functools
import io
import json
import lzma
import os
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n
import perfdata_big as big
import perfdata_lib as pd

TMP = os.environ["TEST_TMP"]
DATA = f"{n.TOP}/tests/data/perf"
NAMES = ("kvm-6.1-svm", "workloads-6.1-svm", "guest-samples-6.1-svm", "native-pipe-6.18", "native-zstd-6.18")
ALL = "vmexit,mmio,ioport,msr,hypercall,userexit,halt"
ASKED = ((), ("--event", ALL), ("--event", ALL, "--format", "csv", "-k", "p99"), ("--event", ALL, "--format", "json"),
         ("--event", ALL, "--vcpu", "0"), ("--explain-perf",), ("--perf-compat",), ("--perf-compat", "--event", "ioport", "-k", "time"))
LITTLE, BIG = f"{TMP}/little.data", f"{TMP}/big.data"
COMMON = ("\tfield:int id;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:unsigned long pswmask;\toffset:16;\tsize:8;\tsigned:0;\n"
          "\tfield:unsigned long pswaddr;\toffset:24;\tsize:8;\tsigned:0;\n")
S390 = {"kvm_entry": ("kvm_s390_sie_enter", COMMON + "\tfield:int cpuflags;\toffset:32;\tsize:4;\tsigned:1;\n"),
        "kvm_exit": ("kvm_s390_sie_exit", COMMON + "\tfield:u8 icptcode;\toffset:32;\tsize:1;\tsigned:0;\n")}
CODES = {0x78: (0x1c, "Wait state"), 0x400: (0x08, "Program interruption"), 0x60: (0x14, "External interruption")}
REASONS = {"hlt": 0x78, "npf": 0x400, "interrupt": 0x60}
OTHER = (0x04, "Instruction")

run = functools.partial(n.run, "report")


def put(path, data):
    with open(path, "wb") as f:
        f.write(data)


def said(*args, **more):
    out = run(*args, **more)
    return out.returncode, out.stdout.replace(BIG, LITTLE), out.stderr.replace(BIG, LITTLE)


def perf(path):
    """What perf reads of it, but for what it says of BPF programs in files of the other order."""
    out = subprocess.run(["perf", "script", "-i", path], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return [line for line in out.stdout.splitlines() if line]


def fixtures():
    for name in NAMES:
        with lzma.open(f"{DATA}/{name}.perf.data.xz") as f:
            data = f.read()
        twin = big.twin(data)
        put(LITTLE, data)
        put(BIG, twin)
        differ = [a for a in ASKED if said("-i", LITTLE, *a) != said("-i", BIG, *a)]
        n.same(differ, [], f"{name}: what is said of it is said of its twin")
        first = said("-i", LITTLE, "--event", ALL)
        n.ok(first[0] == 0 and len(first[1].splitlines()) > 9, f"{name}: and that is something", first)
        if "pipe" not in name:  # perf 6.1 forgets to turn round the numbers of a pipe's features
            n.ok(len(perf(LITTLE)) > 500 and perf(LITTLE) == perf(BIG), f"{name}: perf reads the twin as the original")


def piped_and_cut():
    """Through a pipe, and cut at places in the midst of records: as far as both are whole they are alike."""
    pd.Recording(f"{DATA}/kvm-6.1-svm.perf.data.xz").save_pipe(LITTLE)
    with open(LITTLE, "rb") as f:
        data = f.read()
    twin = big.twin(data)
    args = ("-i", "-", "--event", ALL, "--format", "csv")

    def through(of):
        out = run(*args, input=of, text=False)
        return out.returncode, out.stdout, out.stderr
    n.ok(through(data)[0] == 0 and through(data) == through(twin), "pipe mode through a pipe", through(twin))
    cuts = [len(data) * i // 7 + i for i in range(1, 7)]
    both = [(through(data[:at]), through(twin[:at])) for at in cuts]
    n.same([at for at, (a, b) in zip(cuts, both) if a != b], [], "cut off anywhere: read as far as the original's")
    n.ok(sum(a[0] == 0 and b"cut off" in a[2] for a, _ in both) > 3, "most of them are read, and that is said", both[-1][0])


def no_formats():
    with lzma.open(f"{DATA}/kvm-6.1-svm.perf.data.xz") as f:
        twin = big.twin(f.read())
    put(BIG, twin[:len(twin) // 2])
    out = run("-i", BIG)
    n.ok(out.returncode == 1 and "no formats of them (they stand at the end" in out.stderr and out.stderr.count("\n") == 1,
         "cut off in file mode: this machine's formats are not those of the other byte order", out.stderr)
    put(BIG, b"2ELIFREP" + struct.pack(">Q", 104) + bytes(100))
    out = run("-i", BIG)
    n.ok(out.returncode == 1 and "a broken one" in out.stderr and out.stderr.count("\n") == 1, "a broken one: in one line", out.stderr)


def compared():
    """diff asks by other ways for threads' names and which of them are vCPUs."""
    with lzma.open(f"{DATA}/kvm-6.1-svm.perf.data.xz") as f:
        data = f.read()
    put(LITTLE, data)
    put(BIG, big.twin(data))
    out = n.run("diff", LITTLE, BIG, "--map", "134=134", "--map", "138=138", "--format", "json")
    rows = json.loads(out.stdout or '{"rows":[]}')["rows"]
    n.ok(len(rows) > 5 and all(r["a"] == r["b"] for r in rows), "diff finds the same VMs and no difference", out.stderr or rows[:3])


# ---- as of s390 ----

def with_format(tail, event):
    """The event's name and own fields replaced; blanks fill the text up, so that nothing else moves."""
    name, fields = S390[event]
    m = re.search(rb"name: %s\n(ID: \d+\nformat:\n(?:.*\n){4}\n)" % event.encode(), tail)
    end = tail.index(b"\n", tail.index(b"print fmt", m.end()))
    new = b"name: " + name.encode() + b"\n" + m[1] + fields.encode() + b'\nprint fmt: "%02d", REC->id'
    return tail[:m.start()] + new.ljust(end - m.start()) + tail[end:]


def s390_records(rec):
    for r in rec.records:
        event, raw = rec.event(r), rec.raw(r)
        if event in S390:
            vcpu = rec.get(r, event, "vcpu_id")
            last = struct.pack("<i", 0)
            if event == "kvm_exit":
                last = struct.pack("<B3x", CODES.get(rec.get(r, event, "exit_reason"), OTHER)[0])
            data = r[raw:raw + 8] + struct.pack("<i4xQQ", vcpu, 0x0705c00180000000, 0x1000) + last
            data += bytes(-(len(data) + 4) % 8)
            r = r[:raw - 4] + struct.pack("<I", len(data)) + data
            r = r[:6] + struct.pack("<H", len(r)) + r[8:]
        yield r


def rows(path, *more):
    out = run("-i", path, "--format", "csv", *more)
    return {r["key"]: tuple(int(r[k] or 0) for k in ("count", "timed", "time_ns"))
            for r in csv.DictReader(io.StringIO(out.stdout))}


def s390():
    rec = pd.Recording(f"{DATA}/kvm-6.1-svm.perf.data.xz")
    rec.save(LITTLE)
    x86, vcpu = rows(LITTLE), rows(LITTLE, "--vcpu", "0")
    tail = functools.reduce(with_format, S390, bytes(rec.tail))
    tail = tail.replace(b"x86_64\0\0\0\0\0\0", b"s390x\0\0\0\0\0\0\0").replace(b"AuthenticAMD,15,107,1", b"IBM,8561,703,T01,3.6\0")
    rec.save(BIG, s390_records(rec), tail)
    with open(BIG, "rb") as f:
        put(BIG, big.twin(f.read()))

    def folded(of):
        want = {}
        for key, figures in of.items():
            name = CODES.get(REASONS.get(key), OTHER)[1]
            want[name] = tuple(a + b for a, b in zip(want.get(name, (0, 0, 0)), figures))
        return want
    n.ok(set(REASONS) <= set(x86) and len(x86) > 4 and vcpu, "x86: reasons of each kind", x86)
    n.same(rows(BIG), folded(x86), "s390: interception codes, counted and timed")
    n.same(rows(BIG, "--vcpu", "0"), folded(vcpu), "of one vCPU: its number is there, as id")
    out = run("-i", BIG, "--perf-compat")
    n.ok(out.returncode == 1 and "perf 6.1 makes no table of it" in out.stderr, "perf on x86 has no table of it", out.stderr)


fixtures()
piped_and_cut()
no_formats()
compared()
s390()
n.done()
