#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 120
"""In the lab, on the patched kernel and on the stock one: kvmtop's steal of vCPUs that share a CPU.

From gstime where the kernel has it, else from the run delay, and the same figure.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import gstime as g  # noqa: E402
import native as n  # noqa: E402


def main():
    guest = n.Guest("-c", 2, "-p", f"{g.CPU},{g.CPU}", "spin:inf").go()
    source = "gstime" if g.patched() else "rundelay"
    top = n.Kvmtop("--threads-by", "proc", delay=1).skip(3)
    first = len(top.records)
    top.skip(6)
    records = top.end()[first:first + 6]
    vms = [vm for r in records for vm in n.vms_of(r, guest.pid)]
    n.ok(vms and all(vm["steal_source"] == source for vm in vms), f"kvmtop: %STEAL comes from {source}",
         [vm["steal_source"] for vm in vms])
    for v in range(2):
        steal, cpu = ([vm["vcpus"][v][key] for vm in vms] for key in ("steal_pct", "cpu_pct"))
        n.say(f"vCPU {v}: steal {steal}, CPU {cpu}")
        n.near(sum(steal + cpu) / len(vms), 100, 6, f"vCPU {v}, which never sleeps, ran or was kept waiting all the time")
        n.ok(sum(steal) / len(vms) > 20, f"vCPU {v}: and it was kept waiting", steal)
    guest.stop()
    n.done()


main()
