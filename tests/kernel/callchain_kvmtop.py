#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 240
"""In the lab, on the patched kernel and on the stock one: kvmtop shows what calls a guest's hot symbol.

The guest is chain-run's, with a symbol table of its three functions: all of its time is in inner(), which middle()
called. A stock kernel tells no callers, and the rest is the same.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import callchain as c  # noqa: E402
import gstime  # noqa: E402
import native as n  # noqa: E402

KALLSYMS = os.path.join(c.TMP, "kallsyms")


def write_kallsyms(functions):
    first, last = functions["entry"][0], functions["inner"][1]
    with open(KALLSYMS, "w", encoding="ascii") as f:
        f.write(f"{first:016x} T _stext\n")
        f.writelines(f"{start:016x} T {name}\n" for name, (start, _end) in functions.items())
        f.write(f"{last:016x} T _etext\n")


def row(record, pid, symbol):
    for vm in n.vms_of(record, pid):
        for x in vm["symbols"]:
            if x["symbol"] == symbol:
                return x
    return None


def check_callers(x):
    n.same([y["symbol"] for y in x["callers"]], ["middle"], "which is middle() alone")
    n.same((x["caller"], x["domain"]), ("middle", "guest-kernel"), "as the most frequent caller too")
    n.ok(0 < x["callers"][0]["samples"] <= x["samples"], "in no more samples than it has", x)
    n.ok(0 < x["caller_pct"] <= 100, "with its share", x["caller_pct"])


def check_none(x):
    n.same([x.get(key) for key in ("callers", "caller", "caller_pct")], [None] * 3, "and none called it")


def main():
    patched = gstime.patched()
    g = c.Guest("kernel")
    write_kallsyms(g.functions)
    top = n.Kvmtop("--max-overhead", "0", "--guestkallsyms", KALLSYMS, delay=0.5)
    wanted, what = ("callers", "inner() has callers") if patched else ("samples", "inner() has samples")
    record = top.until(lambda r: (row(r, g.p.pid, "inner") or {}).get(wanted), 60, what)
    if record:
        (check_callers if patched else check_none)(row(record, g.p.pid, "inner"))
    top.end()
    g.stop()
    n.done()


main()
