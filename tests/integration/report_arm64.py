#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 60
# beside: yes
"""kvmtop report of a recording that perf made on arm64, of a guest whose exits are known (tests/data/perf/README.md):
the counts are the guest's own, times are those of the exits, --perf-compat is to the byte what that machine's perf
said, and --explain-perf tells the whole difference."""

import csv
import functools
import io
import lzma
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

FILE = f"{os.environ['TEST_TMP']}/arm64.data"
DATA = f"{n.TOP}/tests/data/perf/kvm-6.1-arm64"
# Reads, writes, ends and first touches of pages; the second vCPU's code is there when it comes.
EXITS = {"DABT_LOW": 150 + 100 + 2 + 12, "HVC64": 250, "SYS64": 115, "SMC64": 30, "WFx": 20, "IABT_LOW": 1}
MMIO = {"0x10000000:R": 150, "0x10000004:W": 100, "0x10000100:W": 2}
USER = {"KVM_EXIT_MMIO": 252, "KVM_EXIT_INTR": 22}

run = functools.partial(n.run, "report", "-i", FILE)


def text(name):
    with open(f"{DATA}.{name}.txt", encoding="ascii") as f:
        return f.read()


def rows(event):
    return {r["key"]: r for r in csv.DictReader(io.StringIO(run("--event", event, "--format", "csv").stdout))}


def counts(event):
    return {k: int(r["count"]) for k, r in rows(event).items() if k != "IRQ"}


def perf_rows():
    """Its samples and their time, ns; of the mean it shows 10 ns."""
    found = re.findall(r"^ +(\S+) +(\d+) .* +([\d.]+)us \(", text("sample"), re.M)
    return {name: (int(samples), int(samples) * float(mean) * 1000) for name, samples, mean in found}


def the_guests_own():
    n.same(counts("vmexit"), EXITS, "exits as the guest made them")
    n.same(counts("mmio"), MMIO, "accesses too")
    n.same(counts("userexit"), USER, "and returns to the VMM")
    exits = rows("vmexit")
    open_ones = sum(int(r["count"]) - int(r["timed"]) for r in exits.values())
    n.same(open_ones, 2, "all but each vCPU's last exit have an end")
    # It waits 2 ms for a timer; a call that KVM answers itself is far shorter.
    n.ok(int(exits["WFx"]["max_ns"]) > 1900000 and int(exits["HVC64"]["max_ns"]) < 200000,
         "a wait takes as long as the guest waits", exits)


def to_the_byte():
    for name, options in (("sample", ("-k", "sample")), ("time", ("-k", "time")),
                          ("vcpu0", ("--vcpu", "0")), ("vcpu1", ("--vcpu", "1"))):
        out = run("--perf-compat", *options)
        n.same(out.stdout, text(name), f"--perf-compat {' '.join(options)}: perf's text")
    out = run("--perf-compat", "--event", "mmio")
    n.ok(out.returncode == 1 and not out.stdout and "on arm64 it has --event vmexit only" in out.stderr,
         "perf has no table of accesses there", out.stderr + out.stdout)


def what_differs():
    out = run("--explain-perf").stdout
    diff = {m[1]: (int(m[2]), int(m[3])) for m in re.finditer(r"^vmexit (\S+) ([+-]\d+) ([+-]\d+) ns: on arm64 ", out, re.M)}
    wrong, perf = [], perf_rows()
    for name, r in rows("vmexit").items():
        pairs, ns = diff.get(name, (0, 0))
        samples, time = perf[name]
        if int(r["timed"]) - pairs != samples or abs(int(r["time_ns"]) - ns - time) > samples * 5.1:
            wrong.append((name, r, diff.get(name), perf[name]))
    n.ok(len(perf) == 7 and not wrong, "the figures are perf's and the list of --explain-perf", (wrong, out))
    out = run("--event", "mmio,userexit", "--explain-perf").stdout
    n.ok("perf has no table of arm64 but vmexit's" in out and not re.search(r" ns: ", out), "and of others there is none", out)


def main():
    with open(FILE, "wb") as f, lzma.open(f"{DATA}.perf.data.xz") as xz:
        f.write(xz.read())
    the_guests_own()
    to_the_byte()
    what_differs()
    out = run("--vcpu", "0")
    n.ok("do not say of which vCPU they are: leave --vcpu away" in out.stderr, "which vCPU it was nobody knows", out.stderr)
    n.done()


main()
