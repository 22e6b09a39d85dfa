#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, debugfs, perf-events
# sanitize: no, a slow reader is made on purpose here
# limit: 300
"""With a ring made too small on purpose, counted + lost is the true count, for each kind.

Where KVM fires no kvm_exit, user exits are always collected beside the kind that is asked for; `lost`
is of all that is collected, so the two are added up.
"""

import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

SMALL = {"KVMTOP_TEST_SMALL_RING": "1"}


def calm(before, r):
    """Nothing was lost or opened in an interval in which something was counted, nor in the one before."""
    return not r["lost"] and not before["lost"] and not n.opened(r) and any(x["count"] for vm in r["vms"] for x in vm["exits"])


def run(kind, program, slowly):
    """
    (events of our guests, are there other VMs, lost, true count, records): one guest is faster than the ring is read,
    the other goes on slowly when that is over.
    """
    g, slow = n.Guest(program), n.Guest("-l", "inf", "-r", 20, slowly)
    top = n.Kvmtop("--event", kind, env=SMALL, delay=0.5).skip(1)
    slow.go(), g.go().wait()
    top.settle()
    for _ in range(6):
        if calm(top.records[-1], top.next()):
            break
    slow.stop()
    r = top.settle().end()
    want = sum(c for x in (g, slow) for k, c in n.truth(x.counts).items() if k[0] in (kind, "userexit"))
    ours = sum(sum(n.only(n.counted(r, x.pid), kind, "userexit").values()) for x in (g, slow))
    others = len({vm["pid"] for x in r for vm in x["vms"]} - {g.pid, slow.pid})
    return ours, others, n.lost(r), want, r


def marked(r):
    """True where a kind's count is said to be too low."""
    return any(x["partial"] for vm in r["vms"] for x in vm["exits"])


def marks(records, others, name):
    rows = [r for r in records if r["lost"] and any(vm["exits"] for vm in r["vms"])]
    n.ok(rows and all(map(marked, rows)), f"{name}: counts are partial where events were lost",
         [(r["lost"], marked(r)) for r in records])
    whole = [r for before, r in zip(records, records[1:]) if calm(before, r)]
    if others and not whole:
        n.skip(f"{name}: and nowhere else", "other VMs of this host lose events all the time")
    else:
        n.ok(n.every(not marked(r) for r in whole), f"{name}: and nowhere else",
             [(r["lost"], marked(r)) for r in records])


def one(kind, program, slowly, name):
    for _ in range(3):
        got, others, lost, want, records = run(kind, program, slowly)
        n.say(f"{name}: {got} counted, {lost} lost, {want} true; other VMs: {others}")
        if not others:
            break
        time.sleep(3)
    n.ok(lost > 0, f"{name}: the small ring does lose events", f"lost {lost}")
    n.ok(any(f["rule"] == "lost" for r in records for f in r["findings"]),
         f"{name}: a finding says that events were lost")
    marks(records, others, name)
    if n.HW:
        n.skip(f"{name}: counted + lost = true", "kvm_entry and kvm_exit are lost too, uncounted")
    elif others:
        # Nobody knows whose the lost ones are.
        n.skip(f"{name}: counted + lost = true", "other VMs of this host make such events too")
    else:
        n.same(got + lost, want, f"{name}: counted + lost = true")


def as_text():
    """The mark of a count that is too low, for people."""
    g = n.Guest("out:60000").go()
    p = n.child([n.KVMTOP, "--batch", "--table", "exit", "--event", "ioport", "-d", "0.5", "-n", "6",
                 "--fields", "kind,key,count"], env={**os.environ, **SMALL}, stdout=-1, text=True)
    out = p.communicate(timeout=60)[0]
    g.wait()
    lost = re.findall(r" lost ([1-9]\d*)\n(?:#.*\n)*TIME.*\n((?:.* ioport .*\n)+)", out)
    n.ok(n.every(re.search(r" ~\d+$", rows, re.M) for _, rows in lost),
         "text: ~ before a count that is too low", out)


def main():
    one("ioport", "out:60000", "out:1", "port writes")
    one("mmio", "mmiow:60000", "mmiow:1", "MMIO writes")
    one("msr", "wrmsr:40000 rdmsr:20000", "wrmsr:1 out:1", "MSR accesses")
    one("userexit", "in:60000", "in:1", "user exits")
    as_text()
    n.done()


main()
