#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""kvmtop report on what perf kvm record wrote: domains and pages as perf's own dump has them, and names of the
guests' kernels from files."""
# needs: cmd:perf
# limit: 120
# beside: yes

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
    out = report("-i", file, "--perf-compat")
    ok(out.returncode == 1 and out.stderr.count("\n") == 1, "perf kvm stat report has no table of it", out.stderr)
    out = report("-i", file, "-k", "p99")
    ok(out.returncode == 2 and out.stderr.count("\n") == 1 and not out.stdout, "an order that samples do not have is refused", out.stderr)
    done()


if __name__ == "__main__":
    main()
