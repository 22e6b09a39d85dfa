#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, kvm-exits, tracefs, debugfs, perf-events
# limit: 60
"""An exit that stays open shows while it is open. Only a KVM that fires kvm_exit can tell."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n


def main():
    g = n.Guest("out:100 hold:3000 out:100")
    top = n.Kvmtop("--event", "vmexit,userexit", delay=0.25).skip(2)
    g.go()
    top.skip(8)
    r = top.end()
    rows = [vm["vcpus"][0] for x in r for vm in n.vms_of(x, g.pid) if vm["vcpus"]]
    held = [v for v in rows if v.get("open_ns")]
    n.ok(len(held) >= 4, "an exit of 3 s is listed in each interval while it is open", rows[-1:])
    n.ok(n.every(a["open_ns"] < b["open_ns"] for a, b in zip(held, held[1:])), "and it grows", held)
    n.ok(held and held[-1]["exit_pct"] and held[-1]["exit_pct"] > 95, "and it is in %EXIT",
         held[-1:])
    n.ok(any(f["rule"] == "open-exit" for x in r for f in x["findings"]),
         "and a finding says so from one second on", [f["rule"] for f in r[-1]["findings"]])
    g.wait()
    n.done()


main()
