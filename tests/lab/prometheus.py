#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 120
"""In the lab (run.sh): metrics of real exits: counters that never fall and end at what the guest did, gauges that
are what the counters grew by, and what waits told apart from what is handled."""

import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n
import prom_text as prom

LOOPS, OUTS = 60, 20


class Metrics:
    """kvmtop --batch --format prometheus into a file; its expositions."""

    def __init__(self, *args):
        self.path = os.path.join(os.environ.get("TEST_TMP", "/tmp"), f"metrics-{os.getpid()}")
        with open(self.path, "wb") as f:
            self.p = n.child([n.KVMTOP, "-b", "--format", "prometheus", "-d", "1", "--max-overhead", "0", *args],
                             stdin=subprocess.DEVNULL, stdout=f)

    def text(self):
        with open(self.path, encoding="utf-8") as f:
            return f.read()

    def more(self, count):
        """Waits for so many more."""
        want = self.text().count("# EOF\n") + count
        n.wait_for(lambda: self.text().count("# EOF\n") >= want, 30)

    def end(self):
        self.p.send_signal(signal.SIGTERM)
        n.same(self.p.wait(20 * n.PATIENCE), 0, "SIGTERM ends it well")
        n.ok(self.text().endswith("\n# EOF\n"), "after a whole exposition")
        return [prom.parse(x) for x in prom.expositions(self.text())]


NOTHING = prom.Family("", "", {})


def counters(m):
    return {(name, k): v for name, f in m.items() if f.type == "counter" for k, v in f.samples.items()}


def never_fall(all_of):
    fallen = []
    for a, b in zip(all_of, all_of[1:]):
        old, new = counters(a), counters(b)
        fallen += [(k, old[k], new[k]) for k in old if k in new and new[k] < old[k]]
    n.same(fallen, [], "no counter falls")


def grow_by_the_rate(all_of, vm):
    """A counter's growth is the gauge of the interval times its length: both are of the same events."""
    wrong, seen = [], 0
    for a, b in zip(all_of, all_of[1:]):
        for key, rate in b.get("kvmtop_vm_exit_reason_count_per_second", NOTHING).samples.items():
            if ("vm_id", vm) not in key or key not in a.get("kvmtop_vm_exits_total", NOTHING).samples:
                continue
            grew = b["kvmtop_vm_exits_total"].samples[key] - a["kvmtop_vm_exits_total"].samples[key]
            seen += grew > 0
            if abs(grew - rate * prom.value(b, "kvmtop_interval_seconds")) > 0.01 + 0.001 * grew:
                wrong.append((dict(key), grew, rate))
    n.ok(not wrong and seen, "a counter grows by what the gauge of the interval says", (seen, wrong[:5]))


def main():
    guest = n.Guest("-m", "user", "-l", LOOPS, f"hold:20 out:{OUTS} cpuid:10")
    waits = n.Guest("-H", 100, "-l", "inf", "hlt:1")
    top = Metrics("--table", "exit", "--event", "vmexit,ioport,userexit")
    top.more(2)
    guest.go(), waits.go()
    guest.wait(60)
    top.more(2)
    waits.kill()
    got = top.end()
    ids = {dict(k)["pid"]: dict(k)["vm_id"] for m in got for k in m.get("kvmtop_vm_info", NOTHING).samples}
    vm, sleeper = ids.get(str(guest.pid)), ids.get(str(waits.pid))
    mine = [m for m in got if prom.value(m, "kvmtop_vm_info", vm_id=vm)]
    n.ok(len(mine) > 2 and vm != sleeper, "both guests were there", (len(got), len(mine), ids))
    outs = [prom.value(m, "kvmtop_vm_exits_total", vm_id=vm, kind="ioport", reason="0x3f8:POUT") for m in mine]
    n.same(outs[-1] if outs else None, LOOPS * OUTS, "the counter ends at what the guest wrote to the port")
    n.same(prom.value(got[-1], "kvmtop_host_exits_total", kind="ioport", reason="0x3f8:POUT"), LOOPS * OUTS,
           "and the host's has it still when the VM is gone")
    never_fall(got)
    grow_by_the_rate(got, vm)
    hlt = [dict(k) for m in got for k in m.get("kvmtop_vm_exits_total", NOTHING).samples
           if ("reason", "hlt") in k and ("vm_id", sleeper) in k]
    n.ok(n.every(x.get("idle") == "idle" for x in hlt), "waiting is marked as such", hlt[:3])
    # The VMM slept 20 ms in one exit of each loop.
    io = [prom.value(m, "kvmtop_vm_exit_seconds_total", vm_id=vm, kind="vmexit", reason="io") for m in mine]
    n.ok(io and io[-1] is not None and io[-1] >= LOOPS * 0.02, "the time in exits has what the VMM slept in them", io)
    n.done()


main()
