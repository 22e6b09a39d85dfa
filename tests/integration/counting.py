#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, debugfs, perf-events, cmd:bpftool
# sanitize: no, the kernel's half is the same
# limit: 300
"""Counting in the kernel: beside a perf of others, with too many keys, threads that come and go, and a
kvmtop that is killed."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

KINDS = ("ioport", "mmio", "msr", "userexit")
ARGS = ("--event", ",".join(KINDS), "--max-overhead", "0")
MIX = "out:100 in:101 mmior:102 mmiow:103 rdmsr:104 wrmsr:105 hlt:106"
THREADS = int(os.environ.get("TEST_THREADS", "2000"))


def said(record):
    return next(s["why"] for s in record["sources"] if s["name"] == "kvm_events")


def runs():
    """{id: runs} of the programs on kvm_pio, as far as the kernel counted them."""
    out = subprocess.run(["bpftool", "-j", "prog", "show"], capture_output=True, text=True, check=True).stdout
    return {p["id"]: p.get("run_cnt", 0) for p in json.loads(out) if p.get("name") == "kvmtop_pio"}


def by_kind(counts):
    total = {}
    for (kind, _), c in counts.items():
        total[kind] = total.get(kind, 0) + c
    return total


def beside_perf():
    """A program that returned 0 would take the events away from everybody else."""
    g = n.Guest("out:3000")
    bpf, perf = (n.Kvmtop("--events-by", how, *ARGS).skip(2) for how in ("bpf", "perf"))
    g.go().wait()
    records = [top.settle().end() for top in (bpf, perf)]
    got = [n.only(n.counted(r, g.pid), *KINDS) for r in records]
    n.same([r[-1]["host"]["events_by"] for r in records], ["bpf", "perf"], "a record says which of them counted")
    n.same(got[0], n.truth(g.counts), "counted in the kernel: the guest's own counts")
    n.same(got[1], got[0], "and perf beside it sees each event too")


def without_types():
    """The running kernel's type information is not needed: where events' fields are, their formats say."""
    types = "/sys/kernel/btf"
    hidden = os.path.isdir(types)
    if hidden:
        n.sh("mount", "-t", "tmpfs", "none", types)
    try:
        g = n.Guest("-c", 2, MIX)
        top = n.Kvmtop("--events-by", "bpf", *ARGS).skip(2)
        g.go().wait()
        r = top.settle().end()
    finally:
        if hidden:
            n.unmount(types)
    n.same(n.only(n.counted(r, g.pid), *KINDS), n.truth(g.counts), "without the kernel's types: the guest's own counts")


def full():
    g = n.Guest("-c", 12, MIX)
    top = n.Kvmtop("--events-by", "bpf", *ARGS, env={"KVMTOP_TEST_FEW_KEYS": "1"}).skip(2)
    g.go().wait()
    r = top.settle().end()
    got = n.only(n.counted(r, g.pid), *KINDS)
    n.same(by_kind(got), by_kind(n.truth(g.counts)), "no room for all keys: the sums of the kinds are right")
    n.ok(any(key == "other" for _, key in got), "some are `other`", got)
    n.ok(any("more keys" in said(x) for x in r), "and it is said", {said(x) for x in r})
    n.same(n.lost(r), 0, "nothing is lost")


def short_lives():
    top = n.Kvmtop("--events-by", "bpf", *ARGS, delay=0.5).skip(2)
    want, pids, threads = {}, [], 0
    while threads < THREADS:
        guests = [n.Guest("-c", 40, "out:3 in:2 mmiow:1") for _ in range(2)]
        for g in guests:
            g.go()
        for g in guests:
            for k, c in n.truth(g.wait()).items():
                want[k] = want.get(k, 0) + c
            pids.append(g.pid)
            threads += 40
    r = top.settle().end()
    got = {}
    for x in r:
        for vm in x["vms"]:
            # A thread that ended before anybody could look at it is a VM of its own.
            of = vm["name"].split()[0].rpartition(":")
            if vm["pid"] in pids or of[0] == "tid" or of[2] in map(str, pids):
                n.add_counts(vm["exits"], got)
    n.same({k: c for k, c in got.items() if k in want}, want, f"{threads} threads that live for a moment: each event of each is there")
    n.same(n.lost(r), 0, "there is always room for the next one")


def buffers(*args):
    """How many buffers of events a kvmtop maps that counts a guest's events in the kernel."""
    top = n.Kvmtop("--events-by", "bpf", *args).skip(4)
    with open(f"/proc/{top.p.pid}/maps", encoding="utf-8", errors="replace") as f:
        mapped = sum("[perf_event]" in line for line in f)
    top.end()
    return mapped


def alone():
    """-F 0 takes no samples, nor single exits to say where they left their guests: nothing has a buffer."""
    g = n.Guest("-l", "inf", "out:100").go()
    n.ok(buffers() > 0, "samples and some of the exits have buffers")
    n.same(buffers("-F", "0"), 0, "counting alone has none")
    g.stop()


def code_of_one():
    """Which code makes exits is in single events: of a VM that is selected only its vCPUs' rings take them."""
    code = ("-F", "0", "--table", "exit-code")
    g, other = n.Guest("-c", 3, "-l", "inf", "out:100").go(), n.Guest("-l", "inf", "out:100").go()
    n.same(buffers(*code), len(n.CPUS), "exits by guest code: of all VMs, a buffer a CPU")
    n.same(buffers(*code, "-p", g.pid), 3, "of one, a buffer a vCPU of it")
    n.same(buffers(*code, "-p", f"{g.pid},{other.pid}"), 4, "of two, the same")
    n.same(buffers(*code, "-p", os.getpid()), 0, "of none, no buffer")
    g.stop(), other.stop()


def killed():
    others = set(runs())
    top = n.Kvmtop("--events-by", "bpf", *ARGS).skip(2)
    mine = set(runs()) - others
    n.ok(mine, "its programs are loaded", runs())
    top.p.kill()
    top.p.wait()
    n.ok(n.wait_for(lambda: not mine & set(runs())), "after a kill -9 nothing is left of it", (mine, runs()))


def costs():
    """
    The programs measure themselves, one run in many: the kernel's measuring, which counts how often one ran, would
    take longer than they do. Others may ask it to for a while.
    """
    others = set(runs())
    g = n.Guest("-l", "inf", "out:100").go()
    top = n.Kvmtop("--events-by", "bpf", *ARGS).skip(2)
    mine = set(runs()) - others
    n.ok(mine, "the programs are loaded", runs())

    def unmeasured():
        before = runs()
        top.skip(3)
        after = runs()
        return n.every(i in after and before.get(i) == after[i] for i in mine)
    n.ok(n.wait_for(unmeasured), "the kernel does not measure them while they count", runs())
    r = top.end()
    g.stop()
    late = [x["host"]["self_guest_pct"] for x in r[-3:]]
    n.ok(n.every(p and 0 < p < 100 for p in late), "what they cost is said in every interval", late)


def main():
    parts = {f.__name__: f for f in (beside_perf, without_types, full, short_lives, costs, alone, code_of_one, killed)}
    for name in sys.argv[1:] or parts:
        parts[name]()
    n.done()


main()
