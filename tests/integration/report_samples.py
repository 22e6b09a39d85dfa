#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""kvmtop report on what perf kvm record wrote: domains and pages as perf's own dump has them, and names of the
guests' kernels from files."""
# needs: cmd:perf
# limit: 120
# beside: yes

import bisect
import collections
import csv
import functools
import io
import json
import lzma
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("TOP", "."), "tests"))
import native  # noqa: E402
from native import done, ok  # noqa: E402

TMP, TOP = os.environ["TEST_TMP"], os.environ.get("TOP", ".")
KALLSYMS = """ffffffff80010000 T _stext
ffffffff80010000 T three_parts
ffffffff80011000 T one_part
ffffffff80012000 T looping
ffffffff80013000 T interrupted
ffffffff80014000 T _etext
"""
NAMES = {0xffffffff80010000: "three_parts", 0xffffffff80011000: "one_part", 0xffffffff80012000: "looping",
         0xffffffff80013000: "interrupted"}


report = functools.partial(native.run, "report", limit=300)


def rows(*args):
    """(domain, symbol): samples."""
    return {(r["domain"], r["symbol"]): int(r["samples"]) for r in csv.DictReader(io.StringIO(report(*args, "--format", "csv").stdout))}


def as_perf_dumps(file, pid=None):
    """The same from perf's dump of each sample; what lies in the upper half is a guest's kernel."""
    dump = subprocess.run(["perf", "report", "-f", "-D", "-i", file], capture_output=True, text=True, check=False,
                          errors="replace").stdout
    found = collections.Counter()
    for m in re.finditer(r"PERF_RECORD_SAMPLE\(IP, (0x[0-9a-f]+)\): (-?\d+)/(-?\d+): (0x[0-9a-f]+)", dump):
        mode, ip = int(m[1], 16) & 7, int(m[4], 16)
        if pid and int(m[2]) != pid:
            continue
        if mode in (1, 3):
            found["host-kernel", "[idle]" if m[3] == "0" else "[host]"] += 1
        elif mode == 2:
            found["host-user", "[idle]" if m[3] == "0" else "[host]"] += 1
        elif mode in (4, 5):
            found["guest-kernel" if ip >> 63 else "guest-user", f"[guest {ip & ~0xfff:#x}]"] += 1
    return dict(found)


def named(found):
    out = collections.Counter()
    for (domain, symbol), n in found.items():
        page = int(symbol[7:-1], 16) if symbol.startswith("[guest") else 0
        out[domain, NAMES.get(page, symbol)] += n
    return dict(out)


def kernel_symbols():
    """{address: names of code there}, and the addresses in order."""
    found = {}
    with open("/proc/kallsyms", encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if words[1] in "tTwW" and int(words[0], 16):
                found.setdefault(int(words[0], 16), set()).add(words[2])
    return found, sorted(found)


def of_this_host():
    """What this machine recorded since it booted: its own kernel's code has names."""
    file, said = f"{TMP}/here.data", "the host's own kernel"
    record = ["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", "499", "-o", file, "--", "dd", "if=/dev/zero", "of=/dev/null",
              "bs=256k", "count=40000", "status=none"]
    p = subprocess.run(record, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    names, starts = kernel_symbols() if os.geteuid() == 0 else ({}, [])
    if p.returncode or not names:
        native.skip(said, f"needs:root needs:perf-events {p.stderr[-100:]}")
        return
    wanted = collections.Counter()
    script = subprocess.run(["perf", "script", "-f", "-i", file, "-F", "tid,ip"], capture_output=True, text=True, check=False).stdout
    for tid, ip in (line.split()[:2] for line in script.splitlines() if line.split()):
        at = bisect.bisect(starts, int(ip, 16)) - 1
        if int(tid) and int(ip, 16) >> 63 and at >= 0:
            wanted[starts[at]] += 1
    got = {s: k for (d, s), k in rows("-i", file).items() if d == "host-kernel" and not s.startswith("[")}
    hot = [a for a, k in wanted.most_common(5) if k > 20]
    ok(hot and all(any(got.get(x) == wanted[a] for x in names[a]) for a in hot), f"{said}: perf's samples, by symbol",
       ([(names[a], wanted[a]) for a in hot], got))
    with open(file, "rb") as f:
        data = f.read()
    here = os.uname().nodename.encode() + b"\0"
    with open(file, "wb") as f:
        f.write(data.replace(here, b"#" + here[1:]))
    ok("recorded on another machine" in report("-i", file).stdout, f"{said}: not another machine's")
    with open(file, "wb") as f:
        f.write(data.replace(b"[kernel.kallsyms]_", b"[kernel.kallsyms]X"))
    ok("recorded before this machine booted" in report("-i", file).stdout, f"{said}: not that of another boot")


def main():
    file, kallsyms = f"{TMP}/samples.data", f"{TMP}/kallsyms"
    with open(file, "wb") as f, lzma.open(f"{TOP}/tests/data/perf/guest-samples-6.1-svm.perf.data.xz") as xz:
        f.write(xz.read())
    with open(kallsyms, "w", encoding="ascii") as f:
        f.write(KALLSYMS)
    wanted = as_perf_dumps(file)
    got = rows("-i", file)
    ok(got == wanted and sum(got.values()) == 2466, "domains and pages as perf dumps them", (got, wanted))
    got = rows("-i", file, "--guestkallsyms", kallsyms)
    ok(got == named(wanted), "guest kernels' symbols from kallsyms", (got, named(wanted)))
    got = rows("-i", file, "--guestkallsyms", f"142={kallsyms}", "-p", "142")
    ok(got == named(as_perf_dumps(file, 142)) and got, "of one guest, by its process's number", got)
    out = report("-i", file)
    ok("no symbols of this guest's kernel" in out.stdout, "it is said why there are no names", out.stdout)
    j = json.loads(report("-i", file, "--format", "json").stdout)
    ok({(r["domain"], r["symbol"]): r["samples"] for r in j["symbols"]} == wanted and j["samples"] == 2466, "JSON has the same")
    ok("# host: its kernel's code has no names: recorded on another machine\n" in report("-i", file).stdout,
       "and why the host's kernel has none")
    of_this_host()
    out = report("-i", file, "--perf-compat")
    ok(out.returncode == 1 and out.stderr.count("\n") == 1, "perf kvm stat report has no table of it", out.stderr)
    out = report("-i", file, "-k", "p99")
    ok(out.returncode == 2 and out.stderr.count("\n") == 1 and not out.stdout, "an order that samples do not have is refused", out.stderr)
    done()


if __name__ == "__main__":
    main()
