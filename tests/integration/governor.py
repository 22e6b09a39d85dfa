#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: kvm, tracefs, root
# limit: 180
# beside: yes
"""--max-overhead of real guests: what would cost more is given up, and said; where nothing does nothing is."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

LITTLE = "0.01"  # percent of all CPUs: kvmtop's own ticks alone take more


def overhead(record):
    return next((s for s in record["sources"] if s["name"] == "overhead"), None)


def kinds(record, pid):
    return {row["kind"] for vm in n.vms_of(record, pid) for row in vm["exits"] if row["count"]}


def watch(how, bound):
    return n.Kvmtop("--events-by", how, "--event", "ioport,userexit", "-F", "0", "--max-overhead", bound)


def gives_up(top, g, how):
    r = top.until(lambda r: (overhead(r) or {}).get("state") == "partial", 60, f"{how}: it costs more than it may")
    n.ok(any("ioport" in kinds(x, g.pid) for x in top.records), f"{how}: ports were counted before")
    said = overhead(r) if r else {"why": ""}
    n.ok("ioport" in said["why"] and f"{LITTLE}%" in said["why"], f"{how}: what is given up is said, and for which bound", said)
    n.ok("--max-overhead" in (said.get("mend") or ""), f"{how}: and what brings it back", said)
    # At once, and not as what nobody looks at any more, which stays open for 10 s.
    before = len(top.records)
    top.until(lambda r: n.vms_of(r, g.pid) and "ioport" not in kinds(r, g.pid), 60, f"{how}: it is not collected any more")
    n.ok(len(top.records) - before < 20, f"{how}: from then on, not some time later", len(top.records) - before)
    top.end()


def main():
    g = n.Guest("-l", "inf", "out:100").go()
    calm = watch("auto", 99)
    tops = {how: watch(how, LITTLE) for how in ("perf", "bpf")}
    for how, top in tops.items():
        gives_up(top, g, how)
    n.same([overhead(r) for r in calm.skip(10).end() if overhead(r)], [], "within the bound nothing is given up")
    g.stop()
    n.done()


main()
